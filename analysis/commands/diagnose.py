"""``logparse diagnose``: why a run stopped, and which rank. Reads options, calls, prints."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from analysis.commands import _options as options
from analysis.commands._forms import print_json
from analysis.commands._progress import reading_bar
from analysis.present.console import make_console
from analysis.present.parts import Sentence
from analysis.present.terminal import print_parts
from analysis.present.views.ending import ending_parts, quiet_ending
from analysis.present.views.short_ending import compact_endings, endings_document
from logparse.decode.read_run import Watch, diagnose_run
from logparse.errors import NoStepLineError, SeveralRunsError, UsageError
from logparse.failures.ending import Ending
from logparse.inputs.run_discovery import named_runs
from logparse.language import tr, use_language, visible


def diagnose(
    logs: options.Logs,
    as_json: options.Json = False,
    compact: options.Compact = False,
    quiet: options.Quiet = False,
    no_color: options.NoColor = False,
    lang: options.Language = None,
) -> None:
    """Show why a run stopped, from any text log: the cause, its line, the rank, and what to try.

    Several LOGs, or a folder, are files of one run; where their steps are of several formats, each is a run.

    Exit code: 0 done, 2 wrong usage or unreadable input, 3 empty log.
    """
    as_json = as_json or compact
    if as_json and lang is None:
        # Scripts must find the same words on every machine.
        use_language("en")
    if as_json and quiet:
        raise UsageError(tr("--json and --quiet exclude each other"), remedy=tr("give one of them"))
    with reading_bar(quiet or as_json, [logs]) as progress:
        endings = _endings(logs, progress.watches[0])
    if as_json:
        print_json(endings_document(endings), compact=compact_endings if compact else None)
    elif quiet:
        for name, ending in endings:
            typer.echo(visible(quiet_ending(name, ending)))
    else:
        console = make_console(no_color=no_color)
        for name, ending in endings:
            print_parts(console, [*([Sentence(name)] if len(endings) > 1 else []), *ending_parts(ending)])


def _endings(logs: Sequence[str], watch: Watch | None) -> list[tuple[str, Ending]]:
    """The name and the ending of the run whose files ``logs`` are; of each of them where they are no run."""
    try:
        return [(named_runs(logs, each=False)[0][0], diagnose_run(logs, watch))]
    except SeveralRunsError:
        runs = named_runs(logs, each=True)
        if len(runs) < 2:
            raise
    return [(name, _ending_of_one(files)) for name, files in runs]


def _ending_of_one(files: Sequence[str]) -> Ending:
    """The ending of one of several runs; of an empty log nothing is known."""
    try:
        return diagnose_run(files)
    except NoStepLineError:
        return Ending("unknown", "unknown", "unknown")
