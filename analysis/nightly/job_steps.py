"""The steps of a job: each change of its level, with all metrics that it concerns, where it began, and what differs.

Comes in: the runs of a job in the order of time, and the verdicts on its metrics. Goes out: a JobStep each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Literal

import polars as pl

from analysis.compare.comparability import Change
from analysis.compare.comparison import measured
from analysis.compare.threshold import least_change
from analysis.compare.verdict import DEFAULT_METRIC, find_metric
from analysis.history.events import Acceptance
from analysis.metrics import FINAL_LOSS, Metric
from analysis.nightly.change_start import LINE_RUNS, changes_around, grew_slowly, place_drift, place_step, series_of
from analysis.nightly.metric_steps import AROUND
from analysis.nightly.metric_verdict import MetricNight, MetricRuns, MetricStep, follow_metric
from analysis.nightly.policy import JobRule
from analysis.stats.prediction import KEPT
from logparse.light_dataclass import dataclass, replace

StepState = Literal["new", "open", "accepted", "expired", "cleared"]
# Metrics of the result, which other settings change than those of the speed.
OF_RESULT = ("final_loss", "grad_norm", "nan_share", "skipped_share")
# A metric that follows another may seem to change by so many times as much, and more where it grows meanwhile.
ROOM, GROWING = 1.25, 2.0


@dataclass(frozen=True)
class JobStep:
    """A change of the level of a job. ``steps`` are those of the metrics that it concerns, in the order of these.

    ``is_news`` says that it was confirmed tonight, or that it ended tonight. ``began`` is the id of its first run, by
    all these metrics together; of a slow drift that from which on it grows. ``block`` is the testbed that has it, None
    where all have. ``causes`` are the settings, versions and labels that changed there, the likeliest first.
    ``is_slow`` says that the job had become worse in a straight line before, so that none of them is the cause.
    ``a_day`` is the change of a drift in a day. ``acceptance`` is the one that covers it, or that which expired.
    """

    state: StepState
    is_news: bool
    began: str
    steps: tuple[MetricStep, ...]
    block: str | None = None
    causes: tuple[Change, ...] = ()
    is_slow: bool = False
    a_day: float | None = None
    acceptance: Acceptance | None = None

    @property
    def changes(self) -> dict[str, float | None]:
        """How much each metric changed, by its column."""
        return {step.metric.column: step.change for step in self.steps}

    @property
    def size(self) -> float:
        """How much worse the worst metric became; infinite where that is unknown, as of a loss that is lost."""
        known = [step.metric.direction * step.change for step in self.steps if step.change is not None]
        return max(known, default=math.inf)

    @property
    def is_worse(self) -> bool:
        """Whether it is a regression; else a job is faster because it does less work."""
        return self.steps[0].is_worse

    @property
    def is_drift(self) -> bool:
        """Whether it came slowly."""
        return all(step.is_drift for step in self.steps)

    @property
    def ended(self) -> str | None:
        """The id of the run that showed that it ended; None where it lasts."""
        return self.steps[0].ended if self.state == "cleared" else None

    @property
    def is_open(self) -> bool:
        """Whether it lasts, and nobody accepts it today."""
        return self.state in ("new", "open", "expired")


def find_open_steps(runs: pl.DataFrame, metric: Metric) -> list[tuple[str, float]]:
    """The first run and the p of each open step of ``metric`` that came at once, as the gate has them by its defaults.

    ``runs`` are of one series, in the order of time. All metrics together place a step that the metric has.
    """
    placed = runs.with_columns(block=pl.lit(None, pl.String), when=pl.coalesce("begun_at", "recorded_at"))
    job = MetricRuns(placed, 0, JobRule(), lambda *_: False)
    own = _steps_alone(metric, job)
    if not any(step.is_open for step in own.steps):
        return []
    known = [name for name in job.rule.metrics if name in runs.columns and name != FINAL_LOSS.column]
    others = (find_metric(name) for name in known if name != metric.column)
    every = [own, *(_steps_alone(other, job) for other in others)]
    steps = (one for one in find_job_steps(placed, every, None) if not one.is_slow)
    mine = ((step.began, one) for step in steps for one in step.steps if one.metric == metric and one.is_open)
    return [(began, one.p or 0.0) for began, one in mine]


def _steps_alone(metric: Metric, job: MetricRuns) -> MetricNight:
    """The steps of ``metric`` without a verdict on the newest run."""
    rows, least = measured(job.runs, metric), least_change(metric.column)
    steps = follow_metric(rows, metric, least, job)[1] if len(rows) else ()
    return MetricNight(metric, least, None, None, "no regression", "as_expected", steps=steps)


def group_steps(metrics: Sequence[MetricNight], ids: Sequence[str]) -> list[list[MetricStep]]:
    """The worse steps of ``metrics`` that are one change each, the oldest first.

    Metrics change together from runs next to each other. One that includes the time of the steps may be confirmed
    later, by no more than that: it follows. The median of the steps follows nothing.
    """
    place = {run_id: at for at, run_id in enumerate(ids)}
    steps = [step for metric in metrics for step in metric.steps if step.is_worse]
    groups: list[list[MetricStep]] = []
    for step in sorted(steps, key=lambda one: place[one.began]):
        home = next((group for group in reversed(groups) if _is_part(step, group, place)), None)
        if home is None:
            groups.append([step])
        else:
            home.append(step)
    order = {metric.metric.column: at for at, metric in enumerate(metrics)}
    return [sorted(group, key=lambda step: order[step.metric.column]) for group in groups]


def _is_part(step: MetricStep, group: Sequence[MetricStep], place: Mapping[str, int]) -> bool:
    """Whether ``step`` is of the change of ``group``, whose steps began before."""
    if any(other.metric == step.metric for other in group):
        return False
    if any(_is_near(step, other, place) for other in group):
        return True
    if not _is_timed(step) or step.metric.column == DEFAULT_METRIC:
        return False
    times = [other for other in group if _is_timed(other)]
    lasts = any(other.ended is None or place[other.ended] > place[step.found] for other in times)
    room = GROWING if step.is_drift else ROOM
    return lasts and any(_size(step) <= room * _size(other) for other in times)


def _is_timed(step: MetricStep) -> bool:
    return step.metric.is_speed or step.metric.column == "goodput"


def _is_near(step: MetricStep, other: MetricStep, place: Mapping[str, int]) -> bool:
    both_drift = step.is_drift and other.is_drift
    return both_drift or abs(place[step.began] - place[other.began]) <= AROUND


def _size(step: MetricStep) -> float:
    return step.metric.direction * (step.change or 0.0)


@dataclass(frozen=True)
class StepContext:
    """What explains the steps of a job: whole rows by the ids of runs, and the acceptances of runs.

    ``acceptances`` has those in effect today, ``expired`` those that no longer are.
    """

    settings: Callable[[Sequence[str]], pl.DataFrame]
    acceptances: Mapping[str, Sequence[Acceptance]]
    expired: Mapping[str, Sequence[Acceptance]]


def find_job_steps(
    runs: pl.DataFrame, metrics: Sequence[MetricNight], context: StepContext | None, block: str | None = None
) -> tuple[JobStep, ...]:
    """The steps of a job, or of its ``block``, the oldest first; without ``context`` none is explained.

    ``runs`` are in the order of time.
    """
    ids = runs["run_id"].to_list()
    groups = group_steps(metrics, ids)
    if less := [step for metric in metrics if metric.verdict == "less work" for step in metric.steps[-1:]]:
        groups.append(less)
    place = {run_id: at for at, run_id in enumerate(ids)}
    every = [step for metric in metrics for step in metric.steps]
    bounds = [place[run_id] for step in every for run_id in (step.began, step.ended) if run_id is not None]
    steps: list[JobStep] = []
    for group in groups:
        step = _placed(runs, group, place, bounds, context)
        if not any(_goes_on(step, other) for other in steps):
            steps.append(replace(step, block=block))
    return tuple(steps)


def _goes_on(step: JobStep, earlier: JobStep) -> bool:
    """Whether ``step`` is the growth of an earlier one that is open and came slowly too."""
    return step.is_slow and earlier.is_slow and earlier.is_open and not step.changes.keys().isdisjoint(earlier.changes)


def _placed(
    runs: pl.DataFrame,
    group: Sequence[MetricStep],
    place: Mapping[str, int],
    bounds: Sequence[int],
    context: StepContext | None,
) -> JobStep:
    """The step of the metrics of ``group``, between the ``bounds`` next to it."""
    begun, found = [place[step.began] for step in group], min(place[step.found] for step in group)
    low = max((at for at in bounds if at < min(begun) - AROUND), default=0)
    high = min((at for at in bounds if at > max(begun) + AROUND), default=len(runs))
    of_metrics = [step.metric for step in group]
    series = series_of(runs, of_metrics, max(low, min(begun) - KEPT), high)
    is_drift = all(step.is_drift for step in group)
    at = place_drift(series, found, low) if is_drift else place_step(series, begun, low, high)
    ids = runs["run_id"].to_list()
    first = max(low, at - LINE_RUNS)
    near = series_of(runs, of_metrics, first, min(high, at + LINE_RUNS))
    step = JobStep(*_state(group), ids[at], tuple(group))
    step = replace(step, is_slow=is_drift or (step.is_open and grew_slowly(near, at, first)))
    if context is None:
        return step
    if is_drift:
        step = replace(step, a_day=_a_day(group[0], runs["when"][-1] - runs["when"][at]))
    until = min([high, *(place[step.ended] for step in group if step.ended)])
    step = _accepted(step, ids[max(0, min(at, *begun) - AROUND) : until], context)
    if not step.is_open:
        return step
    of_result = all(one.column in OF_RESULT for one in of_metrics)
    causes = changes_around(runs, found if is_drift else at, context.settings, of_result)
    return replace(step, causes=causes)


def _accepted(step: JobStep, run_ids: Sequence[str], context: StepContext) -> JobStep:
    """``step`` with the acceptance of one of its runs, which may have expired."""
    acceptances = context.acceptances if step.state == "accepted" else context.expired
    every = (one for run_id in run_ids for one in acceptances.get(run_id, ()))
    acceptance = next((one for one in every if one.metric is None or one.metric in step.changes), None)
    state: StepState = "expired" if acceptance is not None and step.state == "open" else step.state
    return replace(step, state=state, acceptance=acceptance)


def _state(group: Sequence[MetricStep]) -> tuple[StepState, bool]:
    """The state of a step by those of its metrics, and whether it is news."""
    lasting = [step for step in group if step.ended is None]
    if any(not step.accepted for step in lasting):
        is_new = all(step.is_new for step in group)
        return ("new", True) if is_new else ("open", False)
    if lasting:
        return "accepted", False
    return "cleared", any(step.is_cleared for step in group)


def _a_day(step: MetricStep, since: timedelta) -> float | None:
    """The relative change in a day of a drift."""
    days = since / timedelta(days=1)
    return math.expm1(math.log1p(step.change) / days) if step.change is not None and days else None
