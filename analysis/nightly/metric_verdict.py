"""The verdict on one metric of the newest run of a job.

Comes in: the runs of the job in the order in which they are watched. Goes out: a MetricNight.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import date, timedelta
from functools import cache, partial
from itertools import takewhile
from typing import Any, Literal

import polars as pl

from analysis.compare.comparison import measured, values_of
from analysis.compare.verdict import DEFAULT_METRIC, Verdict
from analysis.metrics import FINAL_LOSS, Metric
from analysis.nightly.metric_steps import Step, StepFinder, is_worse
from analysis.nightly.nights import nights_of
from analysis.nightly.policy import JobRule
from analysis.stats.prediction import BY_ACCIDENT, CONFIRMED, FEWEST, KEPT, OFF, Night, State
from analysis.stats.young_series import watch_from_first
from logparse.light_dataclass import dataclass, replace

Reason = Literal[
    "as_expected",
    "one_night",
    "one_night_better",
    "confirmed_better",
    "confirmed",
    "confirmed_faster",
    "confirmed_by_less",
    "confirmed_by_more",
    "accepted",
    "cleared",
    "still_open",
    "drift",
    "one_of_many",
    "learning",
    "not_told",
    "loss_lost",
    "loss_lost_before",
]
# Metrics that are 0 in a healthy run: a night that differs is no noise, and needs no second one.
AT_ONCE = ("nan_share",)
# By how many times less the chance of a confirmed change is of all metrics but the first.
MANY = 9.0
# Steps that ended earlier, and series, are no longer looked at.
MOST_ENDED_DAYS = 90
ACCEPTED: tuple[Verdict, Reason] = ("no regression", "accepted")


@dataclass(frozen=True)
class MetricStep:
    """A change of the level of ``metric``, relative: that of the runs from ``began`` to the next one, or to ``ended``.

    ``began``, ``found`` and ``ended`` are run ids: of its first run, of that which confirmed it, and of that which
    showed that it ended, None where it lasts. ``is_drift`` says that it came slowly, ``accepted`` that somebody
    accepted it. ``is_new`` says that a run of tonight confirmed it, ``is_cleared`` that one of tonight ended it.
    """

    metric: Metric
    began: str
    found: str
    ended: str | None
    change: float | None
    p: float | None
    is_worse: bool = True
    is_drift: bool = False
    accepted: bool = False
    is_new: bool = False
    is_cleared: bool = False

    @property
    def is_open(self) -> bool:
        """Whether it is worse, lasts, and nobody accepted it."""
        return self.is_worse and self.ended is None and not self.accepted


@dataclass(frozen=True)
class MetricNight:
    """The verdict on one metric of the newest run. ``value`` is the run's, ``least`` the smallest change that matters.

    ``p`` is that of the night where it is worse, ``p_family`` what it is worth among all metrics of all jobs. ``began``
    is the run from which on the metric is off. ``nights`` are those of all runs that have the metric. ``steps`` are
    the changes of its level, the oldest first; ``block`` is the testbed that is judged where each one is.
    """

    metric: Metric
    least: float
    value: float | None
    night: Night | None
    verdict: Verdict
    reason: Reason
    began: str | None = None
    p: float | None = None
    p_family: float | None = None
    steps: tuple[MetricStep, ...] = ()
    block: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is a regression, or less work."""
        return self.verdict in ("regression", "less work")

    @property
    def is_at_once(self) -> bool:
        """Whether it is an open one that no noise explains: a NaN, or a loss that is no longer finite."""
        return self.is_open and (self.night is None or self.metric.column in AT_ONCE)

    @property
    def is_inside(self) -> bool:
        """Whether the newest run is inside the expected range of one that did not drift."""
        if self.night is None or self.night.drift is not None:
            return False
        low, value, high = self.night.low, self.value, self.night.high
        return low is not None and value is not None and high is not None and low <= value <= high


@dataclass(frozen=True)
class MetricRuns:
    """The runs of a job in the order in which they are watched, with a column ``block``, and how they are judged.

    The first ``fixed`` runs are a permanent baseline. ``known`` says whether the change of a metric, by its column, at
    a run, by its id, is accepted. ``tonight`` are the ids of the runs of the newest night. On the nights ``together``
    most jobs are slow.
    """

    runs: pl.DataFrame
    fixed: int
    rule: JobRule
    known: Callable[[str, str], bool]
    tonight: Collection[str] = ()
    together: Collection[date] = ()

    def of_block(self, block: str) -> MetricRuns:
        """The runs of one block alone."""
        mine = pl.col("block") == block
        return replace(self, runs=self.runs.filter(mine), fixed=len(self.runs[: self.fixed].filter(mine)))


def judge_newest(metric: Metric, least: float, job: MetricRuns) -> MetricNight | None:
    """The verdict on the newest run, and the steps of the metric. None for a metric that no run of the job has."""
    runs = job.runs
    with_metric, newest = measured(runs, metric), runs.row(-1, named=True)
    if metric == FINAL_LOSS and newest["loss_lost_at"] is not None:
        return _lost(metric, least, job)
    if with_metric.is_empty():
        return None
    if with_metric["run_id"][-1] != newest["run_id"]:
        return MetricNight(metric, least, None, None, "insufficient data", "not_told")
    before = len(measured(runs[: job.fixed], metric))
    if job.fixed and before < FEWEST:
        return MetricNight(metric, least, newest[metric.column], None, "insufficient data", "learning")
    nights, steps = follow_metric(with_metric, metric, least, job, before)
    night = _night_of_tonight(nights, metric, sum(map(job.tonight.__contains__, with_metric["run_id"])))
    verdict = _verdict_of_steps(night, steps) or verdict_on(night, metric)
    off = with_metric["run_id"][-night.nights] if night.nights and night is nights[-1] else None
    began = next((step.began for step in steps if step.is_open or (night is not nights[-1] and step.is_new)), off)
    shown, p = _shown(night, metric), _p_of_worse(night, metric)
    return MetricNight(metric, least, newest[metric.column], shown, *verdict, began, p, steps=steps)


def _night_of_tonight(nights: Sequence[Night], metric: Metric, tonight: int) -> Night:
    """The newest of the nights, or that of the newest run of ``tonight`` which confirmed that the metric is better."""
    newest = nights[-1]
    if newest.state != "expected":
        return newest
    better = (one for one in nights[-tonight:] if one.state == "confirmed" and not is_worse(one, metric.direction))
    found = next(better, None)
    return newest if found is None else replace(found, own_change=newest.own_change)


def _verdict_of_steps(night: Night, steps: Sequence[MetricStep]) -> tuple[Verdict, Reason] | None:
    """The verdict of open steps, or that the last one ended tonight; None where neither decides."""
    if any(step.is_open for step in steps):
        if night.state == "drifted":
            return "regression", "drift"
        return "regression", "confirmed" if any(step.is_new and step.is_open for step in steps) else "still_open"
    if night.state in ("expected", "cleared") and any(step.is_cleared for step in steps):
        return "no regression", "cleared"
    return None


def follow_metric(
    runs: pl.DataFrame, metric: Metric, least: float, job: MetricRuns, fixed: int = 0
) -> tuple[list[Night], tuple[MetricStep, ...]]:
    """A night for each of ``runs``, all of which have the metric, and the steps of the metric."""
    ids, rule = runs["run_id"].to_list(), job.rule
    kept = rule.baseline.runs if rule.baseline.kind == "last" else len(runs)

    nights = {"nights": nights_of(runs["when"]).to_list(), "together": job.together}

    def watched(accepted: Collection[int]) -> list[Night]:
        levels = {ids[at] for at in accepted}
        return watch_metric(runs, metric, least, rule, levels.__contains__, kept, fixed, **nights)

    def is_accepted(at: int) -> bool:
        return job.known(metric.column, ids[at])

    ended = int((runs["when"] < runs["when"][-1] - timedelta(days=MOST_ENDED_DAYS)).sum())
    found, steps = StepFinder(watched, metric.direction, is_accepted, ended).find()
    return found, tuple(_named(step, metric, ids, job.tonight) for step in steps)


def verdicts_by_run(runs: pl.DataFrame, metric: Metric, least: float, job: MetricRuns) -> Iterator[tuple[str, Verdict]]:
    """The verdict on each of ``runs``, all of which have the metric, on its night."""
    nights, steps = follow_metric(runs, metric, least, job)
    place = {run_id: at for at, run_id in enumerate(runs["run_id"])}
    worse: set[int] = set()
    for step in steps:
        if step.is_worse and not step.accepted:
            worse |= set(range(place[step.found], len(place) if step.ended is None else place[step.ended]))
    for run_id, at in place.items():
        yield run_id, "regression" if at in worse else verdict_on(nights[at], metric)[0]


def _named(step: Step, metric: Metric, ids: Sequence[str], tonight: Collection[str]) -> MetricStep:
    """A step by the ids of its runs."""
    found, ended = ids[step.found], None if step.ended is None else ids[step.ended]
    return MetricStep(
        metric,
        ids[step.begins],
        found,
        ended,
        step.change,
        step.p,
        step.is_worse,
        step.is_drift,
        step.accepted,
        is_new=found in tonight,
        is_cleared=ended in tonight,
    )


def watch_metric(
    runs: pl.DataFrame,
    metric: Metric,
    least: float,
    rule: JobRule,
    known: Callable[[str], bool],
    kept: int = KEPT,
    fixed: int = 0,
    **how: Any,
) -> list[Night]:
    """The nights of ``runs``, all of which have the metric and a column ``block``.

    A metric that includes stalls is watched three times. With the longest stall of each run more nights in a row are
    needed: one pause of one step is the noise of a short run. Without it, and with those that fall on the same step in
    neighbouring runs, the rules of any metric apply. Only the first metric may be confirmed with the larger chance:
    the others are many. ``how`` is passed on to ``watch``.
    """
    how |= {
        "worse": metric.direction,
        "least": least,
        "confirm": 1 if metric.column in AT_ONCE else rule.confirm,
        "chance": CONFIRMED if metric.column == DEFAULT_METRIC else CONFIRMED / MANY,
        "kept": kept,
        "fixed": fixed,
        "blocks": runs["block"].to_list(),
        "accepted": [place for place, run_id in enumerate(runs["run_id"]) if known(run_id)],
    }
    values, calm = values_of(runs, metric), without_longest_stall(runs, metric)
    if calm is None:
        return watch_from_first(values, **how)
    # Pauses have long tails: only what is off by itself is part of a change.
    how["away"] = OFF
    nights = watch_from_first(values, **how, accident=PAUSED_RUNS)
    how["chance"] = REST_CHANCE
    nights = _merged(nights, watch_from_first(calm, **how))
    repeated = without_longest_stall(runs, metric, keep_repeated=True)
    if repeated and repeated != calm:
        how["confirm"] = max(how["confirm"], nights_at_one_step(runs))
        at_one_step = watch_from_first(repeated, **how)
        by_chance = cache(partial(one_step_by_chance, runs))
        nights = _merged(nights, [_counting_steps(night, by_chance) for night in at_one_step])
    return _counted_once(nights, metric)


def _merged(nights: Sequence[Night], calm: Sequence[Night]) -> list[Night]:
    """``nights``, with what runs without their longest stall prove. A change that ended there ended."""
    merged: list[Night] = []
    ended = False
    for night, one in zip(nights, calm, strict=True):
        ended = (
            night.state == "confirmed"
            and one.state not in ("confirmed", "drifted")
            and (ended or one.state == "cleared")
        )
        decided = _decided(night, one)
        merged.append(replace(decided, state="expected", confirmed_for=0, nights=0) if ended else decided)
    return merged


def _counting_steps(night: Night, by_chance: Callable[[int], float]) -> Night:
    """``night`` with a p that counts the steps and the runs in which a stall at one step was looked for."""
    return night if night.p is None else replace(night, p=max(night.p, by_chance(max(night.nights, 1))))


def _decided(night: Night, calm: Night) -> Night:
    """``night``, or what is known of the run without its longest stall where that proves a change."""
    if night.state == "drifted":
        night = replace(night, state="expected", confirmed_for=0, drift=None)
    if calm.state not in ("confirmed", "drifted") or night.state in ("confirmed", "learning"):
        return night
    # The longest stall of each night is part of the change.
    change = night.change if night.nights >= calm.nights else calm.change
    taken = ("state", "p", "nights", "confirmed_for", "drift")
    return replace(night, change=change, **{name: getattr(calm, name) for name in taken})


def _counted_once(nights: Sequence[Night], metric: Metric) -> list[Night]:
    """``nights`` of which each says whether the change is new, still open or cleared, whichever series proves it.

    The series without the longest stalls proves a change earlier, and that it ended.
    """
    found: list[Night] = []
    open_for, reported = 0, -1
    for place, night in enumerate(nights):
        if night.state in ("confirmed", "drifted") and (night.state == "drifted" or is_worse(night, metric.direction)):
            open_for += 1
            night = replace(night, confirmed_for=open_for)
        elif night.state == "confirmed":
            if reported > place - night.nights:
                night = replace(night, state="expected", confirmed_for=0, nights=0)
            else:
                reported = place
        elif night.state in ("expected", "cleared", "accepted"):
            ended: State = "cleared" if open_for else "expected"
            night = night if night.state == "accepted" else replace(night, state=ended)
            open_for = 0
        found.append(night)
    return found


def _p_of_worse(night: Night, metric: Metric) -> float | None:
    """The p of a worse night; 1 of one that is not worse, None where there is no p."""
    return 1.0 if night.p is not None and not is_worse(night, metric.direction) else night.p


def _lost(metric: Metric, least: float, job: MetricRuns) -> MetricNight:
    """The newest run ends without a loss: a regression, unless most runs before it do too."""
    runs = job.runs
    whole = runs[:-1]["loss_lost_at"].is_null()
    if 2 * whole.sum() < len(whole):
        return MetricNight(metric, least, None, None, "suspicious", "loss_lost_before")
    lost = list(takewhile(lambda row: row[1] is not None, reversed(runs.select("run_id", "loss_lost_at").rows())))
    ids = [run_id for run_id, _ in reversed(lost)]
    known = any(job.known(metric.column, run_id) for run_id in ids)
    step = MetricStep(metric, ids[0], ids[0], None, None, None, accepted=known, is_new=ids[0] in job.tonight)
    verdict: tuple[Verdict, Reason] = ACCEPTED if known else ("regression", "loss_lost")
    return MetricNight(metric, least, None, None, *verdict, ids[0], steps=(step,))


def _shown(night: Night, metric: Metric) -> Night:
    """``night`` in the numbers of the metric, without the offset by which a share is compared."""
    level, low, high = (None if x is None else x - metric.offset for x in (night.level, night.low, night.high))
    if metric.offset and low is not None:
        # No share is below 0.
        low = max(0.0, low)
    return replace(night, level=level, low=low, high=high)


def verdict_on(night: Night, metric: Metric) -> tuple[Verdict, Reason]:
    """What a night means, and why."""
    worse = is_worse(night, metric.direction)
    if night.state == "learning":
        return "insufficient data", "learning"
    if night.state == "confirmed":
        news: Reason = "confirmed" if night.confirmed_for == 1 else "still_open"
        if worse:
            return "regression", news
        # A step that takes longer leaves less room for losses: only a faster one may do less work.
        return ("suspicious", "confirmed_faster") if metric.is_speed else ("no regression", "confirmed_better")
    if night.state == "drifted":
        return "regression", "drift"
    if night.state == "off":
        return ("suspicious", "one_night") if worse else ("no regression", "one_night_better")
    return "no regression", night.state if night.state in ("accepted", "cleared") else "as_expected"


# Share of runs that have a pause, as long as the earlier runs of a job show no higher one.
PAUSED_RUNS = 0.2
# Without their longest stall some runs still have a pause: only what chance explains this rarely is a change.
REST_CHANCE = 3e-6
_STALL = pl.col("longest_stall_ms")
_STEP = pl.col("longest_stall_step")
_REPEATED = (_STEP.shift(1) == _STEP) | (_STEP.shift(-1) == _STEP)
_CLOCK_MS = pl.col("wall_clock_step_time_ms") * pl.col("wall_clock_steps")
_WITHOUT = {
    "with_stalls_step_time_ms": pl.col("with_stalls_step_time_ms") - _STALL / pl.col("with_stalls_steps"),
    "goodput": pl.col("goodput") * _CLOCK_MS / (_CLOCK_MS - _STALL),
}


def without_longest_stall(runs: pl.DataFrame, metric: Metric, keep_repeated: bool = False) -> list[float] | None:
    """``metric`` of each of ``runs``; None for one without stalls, or if no run has its longest stall recorded.

    With ``keep_repeated`` a stall stays that is at the same step as that of the run before or after: pauses are not.
    """
    expression = _WITHOUT.get(metric.column)
    if expression is None or runs["longest_stall_ms"].is_null().all():
        return None
    if keep_repeated:
        runs = runs.with_columns(longest_stall_ms=pl.when(_REPEATED).then(0.0).otherwise(_STALL))
    value = pl.when(expression > 0).then(expression)
    return values_of(runs.with_columns(pl.coalesce(value, metric.column).alias(metric.column)), metric)


def one_step_by_chance(runs: pl.DataFrame, nights: int) -> float:
    """The chance that so many runs in a row, anywhere in ``runs``, have pauses that fall on the same step."""
    paused = (_STEP.is_not_null() & ~_REPEATED.fill_null(False)).mean()
    share, steps = runs.select(paused, lines=pl.col("step_lines").median()).row(0)
    return min(1.0, len(runs) * (share or 0.0) * ((share or 0.0) / max(steps or 1.0, 1.0)) ** (nights - 1))


def nights_at_one_step(runs: pl.DataFrame) -> int:
    """How many nights in a row with a stall at the same step are no accident."""
    return next((n for n in range(2, KEPT) if one_step_by_chance(runs, n) <= BY_ACCIDENT), KEPT)
