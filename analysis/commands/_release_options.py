"""Options that the commands about releases share, each written once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import cache
from typing import Annotated

import typer

from analysis.commands import _completion
from analysis.compare.threshold import NOISE
from analysis.present.words import say
from logparse.errors import UsageError
from logparse.findings import Note
from logparse.language import tr

SIGNS = {"warning": "! ", "info": ""}
HistoryDir = Annotated[
    str | None,
    typer.Option(
        "--history",
        metavar="DIR",
        help="Folder or URL of recorded runs.",
    ),
]
Threshold = Annotated[
    str | None,
    typer.Option(
        "--threshold",
        metavar=f"PERCENT|{NOISE}",
        show_default=NOISE,
        help="Smallest change to report, such as 1%; noise: from repeated runs.",
    ),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        autocompletion=_completion.metrics,
        metavar="NAME",
        help="Metric to judge, such as mfu; repeatable. --help-all lists them.",
    ),
]
Tolerances = Annotated[
    list[str] | None,
    typer.Option(
        "--require",
        autocompletion=_completion.tolerances,
        metavar="'FIGURE<=NUMBER'",
        help="Limit, such as 'loss_mre<=0.02'; repeatable.",
    ),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="FIELD",
        help="Fields that may differ, such as seq_length,recompute.",
    ),
]


def teller() -> Callable[[Note], None]:
    """A function that prints notes on stderr, each text once."""

    @cache
    def warn_once(text: str) -> None:
        typer.echo(text, err=True)

    return lambda note: warn_once(f"{SIGNS[note.level]}{say(note)}")


def parse_day(name: str, text: str) -> date:
    """The day that the option ``name`` gives. Raises UsageError for anything that is none."""
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        problem = tr("{name} is {value!r}", name=name, value=text)
        raise UsageError(problem, remedy=tr("give a date such as 2026-03-01")) from error
