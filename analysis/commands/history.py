"""``logparse history``: look after the recorded runs. Reads options, calls, prints."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from analysis.commands import _options as options
from analysis.commands._release_options import HistoryDir
from analysis.history.selection import select_runs
from analysis.outputs import write_parquet, write_whole
from analysis.pipeline.sides import open_history
from analysis.screens.console import make_console
from analysis.screens.parts import Sentence, Table
from analysis.screens.terminal import print_parts
from logparse.errors import UsageError
from logparse.language import tr
from logparse.schema import SCHEMA_VERSION

Select = Annotated[
    str | None, typer.Argument(metavar="[SEL]", help="Runs: key=value[,key=value ...]; leave out for all.")
]
Run = Annotated[str, typer.Argument(metavar="RUN", help="The beginning of a run's id.")]
Runs = Annotated[list[str], typer.Argument(metavar="RUN...", help="The beginnings of ids.")]
Target = Annotated[Path, typer.Argument(metavar="FILE", help="Table to write: .csv, .parquet or .json.")]
ToExport = Annotated[str | None, typer.Option("--select", metavar="SEL", help="Only these runs: key=value[,...].")]
Overwrite = Annotated[bool, typer.Option("--force", help="Overwrite FILE.")]


def list_runs(
    select: Select = None, history: HistoryDir = None, as_json: options.Json = False, lang: options.Language = None
) -> None:
    """List the recorded runs: id, release, name, time per step, tokens/s/p, steps."""
    runs = _chosen(history, select)
    if as_json:
        document = {"schema_version": SCHEMA_VERSION, "runs": _plain(runs)}
        typer.echo(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))
        return
    headings = (tr("run"), tr("release"), tr("name"), tr("recorded, UTC"), tr("ms/step"), "tokens/s/p", tr("rows"))
    rows = tuple(_row(run) for run in runs.iter_rows(named=True))
    print_parts(make_console(), [Sentence(tr("{n} runs", n=len(runs))), *([Table(headings, rows)] if rows else [])])


def show(run: Run, history: HistoryDir = None, lang: options.Language = None) -> None:
    """Print all that is kept of one run as JSON, settings and origins too."""
    store = open_history(history)
    rows = store.settings([store.find(run)])
    typer.echo(json.dumps(_plain(rows)[0], indent=1, ensure_ascii=False, allow_nan=False))


def remove(runs: Runs, history: HistoryDir = None, lang: options.Language = None) -> None:
    """Remove runs for good, such as one that was recorded under a wrong release."""
    store = open_history(history)
    gone = store.remove([store.find(run) for run in runs])
    typer.echo(tr("{n} runs removed", n=gone))


def compact(history: HistoryDir = None, lang: options.Language = None) -> None:
    """Copy all summaries into one file, so that thousands of runs are read at once. Safe while others record."""
    swept = open_history(history).compact()
    told = tr(
        "{runs} runs in one file; {removed} files of killed processes removed", runs=swept.runs, removed=swept.removed
    )
    typer.echo(told)


def export(
    target: Target,
    history: HistoryDir = None,
    select: ToExport = None,
    force: Overwrite = False,
    lang: options.Language = None,
) -> None:
    """Write the recorded runs as one table, a row each. A .csv has no labels, versions and settings."""
    if target.exists() and not force:
        raise UsageError(tr("{path} exists", path=target), remedy=tr("give another name, or overwrite with --force"))
    runs = _chosen(history, select, heavy=target.suffix != ".csv")
    flat = [name for name, dtype in runs.schema.items() if not dtype.is_nested()]

    def write_json(path: Path) -> int:
        return path.write_text(json.dumps(_plain(runs), ensure_ascii=False), encoding="utf-8")

    writers: dict[str, Callable[[], object]] = {
        ".csv": lambda: write_whole(target, runs.select(flat).write_csv),
        ".parquet": lambda: write_parquet(runs, target),
        ".json": lambda: write_whole(target, write_json),
    }
    if target.suffix not in writers:
        remedy = tr("give a name that ends in {endings}", endings=", ".join(writers))
        raise UsageError(tr("cannot write {path}", path=target), remedy=remedy)
    writers[target.suffix]()
    make_console(stderr=True).print(tr("wrote {path}", path=target))


list_runs.__name__ = "list"
COMMANDS = (list_runs, show, remove, compact, export)


def _chosen(history: str | None, select: str | None, heavy: bool = False) -> pl.DataFrame:
    runs = open_history(history).runs(heavy)
    return runs if select is None else select_runs(runs, select)


def _row(run: dict[str, Any]) -> tuple[str, ...]:
    return (
        run["run_id"][:12],
        run["release"],
        _shown(run["name"]),
        _shown(run["recorded_at"], "%Y-%m-%d %H:%M"),
        _shown(run["steady_step_time_ms"], ",.1f"),
        _shown(run["tokens_per_second_per_device"], ",.1f"),
        _shown(run["counted_rows"], ","),
    )


def _shown(value: Any, how: str = "") -> str:
    """What an old store does not tell is a dash."""
    return "-" if value is None else format(value, how)


def _plain(runs: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON can hold them: clocks as text, NaN as null, pairs as objects."""
    floats = [name for name, dtype in runs.schema.items() if dtype == pl.Float64]
    finite = runs.with_columns(
        pl.when(pl.col(floats).is_finite()).then(pl.col(floats)), pl.col(pl.Datetime).dt.to_string("iso")
    )
    return [{key: _object(value) for key, value in row.items()} for row in finite.to_dicts()]


def _object(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return {p["name"]: {"value": p["value"], "origin": p["origin"]} if "origin" in p else p["value"] for p in value}
