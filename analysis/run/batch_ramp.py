"""A batch that ramps up: the steps left at each batch, and their time over that of a step of the last row's batch.

Comes in: the rows of the last start, and the context of the run. Goes out: steps and costs, batch by batch. The time of
a step has a fixed part and one for each sample; rows of one batch show only the sum.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import regex

from analysis.run.baseline_step_time import batch_points
from logparse.context.run_context import RunContext
from logparse.light_dataclass import dataclass

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
