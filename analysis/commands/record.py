"""``logparse record``: keep a run in a history. Reads options, calls, prints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from analysis.commands import _options as options
from analysis.commands._quantity_flags import with_quantity_flags
from analysis.commands._release_options import HistoryDir, warn
from analysis.history.records import RUN_COLUMNS
from analysis.history.store import History, RecordedElsewhereError, State, check_release
from analysis.pipeline.load import gather
from analysis.pipeline.record import Marks, Reading, keep, parse_pairs
from analysis.pipeline.run import Run
from analysis.pipeline.sides import open_history
from analysis.screens.words import say
from logparse.errors import InputError, LogparseError, NoStepLineError
from logparse.language import tr
from logparse.read.parse import run_names
from logparse.schema import SCHEMA_VERSION

Release = Annotated[
    str,
    typer.Option("--release", metavar="NAME", help='What was run, such as "CANN 8.0.RC2".'),
]
Labels = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="KEY=VALUE", help="Anything to find the run by later; repeatable."),
]
Versions = Annotated[
    list[str] | None,
    typer.Option(
        "--version-of",
        metavar="NAME=VALUE",
        help="A software version that the log does not print, such as cann=8.0.RC2; repeatable, beats the log.",
    ),
]
# A selector takes these for columns.
TAKEN = ("release", *(column.name for column in RUN_COLUMNS))
# With --each the other logs are recorded all the same; whatever else goes wrong would go wrong with them too.
OF_ONE_LOG = (InputError, NoStepLineError)
# Notes that say that files given as one run may be several.
PERHAPS_ANOTHER_RUN = ("training_begun_again", "file_at_another_pace", "copy_ahead", "copy_behind")
# What differs may be much, where another logparse recorded it; --json has all.
MOST_NAMED = 8


@dataclass(frozen=True)
class Recorded:
    """What became of one run. ``differs`` names what is kept of it otherwise than said now."""

    run_id: str
    name: str
    release: str
    sources: tuple[str, ...]
    state: State
    differs: tuple[str, ...]


@with_quantity_flags
def record(
    logs: options.Logs,
    given: dict[str, Any],
    release: Release,
    history: HistoryDir = None,
    label: Labels = None,
    version_of: Versions = None,
    hw: options.Hardware = None,
    peak_tflops: options.PeakTflops = None,
    peak_basis: options.PeakBasis = None,
    model: options.Model = None,
    formula: options.FormulaName = None,
    config: options.Config = None,
    log_format: options.LogFormat = None,
    dialect: options.Dialect = None,
    warmup: options.Warmup = None,
    each: options.Each = False,
    strict: options.Strict = False,
    as_json: options.Json = False,
    lang: options.Language = None,
) -> None:
    """Keep what a run achieved, so that later releases can be compared with it.

    Several LOGs are one run, as for `logparse analyze`; with --each every LOG is one. The history is a folder of
    Parquet files that needs no server and no lock: many jobs may record into it at once. Recording a log again changes
    nothing. The log itself is not kept.

    Exit code 0 done, 2 wrong usage or unreadable input, 3 no step line found.
    """
    release = release.strip()
    check_release(release)
    marks = Marks(release, parse_pairs(label or [], "--label", TAKEN), parse_pairs(version_of or [], "--version-of"))
    reading = Reading(
        gather(given, model, config), hw, peak_tflops, peak_basis, formula, log_format, dialect, warmup, strict
    )
    store = open_history(history, must_exist=False)
    done, failed = _record_all([[log] for log in logs] if each else [logs], reading, marks, store)
    _print(done, as_json)
    for error in failed:
        typer.echo(f"logparse: {error}", err=True)
    if failed:
        raise typer.Exit(failed[0].exit_code)


def _record_all(
    runs: Sequence[Sequence[str]], reading: Reading, marks: Marks, store: History
) -> tuple[list[Recorded], list[LogparseError]]:
    """Record every run, whatever is wrong with another's log. Raises where none can be recorded."""
    done: list[Recorded] = []
    failed: list[LogparseError] = []
    for run, name in zip(runs, run_names(runs), strict=True):
        try:
            result = reading.analyze(run, name)
        except OF_ONE_LOG as error:
            failed.append(error)
            continue
        try:
            done.append(_record(result, marks, store))
        except RecordedElsewhereError as error:
            failed.append(error)
        except InputError as error:
            # What is wrong with the store is so for every log.
            failed.append(error)
            break
    if not done:
        raise failed[0]
    return done, failed


def _record(result: Run, marks: Marks, store: History) -> Recorded:
    # The one thing to know before it is kept for good; whatever else is odd is `logparse analyze`'s to say.
    for note in result.notes:
        if note.code in PERHAPS_ANOTHER_RUN:
            warn(say(note))
    kept = keep(result, marks)
    state = store.add(kept)
    differs = () if state == "recorded" else tuple(store.differences(kept))
    return Recorded(kept.run_id, result.log.name, kept.release, result.log.sources, state, differs)


def _print(done: list[Recorded], as_json: bool) -> None:
    if as_json:
        document = {"schema_version": SCHEMA_VERSION, "runs": [asdict(one) for one in done]}
        typer.echo(json.dumps(document, indent=1, ensure_ascii=False))
    for one in done:
        if not as_json:
            typer.echo(_sentence(one))
        if one.differs:
            more = len(one.differs) - MOST_NAMED
            names = tr(", ").join(one.differs[:MOST_NAMED]) + (tr(" and {n} more", n=more) if more > 0 else "")
            text = tr("{name}: differs from what is kept of it in {names}", name=one.name, names=names)
            remedy = tr("to change it: logparse history remove {id}, then record it again", id=one.run_id[:12])
            warn(f"{text}\n{remedy}")


def _sentence(one: Recorded) -> str:
    fields = {"name": one.name, "id": one.run_id[:12], "release": one.release}
    if one.state == "known":
        return tr("{name}: run {id} of {release} was recorded before; nothing changed", **fields)
    if one.state == "completed":
        return tr(
            "{name}: run {id} of {release} was recorded before; its steps were lost or damaged and are kept again",
            **fields,
        )
    if len(one.sources) > 1:
        return tr("{name}: {n} logs, one run, recorded as run {id} of {release}", n=len(one.sources), **fields)
    return tr("{name}: recorded as run {id} of {release}", **fields)
