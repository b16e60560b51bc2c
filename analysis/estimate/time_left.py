"""What is left of a run and when it will end: one estimate with a range, by what the calendar saw of the last start.

Comes in: an analysed run, its pauses. Goes out: steps, tokens and seconds that are left. Rows of the last start tell,
because earlier ones may have had other devices: the time from line to line, in which stalls, saves and evaluations lie
whatever the framework prints. While the batch ramps up, each step that is left takes what its own batch costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import polars as pl
import regex

from analysis.run.bootstrap import ratio_interval
from analysis.run.interruptions import Pauses, find_pauses
from analysis.run.reasons import WARM_UP
from analysis.run.result import Analysis
from analysis.run.usual import batch_costs
from analysis.run.warm_up import warm_up_rows
from logparse.context.run_context import RunContext

# Fewer rows of the last start than this say nothing of its pace.
FEWEST = 3


@dataclass(frozen=True)
class Left:
    """What is still to be done, and how long it takes, with its range.

    ``tokens`` None where the batch is unknown, ``ends_at`` where no clock is printed; the seconds None without a pace.
    """

    steps: int
    tokens: int | None
    ends_at: datetime | None
    seconds: float | None = None
    seconds_low: float | None = None
    seconds_high: float | None = None


@dataclass(frozen=True)
class Pace:
    """Seconds that the calendar takes for a step at the batch of the last row, and its 95 % interval."""

    seconds: float
    low: float
    high: float


def work_left(analysis: Analysis, context: RunContext, records: Mapping[str, pl.DataFrame]) -> Left | None:
    """What is left of the steps asked for; None where nothing is, or either is unknown."""
    steps, how = steps_left(analysis.steps), analysis.latest
    rows = _last_start(analysis.steps)
    pace = _pace(rows, find_pauses(records)) if len(rows) else None
    if not steps or pace is None:
        return None
    batches = list(_batches_left(rows, steps, context))
    share = sum(n * cost for n, cost in _costs(rows, batches)) / steps
    seconds, low, high = (steps * share * each for each in (pace.seconds, pace.low, pace.high))
    known = how.global_batch_size is not None and how.seq_length is not None
    tokens = steps * how.global_batch_size * how.seq_length if known else None  # type: ignore[operator]
    return Left(steps, tokens, finished_at(analysis.steps, seconds), seconds, low, high)


def steps_left(steps: pl.DataFrame) -> int | None:
    """Steps asked for that are not done; None where the log does not say how many were asked for."""
    asked, done = steps["train_steps"].drop_nulls(), steps.filter(~pl.col("copied"))["step"].drop_nulls()
    return max(int(asked[-1]) - int(done[-1]), 0) if len(asked) and len(done) else None


def finished_at(steps: pl.DataFrame, seconds: float) -> datetime | None:
    """When the last step will be done if ``seconds`` pass after the last time stamp.

    None without time stamps, and beyond the year 9999.
    """
    stamps = steps["timestamp"].drop_nulls()
    last: Any = stamps[-1] if len(stamps) else None
    try:
        return None if last is None else last + timedelta(seconds=seconds)
    except OverflowError:
        return None


def _last_start(steps: pl.DataFrame) -> pl.DataFrame:
    """The rows of the last start that has enough of them, without warm-up: also that of steps that are done again."""
    own = steps.filter((pl.col("step_time_ms") > 0) & pl.col("iterations").is_not_null())
    own = own.with_columns(damaged=pl.lit(value=False))
    warm_up = pl.int_range(pl.len()).over("segment") < warm_up_rows(own, None, 0, times_are_shared=False)
    settled = own.filter(pl.col("excluded_reason").ne_missing(WARM_UP) & ~(warm_up & pl.col("replayed")))
    enough = settled.filter(pl.len().over("segment") >= FEWEST)
    rows = enough if len(enough) else settled
    return rows.filter(pl.col("segment") == pl.col("segment").max())


def _pace(rows: pl.DataFrame, pauses: Pauses) -> Pace:
    """From line to line where both are stamped, else what the line says; the rows of the last batch alone."""
    last = _last(rows, "global_batch_size")
    same = rows.filter(pl.col("global_batch_size").eq_missing(pl.lit(last, pl.Int64)))
    gap = pl.col("timestamp").diff().dt.total_microseconds() / 1e6
    printed = pl.col("step_time_ms") * pl.col("iterations") / 1000
    follows = pl.col("step") - pl.col("iterations") == pl.col("step").shift(1)
    known = same.select("step", "iterations", seconds=pl.when(follows & (gap >= 0)).then(gap).otherwise(printed))
    # A whole number of rounds of saves and of evaluations is worth more than the rows they happen to begin with.
    found = _by_rounds(known, pauses)
    interval = ratio_interval(known["seconds"].to_numpy(), known["iterations"].cast(pl.Float64).to_numpy())
    each = (known["seconds"] / known["iterations"]).to_list()
    low, high = interval or (min(each), max(each))
    return Pace(found, min(low, found), max(high, found))


def _by_rounds(rows: pl.DataFrame, pauses: Pauses) -> float:
    """Seconds of a step without pauses, and its share of those pauses that come again and again."""
    begin, end = _whole(rows, "step", 0) - _whole(rows, "iterations", 0), _whole(rows, "step", -1)
    free, more = pl.Series([True] * len(rows)), 0.0
    for marks in (pauses.saved, pauses.evaluated):
        held = _holds(rows, marks)
        if not held.any() or held.all():
            continue
        usual = _seconds_per_step(rows.filter(~held))
        paused = rows.filter(held)
        each = max(0.0, float(paused["seconds"].sum()) - usual * float(paused["iterations"].sum())) / len(paused)
        steps = [mark for mark in marks if begin <= mark < end]
        distance = (steps[-1] - steps[0]) / (len(steps) - 1) if len(steps) > 1 else float(end - begin)
        free, more = free & ~held, more + each / max(distance, 1.0)
    return _seconds_per_step(rows.filter(free)) + more if free.any() else _seconds_per_step(rows)


def _whole(rows: pl.DataFrame, column: str, at: int) -> int:
    found: int = rows[column][at]
    return found


def _seconds_per_step(rows: pl.DataFrame) -> float:
    return float(rows["seconds"].sum()) / float(rows["iterations"].sum())


def _holds(rows: pl.DataFrame, marks: tuple[int, ...]) -> pl.Series:
    """Rows between whose line and the one before a pause lies."""
    places, begin = pl.Series(marks, dtype=pl.Int64), rows["step"] - rows["iterations"]
    return places.search_sorted(rows["step"], "left") > places.search_sorted(begin, "left")


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
    found: int | None = rows[column][-1]
    return found


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


def _costs(rows: pl.DataFrame, left: list[tuple[int, int | None]]) -> Iterator[tuple[int, float]]:
    """Steps that are left with their time over that of a step at the batch of the last row."""
    last = _last(rows, "global_batch_size")
    if last is None or all(batch == last for _, batch in left):
        yield from ((n, 1.0) for n, _ in left)
        return
    here, *costs = batch_costs(rows, [last, *(batch or last for _, batch in left)])
    yield from ((n, cost / here) for (n, _), cost in zip(left, costs, strict=True))
