"""``logparse history``: look after the recorded runs. Reads options, calls, prints."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from analysis.commands import _options as options
from analysis.commands._forms import Form, print_json
from analysis.commands._history_events import COMMANDS as OF_EVENTS
from analysis.commands._history_events import Named, named_runs, regressions
from analysis.commands._input_files import check_output_file
from analysis.commands._release_options import HistoryDir, teller
from analysis.files.outputs import write_parquet, write_through, write_whole
from analysis.history.events import Event
from analysis.history.open_history import open_history
from analysis.history.selection import select_evidence, select_runs
from analysis.history.store import History
from analysis.nightly.run_verdicts import verdicts_of_runs
from analysis.present.views.history import compacted, compose_runs, document, event_documents, removed, run_documents
from analysis.project.project_file import history_place, project_policy
from analysis.spreadsheet import without_formulas
from logparse.errors import UsageError
from logparse.findings import info
from logparse.language import tr

Select = Annotated[str | None, typer.Argument(metavar="[SEL]", help="Runs to list; default: all.")]
Target = Annotated[Path, typer.Argument(metavar="FILE", help="Table to write: .csv, .parquet or .json.")]
ToExport = Annotated[
    str | None, typer.Option("--select", metavar="SEL", help="Only these runs, selected as in `logparse history list`.")
]
Overwrite = Annotated[bool, typer.Option("--force", help="Overwrite FILE.")]


def history() -> None:
    """Manage recorded runs: list, show, remove, export, exclude, annotate, label, accept."""


def list_runs(
    select: Select = None, history: HistoryDir = None, as_json: options.Json = False, lang: options.Language = None
) -> None:
    """List the recorded runs, with step time and tokens/s per device.

    SEL is one or more conditions, separated by commas: key=value, key!=value, key<8, key~glob, key in A|B. A key is
    a column, a version or a label. A run without the key never matches.

    Also: since=2026-03-01, until=2026-03, id=abc123, `last 10`. Quote a value with a comma: release="CANN 8,
    torch=2.1".
    """
    store = open_history(history_place(history), teller())
    everything = store.runs()
    runs = everything if select is None else select_runs(everything, select)
    evidence = select_evidence(everything).runs
    verdicts = verdicts_of_runs(evidence, runs["run_id"], project_policy(), store.acceptances())
    Form(as_json).print(lambda: document(runs, verdicts), lambda: compose_runs(runs, verdicts))


def show(runs: Named, history: HistoryDir = None, lang: options.Language = None) -> None:
    """Show all data of a run, or of several, as JSON."""
    store = open_history(history_place(history), teller())
    events = store.events()
    documents = [_document(store, run_id, events) for run_id in named_runs(store, runs)]
    shown = documents[0] if len(documents) == 1 else documents
    print_json(shown)


def _document(store: History, run_id: str, events: Sequence[Event]) -> dict[str, Any]:
    (kept,) = run_documents(store.row(run_id))
    return kept | {"events": event_documents(event for event in events if event.run_id == run_id)}


def remove(runs: Named, history: HistoryDir = None, lang: options.Language = None) -> None:
    """Remove runs permanently, with their notes."""
    store = open_history(history_place(history), teller())
    typer.echo(removed(store.remove(named_runs(store, runs))))


def compact(history: HistoryDir = None, lang: options.Language = None) -> None:
    """Pack the run summaries to speed up large histories. Safe while other jobs record."""
    typer.echo(compacted(open_history(history_place(history), teller()).compact()))


def export(
    target: Target,
    history: HistoryDir = None,
    select: ToExport = None,
    force: Overwrite = False,
    lang: options.Language = None,
) -> None:
    """Export the recorded runs as a table with one row per run. A .csv file has no labels, versions or settings."""
    place = history_place(history)
    if place is not None and target.suffix == ".parquet":
        check_output_file(target, [place])
    if target.exists() and not force:
        raise UsageError(tr("{path} exists", path=target), remedy=tr("give another name, or overwrite with --force"))
    runs = _chosen(history, select, heavy=target.suffix != ".csv")
    flat = [name for name, dtype in runs.schema.items() if not dtype.is_nested()]

    def write_json(path: Path) -> int:
        return path.write_text(json.dumps(run_documents(runs), ensure_ascii=False), encoding="utf-8")

    writers: dict[str, Callable[[], object]] = {
        ".csv": lambda: write_through(target, without_formulas(runs.select(flat)).write_csv),
        ".parquet": lambda: write_parquet(runs, target),
        ".json": lambda: write_whole(target, write_json),
    }
    if target.suffix not in writers:
        remedy = tr("use a file name that ends in {endings}", endings=", ".join(writers))
        raise UsageError(tr("cannot write {path}", path=target), remedy=remedy)
    writers[target.suffix]()
    teller()(info("wrote", path=target))


list_runs.__name__ = "list"
COMMANDS = (list_runs, regressions, show, remove, compact, export, *OF_EVENTS)


def _chosen(history: str | None, select: str | None, heavy: bool = False) -> pl.DataFrame:
    runs = open_history(history_place(history), teller()).runs(heavy)
    return runs if select is None else select_runs(runs, select)
