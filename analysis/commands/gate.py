"""``logparse gate``: stop a release that made training slower. Reads options, calls, prints."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from analysis.commands import _options as options
from analysis.commands._help import filled
from analysis.commands._release_options import Allow, HistoryDir, Metrics, Threshold, teller
from analysis.commands._run_flags import COMPUTING, READING, with_run_flags
from analysis.commands.compare import print_comparisons
from analysis.compare.comparable import check_allowed
from analysis.compare.comparison import Comparison, compare
from analysis.compare.exports import OUTPUTS, Judged, junit_of_error
from analysis.compare.refusal import refuse_incomparable
from analysis.compare.verdict import (
    FEWEST_RUNS,
    Verdict,
    guards_of,
    insufficient,
    parse_threshold,
)
from analysis.outputs import clear_stale, write_whole
from analysis.pipeline.options import RunOptions
from analysis.pipeline.sides import find_sides
from analysis.result_folder import ResultFolder
from analysis.screens.gate import judged, no_verdict, verdicts
from logparse.errors import InsufficientDataError, LogparseError, UsageError, reason_of
from logparse.findings import Note, warning
from logparse.language import msg, tr

Baseline = Annotated[
    str,
    typer.Option(
        "--baseline",
        metavar="SEL",
        help="What was good: key=value[,key=value ...] such as release=CANN 8.0.RC1, a run id, or a log or folder of "
        "logs.",
    ),
]
Candidate = Annotated[str, typer.Option("--candidate", metavar="SEL", help="What is to be judged.")]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Exit with 4 where the data do not suffice for a verdict; the threshold alone is not enough then.",
    ),
]
FailOn = Annotated[
    Literal["regression", "suspicious"],
    typer.Option("--fail-on", help="The verdict from which on it exits with 1: suspicious includes a regression."),
]
# By what is asked for, the verdicts that fail the gate.
FAILING: dict[str, frozenset[Verdict]] = {
    "regression": frozenset({"regression"}),
    "suspicious": frozenset({"regression", "suspicious"}),
}
Out = Annotated[
    ResultFolder | None,
    typer.Option(
        "-o",
        "--out",
        parser=options.folder_of,
        metavar="DIR",
        help=filled(msg("Folder for {names}."), names=", ".join(output.name for output in OUTPUTS)),
    ),
]


# The files that are written of a gate that fails before it has compared anything.
JUNIT, SUMMARY = "junit.xml", "summary.md"


def _telling_failure(command: Callable[..., None]) -> Callable[..., None]:
    """``command`` that leaves no file of an earlier verdict in ``-o``: where it fails, the files say why."""

    @functools.wraps(command)
    def wrapper(*, out: ResultFolder | None, force: bool, **values: Any) -> None:
        if out is not None:
            out.check(force)
            _write(out, {})
        try:
            command(out=out, force=force, **values)
        except LogparseError as error:
            # One that follows from the verdict finds the files of the verdict written.
            with suppress(LogparseError):
                if out is not None and out.read(JUNIT) is None:
                    _write(out, {JUNIT: junit_of_error(str(error)), SUMMARY: no_verdict(error)})
            raise

    return wrapper


@_telling_failure
@with_run_flags(**COMPUTING, **READING)
def gate(
    baseline: Baseline,
    candidate: Candidate,
    how: RunOptions,
    history: HistoryDir = None,
    threshold: Threshold = "3%",
    metric: Metrics = None,
    allow: Allow = None,
    strict: Strict = False,
    fail_on: FailOn = "regression",
    out: Out = None,
    force: options.Force = False,  # noqa: ARG001
    as_json: options.Json = False,
    as_markdown: options.Markdown = False,
    no_color: options.NoColor = False,
    lang: options.Language = None,
) -> None:
    """Judge whether a release made training slower, for use in CI.

    regression: worse by more than the threshold, and two sides that are alike would hardly differ so. suspicious:
    one of the two only, or better by more than the threshold. no regression: a change of the threshold is excluded.
    insufficient data: the runs are too few or vary too much to tell. With fewer than 3 runs a side nothing can be
    proven, and the threshold decides alone.

    Flags that say what a log lacks are for sides that are logs; a recorded run keeps what was said of it then.

    In a GitHub workflow the summary is added to the page of the job.

    Exit code 0 no regression, 1 regression (with --fail-on suspicious that too), 2 wrong usage or sides that cannot be
    compared, 4 insufficient data (with --strict).
    """
    if as_json and as_markdown:
        raise UsageError(tr("--json and --markdown exclude each other"), remedy=tr("give one of them"))
    chosen, guards = guards_of(metric)
    allowed, limit = check_allowed(allow or []), parse_threshold(threshold)
    tell = teller()
    found = find_sides((baseline, candidate), history, how, tell)
    old, new = found.sides
    result = compare(old, new, chosen, limit, allowed, found.others, beside=False, guards=guards)
    told = judged(result, strict, FAILING[fail_on])
    # Files first: a reader that closes the pipe must not cost CI its report.
    if out is not None:
        _write(out, _texts(told))
    _add_to_job_summary(told.summary, tell)
    try:
        print_comparisons([result], as_json, as_markdown, no_color)
    finally:
        # Whether or not anybody reads it, the verdict stands.
        refuse_incomparable(result)
        _exit(result, strict, FAILING[fail_on])


def _texts(told: Judged) -> dict[str, str | None]:
    """The files of a verdict by their names; without one there are no numbers."""
    outputs = [output for output in OUTPUTS if not (output.needs_verdict and told.comparison.refused)]
    return {output.name: output.text(told) for output in outputs}


def _write(out: ResultFolder, texts: Mapping[str, str | None]) -> None:
    """Write ``texts``; what an earlier run left there and this one does not write is deleted."""
    with out.opened() as folder:
        written = [_write_text(folder / name, text) for name, text in texts.items() if text is not None]
        clear_stale(folder, [output.name for output in OUTPUTS], written)


def _write_text(path: Path, text: str) -> Path:
    write_whole(path, lambda place: place.write_text(text, encoding="utf-8"))
    return path


def _add_to_job_summary(summary: str, tell: Callable[[Note], object]) -> None:
    """GitHub shows what is appended to this file; it may hold what other steps wrote, without a last newline."""
    place = os.environ.get("GITHUB_STEP_SUMMARY")
    if not place:
        return
    try:
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(f"\n{summary}\n")
    except OSError as error:
        tell(warning("job_summary_not_written", path=place, reason=reason_of(error)))


def _exit(result: Comparison, strict: bool, failing: frozenset[Verdict]) -> None:
    """Raises typer.Exit for a ``failing`` verdict, InsufficientDataError where ``strict`` asks for more data."""
    if result.verdict in failing:
        raise typer.Exit(1)
    if strict and any(insufficient(finding) for finding in result.decisive):
        raise InsufficientDataError(
            tr("the data do not suffice for a verdict"),
            where=verdicts(result),
            remedy=tr("record more runs, at least {n} a side, or leave out --strict", n=FEWEST_RUNS),
        )
