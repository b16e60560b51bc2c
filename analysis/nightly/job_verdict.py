"""The verdict on one job, and what is new of it tonight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import polars as pl

from analysis.compare.comparability import Change, Field
from analysis.compare.independent_records import LeftOut
from analysis.compare.verdict import Verdict, worst_of
from analysis.compare.work_difference import Less
from analysis.nightly.exclusions import Hidden
from analysis.nightly.job_facts import AcceptedChange
from analysis.nightly.job_runs import MOST_IDLE_DAYS
from analysis.nightly.job_steps import JobStep
from analysis.nightly.metric_verdict import MetricNight, MetricStep
from analysis.run.checks.target_verdicts import Judgement
from analysis.stats.prediction import FEWEST
from logparse.light_dataclass import dataclass, field, replace

# What is new of a job. The order is that of the first line.
News = Literal["new", "still_open", "cleared"]
NEWS: tuple[News, ...] = ("new", "still_open", "cleared")
# Days in which a job that became idle with an open regression is named.
WEEK = 7


@dataclass(frozen=True)
class EndedSeries:
    """``job`` is the verdict on the last run of the series; in the ``fields`` the series that follows it differs."""

    job: JobVerdict
    fields: tuple[Field, ...] = ()

    @property
    def when(self) -> datetime:
        """When its last run began."""
        last: datetime = self.job.newest["when"]
        return last


@dataclass(frozen=True)
class JobVerdict:
    """The verdict on one job. ``runs`` are in the order of time, the newest last.

    ``changed`` are the fields in which its series differs from the one before, until it has a verdict; they are
    ``refused`` on the first night of a named job, unless somebody accepted the change. ``left_out`` are later runs
    that do not count. ``idle_days`` are the days from the newest run of the job to the newest of all jobs.
    ``less_work`` are the kinds of work of which the faster runs do less. ``failed`` is the newest run if it failed,
    ``failed_row`` its row; all of the last ``failed_nights`` runs failed, since ``failed_since``. ``missing`` says
    that a run of tonight is missing, ``missing_before`` that one was missing the night before too. The newest run
    of any kind began ``newest_when``. ``accepted`` are the changes that are accepted today. ``steps`` are the
    changes of its level, the oldest first. ``hidden`` is what the exclusion of runs hides. ``ended`` is the series
    before, or that of an idle job, if it ended while a regression was open. All of the ``failed_before`` runs
    before the newest failed, in a row. ``failed_tonight`` says that the first of the last ``failed_nights`` runs is
    of tonight. ``testbeds`` are the verdicts by the block of runs, such as a node, that are compared with each
    other, None for all runs together. ``tolerances`` are what is required of its losses.
    """

    name: str
    owners: tuple[str, ...]
    baseline: str
    runs: pl.DataFrame
    metrics: tuple[MetricNight, ...]
    refused: tuple[Field, ...]
    left_out: tuple[LeftOut, ...]
    idle_days: int = 0
    less_work: tuple[Less, ...] = ()
    failed: LeftOut | None = None
    missing: bool = False
    newest_when: datetime | None = None
    accepted: tuple[AcceptedChange, ...] = ()
    steps: tuple[JobStep, ...] = ()
    hidden: tuple[Hidden, ...] = ()
    failed_nights: int = 0
    failed_since: datetime | None = None
    missing_before: bool = False
    failed_row: Mapping[str, Any] | None = None
    ended: EndedSeries | None = None
    failed_before: int = 0
    failed_tonight: bool = False
    changed: tuple[Field, ...] = ()
    block_by: str | None = None
    testbeds: Mapping[str | None, tuple[MetricNight, ...]] = field(default_factory=dict)
    tolerances: tuple[Judgement, ...] = ()

    @property
    def is_idle(self) -> bool:
        """Whether it no longer runs: the verdict on its last night does not apply to this one."""
        return self.idle_days > MOST_IDLE_DAYS

    @property
    def verdict(self) -> Verdict | None:
        """That of a run that failed, else the worst of all metrics that have enough data; None if refused or idle."""
        if self.is_idle:
            return None
        if self.failed:
            return "crashed"
        if self.refused:
            return None
        verdicts = [m.verdict for m in self.metrics if m.verdict != "insufficient data"]
        return worst_of(verdicts) if verdicts else "insufficient data"

    @property
    def news(self) -> News | None:
        """What changed tonight; None for a job that is as it was, or that has no verdict."""
        if self.verdict is None:
            return None
        if any(step.state == "new" for step in self.steps) or (self.failed and self.failed_tonight):
            return "new"
        if self.failed or self.verdict in ("regression", "less work"):
            return "still_open"
        return "cleared" if self.runs_again or self.cleared else None

    def by_step(self) -> list[JobVerdict]:
        """The job once for each step that is open, with that one alone; the job itself where it failed or none is."""
        opened = [step for step in self.steps if step.is_open]
        return [self] if self.failed or not opened else [self._at(step) for step in opened]

    def _at(self, step: JobStep) -> JobVerdict:
        of_metric = {one.metric: one for one in step.steps}
        metrics = [_with_step(one, of_metric[one.metric]) for one in self.metrics if one.metric in of_metric]
        name = self.name if step.block is None else f"{self.name}, {self.block_by} {step.block}"
        less = () if step.is_worse else self.less_work
        return replace(self, name=name, steps=(step,), metrics=tuple(metrics), less_work=less)

    @property
    def cleared(self) -> list[JobStep]:
        """The steps that ended tonight."""
        return [step for step in self.steps if step.state == "cleared" and step.is_news]

    @property
    def runs_again(self) -> bool:
        """Whether the run before failed and that of tonight did not."""
        return self.failed_before > 0 and not self.failed and not self.missing

    @property
    def leading(self) -> JobStep | None:
        """The step that is named first: the largest that is new, else of those that are open; None where none is."""
        opened = [step for step in self.steps if step.is_open]
        return max(opened, key=lambda step: (step.state == "new", step.size), default=None)

    @property
    def began(self) -> str | None:
        """The run at which the leading step began."""
        return self.leading.began if self.leading else None

    @property
    def changes(self) -> tuple[Change, ...]:
        """The settings and versions that changed there."""
        return self.leading.causes if self.leading else ()

    @property
    def worse_before(self) -> bool:
        """Whether the job became worse in a straight line that begins before, so that none of them is the cause."""
        return self.leading is not None and self.leading.is_slow

    @property
    def new_metrics(self) -> list[MetricNight]:
        """The metrics that became worse tonight, each with the change of its new step alone."""
        new = {step.metric: step for one in self.steps if one.state == "new" for step in one.steps}
        return [_with_step(metric, new[metric.metric]) for metric in self.metrics if metric.metric in new]

    @property
    def changed_tonight(self) -> bool:
        """Whether the newest run is the first of its series, which differs from the one before."""
        return bool(self.changed) and len(self.runs) == 1

    @property
    def ended_lately(self) -> EndedSeries | None:
        """``ended`` until the series that follows has a verdict, or in the first week in which the job is idle."""
        lately = self.idle_days <= MOST_IDLE_DAYS + WEEK if self.is_idle else len(self.runs) <= FEWEST
        return self.ended if lately else None

    @property
    def ended_tonight(self) -> bool:
        """Whether that is news: on the first night of the series that follows, or on which the job is idle."""
        return self.ended is not None and (self.idle_days - MOST_IDLE_DAYS if self.is_idle else len(self.runs)) == 1

    @property
    def decisive(self) -> MetricNight | None:
        """The first metric with the verdict of the job; the first of all where another thing decides."""
        return next((m for m in self.metrics if m.verdict == self.verdict), next(iter(self.metrics), None))

    @property
    def newest(self) -> Mapping[str, Any]:
        """The row of the run that is judged."""
        return self.runs.row(-1, named=True)


def _with_step(metric: MetricNight, step: MetricStep) -> MetricNight:
    """``metric`` with the change of one of its steps, which is that of a drift where it came slowly."""
    night = metric.night and replace(metric.night, change=step.change, drift=step.change if step.is_drift else None)
    return replace(metric, night=night, began=step.began)


def how_much_worse(metric: MetricNight) -> float:
    """How much worse a metric is, relative; negative where it is better."""
    return metric.metric.direction * ((metric.night.change if metric.night else None) or 0.0)


def verdict_of(jobs: Sequence[JobVerdict]) -> Verdict | None:
    """The worst of all jobs; None if one is refused and no other has a bad verdict."""
    verdicts = [job.verdict for job in jobs if job.verdict]
    worst = worst_of(verdicts) if verdicts else None
    good = worst in ("no regression", "insufficient data")
    return None if good and any(job.refused for job in jobs) else worst
