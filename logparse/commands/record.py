"""``logparse record``: keep a run in a history. Reads options, calls, prints."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from analysis.releases.history import check_release
from analysis.releases.records import RunRecord
from logparse.commands import _options as options
from logparse.commands._given import with_quantity_flags
from logparse.commands._load import gather
from logparse.commands._recorded import Marks, Reading, parse_pairs, record_logs
from logparse.commands._release_options import HistoryDir
from logparse.commands._sides import open_history
from logparse.decode import run_names
from logparse.language import tr

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
    check_release(release)
    marks = Marks(release, parse_pairs(label or [], "--label"), parse_pairs(version_of or [], "--version-of"))
    reading = Reading(
        gather(given, model, config), hw, peak_tflops, peak_basis, formula, log_format, dialect, warmup, strict
    )
    store = open_history(history, must_exist=False)
    runs = [[log] for log in logs] if each else [logs]
    done: list[tuple[RunRecord, str]] = []
    for run, name in zip(runs, run_names(runs), strict=True):
        kept = record_logs(run, reading, marks, name)
        done.append((kept, store.add(kept)))
    _print(done, as_json)


def _print(done: list[tuple[RunRecord, str]], as_json: bool) -> None:
    if as_json:
        rows = [{"run_id": r.run_id, "name": _name(r), "release": r.release, "state": state} for r, state in done]
        typer.echo(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    for kept, state in done:
        fields = {"name": _name(kept), "id": kept.run_id[:12], "release": kept.release}
        if state == "known":
            typer.echo(tr("{name}: run {id} of {release} was recorded before; nothing changed", **fields))
        else:
            typer.echo(tr("{name}: recorded as run {id} of {release}", **fields))


def _name(record: RunRecord) -> str:
    return str(record.summary["name"].item())
