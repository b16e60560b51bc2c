"""``logparse formats``: the logs that can be read. Reads options, calls, prints."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from analysis.commands import _completion
from analysis.commands import _options as options
from analysis.screens.console import make_console
from analysis.screens.formats import format_parts, formats_document, formats_parts
from analysis.screens.terminal import print_parts
from logparse.formats import all_formats, find_format

Name = Annotated[str | None, typer.Argument(metavar="[NAME]", autocompletion=_completion.formats)]


def formats(
    name: Name = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list of formats instead of a table.")] = False,
    lang: options.Language = None,
) -> None:
    """List the logs that can be read, each with a line of it, or show one with the labels it reads.

    NAME is one of them, or a TOML file with a format of your own, which --format takes too: docs/formats.md.
    """
    chosen = all_formats() if name is None else (find_format(name),)
    if as_json:
        typer.echo(json.dumps(formats_document(chosen), indent=1, ensure_ascii=False))
    else:
        print_parts(make_console(), format_parts(chosen[0]) if name else formats_parts(chosen))
