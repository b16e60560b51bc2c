"""``logparse gate`` without sides: the newest run of every job of the project, by ``logparse.toml``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import typer

from analysis.history.open_history import open_history
from analysis.history.selection import select_evidence
from analysis.nightly.exports import JOB_OUTPUTS, JudgedJobs
from analysis.nightly.gate_jobs import HistoryOfJobs, JobVerdict, judge_jobs
from analysis.nightly.policy import FAILING, NEW
from analysis.present.console import make_console
from analysis.present.markdown import markdown
from analysis.present.terminal import print_parts
from analysis.present.views.jobs import compose_jobs, judged_jobs, refusal, title
from analysis.present.views.jobs_json import document
from analysis.project.project_file import history_place, project_policy
from logparse.errors import InsufficientDataError, UsageError
from logparse.findings import Note
from logparse.language import tr


def judge_all(history: str | None, strict: bool, fail_on: str | None, report: Callable[[Note], object]) -> JudgedJobs:
    """Judge every job of the project and compose the texts. ``fail_on`` overrides the project file.

    Raises UsageError for an invalid policy, or where there is nothing to judge.
    """
    policy = project_policy()
    store = open_history(history_place(history), report)
    evidence = select_evidence(store.runs())
    for note in evidence.notes:
        report(note)
    kept = HistoryOfJobs(store.settings, store.steps, store.acceptances(), evidence.excluded)
    jobs = judge_jobs(evidence.runs, policy, kept)
    failing, only_new = (FAILING[fail_on], fail_on == NEW) if fail_on else (policy.failing, policy.only_new)
    return judged_jobs(jobs, strict, failing, only_new)


def print_jobs(jobs: Sequence[JobVerdict], as_json: bool, as_markdown: bool, no_color: bool) -> None:
    """Print the verdicts in one of their forms."""
    if as_json:
        typer.echo(json.dumps(document(jobs), indent=1, ensure_ascii=False, allow_nan=False))
    elif as_markdown:
        typer.echo(markdown(compose_jobs(jobs)))
    else:
        print_parts(make_console(no_color=no_color), compose_jobs(jobs))


def job_texts(judged: JudgedJobs) -> Mapping[str, str | None]:
    """The files of the verdicts by their names."""
    return {name: text(judged) for name, text in JOB_OUTPUTS.items()}


def exit_of_jobs(judged: JudgedJobs) -> None:
    """Raises typer.Exit where a job fails, UsageError where one cannot be compared, InsufficientDataError if strict."""
    if any(job.verdict in judged.failing and (job.news == "new" or not judged.only_new) for job in judged.jobs):
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
