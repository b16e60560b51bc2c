"""``logparse diagnose``: why a run stopped, and which rank. Reads options, calls, prints."""

from __future__ import annotations

import typer

from analysis.commands import _options as options
from analysis.commands._forms import print_json
from analysis.commands._progress import reading_bar
from analysis.present.as_json import plain
from analysis.present.console import make_console
from analysis.present.terminal import print_parts
from analysis.present.views.ending import ending_parts, quiet_ending
from logparse.decode.read_run import diagnose_run
from logparse.errors import UsageError
from logparse.inputs.run_discovery import named_runs
from logparse.language import tr, use_language, visible
from logparse.schema import SCHEMA_VERSION


def diagnose(
    logs: options.Logs,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    no_color: options.NoColor = False,
    lang: options.Language = None,
) -> None:
    """Show why a run stopped, from any text log: the cause, its line, the rank, and what to try.

    Several LOGs, or a folder, are files of one run.

    Exit code: 0 done, 2 wrong usage or unreadable input, 3 empty log.
    """
    if as_json and lang is None:
        # Scripts must find the same words on every machine.
        use_language("en")
    if as_json and quiet:
        raise UsageError(tr("--json and --quiet exclude each other"), remedy=tr("give one of them"))
    with reading_bar(quiet or as_json, [logs]) as watches:
        ending = diagnose_run(logs, next(iter(watches), None))
    if as_json:
        document = {"schema_version": SCHEMA_VERSION, "ending": plain(ending)}
        print_json(document)
    elif quiet:
        ((name, _),) = named_runs(logs, each=False)
        typer.echo(visible(quiet_ending(name, ending)))
    else:
        print_parts(make_console(no_color=no_color), ending_parts(ending))
