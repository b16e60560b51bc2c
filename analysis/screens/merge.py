"""The runs of all shards, one a row. Comes in: the runs of the document of --json."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analysis.metrics import HEADLINE
from analysis.screens.metric_names import named
from analysis.screens.parts import Heading, Part, Sentence, Table
from logparse.language import tr


def compose_merged(runs: Sequence[dict[str, Any]], failed: int, shards: int, pages: bool) -> list[Part]:
    """What was put together: the median of the headline metrics of each run. With ``pages`` each shard has one."""
    headings = (tr("run"), *map(named, HEADLINE))
    return [
        Heading(tr("{n} runs of {shards} shards", n=len(runs), shards=shards), "title"),
        *([Sentence(tr("{n} runs could not be read", n=failed), "warning")] if failed else []),
        Table(headings, tuple(map(_row, runs))),
        Sentence(tr("medians of the rows that count")),
        *_required(runs),
        *([Sentence(tr("the report.html of the runs are in the folders of their shards"))] if pages else []),
    ]


def _row(run: dict[str, Any]) -> tuple[str, ...]:
    medians = (run["metrics"].get(metric.column, {}).get("median") for metric in HEADLINE)
    return run["name"], *(metric.text(median) for metric, median in zip(HEADLINE, medians, strict=True))


def _required(runs: Sequence[dict[str, Any]]) -> list[Part]:
    """What was required of runs that are not that; in English, as the shards have it."""
    missed = [(run["name"], found) for run in runs for found in run["requirements"] if found["outcome"] != "pass"]
    return [Sentence(f"{name}: {found['sentence']}", "warning") for name, found in missed]
