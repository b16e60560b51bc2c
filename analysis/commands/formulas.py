"""``logparse formulas``: by which formula a log's TFLOP/s was printed. Reads options, calls, prints."""

from __future__ import annotations

import json
from typing import Any

import typer

from analysis.commands import _options as options
from analysis.commands._quantity_flags import with_quantity_flags
from analysis.identify import implied_peak
from analysis.pipeline.analyze import analyze_run, choose
from analysis.pipeline.load import gather, load
from analysis.screens.console import make_console
from analysis.screens.formulas import formulas_document, formulas_parts
from analysis.screens.terminal import print_parts


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
    found = (run.log.name, run.identified, implied_peak(run.steps), (*run.log.notes, *run.context.notes))
    if as_json:
        typer.echo(json.dumps(formulas_document(*found), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        print_parts(make_console(no_color=no_color), formulas_parts(*found))
