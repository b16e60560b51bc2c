"""The clock of a log whose stamps name no year: 12/31 comes before 01/01, and no other clock is mixed with it.

Comes in: frames with stamps of NO_YEAR. Goes out: the same with those before a new year put in the year before, or
without these stamps where the step lines print a year, since they are of another logger.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from logparse.light_dataclass import dataclass
from logparse.schema import FIRST_YEAR, is_dated

# Of a log without a stamp for so long within a year, what is after that pause was printed before it.
HALF_A_YEAR = timedelta(days=183)


@dataclass(frozen=True)
class RunClock:
    """Which stamps are of the clock of the step lines: those with a year (``dated``), or those without.

    ``new_year``: stamps without a year that are later than this are of the year before.
    """

    dated: bool
    new_year: datetime | None

    def kept(self, name: str) -> pl.Expr:
        """The column ``name`` with null for each stamp of another clock."""
        stamp = pl.col(name)
        mine = (stamp.dt.year() >= FIRST_YEAR) == self.dated
        if self.new_year is None:
            return pl.when(mine).then(stamp)
        placed = pl.when(stamp > self.new_year).then(stamp.dt.offset_by("-1y")).otherwise(stamp)
        return pl.when(mine).then(placed)


def clock_of_steps(steps: pl.DataFrame, others: Sequence[pl.Series]) -> RunClock:
    """The clock of ``steps``, also by the ``others`` among its stamps: those before the first step line."""
    latest: Any = steps["timestamp"].max()
    if latest is None or is_dated(latest):
        return RunClock(dated=True, new_year=None)
    every = pl.concat([steps["timestamp"], *others]).drop_nulls().unique().sort()
    mine = every.filter(every.dt.year() < FIRST_YEAR)
    pauses = mine.diff()
    longest = pauses.arg_max()
    if longest is None or pauses[longest] <= HALF_A_YEAR:
        return RunClock(dated=False, new_year=None)
    return RunClock(dated=False, new_year=mine[longest - 1])
