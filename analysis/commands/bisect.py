"""``logparse bisect``: which change made a side slower, and which run to do next. Reads options, calls, prints."""

from __future__ import annotations

from typing import Annotated

import typer

from analysis.commands import _options as options
from analysis.commands._forms import Form
from analysis.commands._named_sides import named_sides
from analysis.commands._release_options import Allow, HistoryDir, teller
from analysis.commands._run_flags import COMPUTING, READING, with_run_flags
from analysis.compare.bisect_runs import find_plan
from analysis.compare.comparability import check_allowed
from analysis.compare.verdict import DEFAULT_METRIC, find_metric
from analysis.present.views.bisect import compose_plan, document
from analysis.run.options import RunOptions

Good = Annotated[
    str,
    typer.Argument(
        metavar="GOOD",
        help="Fast side: a log, a folder of runs, a run id, or key=value.",
    ),
]
Bad = Annotated[str, typer.Argument(metavar="BAD", help="Slow side, in the same form.")]


@with_run_flags(**COMPUTING, **READING)
def bisect(
    good: Good,
    bad: Bad,
    how: RunOptions,
    history: HistoryDir = None,
    allow: Allow = None,
    as_json: options.Json = False,
    no_color: options.NoColor = False,
    lang: options.Language = None,
) -> None:
    """Find the change that caused a slowdown, or propose the next run to find it.

    Exit code: 0 done, 2 wrong usage or not comparable, 3 no step line found.
    """
    allowed = check_allowed(allow or [])
    compared = named_sides((good, bad), history, how, teller())
    first, second = compared.sides
    plan = find_plan(first, second, find_metric(DEFAULT_METRIC), allowed, compared.others, compared.settings)
    Form(as_json, no_color=no_color).print(lambda: document(plan), lambda: compose_plan(plan, good, bad))
