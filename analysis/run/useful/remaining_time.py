"""What is left of a run and when it will end: one estimate with a range, by what the calendar saw of the last start.

Comes in: an analysed run, its pauses. Goes out: steps, tokens and seconds that are left. Only rows of the last start
are used, because earlier ones may have had other devices. The time is that from line to line, with stalls, saves and
evaluations, whatever the framework prints. A pace that drifts or has levels goes on as it is at the end. While the
batch ramps up, each step that is left takes what its own batch costs, and a range where no such step has run.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import polars as pl
import regex

from analysis.run.clock.interruptions import Pauses, count_between
from analysis.run.rates.baseline_step_time import READ, batch_points
from analysis.run.rates.batch_sizes import with_mean_batch
from analysis.run.rates.changepoints import present_pace
from analysis.run.rates.intervals import ratio_interval
from analysis.run.result import Analysis
from analysis.run.rows.exclusion_reasons import BATCH_CHANGES, NO_TIME, ROW_MS, TIMED, WARM_UP
from analysis.run.rows.frame_filters import only, with_known
from analysis.run.rows.restarts import STAMP_MS
from analysis.run.rows.warm_up import WarmUpRule
from logparse.context.run_context import RunContext
from logparse.light_dataclass import dataclass

# Fewer rows of the last start than this say nothing of its pace.
FEWEST = 3


@dataclass(frozen=True)
class Left:
    """What is still to be done, and how long it takes, with its range.

    ``tokens`` None where the batch is unknown, ``ends_at`` where no clock is printed; the seconds None without a pace.
    ``seconds_low`` alone where steps of the last start print no time: it is what is left at the pace of the others.
    ``unseen_batches`` are those whose time rests on that of other batches, None where all have run.
    """

    steps: int
    tokens: int | None
    ends_at: datetime | None
    seconds: float | None = None
    seconds_low: float | None = None
    seconds_high: float | None = None
    unseen_batches: Unseen | None = None


@dataclass(frozen=True)
class PaceToCome:
    """Seconds that the calendar takes for a step at the batch of the last row, and its 95 % interval.

    ``batch`` is the mean of its rows. ``paused`` of the seconds are the share of saves and evaluations, which take no
    longer for a larger batch.
    """

    batch: float | None
    seconds: float
    low: float
    high: float
    paused: float

    def over(self, each: float, steps: int, settled: float) -> float:
        """Seconds of ``steps`` of ``each``; without their pauses they take as long as ``settled`` of the last batch."""
        paused = min(each, self.paused)
        return steps * paused + settled * (each - paused)


def work_left(analysis: Analysis, context: RunContext) -> Left | None:
    """What is left of the steps asked for; None where nothing is, or either is unknown."""
    steps, how = steps_left(analysis.steps, bool(context.get("steps_from_zero"))), analysis.latest
    rows = _last_start(analysis.steps, analysis.warm_up) if steps else None
    if not steps or rows is None or rows.is_empty():
        return None
    pace = _pace(rows, analysis.pauses)
    parts, unseen = steps_by_batch(rows, pace.batch, steps, context)
    seconds = pace.over(pace.seconds, steps, sum(part.steps * part.cost for part in parts))
    low = pace.over(pace.low, steps, sum(part.steps * part.least for part in parts))
    high = pace.over(pace.high, steps, sum(part.steps * part.most for part in parts))
    samples = [part.steps * batch for part in parts if (batch := part.batch or how.global_batch_size)]
    tokens = sum(samples) * how.seq_length if len(samples) == len(parts) and how.seq_length else None
    if untimed_within(analysis.steps, rows["segment"][0]):
        return Left(steps, tokens, None, None, low, None, unseen)
    return Left(steps, tokens, finished_at(analysis.steps, seconds), seconds, low, high, unseen)


def untimed_within(steps: pl.DataFrame, segment: int | None = None) -> bool:
    """Whether rows of ``segment``, or of any, have no time and lie between others of their start.

    What they took, often with an evaluation, is in no sum.
    """
    if not (steps["excluded_reason"] == NO_TIME).any():
        return False
    before, after = (TIMED.cum_max(reverse=reverse).over("segment") for reverse in (False, True))
    asked = pl.lit(value=True) if segment is None else pl.col("segment") == segment
    return not steps.filter(pl.col("excluded_reason") == NO_TIME, before & after, asked).is_empty()


def steps_left(steps: pl.DataFrame, from_zero: bool = False) -> int | None:
    """Steps asked for that are not done; None where the log does not say how many were asked for.

    ``from_zero``: the first step is number 0.
    """
    asked: Any = steps["train_steps"].last(ignore_nulls=True)
    done: Any = steps["step"].filter(~steps["copied"]).last(ignore_nulls=True)
    return None if asked is None or done is None else max(int(asked) - int(done) - from_zero, 0)


def is_last_line(steps: pl.DataFrame) -> bool:
    """Whether fewer steps are left than a line is of: the last ones may be too few for a line of their own.

    Where steps count from 0, one step less is left.
    """
    last, left = _last_line(steps), steps_left(steps)
    from_zero = int(steps["step"].min() == 0)
    return last is not None and left is not None and left - from_zero < (last["iterations"] or 1)


def is_end_printed(steps: pl.DataFrame, events: pl.DataFrame) -> bool:
    """Whether the trainer prints, after the last step, that the training ends."""
    last = _last_line(steps)
    if last is None:
        return False
    ends = (events["kind"] == "training ends") & (events["source"] == last["source"])
    return bool((ends & (events["line_number"] > last["line_number"])).any())


def _last_line(steps: pl.DataFrame) -> dict[str, Any] | None:
    """The last row of the run's own that has a step."""
    rows = steps.filter(~pl.col("copied") & pl.col("step").is_not_null())
    return rows.row(-1, named=True) if len(rows) else None


def finished_at(steps: pl.DataFrame, seconds: float) -> datetime | None:
    """When the last step will be done if ``seconds`` pass after the last time stamp.

    None without time stamps, and beyond the year 9999.
    """
    last: Any = steps["timestamp"].last(ignore_nulls=True)
    try:
        return None if last is None else last + timedelta(seconds=seconds)
    except OverflowError:
        return None


def _last_start(steps: pl.DataFrame, rule: WarmUpRule) -> pl.DataFrame:
    """The rows of the last start that has enough of them, without warm-up: also that of steps that are done again."""
    read = steps[(*READ, "timestamp", "counted", "excluded_reason", "copied", "replayed")]
    timed = with_known(only(read, read["step_time_ms"] > 0), "iterations")
    unmarked = {name: pl.lit(value=False) for name in ("damaged", "other_job")}
    timed = with_mean_batch(timed).with_columns(beginning_shown=pl.lit(value=True), **unmarked)
    again = pl.lit(value=False)
    if timed["replayed"].any():
        again = (pl.int_range(pl.len()).over("segment") < rule.rows_of(timed)) & pl.col("replayed")
    settled = timed.filter(pl.col("excluded_reason").ne_missing(WARM_UP) & ~again)
    if settled["segment"].n_unique() < 2:
        return settled
    enough = only(settled, pl.len().over("segment") >= FEWEST)
    rows = enough if len(enough) else settled
    return only(rows, pl.col("segment") == pl.col("segment").max())


def _pace(rows: pl.DataFrame, pauses: Pauses) -> PaceToCome:
    """From line to line where both are stamped, else what the line says; the rows of the last batch alone."""
    printed = ROW_MS / 1000
    timed = _of_last_batch(rows.with_columns(seconds=pl.coalesce(_by_stamps(), printed), printed=printed))
    # What lies between stamps cut to the second and the lines' own times is no pause.
    cut = abs(float(timed["seconds"].sum()) - float(timed["printed"].sum())) <= STAMP_MS / 1000
    priced = timed.with_columns(seconds="printed") if cut else timed
    # A whole number of rounds of saves and of evaluations is worth more than the rows they happen to begin with.
    settled, paused = _by_rounds(priced, pauses)
    interval = ratio_interval(priced["seconds"].to_numpy(), priced["iterations"].cast(pl.Float64).to_numpy())
    low, high = interval or _range(priced["seconds"] / priced["iterations"])
    slower = _present_pace(priced)
    each = settled * slower + paused
    return PaceToCome(_mean_batch(priced), each, min(low * slower, each), max(high * slower, each), paused)


def _present_pace(rows: pl.DataFrame) -> float:
    """The pace of the last counted rows over the mean of all; 1 where it neither drifts nor has levels."""
    counted = rows.filter("counted")
    time, steps = counted["step_time_ms"], counted["iterations"]
    present = present_pace(time.to_numpy())
    return 1.0 if present is None else present * float(steps.sum()) / float((time * steps).sum())


def _range(values: pl.Series) -> tuple[float, float]:
    least, most = values.min(), values.max()
    return float(least), float(most)  # type: ignore[arg-type]


def _by_stamps() -> pl.Expr:
    """Seconds from the row before to this one by their stamps, where one follows the other."""
    gap = pl.col("timestamp").diff().dt.total_microseconds() / 1e6
    follows = pl.col("step") - pl.col("iterations") == pl.col("step").shift(1)
    return pl.when(follows & (gap >= 0)).then(gap)


def _of_last_batch(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of the last batch; those in which it came about only where there are no others."""
    same = only(rows, pl.col("global_batch_size").eq_missing(pl.col("global_batch_size").last()))
    whole = only(same, pl.col("excluded_reason").ne_missing(BATCH_CHANGES))
    return whole if len(whole) else same


def _mean_batch(rows: pl.DataFrame) -> float | None:
    samples: Any = (rows["mean_batch"] * rows["iterations"]).sum()
    return samples / int(rows["iterations"].sum()) or None


def _by_rounds(rows: pl.DataFrame, pauses: Pauses) -> tuple[float, float]:
    """Seconds of a step without pauses, and its share of those pauses that come again and again."""
    import numpy as np

    begun, step = pl.col("step") - pl.col("iterations"), pl.col("step")
    counts = rows.select(
        saved=count_between(pauses.saved, begun, step), evaluated=count_between(pauses.evaluated, begun, step)
    )
    held = {
        marks: counts[kind].to_numpy() for kind, marks in (("saved", pauses.saved), ("evaluated", pauses.evaluated))
    }
    # A pause in every row cannot be separated from the steps.
    separable = {marks: n for marks, n in held.items() if n.any() and not n.all()}
    free = np.logical_not(np.any(list(separable.values()), axis=0)) if separable else np.ones(len(rows), bool)
    if not separable or not free.any():
        return _seconds_per_step(rows), 0.0
    settled = _seconds_per_step(rows.filter(pl.Series(free)))
    pause_seconds = (rows["seconds"] - settled * rows["iterations"]).to_numpy()
    each, *_ = np.linalg.lstsq(np.stack(list(separable.values()), axis=1), pause_seconds)
    return settled, sum(max(0.0, float(s)) / _distance(rows, marks) for s, marks in zip(each, separable, strict=True))


def _distance(rows: pl.DataFrame, marks: tuple[int, ...]) -> float:
    """Steps from one pause to the next, as far as ``rows`` show; all of them where there is one."""
    begin, end = _whole(rows, "step", 0) - _whole(rows, "iterations", 0), _whole(rows, "step", -1)
    steps = [mark for mark in marks if begin <= mark < end]
    return max(1.0, (steps[-1] - steps[0]) / (len(steps) - 1) if len(steps) > 1 else float(end - begin))


def _whole(rows: pl.DataFrame, column: str, at: int) -> int:
    value: int = rows[column][at]
    return value


def _seconds_per_step(rows: pl.DataFrame) -> float:
    return float(rows["seconds"].sum()) / float(rows["iterations"].sum())


# Intervals are of 95 %.
SURE, LEAST_SPREAD = 1.96, 1e-6


@dataclass(frozen=True)
class Steps:
    """``steps`` of one ``batch``; their time, its least and its most, over that of steps of the last row's batch."""

    steps: int
    batch: int | None
    cost: float = 1.0
    least: float = 1.0
    most: float = 1.0


@dataclass(frozen=True)
class Unseen:
    """``batches``: the smallest and the largest above all that ran; ``seen``: the batches whose rows give a time."""

    batches: tuple[int, int]
    seen: tuple[int, ...]


def steps_by_batch(
    rows: pl.DataFrame, here: float | None, steps: int, context: RunContext
) -> tuple[tuple[Steps, ...], Unseen | None]:
    """The ``steps`` left, relative to a step of the batch ``here``, and the batches among them that no row shows."""
    left = list(_batches_left(rows, steps, context))
    if here is None or all(batch in (here, None) for _, batch in left):
        return tuple(Steps(n, batch) for n, batch in left), None
    points = batch_points(rows)
    seen = tuple(int(batch) for batch in points["cost"]) if len(points) > 1 else (int(here),)
    above = [batch for _, batch in left if batch is not None and batch > max(here, *seen)]
    costs = tuple(_cost(points, n, batch or int(here), here) for n, batch in left)
    return costs, Unseen((min(above), max(above)), seen) if above else None


def _cost(points: pl.DataFrame, steps: int, batch: int, here: float) -> Steps:
    """What steps of ``batch`` take over one of the batch ``here``.

    Where one batch alone is known: in proportion, and at least as long as that one, were all of its time fixed.
    """
    if len(points) < 2:
        return Steps(steps, batch, batch / here, min(1.0, batch / here), max(1.0, batch / here))
    base, *_ = _milliseconds(points, here)
    cost, least, most = (ms / base for ms in _milliseconds(points, batch))
    return Steps(steps, batch, cost, least, most)


def _milliseconds(points: pl.DataFrame, batch: float) -> tuple[float, float, float]:
    """Of a step of ``batch``, with the least and the most: between batches that ran on the line between them.

    Above them on the straight line through them all, but never more than in proportion nor less than they took.
    """
    import numpy as np

    samples, ms = points["cost"].to_numpy(), points["step_time_ms"].to_numpy()
    if batch <= samples[-1]:
        between = float(np.interp(batch, samples, ms))
        return between, between, between
    line, error = _beyond(points, batch)
    ends = np.clip([line, line - error, line + error], ms[-1], ms[-1] * batch / samples[-1])
    return float(ends[0]), float(ends[1]), float(ends[2])


def _beyond(points: pl.DataFrame, batch: float) -> tuple[float, float]:
    """Milliseconds of a step of ``batch`` on the straight line through the points, and how far they may be off."""
    import numpy as np

    samples, ms = points["cost"].to_numpy(), points["step_time_ms"].to_numpy()
    n = points["n"].to_numpy()
    spread = max(float(np.sqrt(np.average(points["spread"].to_numpy() ** 2, weights=n))), LEAST_SPREAD)
    off = spread * ms / np.sqrt(n)
    line, covariance = np.polyfit(samples, ms, 1, w=1 / off, cov="unscaled")
    at = np.array([batch, 1.0])
    return float(at @ line), SURE * float(np.sqrt(at @ covariance @ at))


def _batches_left(rows: pl.DataFrame, steps: int, context: RunContext) -> Iterator[tuple[int, int | None]]:
    """How many steps are left at each batch, as Megatron's ramp goes on from the samples consumed."""
    last, consumed = _last(rows, "global_batch_size"), _last(rows, "consumed_samples")
    ramp = _ramp(context) if last is not None and consumed is not None else []
    for batch, until in ramp:
        if consumed is None or last is None or batch < last or consumed >= until or not steps:
            continue
        here = min(steps, -(-(until - consumed) // batch))
        yield here, batch
        steps, consumed = steps - here, consumed + here * batch
    if steps:
        yield steps, context.get("global_batch_size") if ramp else last


def _last(rows: pl.DataFrame, column: str) -> int | None:
    value: int | None = rows[column][-1]
    return value


def _ramp(context: RunContext) -> list[tuple[int, int]]:
    """Batch and the samples at which it ends, level by level; empty without a ramp.

    The samples of the ramp are shared out evenly over its increments. Source: Megatron-LM, num_microbatches_calculator.
    """
    numbers = [int(n) for n in regex.findall(r"\d+", str(context.get("rampup_batch_size") or ""))]
    full = context.get("global_batch_size")
    if len(numbers) != 3 or not full or not numbers[1] or full <= numbers[0]:
        return []
    start, increment, samples = numbers
    levels = max(1, (full - start) // increment)
    return [(start + n * increment, samples * (n + 1) // levels) for n in range(levels)]
