"""Nights of the past, each judged by what was known then: runs that had begun, and notes that were written.

Comes in: a history, read once, and a Policy. Goes out: the verdicts of a day, or of each day on which a run began.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from functools import lru_cache

import polars as pl

from analysis.history.annotations import with_annotations
from analysis.history.conditions import CLOCK
from analysis.history.events import Event, standing
from analysis.history.selection import Evidence, select_evidence
from analysis.history.store import History
from analysis.nightly.gate_jobs import judge_jobs
from analysis.nightly.job_facts import HistoryOfJobs
from analysis.nightly.job_verdict import JobVerdict
from analysis.nightly.policy import Policy
from logparse.errors import UsageError
from logparse.language import tr
from logparse.light_dataclass import dataclass

# Runs whose steps are kept in memory: the next night looks at the same ones.
STEPS_KEPT = 1000


@dataclass(frozen=True)
class JudgedNight:
    """The verdicts of a day; ``problem`` is why there is none."""

    day: date
    jobs: Sequence[JobVerdict]
    problem: str = ""


class Nights:
    """A history that is read once and judged by the knowledge of any day."""

    def __init__(self, store: History) -> None:
        self.rows = store.recorded_rows()
        self.events: Sequence[Event] = store.events()
        self.settings = store.settings
        self.steps = lru_cache(STEPS_KEPT)(store.steps)

    def evidence(self, day: date | None = None) -> Evidence:
        """The runs that count on ``day``, and those that were excluded; of today without one."""
        rows = self.rows if day is None else self.rows.filter(CLOCK.dt.date() <= day)
        return select_evidence(with_annotations(rows, standing(self._events(day))))

    def judge(self, policy: Policy, day: date | None = None) -> list[JobVerdict]:
        """The verdicts on all jobs as they were on ``day``. Raises UsageError where there is nothing to judge."""
        evidence = self.evidence(day)
        acceptances = standing(self._events(day)).acceptances
        history = HistoryOfJobs(self.settings, self.steps, acceptances, evidence.excluded)
        return judge_jobs(evidence.runs, policy, history)

    def each(self, policy: Policy, first: date, last: date) -> Iterator[JudgedNight]:
        """Every day from ``first`` to ``last`` on which a run began. Raises UsageError where there is none."""
        days = self.rows.select(day=CLOCK.dt.date()).drop_nulls().filter(pl.col("day").is_between(first, last))
        if days.is_empty():
            problem = tr("no run began from {first} to {last}", first=first, last=last)
            raise UsageError(problem, remedy=tr("`logparse history list` lists the recorded runs"))
        for day in days["day"].unique().sort():
            yield self._night(policy, day)

    def _night(self, policy: Policy, day: date) -> JudgedNight:
        """A night of which a policy makes no sense, such as before its baseline, has no verdict."""
        try:
            return JudgedNight(day, self.judge(policy, day))
        except UsageError as error:
            return JudgedNight(day, (), error.problem)

    def _events(self, day: date | None) -> list[Event]:
        return [event for event in self.events if day is None or event.at.date() <= day]
