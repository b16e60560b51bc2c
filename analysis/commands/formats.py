"""``logparse formats``: the logs that can be read, and files for others. Reads options, calls, prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from analysis.commands import _completion
from analysis.commands import _options as options
from analysis.outputs import write_whole
from analysis.present.console import make_console
from analysis.present.parts import Sentence
from analysis.present.terminal import print_parts
from analysis.present.views.format_check import check_document, check_parts
from analysis.present.views.format_draft import draft_toml, wrote
from analysis.present.views.formats import format_parts, formats_document, formats_parts
from analysis.present.words import say
from logparse.draft.check import check_format
from logparse.draft.draft import draft_format
from logparse.errors import UsageError
from logparse.formats import find_format, known_formats, packaged
from logparse.inputs.discovery import find_sources
from logparse.language import some, tr

Name = Annotated[str | None, typer.Argument(metavar="[NAME]", autocompletion=_completion.formats)]
Tested = Annotated[
    str, typer.Argument(metavar="FORMAT", autocompletion=_completion.formats, help="A TOML file, or a format's name.")
]
Logs = Annotated[list[str], typer.Argument(metavar="LOG...", help="Logs that it should read.")]

Target = Annotated[
    Path | None, typer.Option("-o", "--out", metavar="FILE", help="File to write; by default it is printed.")
]

# The command where none is given: `logparse formats` and `logparse formats NAME`.
DEFAULT = "show"


def formats() -> None:
    """List the logs that can be read, or test and draft a format of your own.

    `logparse formats` lists them, each with a line of it, and `logparse formats NAME` shows one with the labels it
    reads. How to write a file for a log that is not listed: docs/formats.md.
    """


def show(
    name: Name = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list of formats instead of a table.")] = False,
    lang: options.Language = None,
) -> None:
    """List the logs that can be read, each with a line of it, or show one with the labels it reads.

    NAME is one of them, or a TOML file with a format of your own, which --format takes too: docs/formats.md.
    """
    chosen = known_formats() if name is None else (find_format(name),)
    of = packaged()
    if as_json:
        typer.echo(json.dumps(formats_document(chosen, of.packages), indent=1, ensure_ascii=False))
        return
    console = make_console()
    print_parts(console, format_parts(chosen[0], of.packages) if name else formats_parts(chosen, of.packages))
    print_parts(make_console(stderr=True), [Sentence(say(note), "warning") for note in of.notes])


def try_format(fmt: Tested, logs: Logs, as_json: options.Json = False, lang: options.Language = None) -> None:
    """Show what a format reads of a log and what not, line by line, with what to mend.

    The exit code is 0 where every line that looks like a step line was read and every label is known, else 1.
    """
    chosen, sources = find_format(fmt), find_sources(logs)
    check = check_format(chosen, sources)
    if as_json:
        typer.echo(json.dumps(check_document(chosen, check, logs), indent=1, ensure_ascii=False, default=str))
    else:
        print_parts(make_console(), list(check_parts(chosen, check, some([s.name for s in sources], 2))))
    if not check.complete:
        raise typer.Exit(1)


def suggest(
    logs: Annotated[list[str], typer.Argument(metavar="LOG...", help="A log of no format that is listed.")],
    out: Target = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE.")] = False,
    lang: options.Language = None,
) -> None:
    """Draft a format from the lines of a log that come again with a step that grows, as a TOML file.

    What is not sure stands in it as a comment. Then: `logparse formats test FILE LOG`, and `logparse analyze LOG
    --format-file FILE`.
    """
    if out and out.exists() and not force:
        raise UsageError(tr("{path} exists", path=out), remedy=tr("give another name, or overwrite with --force"))
    draft, check = draft_format(find_sources(logs))
    text = draft_toml(draft, some(logs, 2), check.read, sum(check.unread.values()))
    if out is None:
        typer.echo(text, nl=False)
        return
    write_whole(out, lambda path: path.write_text(text, encoding="utf-8"))
    typer.echo(wrote(str(out), draft), err=True)


try_format.__name__ = "test"
COMMANDS = (show, try_format, suggest)
