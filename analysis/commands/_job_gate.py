"""``logparse gate`` without sides: the newest run of every job of the project, by ``logparse.toml``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date

import typer

from analysis.commands._forms import Form
from analysis.commands._release_options import parse_day
from analysis.compare.verdict import Verdict
from analysis.export.senders import WebhookForm, post
from analysis.history.open_history import Report, open_history
from analysis.nightly.exports import JOB_OUTPUTS, JudgedJobs
from analysis.nightly.job_verdict import JobVerdict
from analysis.nightly.past_nights import Nights
from analysis.nightly.policy import FAILING, NEW, Policy
from analysis.present.views.backtest import compose_backtest
from analysis.present.views.backtest import document as backtest_json
from analysis.present.views.jobs import compose_jobs, document, judged_jobs, refusal, title
from analysis.present.views.news import has_news, news_document
from analysis.project.project_file import history_place, project_policy
from analysis.run.checks.target_verdicts import exit_code
from logparse.errors import InsufficientDataError, UsageError
from logparse.language import tr
from logparse.light_dataclass import dataclass, replace


@dataclass(frozen=True)
class NightOptions:
    """The night to judge, today without a day; and where its news go. ``fail_on`` overrides the project file."""

    history: str | None
    strict: bool = False
    fail_on: str | None = None
    as_of: date | None = None
    webhook: str | None = None
    webhook_form: WebhookForm | None = None


def judge_all(asked: NightOptions, report: Report) -> JudgedJobs:
    """Judge every job of the project and compose the texts.

    Raises UsageError for an invalid policy, or where there is nothing to judge.
    """
    policy = _policy(asked)
    nights = Nights(open_history(history_place(asked.history), report))
    for note in nights.evidence(asked.as_of).notes:
        report(note)
    jobs = nights.judge(policy, asked.as_of)
    if asked.webhook is not None and has_news(jobs):
        post(asked.webhook, news_document(jobs, policy.run_url), asked.webhook_form, report)
    judged = judged_jobs(jobs, asked.strict, policy.failing, policy.only_new, policy.run_url, asked.history)
    return replace(judged, suspicious=policy.junit_suspicious)


def _policy(asked: NightOptions) -> Policy:
    policy = project_policy()
    if asked.fail_on is None:
        return policy
    return replace(policy, failing=FAILING[asked.fail_on], only_new=asked.fail_on == NEW)


def backtest(asked: NightOptions, span: tuple[date, date], form: Form) -> None:
    """Judge every night of ``span`` and print one table."""
    policy = _policy(asked)
    nights = list(Nights(open_history(history_place(asked.history), lambda _: None)).each(policy, *span))

    def fails(jobs: Sequence[JobVerdict]) -> bool:
        return fail(jobs, policy.failing, policy.only_new)

    form.print(lambda: backtest_json(nights, fails), lambda: compose_backtest(nights, fails))


def parse_span(text: str) -> tuple[date, date]:
    """The days of FROM..TO. Raises UsageError for anything else."""
    first, sign, last = text.partition("..")
    if not sign:
        problem = tr("{name} is {value!r}", name="--backtest", value=text)
        raise UsageError(problem, remedy=tr("write two dates, such as 2026-03-01..2026-03-31"))
    return parse_day("--backtest", first), parse_day("--backtest", last)


def print_jobs(jobs: Sequence[JobVerdict], history: str | None, form: Form) -> None:
    """Print the verdicts in the ``form`` that is asked for; commands name ``history``, which the user gave."""
    form.print(lambda: document(jobs), lambda: compose_jobs(jobs, project_policy().run_url, history, form.details))


def job_texts(judged: JudgedJobs) -> Mapping[str, str | None]:
    """The files of the verdicts by their names."""
    return {name: text(judged) for name, text in JOB_OUTPUTS.items()}


def exit_of_jobs(judged: JudgedJobs) -> None:
    """Raises typer.Exit where a job fails, UsageError where one cannot be compared, InsufficientDataError if strict."""
    code = exit_code(judgement.outcome for job in judged.jobs for judgement in job.tolerances)
    if code == 1 or fail(judged.jobs, judged.failing, judged.only_new):
        raise typer.Exit(1)
    refused = [job for job in judged.jobs if job.refused]
    if refused:
        raise UsageError(
            tr("jobs whose newest run is not comparable: {n}", n=len(refused)),
            where=f"{refused[0].name}: {refusal(refused[0])}",
            remedy=tr("define a separate job for this run in logparse.toml, or exclude it from all jobs"),
        )
    if judged.strict and any(job.is_idle or job.verdict == "insufficient data" for job in judged.jobs):
        raise InsufficientDataError(
            tr("insufficient data for a verdict"),
            where=title(judged.jobs),
            remedy=tr("record more runs, or remove --strict"),
        )
    if code:
        raise typer.Exit(code)


def fail(jobs: Sequence[JobVerdict], failing: Collection[Verdict], only_new: bool) -> bool:
    """Whether any job has a verdict of ``failing``; with ``only_new`` one that no night before had."""
    return any(job.verdict in failing and (job.news == "new" or not only_new) for job in jobs)
