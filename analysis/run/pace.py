"""Patterns in what was left out and in the settled window: periods of stalls, drift, shifts of the level.

Comes in: marked rows and the pauses. Goes out: sentences. Nothing is excluded here.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import polars as pl

from analysis.run.interruptions import Pauses
from analysis.run.window import ROBUST, STALL, TIME_DAMAGED
from logparse.language import msg, tr

# Fewer rows than this tell nothing about a trend.
ENOUGH_ROWS = 40
SHIFT_SHARE, SHIFT_ERRORS = 0.02, 8.0
# Of times that lost digits the first are named.
SHOWN = 3
TIME = msg("{value:g} ms cannot be the time of a step here; its row does not count ({source}, line {line})")
MORE_TIMES = msg("{n} more such lines: the value cannot be the time of a step here")


def describe_pace(steps: pl.DataFrame, pauses: Pauses) -> Iterator[str]:
    """Sentences about times that lost digits, stalls and their period, and a level that shifts or drifts."""
    yield from _lost_digits(steps)
    yield from _stalls(steps, pauses)
    yield from _shift(steps.filter("counted"))


def _lost_digits(steps: pl.DataFrame) -> Iterator[str]:
    """Where a time is damaged: each of the first lines, and how many there are beside."""
    rows = steps.filter(pl.col("excluded_reason") == TIME_DAMAGED)
    for source, line, value in rows.select("source", "line_number", "step_time_ms").head(SHOWN).iter_rows():
        yield tr(TIME, value=value, source=source, line=line)
    if len(rows) > SHOWN:
        yield tr(MORE_TIMES, n=len(rows) - SHOWN)


def _stalls(steps: pl.DataFrame, pauses: Pauses) -> Iterator[str]:
    stalls = steps.filter(pl.col("excluded_reason") == STALL)
    if stalls.is_empty():
        return
    usual = steps.filter("counted").select(pl.col("step_time_ms").median()).item()
    longer = stalls.select((pl.col("step_time_ms") - usual).median()).item()
    positions = stalls["step"].to_list()
    count = tr("{n} stalls", n=len(positions)) if len(positions) > 1 else tr("1 stall")
    if period := find_period(positions):
        yield tr(
            "{count}, {longer:,.0f} ms longer than usual, every {period} steps{cause}",
            count=count,
            longer=longer,
            period=period,
            cause=_cause(period, pauses),
        )
    else:
        shown = ", ".join(map(str, positions[:5])) + (" ..." if len(positions) > 5 else "")
        yield tr(
            "{count}, {longer:,.0f} ms longer than usual, at step {steps}", count=count, longer=longer, steps=shown
        )


def find_period(positions: Sequence[int]) -> int | None:
    """The distance at which most of ``positions`` follow each other; None where there is none.

    At least three, of which at least 60 % must lie on one grid of the most usual distance.
    """
    if len(positions) < 3:
        return None
    distances = Counter(b - a for a, b in pairwise(positions) if b > a)
    if not distances:
        return None
    period = min(distances, key=lambda distance: (-distances[distance], distance))
    on_grid = Counter(p % period for p in positions).most_common(1)[0][1]
    return period if period > 1 and on_grid >= 0.6 * len(positions) else None


def _cause(period: int, pauses: Pauses) -> str:
    if find_period(pauses.saved) == period:
        return tr(", as often as a checkpoint is saved")
    if find_period(pauses.evaluated) == period:
        return tr(", as often as an evaluation is made")
    return ""


def _shift(counted: pl.DataFrame) -> Iterator[str]:
    """The split of the window into two levels that differ most, where the difference is large and sure."""
    if len(counted) < ENOUGH_ROWS:
        return
    pace = counted.select(t=pl.col("step_time_ms") / pl.col("global_batch_size").fill_null(1))["t"]
    quarter = len(pace) // 4
    splits = range(quarter, len(pace) - quarter, max(1, len(pace) // 200))
    best = max(splits, key=lambda i: abs(_median(pace[i:]) - _median(pace[:i])))
    before, after = _median(pace[:best]), _median(pace[best:])
    # Around each level of its own: around the common median the shift itself would look like noise.
    spread = ROBUST * _median(pl.concat([pace[:best] - before, pace[best:] - after]).abs())
    # The standard error of a median is 1.25 times that of a mean.
    error = 1.25 * spread * math.sqrt(1 / best + 1 / (len(pace) - best))
    if abs(after / before - 1) > SHIFT_SHARE and abs(after - before) > SHIFT_ERRORS * error:
        yield tr(
            "the pace changes by {change:+.1%} around step {step}: one median hides two levels, or a drift",
            change=after / before - 1,
            step=counted["step"][best],
        )


def _median(values: pl.Series) -> float:
    return statistics.median(values) if len(values) else math.nan
