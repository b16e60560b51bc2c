"""The regressions of all jobs: open, accepted, those whose acceptance expired, and open ones whose series ended.

Comes in: the verdicts on jobs and the acceptances of their runs. Goes out: a Regression each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from analysis.history.events import Acceptance
from analysis.nightly.job_facts import is_known
from analysis.nightly.job_verdict import EndedSeries, JobVerdict
from logparse.light_dataclass import dataclass, replace

RegressionState = Literal["open", "accepted", "expired", "ended", "cleared"]
STATES: tuple[RegressionState, ...] = ("open", "ended", "expired", "accepted", "cleared")


@dataclass(frozen=True)
class Regression:
    """A regression of a job: the relative ``changes`` by the column of each metric, None of an unknown size.

    ``first_bad`` and ``last_good`` are rows of runs; the latter is None where no run is before the former.
    ``acceptance`` is the one in effect, or that which expired. ``ended`` is the series of one that is open, but ended.
    ``cleared`` is the row of the run that showed that it ended, ``block`` the testbed that has it, if not all have.
    """

    job: str
    owners: tuple[str, ...]
    state: RegressionState
    changes: Mapping[str, float | None]
    first_bad: Mapping[str, Any]
    last_good: Mapping[str, Any] | None
    acceptance: Acceptance | None = None
    ended: EndedSeries | None = None
    cleared: Mapping[str, Any] | None = None
    block: str | None = None


def find_regressions(jobs: Sequence[JobVerdict], acceptances: Mapping[str, Sequence[Acceptance]]) -> list[Regression]:
    """All regressions, the open ones first."""
    regressions = [one for job in jobs for one in _of_job(job, acceptances)]
    return sorted(regressions, key=lambda one: STATES.index(one.state))


def _of_job(job: JobVerdict, acceptances: Mapping[str, Sequence[Acceptance]]) -> Iterator[Regression]:
    if job.ended:
        last = job.ended.job
        changes = {name: change for step in last.steps if step.is_open for name, change in step.changes.items()}
        regression = _at(last, last.began or str(last.newest["run_id"]), "ended", changes, None)
        yield replace(regression, ended=job.ended)
    for known in job.accepted:
        yield _at(job, known.acceptance.run_id, "accepted", {known.metric.column: known.change}, known.acceptance)
    expired = list(_expired(job, acceptances))
    ids = job.runs["run_id"].to_list()
    for step in job.steps:
        if step.is_worse and step.state != "accepted":
            state: RegressionState = "open" if step.state == "new" else step.state
            regression = _at(job, step.began, state, step.changes, step.acceptance)
            cleared = None if step.ended is None else job.runs.row(ids.index(step.ended), named=True)
            yield replace(regression, cleared=cleared, block=step.block)
    covered = [step.acceptance for step in job.steps]
    for one in expired:
        if one not in covered:
            yield _at(job, one.run_id, "expired", {one.metric: None} if one.metric else {}, one)


def _expired(job: JobVerdict, acceptances: Mapping[str, Sequence[Acceptance]]) -> Iterator[Acceptance]:
    """The acceptances of runs of the job that are no longer in effect."""
    names = [metric.metric.column for metric in job.metrics]
    for run_id in job.runs["run_id"]:
        for one in acceptances.get(run_id, ()):
            metric = one.metric or (names[0] if names else "")
            if not is_known({run_id: [one]}, job.runs, metric, run_id):
                yield one


def _at(
    job: JobVerdict,
    run_id: str,
    state: RegressionState,
    changes: Mapping[str, float | None],
    acceptance: Acceptance | None,
) -> Regression:
    at = job.runs["run_id"].to_list().index(run_id)
    good = job.runs.row(at - 1, named=True) if at else None
    bad = job.runs.row(at, named=True)
    return Regression(job.name, job.owners, state, changes, bad, good, acceptance)
