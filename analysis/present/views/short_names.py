"""Names of jobs for a line: of a job without a name of its own as much as differs from the other jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analysis.compare.job_name import job_name
from analysis.nightly.job_verdict import JobVerdict

CLAUSES = ", "


def shorten_names(jobs: Sequence[JobVerdict]) -> tuple[list[JobVerdict], str]:
    """``jobs`` with short names, and what all names have in common.

    A name that a user gave stays. So does that of a single job, which is all that is known of it.
    """
    whole = [_clauses(job) for job in jobs]
    made = [clauses for clauses in whole if len(clauses) > 1]
    if len(made) < 2:
        return list(jobs), ""
    shared = [clause for clause in made[0][1:] if all(clause in clauses for clauses in made)]
    left = [[clause for clause in clauses if clause not in shared] for clauses in whole]
    short = [replace(job, name=_shortest(clauses, left)) for job, clauses in zip(jobs, left, strict=True)]
    return short, CLAUSES.join(shared)


def _clauses(job: JobVerdict) -> list[str]:
    """The clauses of a name that was made from the fields of the runs; a given name is one."""
    return job.name.split(CLAUSES) if job.name.startswith(job_name(job.runs)) else [job.name]


def _shortest(clauses: Sequence[str], every: Sequence[Sequence[str]]) -> str:
    """The first clauses that no other job begins with."""
    for many in range(1, len(clauses)):
        if sum(list(other[:many]) == list(clauses[:many]) for other in every) == 1:
            return CLAUSES.join(clauses[:many])
    return CLAUSES.join(clauses)
