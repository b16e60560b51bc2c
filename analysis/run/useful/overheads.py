"""What a run lost, the dearest first: time in which no useful step was made, and speed that its steps did not reach.

Comes in: an analysed run, its pauses, what its plan and published rates let expect. Goes out: a ``Overhead`` for each
cause, with what the run would have been without it, by its own arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

import polars as pl

from analysis.run.checks.expectations import Expectations, pipeline_bubble
from analysis.run.clock.interruptions import Pauses, count_between
from analysis.run.clock.pause_times import BETWEEN
from analysis.run.clock.step_time_patterns import describe_gaps
from analysis.run.rates.baseline_step_time import longer, with_baseline
from analysis.run.result import Analysis
from analysis.run.rows.exclusion_reasons import HOLDS_SAVE, NAN, OF_THE_RUN, ROW_MS
from analysis.run.useful.time_breakdown import USEFUL
from logparse.context.run_context import RunContext
from logparse.findings import Note, info
from logparse.light_dataclass import dataclass, replace

# Advice on the interval of saves, of a run that never failed, and of one that did.
SAVES, SAVES_WITH_FAILURES = "saves_rarer", "save_interval"
PUBLISHED = "published"
IN_STEPS = ("bubble", "recomputation", PUBLISHED)
# What evaluations may cost, as a share of the useful time, before rarer ones are advised.
DEAR = 0.05
# A cause below this share is no overhead. Advice must raise goodput by the other.
LEAST_SHARE, LEAST_GAIN = 0.0005, 0.01


@dataclass(frozen=True)
class Overhead:
    """What one cause cost: a ``share`` of the time of the run, in ``seconds``.

    ``device_hours`` None where the number of devices is unknown or another one in a later start. Without it a share of
    ``useful_without`` of the time would have been useful work, or the settled steps would have made ``rate_without``
    tokens/s/p: None is unknown, and what the cause does not change. Losses of speed lie inside the useful time.
    """

    cause: str
    share: float
    seconds: float
    device_hours: float | None
    useful_without: float | None = None
    rate_without: float | None = None
    advice: Note | None = None
    has_nan: bool = True

    @property
    def name(self) -> str:
        """The code of its words: of skipped updates another one where no step was NaN."""
        return "skipped_updates" if self.cause == "skipped" and not self.has_nan else self.cause

    @property
    def in_steps(self) -> bool:
        """Whether it lies inside the useful time, as the steps could have been faster."""
        return self.cause in IN_STEPS


@dataclass(frozen=True)
class _Time:
    """The time of a run: all of it, what was useful, on how many devices, and the steps asked for."""

    total: float
    useful: float
    devices: int | None
    planned: int | None

    def loss(self, cause: str, seconds: float, **more: Any) -> Overhead:
        hours = None if self.devices is None else self.devices * seconds / 3600
        return Overhead(cause, seconds / self.total, seconds, hours, **more)


def list_overheads(
    analysis: Analysis,
    context: RunContext,
    pauses: Pauses,
    expected: Expectations,
    fixed_evaluations: bool = False,
    ended_by_failure: bool = False,
) -> tuple[Overhead, ...]:
    """Every loss that is known, the dearest first; empty where no row counts. ``fixed_evaluations`` have no advice."""
    parts = dict(analysis.time_breakdown["part", "seconds"].iter_rows())
    planned: Any = analysis.steps["train_steps"].max()
    time = _Time(sum(parts.values()), parts.pop(USEFUL, 0.0), analysis.devices, planned)
    if not time.useful:
        return ()
    gaps = describe_gaps(analysis.steps, pauses)
    saves = () if _saves_of_ramp(analysis.steps, pauses.saved) else pauses.saved
    evaluated = () if fixed_evaluations else pauses.evaluated
    causes = _by_cause(parts)
    advice = {"not_explained": gaps, "evaluation": _rarer(causes.get("evaluation", 0.0), evaluated, time)}
    if len(saves) > 1 and "saves" in causes:
        advice["saves"] = _save_interval(time, causes, analysis, saves, ended_by_failure)
    has_device = analysis.computation.peak is not None or context.get("device_name") is not None
    lost = (
        *_of_time(time, causes, advice),
        *_of_speed(time, analysis, context),
        *_of_published(time, expected, has_device),
    )
    # What others reached is no cause, and comes last.
    has_nan = (analysis.steps["excluded_reason"] == NAN).any()
    return tuple(
        sorted(
            (replace(loss, has_nan=has_nan) for loss in lost if loss.share >= LEAST_SHARE),
            key=lambda loss: (loss.cause == PUBLISHED, -loss.seconds),
        )
    )


def _saves_of_ramp(steps: pl.DataFrame, saved: Sequence[int]) -> bool:
    """Whether most saves come where the batch grows: Megatron saves there, whatever the interval of saves is."""
    if steps["global_batch_size"].n_unique() < 2:
        return False
    batch = pl.col("global_batch_size")
    grown = steps.filter((batch > batch.shift(1)).fill_null(value=False)).select("step", "iterations").drop_nulls()
    there = [step for step in saved if any(last - n <= step <= last for last, n in grown.iter_rows())]
    return 2 * len(there) > len(saved)


def _by_cause(parts: Mapping[str, float]) -> dict[str, float]:
    """The ``parts`` of the time by their cause: in the time of a line or between lines, it is the same."""
    causes: dict[str, float] = {}
    for part, seconds in parts.items():
        cause = part.removesuffix(BETWEEN)
        causes[cause] = causes.get(cause, 0.0) + seconds
    return causes


def _of_time(time: _Time, causes: Mapping[str, float], advice: Mapping[str, Note | None]) -> Iterator[Overhead]:
    for cause, seconds in causes.items():
        useful = time.useful / (time.total - seconds)
        yield time.loss(cause, seconds, useful_without=useful, advice=advice.get(cause))


def _rarer(seconds: float, marks: Sequence[int], time: _Time) -> Note | None:
    """How rare evaluations that cost over DEAR of the useful time should be, at least two in the steps asked for.

    None for one that is cheap, comes once, or costs little of the run.
    """
    if len(marks) < 2 or seconds <= DEAR * time.useful:
        return None
    now = _distance(marks)
    every = _at_least_two(_round_number(now * seconds / (DEAR * time.useful)), now, time)
    useful = time.useful / (time.total - seconds + seconds * now / every)
    if useful - time.useful / time.total < LEAST_GAIN:
        return None
    return info("evaluation_rarer", now=now, every=every, each=seconds / len(marks), useful=useful)


def _distance(marks: Sequence[int]) -> int:
    return max(1, round(median(b - a for a, b in pairwise(marks))))


def _at_least_two(every: int, now: int, time: _Time) -> int:
    """``every`` so many steps, less often only where two are left in the steps asked for."""
    # A third of a round number, rounded up, is the next smaller one.
    while time.planned and now < every and 2 * every > time.planned:
        every = _round_number(every / 3)
    return every


def _save_interval(
    time: _Time, causes: Mapping[str, float], analysis: Analysis, saved: Sequence[int], ended_by_failure: bool
) -> Note | None:
    """The interval of saves that costs least, by Young and Daly.

    It is sqrt(2 x seconds of a save x seconds between failures). A failure costs the steps since the last save, half of
    an interval on average. The log of a run without a failure shows that they are at least as far apart as it is long:
    saves may be rarer, never more frequent. A wait for the last save stays, as with asynchronous ones. None where
    another interval gains little.
    """
    step, n = (analysis.rate("steady")["step_time_ms"] or 0.0) / 1000, len(saved)
    each, n = _seconds_of_save(analysis.steps, saved) or (causes["saves"] / n, n)
    in_loop = min(each * n, causes["saves"])
    if not step or not in_loop:
        return None
    restarts = analysis.reliability.interruptions or 0
    between = time.total / max(1, restarts + ended_by_failure)
    now = _distance(saved)
    every = _at_least_two(_round_number(math.sqrt(2 * each * between) / step), now, time)
    fixed = time.total - in_loop - (causes.get("replayed", 0.0) if restarts else 0.0)

    def goodput(interval: int) -> float:
        return time.useful / (fixed + in_loop * now / interval + restarts * step * interval / 2)

    if goodput(every) - goodput(now) < LEAST_GAIN:
        return None
    code = SAVES_WITH_FAILURES if restarts + ended_by_failure else SAVES
    return info(code, now=now, every=every, each=each, between=between, useful=goodput(every))


def _seconds_of_save(steps: pl.DataFrame, saved: Sequence[int]) -> tuple[float, int] | None:
    """Seconds that a save typically keeps the next step waiting, and how many do; None where no line shows one."""
    rows = steps.filter(OF_THE_RUN & pl.col("iterations").is_not_null())
    rows = rows.with_columns(
        waited=pl.col("timestamp").diff().over("segment").dt.total_microseconds() / 1000 - ROW_MS,
        saves=count_between(saved, pl.col("step").shift(1).over("segment"), pl.col("step")),
    )
    inside = pl.when(pl.col("excluded_reason") == HOLDS_SAVE).then(longer()).otherwise(0.0)
    waited = pl.col("waited").fill_null(0.0) + inside
    holding = with_baseline(rows).filter(pl.col("saves") > 0)
    each: Any = holding.select((waited / pl.col("saves")).clip(0).median()).item()
    return None if each is None else (each / 1000, int(holding["saves"].sum()))


def _round_number(least: float) -> int:
    """The first of 1, 2, 5, 10, 20, 50 ... that is not below ``least``."""
    ten = 10 ** math.floor(math.log10(least))
    return int(next(n * ten for n in (1, 2, 5, 10) if n * ten >= least))


def _of_speed(time: _Time, analysis: Analysis, context: RunContext) -> Iterator[Overhead]:
    """What the pipeline waits, and what is computed again: shares of the time of every step."""
    rate, how = _steady_rate(analysis), analysis.computation
    bubble = pipeline_bubble(context) or 0.0
    least, most = how.executed_times() or (1.0, 1.0)
    again = (1 - 1 / least) * (1 - bubble) if least == most else 0.0
    for cause, share in (("bubble", bubble), ("recomputation", again)):
        if share:
            yield time.loss(cause, share * time.useful, rate_without=None if rate is None else rate / (1 - share))


def _of_published(time: _Time, expected: Expectations, has_device: bool) -> Iterator[Overhead]:
    """The loss against the best published rate of this model, these devices and this precision; none where faster.

    The best published rate is of the best device: of an unknown one it says nothing. One's own records do.
    """
    better = [m for m in expected.published.matches if m.share < 1 and (has_device or m.row.recorded)]
    if better:
        best = min(better, key=lambda match: match.share)
        code = "best_recorded" if best.row.recorded else "best_published"
        advice = info(code, row=best.row.name, publisher=best.row.publisher or best.row.name)
        rate = best.row.tokens_per_second_per_device
        yield time.loss(PUBLISHED, (1 - best.share) * time.useful, rate_without=rate, advice=advice)


def _steady_rate(analysis: Analysis) -> float | None:
    steady = analysis.rate("steady")
    rate: float | None = steady["tokens_per_second_per_device"]
    return rate
