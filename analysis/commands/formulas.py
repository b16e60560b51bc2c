"""``logparse formulas``: by which formula a log's TFLOP/s was printed. Reads options, calls, prints."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from analysis.commands import _options as options
from analysis.commands._quantity_flags import with_quantity_flags
from analysis.identify import Identification, ImpliedPeak, implied_peak
from analysis.pipeline.analyze import analyze_run, choose
from analysis.pipeline.load import gather, load
from analysis.screens.console import fold, make_console
from analysis.screens.findings_json import note_document
from analysis.screens.words import say
from logparse.findings import Note
from logparse.language import tr
from logparse.schema import SCHEMA_VERSION

if TYPE_CHECKING:
    from rich.table import Table


@with_quantity_flags
def formulas(
    logs: options.Logs,
    given: dict[str, Any],
    model: options.Model = None,
    config: options.Config = None,
    log_format: options.LogFormat = None,
    dialect: options.Dialect = None,
    as_json: options.Json = False,
    no_color: options.NoColor = False,
    strict: options.Strict = False,
    lang: options.Language = None,
) -> None:
    """Say by which formula the TFLOP/s of a log was printed, and what every other formula gives for the same run.

    Frameworks count the operations of a step in different ways, and the same speed prints up to twice the TFLOP/s.
    The formula that reproduces the printed values, row by row and within their rounding, is the one the log used.

    Exit code 0 done, also where no formula fits, 2 wrong usage or unreadable input, 3 no step line found.
    """
    beside = gather(given, model, config)
    run = analyze_run(load(logs, beside, log_format, strict, dialect=dialect), choose(beside))
    log, found, peak = run.log, run.identified, implied_peak(run.steps)
    notes = (*log.notes, *run.context.notes)
    if as_json:
        typer.echo(json.dumps(_document(log.name, found, peak, notes), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        _print(log.name, found, peak, notes, no_color)


def _document(name: str, found: Identification, peak: ImpliedPeak | None, notes: tuple[Note, ...]) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "name": name,
        "logged_tflops_per_second_per_device": found.logged,
        "scale": found.scale,
        "matches": list(found.matches),
        "sentence": found.sentence,
        "formulas": [asdict(row) for row in found.rows],
        "implied_peak": asdict(peak) if peak else None,
        "notes": [note_document(note) for note in notes],
    }


def _print(name: str, found: Identification, peak: ImpliedPeak | None, notes: tuple[Note, ...], no_color: bool) -> None:
    console = make_console(no_color=no_color)
    printed = tr("no TFLOP/s") if found.logged is None else f"{found.logged:g}"
    heading = tr(
        "{name}: TFLOP/s per device at the row of median time, where the log prints {printed}",
        name=name,
        printed=printed,
    )
    console.print(fold(heading, console.width), style="bold")
    console.print(_table(found))
    console.print()
    console.print(fold(found.sentence, console.width))
    if peak:
        console.print(fold(peak.sentence, console.width))
    for note in notes:
        console.print(fold(f"! {say(note)}", console.width), style="yellow")


def _table(found: Identification) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("", "id"):
        table.add_column(heading, no_wrap=True)
    for heading in ("TFLOP/s", tr("to the log")):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column(tr("formula"), ratio=1)
    for row in found.rows:
        value, difference = row.tflops_per_second_per_device, row.difference
        lacks = tr("; needs {names}", names=", ".join(row.missing)) if row.missing else ""
        table.add_row(
            "*" if row.matches else "",
            row.id,
            "-" if value is None else f"{value:,.2f}",
            "-" if difference is None else f"{difference:+.2%}",
            tr(row.title) + lacks,
        )
    return table
