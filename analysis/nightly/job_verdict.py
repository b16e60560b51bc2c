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
from analysis.nightly.metric_verdict import MetricNight
from analysis.run.checks.target_verdicts import Judgement
from analysis.stats.prediction import FEWEST
from logparse.light_dataclass import dataclass

# What is new of a job. The order is that of the first line.
News = Literal["new", "still_open", "cleared"]
NEWS: tuple[News, ...] = ("new", "still_open", "cleared")
# Days in which a job that became idle with an open regression is named.
WEEK = 7
# Metrics show one change from runs so near to each other.
OF_ONE_CHANGE = 2


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

    ``refused`` are fields in which the newest run differs from those before; it is no run of the job then, and has no
    verdict. ``changes`` are the settings and versions that changed when a metric became worse. ``left_out`` are later
    runs that do not count. ``idle_days`` are the days from the newest run of the job to the newest of all jobs.
    ``less_work`` are the kinds of work of which the faster runs do less. ``failed`` is the newest run if it failed,
    ``failed_row`` its row; all of the last ``failed_nights`` runs failed, since ``failed_since``. ``missing`` says that
    a run of tonight is missing, ``missing_before`` that one was missing the night before too. The newest run of any
    kind began ``newest_when``. ``accepted`` are the changes that are accepted today. ``began`` is the run at which the
    job became worse, by all its metrics. ``worse_before`` says that it became worse in a straight line that begins
    before the ``changes``, so that none of them is the cause. ``hidden`` is what the exclusion of runs hides.
    ``ended`` is the series before, or that of an idle job, if it ended while a regression was open. All of the
    ``failed_before`` runs before the newest failed, in a row. ``tolerances`` are what is required of its losses.
    """

    name: str
    owners: tuple[str, ...]
    baseline: str
    runs: pl.DataFrame
    metrics: tuple[MetricNight, ...]
    refused: tuple[Field, ...]
    changes: tuple[Change, ...]
    left_out: tuple[LeftOut, ...]
    idle_days: int = 0
    less_work: tuple[Less, ...] = ()
    failed: LeftOut | None = None
    missing: bool = False
    newest_when: datetime | None = None
    accepted: tuple[AcceptedChange, ...] = ()
    began: str | None = None
    hidden: tuple[Hidden, ...] = ()
    failed_nights: int = 0
    failed_since: datetime | None = None
    missing_before: bool = False
    failed_row: Mapping[str, Any] | None = None
    worse_before: bool = False
    ended: EndedSeries | None = None
    failed_before: int = 0
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
        if self.new_metrics or (self.failed and self.failed_nights <= 1):
            return "new"
        if self.failed or self.verdict in ("regression", "less work"):
            return "still_open"
        return "cleared" if self.runs_again or any(metric.reason == "cleared" for metric in self.metrics) else None

    @property
    def runs_again(self) -> bool:
        """Whether the run before failed and that of tonight did not."""
        return self.failed_before > 0 and not self.failed and not self.missing

    @property
    def new_metrics(self) -> list[MetricNight]:
        """The metrics that became worse tonight, but for those of a change that is open by another metric."""
        ids = self.runs["run_id"].to_list()
        begun = [(metric, ids.index(metric.began)) for metric in self.metrics if metric.began in ids]
        open_at = [at for metric, at in begun if metric.is_open and not metric.is_new]
        of_open = [metric for metric, at in begun if any(abs(at - other) <= OF_ONE_CHANGE for other in open_at)]
        new = [metric for metric in self.metrics if metric.is_new and metric not in of_open]
        return [metric for metric in new if not self._is_part_of_open(metric)]

    def _is_part_of_open(self, metric: MetricNight) -> bool:
        """Whether a time of steps became worse by no more than another one that is open: found later, not new."""
        times = (other for other in self.metrics if other.is_open and not other.is_new and other.metric.is_speed)
        return metric.metric.is_speed and any(how_much_worse(metric) <= how_much_worse(other) for other in times)

    @property
    def is_refused_first(self) -> bool:
        """Whether the newest run is the first that cannot be compared with those before."""
        return bool(self.refused) and len(self.runs) == 1

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


def how_much_worse(metric: MetricNight) -> float:
    """How much worse a metric is, relative; negative where it is better."""
    return metric.metric.direction * ((metric.night.change if metric.night else None) or 0.0)


def verdict_of(jobs: Sequence[JobVerdict]) -> Verdict | None:
    """The worst of all jobs; None if one is refused and no other has a bad verdict."""
    verdicts = [job.verdict for job in jobs if job.verdict]
    worst = worst_of(verdicts) if verdicts else None
    good = worst in ("no regression", "insufficient data")
    return None if good and any(job.refused for job in jobs) else worst
