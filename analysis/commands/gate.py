"""``logparse gate``: stop a release that made training slower. Reads options, calls, prints."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from analysis.commands import _options as options
from analysis.commands._forms import Form
from analysis.commands._gate_of_sides import Question, compare_jobs, exit_of_sides, print_jobs_of_sides
from analysis.commands._help import filled
from analysis.commands._input_files import input_files
from analysis.commands._job_gate import NightOptions, exit_of_jobs, job_texts, judge_all, parse_span, print_jobs
from analysis.commands._job_gate import backtest as run_backtest
from analysis.commands._named_sides import named_sides
from analysis.commands._release_options import Allow, HistoryDir, Metrics, Threshold, Tolerances, parse_day, teller
from analysis.commands._run_flags import COMPUTING, READING, with_run_flags
from analysis.commands._webhook_options import WebhookAs
from analysis.commands.compare import print_comparisons
from analysis.compare.comparability import check_allowed
from analysis.compare.comparison import Comparison, compare
from analysis.compare.gate_exports import OUTPUTS, Judged, junit_of_error
from analysis.compare.loss_targets import gather_tolerances, join_tolerances
from analysis.compare.refusal import refuse_incomparable
from analysis.compare.threshold import given_threshold
from analysis.compare.verdict import Verdict, guards_of, insufficient
from analysis.export.senders import WebhookForm, check_webhook, post
from analysis.files.outputs import write_bytes
from analysis.files.result_folder import ResultFolder
from analysis.nightly.policy import FAILING
from analysis.present.views.gate import judged, no_verdict, verdicts
from analysis.present.views.job_comparisons import summary, texts
from analysis.present.views.side_news import has_wrong, sides_document
from analysis.project.project_file import project_policy
from analysis.run.checks.target_verdicts import exit_code
from analysis.run.options import RunOptions
from analysis.stats.noise import FEWEST_RUNS
from logparse.errors import InsufficientDataError, LogparseError, UsageError, reason_of
from logparse.findings import Note, warning
from logparse.language import msg, tr

Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        metavar="SEL",
        help="Baseline: log, folder, run id, or key=value.",
    ),
]
Candidate = Annotated[str | None, typer.Option("--candidate", metavar="SEL", help="Candidate, in the same form.")]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Exit with 4 if the data are insufficient.",
    ),
]
FailOn = Annotated[
    Literal["regression", "less work", "suspicious", "new"] | None,
    typer.Option(
        "--fail-on",
        show_default="regression",
        help="Lowest verdict that fails; new: only what is new tonight.",
    ),
]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="DATE", help="Judge the night of this day by what was known then."),
]
Backtest = Annotated[
    str | None,
    typer.Option("--backtest", metavar="FROM..TO", help="Judge every night of these days; exit with 0."),
]
Webhook = Annotated[
    str | None,
    typer.Option("--webhook", metavar="URL", help="Post what is new or worse to a chat, ten lines at most."),
]
Verbose = Annotated[
    bool, typer.Option("-v", "--verbose", help="Show every metric, its expected range, and all that changed.")
]
Out = Annotated[
    ResultFolder | None,
    options.result_folder(help=filled(msg("Folder for {names}."), names=", ".join(output.name for output in OUTPUTS))),
]


# The files that are written of a gate that fails before it has compared anything.
JUNIT, SUMMARY = "junit.xml", "summary.md"


def _telling_failure(command: Callable[..., None]) -> Callable[..., None]:
    """``command`` that leaves no file of an earlier verdict in ``-o``: where it fails, the files say why.

    So does the summary of the job. An error that follows from the verdict finds both written.
    """

    @functools.wraps(command)
    def wrapper(*, out: ResultFolder | None, force: bool, **values: Any) -> None:
        before = _size_of_job_summary()
        try:
            if out is not None:
                inputs = input_files((values.get("baseline"), values.get("candidate")))
                out.check(force, (JUNIT, SUMMARY), inputs)
            with _files_of_failure(out, force):
                command(out=out, force=force, **values)
        except LogparseError as error:
            if _size_of_job_summary() == before:
                _add_to_job_summary(no_verdict(error), teller())
            raise

    return wrapper


@contextmanager
def _files_of_failure(out: ResultFolder | None, force: bool) -> Iterator[None]:
    """Write why the gate failed, unless the files of its verdict are written."""
    try:
        yield
    except LogparseError as error:
        with suppress(LogparseError):
            if out is not None and not out.published:
                _write(out, {JUNIT: junit_of_error(str(error)), SUMMARY: no_verdict(error)}, force)
        raise


@_telling_failure
@with_run_flags(**COMPUTING, **READING)
def gate(
    how: RunOptions,
    baseline: Baseline = None,
    candidate: Candidate = None,
    history: HistoryDir = None,
    threshold: Threshold = None,
    metric: Metrics = None,
    allow: Allow = None,
    require: Tolerances = None,
    strict: Strict = False,
    fail_on: FailOn = None,
    as_of: AsOf = None,
    backtest: Backtest = None,
    webhook: Webhook = None,
    webhook_as: WebhookAs = None,
    out: Out = None,
    force: options.Force = False,
    as_json: options.Json = False,
    as_markdown: options.Markdown = False,
    verbose: Verbose = False,
    no_color: options.NoColor = False,
    lang: options.Language = None,
) -> None:
    """Check in CI whether training became slower.

    Give --baseline and --candidate. Without them the newest recorded run of every job is compared with earlier runs
    (docs/nightly.md).

    Exit code: 0 no regression, 1 regression or crash, 2 wrong usage or not comparable, 4 insufficient data
    (with --strict).
    """
    report = teller()
    form = Form(as_json, as_markdown, no_color, verbose)
    check_webhook(webhook)
    if baseline is None and candidate is None:
        refuse_flags({"--threshold": threshold, "--metric": metric, "--allow": allow, "--require": require}, OF_JOBS)
        day = None if as_of is None else parse_day("--as-of", as_of)
        night = NightOptions(history, strict, fail_on, day, webhook, webhook_as)
        gate_jobs(night, backtest, out, force, form, report)
        return
    refuse_flags({"--as-of": as_of, "--backtest": backtest}, OF_SIDES)
    asked = _both_sides(baseline, candidate)
    chosen, guards = guards_of(metric)
    allowed, limit = check_allowed(allow or []), given_threshold(threshold)
    tolerances = gather_tolerances([(require or (), None)])
    sides = named_sides(asked, history, how, report)
    failing = FAILING[fail_on or "regression"]
    if (compared := compare_jobs(sides, Question(chosen, guards, limit, allowed, tolerances))) is not None:
        _post(webhook, webhook_as, compared.comparisons, report)
        _publish(out, force, texts(compared, strict, failing), summary(compared), report)
        try:
            print_jobs_of_sides(compared, form)
        finally:
            exit_of_sides(compared, strict, failing)
        return
    old, new = sides.sides
    required = join_tolerances(tolerances, project_policy().rest.tolerances)
    result = compare(
        *(old, new, chosen, limit, allowed, sides.others),
        everything=False,
        guards=guards,
        tolerances=required,
    )
    judgement = judged(result, strict, failing)
    _post(webhook, webhook_as, [result], report)
    _publish(out, force, _texts(judgement), judgement.summary, report)
    try:
        print_comparisons([result], form, verbose)
    finally:
        # The exit code follows the verdict, even where the reader closed the pipe.
        refuse_incomparable(result)
        _exit(result, strict, failing)


def _post(
    url: str | None, form: WebhookForm | None, compared: Sequence[Comparison], report: Callable[[Note], object]
) -> None:
    """Send what became worse to a chat, if there is one."""
    if url is not None and has_wrong(compared):
        post(url, sides_document(compared, project_policy().run_url), form, report)


def _both_sides(baseline: str | None, candidate: str | None) -> tuple[str, str]:
    """Both sides as given. Raises UsageError where one of them is missing."""
    if baseline is not None and candidate is not None:
        return baseline, candidate
    name = "--baseline" if baseline is None else "--candidate"
    raise UsageError(
        tr("{name} is missing", name=name),
        remedy=tr("give both --baseline and --candidate, or neither to judge the newest run of every job"),
    )


# What flags are refused with, and what to do.
OF_JOBS = (
    msg("use {names} only with --baseline and --candidate"),
    msg("for recorded jobs, set it in logparse.toml under [gate]"),
)
OF_BACKTEST = (msg("--backtest cannot be combined with {names}"), msg("give one of them"))
OF_SIDES = (
    msg("{names} cannot be combined with --baseline and --candidate"),
    msg("omit both sides to judge the newest run of every job"),
)


def refuse_flags(given: Mapping[str, object], texts: tuple[str, str]) -> None:
    """Raises UsageError for a flag that would be dropped."""
    names = [name for name, value in given.items() if value]
    if names:
        raise UsageError(tr(texts[0], names=", ".join(names)), remedy=tr(texts[1]))


def gate_jobs(
    night: NightOptions,
    span: str | None,
    out: ResultFolder | None,
    force: bool,
    form: Form,
    report: Callable[[Note], object],
) -> None:
    """The newest run of every job, or every night of a ``span``."""
    if span is not None:
        refuse_flags({"-o": out, "--as-of": night.as_of, "--webhook": night.webhook}, OF_BACKTEST)
        run_backtest(night, parse_span(span), form)
        return
    judgements = judge_all(night, report)
    _publish(out, force, job_texts(judgements), judgements.summary, report)
    try:
        print_jobs(judgements.jobs, night.history, form)
    finally:
        exit_of_jobs(judgements)


def _publish(
    out: ResultFolder | None,
    force: bool,
    texts: Mapping[str, str | None],
    summary: str,
    report: Callable[[Note], object],
) -> None:
    """Write the files before anything is printed: CI gets its report even where a reader closes the pipe."""
    if out is not None:
        _write(out, texts, force)
    _add_to_job_summary(summary, report)


def _texts(judgement: Judged) -> dict[str, str | None]:
    """The texts of the files of a judgement by their names; without a verdict there are no numbers."""
    outputs = [output for output in OUTPUTS if not (output.needs_verdict and judgement.comparison.refused)]
    return {output.name: output.text(judgement) for output in outputs}


def _write(out: ResultFolder, texts: Mapping[str, str | None], force: bool) -> None:
    """Write ``texts``; with ``force`` they replace the files of an earlier gate."""
    with out.opened("gate", force) as folder:
        for name, text in texts.items():
            if text is not None:
                write_bytes(text.encode(), folder / name)


def _size_of_job_summary() -> int:
    """Bytes of the summary of the job; 0 without one."""
    place = Path(os.environ.get("GITHUB_STEP_SUMMARY") or os.devnull)
    return place.stat().st_size if place.is_file() else 0


def _add_to_job_summary(summary: str, report: Callable[[Note], object]) -> None:
    """GitHub shows what is appended to this file; it may hold what other steps wrote, without a last newline."""
    place = os.environ.get("GITHUB_STEP_SUMMARY")
    if not place:
        return
    try:
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(f"\n{summary}\n")
    except OSError as error:
        report(warning("job_summary_not_written", path=place, reason=reason_of(error)))


def _exit(result: Comparison, strict: bool, failing: frozenset[Verdict]) -> None:
    """Raises typer.Exit for a ``failing`` verdict, InsufficientDataError where ``strict`` asks for more data."""
    code = exit_code(judgement.outcome for judgement in result.tolerances)
    if code == 1 or result.verdict in failing:
        raise typer.Exit(1)
    if strict and any(insufficient(finding) for finding in result.decisive):
        raise InsufficientDataError(
            tr("insufficient data for a verdict"),
            where=verdicts(result),
            remedy=tr("record at least {n} runs per side, or remove --strict", n=FEWEST_RUNS),
        )
    if code:
        raise typer.Exit(code)
