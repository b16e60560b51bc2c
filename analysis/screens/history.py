"""What people are shown of the recorded runs, and are told of what was done to them."""

from __future__ import annotations

from typing import Any

import polars as pl

from analysis.history.store import Swept
from analysis.screens.parts import Part, Sentence, Table
from logparse.language import tr


def compose_runs(runs: pl.DataFrame) -> list[Part]:
    """A row for each run."""
    headings = (tr("run"), tr("release"), tr("name"), tr("recorded, UTC"), tr("ms/step"), "tokens/s/p", tr("rows"))
    rows = tuple(_row(run) for run in runs.iter_rows(named=True))
    return [Sentence(tr("{n} runs", n=len(runs))), *([Table(headings, rows)] if rows else [])]


def removed(runs: int) -> str:
    """What ``history remove`` did."""
    return tr("{n} runs removed", n=runs)


def compacted(swept: Swept) -> str:
    """What ``history compact`` did."""
    return tr(
        "{runs} runs in one file; {removed} files of killed processes removed", runs=swept.runs, removed=swept.removed
    )


def _row(run: dict[str, Any]) -> tuple[str, ...]:
    return (
        run["run_id"][:12],
        run["release"],
        _text(run["name"]),
        _text(run["recorded_at"], "%Y-%m-%d %H:%M"),
        _text(run["steady_step_time_ms"], ",.1f"),
        _text(run["tokens_per_second_per_device"], ",.1f"),
        _text(run["counted_rows"], ","),
    )


def _text(value: Any, how: str = "") -> str:
    """What an old store does not tell is a dash."""
    return "-" if value is None else format(value, how)
