"""``logparse gate`` with two sides of many jobs: one verdict for each."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from analysis.commands._forms import Form
from analysis.compare.comparison import compare
from analysis.compare.loss_targets import join_tolerances
from analysis.compare.operands import Sides
from analysis.compare.refusal import refuse_incomparable
from analysis.compare.verdict import Verdict, insufficient
from analysis.metrics import Metric
from analysis.nightly.jobs_of_sides import split_sides
from analysis.present.views.job_comparisons import ComparedJobs, compose_jobs_of_sides, document, with_name
from analysis.project.project_file import project_policy
from analysis.run.checks.target_verdicts import exit_code
from analysis.run.checks.targets import Requirement
from logparse.errors import InsufficientDataError
from logparse.language import tr
from logparse.light_dataclass import dataclass


@dataclass(frozen=True)
class Question:
    """What is judged: metrics, further ones where both sides have them, the threshold, fields that may differ, losses.

    Of the losses ``tolerances`` are required, and those of the project that they do not name.
    """

    metrics: Sequence[Metric]
    guards: Sequence[Metric]
    threshold: float | None
    allowed: Sequence[str]
    tolerances: Sequence[Requirement] = ()


def compare_jobs(named: Sides, question: Question) -> ComparedJobs | None:
    """A comparison of each job that is on both sides; None unless several are."""
    policy = project_policy()
    jobs = split_sides(named.sides, policy, named.others, named.settings, question.allowed)
    if jobs is None:
        return None
    results = []
    for job in jobs.both:
        result = compare(
            job.baseline,
            job.candidate,
            question.metrics,
            question.threshold,
            question.allowed,
            job.others,
            everything=False,
            guards=question.guards,
            tolerances=join_tolerances(question.tolerances, policy.rule_of(job.name).tolerances),
        )
        results.append(with_name(result, job.name))
    return ComparedJobs(results, jobs.without_baseline, jobs.without_candidate)


def print_jobs_of_sides(compared: ComparedJobs, form: Form) -> None:
    """Print the verdicts in the ``form`` that is asked for."""
    form.print(lambda: document(compared), lambda: compose_jobs_of_sides(compared, form.details))


def exit_of_sides(compared: ComparedJobs, strict: bool, failing: frozenset[Verdict]) -> None:
    """Raises typer.Exit where a job fails, UsageError where one cannot be compared, InsufficientDataError if strict.

    With ``strict`` a job without a candidate has insufficient data: it may have failed.
    """
    code = exit_code(judgement.outcome for one in compared.comparisons for judgement in one.tolerances)
    if code == 1 or any(one.verdict in failing for one in compared.comparisons):
        raise typer.Exit(1)
    for one in compared.comparisons:
        refuse_incomparable(one)
    short = [one.job for one in compared.comparisons if any(insufficient(finding) for finding in one.decisive)]
    if strict and (short or compared.without_candidate):
        raise InsufficientDataError(
            tr("insufficient data for a verdict"),
            where="; ".join([*short, *compared.without_candidate]),
            remedy=tr("record more runs, or remove --strict"),
        )
    if code:
        raise typer.Exit(code)
