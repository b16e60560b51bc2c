"""``logparse explain``: what a warning or a failure means, and what to do. Reads options, calls, prints."""

from __future__ import annotations

from typing import Annotated

import typer

from analysis.commands import _completion
from analysis.commands import _options as options
from analysis.present.console import make_console
from analysis.present.terminal import print_parts
from analysis.present.views.explain import explain as explanation_of
from analysis.present.views.explain import explanation_parts, list_of_codes
from logparse.language import msg

Code = Annotated[
    str | None,
    typer.Argument(
        metavar="[CODE]",
        autocompletion=_completion.codes,
        help=msg("Code of a warning, or family, next step or signature of a failure; default: list all."),
    ),
]


def explain(code: Code = None, no_color: options.NoColor = False, lang: options.Language = None) -> None:
    """Explain the code of a warning or a failure: what it means, and what to do.

    `logparse analyze -v` shows the code of a warning in brackets; the JSON of `diagnose` has those of a failure.

    Exit code: 0 done, 2 unknown code.
    """
    parts = list_of_codes() if code is None else explanation_parts(explanation_of(code))
    print_parts(make_console(no_color=no_color), parts)
