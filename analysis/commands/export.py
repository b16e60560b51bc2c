"""``logparse export``: a run for a tracker, a dashboard or a table. Reads options, calls, prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated

import typer

from analysis.commands import _completion
from analysis.commands import _options as options
from analysis.commands._input_files import input_files
from analysis.commands._progress import reading_bar
from analysis.commands._run_flags import COMPUTING, READING, with_run_flags
from analysis.export import TARGETS
from analysis.run.options import RunOptions
from analysis.run.run import Run
from logparse.errors import LogparseError, UsageError, without_each
from logparse.inputs.run_discovery import named_runs
from logparse.language import tr, visible

To = Annotated[
    str,
    typer.Option("--to", metavar="TARGET", autocompletion=_completion.one_of(*TARGETS), help="|".join(TARGETS)),
]
Place = Annotated[
    str,
    typer.Option("-o", "--out", metavar="OUT", help="Folder; for MLflow also the URL of a server."),
]
Experiment = Annotated[
    str,
    typer.Option("--experiment", metavar="NAME", help="MLflow experiment or SwanLab project."),
]
TimeZone = Annotated[
    str,
    typer.Option("--time-zone", metavar="NAME", help="Time zone of the log's clock, such as Asia/Shanghai."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace an earlier export of the run.")]


@with_run_flags(**COMPUTING, **READING, strict=options.Strict)
def export(
    logs: options.Logs,
    how: RunOptions,
    to: To,
    out: Place,
    experiment: Experiment = "logparse",
    time_zone: TimeZone = "UTC",
    force: Force = False,
    each: options.Each = False,
    anonymise: options.Anonymise = False,
    lang: options.Language = None,
) -> None:
    """Export a run to TensorBoard, OpenMetrics, MLflow, SwanLab, CSV or JSON lines.

    An export has one value for each step: of a step that a restart did again the last one. Unknown values are absent.

    Exit code: 0 done, 2 wrong usage or unreadable input, 3 no step line found.
    """
    from analysis.commands._export_targets import Export

    options.check_named(out)
    if not experiment.strip():
        raise UsageError(tr("--experiment has no name"), remedy=tr("give a name; check for an unset shell variable"))
    if anonymise:
        how = replace(how, pseudonyms=options.project_pseudonyms())
    runs = named_runs(logs, each)
    target = Export(to, out, force, experiment, time_zone, lambda run: _report(run, logs, how))
    target.check([name for name, _ in runs], input_files(logs))
    failed: list[LogparseError] = []
    for sentence in target.write(_analyzed(runs, how, failed)):
        typer.echo(visible(sentence))
    if each:
        without_each(failed)
    for error in failed:
        typer.echo(f"logparse: {error}", err=True)
    if failed:
        raise typer.Exit(failed[0].exit_code)


def _analyzed(runs: Sequence[tuple[str, Sequence[str]]], how: RunOptions, failed: list[LogparseError]) -> Iterator[Run]:
    """Each run that can be read; the errors of the others become ``failed``."""
    from analysis.batch.analyze_runs import analyze_all_parts
    from analysis.batch.engine import HERE

    with reading_bar(False, [files for _, files in runs]) as progress:
        readers = replace(HERE, watches=progress.watches, done=progress.done)
        for one in analyze_all_parts(runs, how, readers, mixed_too=True):
            if isinstance(one, Run):
                yield one
            else:
                failed.append(one)


def _report(run: Run, logs: Sequence[str], how: RunOptions) -> str:
    from analysis.commands.analyze import command_as_given
    from analysis.report import render_page

    return render_page([run], command=command_as_given(logs, how.pseudonyms))
