"""``logparse formats``: the logs that can be read, and files for others. Reads options, calls, prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from analysis.commands import _completion
from analysis.commands import _options as options
from analysis.commands._forms import print_json
from analysis.commands._input_files import check_output_file, input_files
from analysis.files.outputs import write_whole
from analysis.present.console import make_console
from analysis.present.parts import Sentence
from analysis.present.terminal import print_parts
from analysis.present.views.format_check import check_document, check_parts
from analysis.present.views.format_draft import draft_toml, rate_text, wrote
from analysis.present.views.formats import format_parts, formats_document, formats_parts
from analysis.present.words import say
from analysis.run.build import analyze_run
from analysis.run.load import understand
from analysis.run.options import RunOptions
from analysis.run.run import Run
from logparse.decode.read_run import read_run
from logparse.draft.check import check_format
from logparse.draft.draft import Draft, draft_format
from logparse.errors import LogparseError, UsageError
from logparse.formats import find_format, known_formats, packaged
from logparse.formats._user import make_format
from logparse.inputs.discovery import find_sources, printable
from logparse.language import some, tr
from logparse.masking import mask_text
from logparse.texts import map_texts

Name = Annotated[str | None, typer.Argument(metavar="[NAME]", autocompletion=_completion.formats)]
Tested = Annotated[
    str, typer.Argument(metavar="FORMAT", autocompletion=_completion.formats, help="Format name or TOML file.")
]
Logs = Annotated[list[str], typer.Argument(metavar="LOG...", help="Logs to read.")]

Target = Annotated[
    Path | None, typer.Option("-o", "--out", metavar="FILE", help="File to write; default: print to stdout.")
]

# The command where none is given: `logparse formats` and `logparse formats NAME`.
DEFAULT = "show"


def formats() -> None:
    """List log formats, or test and generate your own.

    See docs/formats.md.
    """


def show(
    name: Name = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list of formats instead of a table.")] = False,
    lang: options.Language = None,
) -> None:
    """List log formats with an example line, or show one.

    NAME is a format or a TOML file (docs/formats.md).
    """
    chosen = known_formats() if name is None else (find_format(name),)
    of = packaged()
    if as_json:
        print_json(formats_document(chosen, of.packages))
        return
    console = make_console()
    print_parts(console, format_parts(chosen[0], of.packages) if name else formats_parts(chosen, of.packages))
    print_parts(make_console(stderr=True), [Sentence(say(note), "warning") for note in of.notes])


def try_format(fmt: Tested, logs: Logs, as_json: options.Json = False, lang: options.Language = None) -> None:
    """Test a format: show which lines it reads and what to fix.

    Exit code: 0 all step lines and fields are read, 1 otherwise.
    """
    chosen, sources = find_format(fmt), find_sources(logs)
    check = map_texts(check_format(chosen, sources), mask_text)
    if as_json:
        print_json(check_document(chosen, check, [*map(mask_text, logs)]), default=str)
    else:
        print_parts(make_console(), list(check_parts(chosen, check, some([mask_text(s.name) for s in sources], 2))))
    if not check.complete:
        raise typer.Exit(1)


def suggest(
    logs: Annotated[list[str], typer.Argument(metavar="LOG...", help="Log in an unknown format.")],
    out: Target = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE.")] = False,
    lang: options.Language = None,
) -> None:
    """Generate a draft format file from a log.

    The last line is the rate that the draft gives.

    Next: `logparse formats test FILE LOG`.
    """
    if out:
        check_output_file(out, input_files(logs))
    if out and out.exists() and not force:
        raise UsageError(tr("{path} exists", path=out), remedy=tr("give another name, or overwrite with --force"))
    draft, check = draft_format(find_sources(logs))
    rate = rate_text(_run_of(draft, logs))
    text = draft_toml(draft, some([*map(printable, logs)], 2), check.read, sum(check.unread.values()), rate)
    if out is None:
        typer.echo(text, nl=False)
        return
    write_whole(out, lambda path: path.write_text(text, encoding="utf-8"))
    typer.echo(wrote(str(out), draft), err=True)
    typer.echo(rate, err=True)


def _run_of(draft: Draft, logs: Sequence[str]) -> Run | None:
    """The run that the draft reads; None where it gives none, for example of files that are not one run."""
    how = RunOptions()
    try:
        return analyze_run(understand(read_run(logs, make_format(draft.table, "draft")), how), how)
    except LogparseError:
        return None


try_format.__name__ = "test"
COMMANDS = (show, try_format, suggest)
