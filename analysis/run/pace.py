"""Patterns in what was left out and in the settled window: periods of stalls, drift, shifts of the level.

Comes in: marked rows and the pauses. Goes out: notes. Nothing is excluded here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl

from analysis.run.interruptions import Pauses
from analysis.run.odd_times import ROBUST
from analysis.run.outliers import name_first
from analysis.run.reasons import STALL, TIME_DAMAGED
from logparse.findings import Note, info

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Fewer rows than this tell nothing about a trend.
ENOUGH_ROWS = 40
SHIFT_SHARE, SHIFT_ERRORS = 0.02, 8.0
READ = ("source", "line_number", "step", "step_time_ms", "global_batch_size", "excluded_reason", "counted")


def describe_pace(steps: pl.DataFrame, pauses: Pauses) -> Iterator[Note]:
    """Notes on times that lost digits, stalls and their period, and a level that shifts or drifts."""
    steps = steps.select(READ)
    damaged = steps.filter(pl.col("excluded_reason") == TIME_DAMAGED)
    yield from map(_as_info, name_first("step_time_ms", damaged, "time_damaged", "more_times_damaged"))
    yield from _stalls(steps, pauses)
    yield from _shift(steps.filter("counted"))


def _as_info(note: Note) -> Note:
    return replace(note, level="info")


def _stalls(steps: pl.DataFrame, pauses: Pauses) -> Iterator[Note]:
    stalls = steps.filter(pl.col("excluded_reason") == STALL)
    if stalls.is_empty():
        return
    usual = steps.filter("counted").select(pl.col("step_time_ms").median()).item()
    longer = stalls.select((pl.col("step_time_ms") - usual).median()).item()
    positions = stalls["step"].to_list()
    number = "one" if len(positions) == 1 else "several"
    if period := find_period(positions):
        yield info(f"stalls_{_cause(period, pauses)}", n=len(positions), longer_ms=longer, period=period)
    else:
        yield info(f"stalls_{number}", n=len(positions), longer_ms=longer, steps=positions)


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
    """What happens as often as the stalls do."""
    if find_period(pauses.saved) == period:
        return "as_often_as_saves"
    return "as_often_as_evaluations" if find_period(pauses.evaluated) == period else "periodic"


def _shift(counted: pl.DataFrame) -> Iterator[Note]:
    """The split of the window into two levels that differ most, where the difference is large and sure."""
    if len(counted) < ENOUGH_ROWS:
        return
    import numpy as np

    pace = counted.select(t=pl.col("step_time_ms") / pl.col("global_batch_size").fill_null(1))["t"].to_numpy()
    quarter = len(pace) // 4
    splits = range(quarter, len(pace) - quarter, max(1, len(pace) // 200))
    best, before, after = max(_levels(pace, splits), key=lambda levels: abs(levels[2] - levels[1]))
    # Around each level of its own: around the common median the shift itself would look like noise.
    spread = ROBUST * _median(np.abs(np.concatenate([pace[:best] - before, pace[best:] - after])))
    # The standard error of a median is 1.25 times that of a mean.
    error = 1.25 * spread * math.sqrt(1 / best + 1 / (len(pace) - best))
    if abs(after / before - 1) > SHIFT_SHARE and abs(after - before) > SHIFT_ERRORS * error:
        yield info("pace_changes", change=after / before - 1, step=counted["step"][best])


def _median(values: NDArray[np.float64]) -> float:
    """The number of numpy.median, which loads masked arrays first: a twentieth of the time a small log takes."""
    import numpy as np

    middle = (len(values) - 1) // 2, len(values) // 2
    ordered = np.partition(values, middle)
    return float((ordered[middle[0]] + ordered[middle[1]]) / 2)


def _levels(pace: NDArray[np.float64], splits: Iterable[int]) -> Iterator[tuple[int, float, float]]:
    """Each of ``splits`` with the medians before and behind it: sorted once, those of one side are in order too."""
    import numpy as np

    order = np.argsort(pace)
    ascending = pace[order]
    for split in splits:
        before = order < split
        yield split, _middle(ascending, np.flatnonzero(before)), _middle(ascending, np.flatnonzero(~before))


def _middle(ascending: NDArray[np.float64], places: NDArray[np.int64]) -> float:
    """The median of the values at ``places``."""
    lower, upper = ascending[places[[(len(places) - 1) // 2, len(places) // 2]]].tolist()
    return float(lower + upper) / 2
