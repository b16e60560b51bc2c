"""Which runs are of one night: a day, which begins where no run is near.

Comes in: times in their order. Goes out: a date each.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import polars as pl

from analysis.stats.prediction import KEPT


def nights_of(times: pl.Series) -> pl.Series:
    """The night of each of ``times``.

    A night is a day; where runs are near midnight, it begins in the middle of the hours in which none begins.
    """
    return (times - _dusk(times.tail(KEPT))).dt.date()


def _dusk(times: pl.Series) -> timedelta:
    """The time of day at which a night begins: midnight unless a longer pause of ``times`` is at another one."""
    clock = sorted(set((times - times.dt.truncate("1d")).to_list()))
    pairs: list[tuple[timedelta, timedelta]] = list(pairwise([*clock, clock[0] + timedelta(days=1)]))
    pauses = [(later - earlier, earlier) for earlier, later in pairs]
    longest, since = max(pauses)
    if pauses[-1][0] >= longest / 2:
        return timedelta()
    return since + longest / 2
