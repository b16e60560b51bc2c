"""The clock of a log whose stamps name no year: 12/31 comes before 01/01, and no other clock is mixed with it.

Comes in: frames with stamps of NO_YEAR or NO_DAY. Goes out: the same with those before a new year put in the year
before, and those without a day put in days that follow each other; or without these stamps where the step lines print a
year, since they are of another logger.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from logparse.light_dataclass import dataclass
from logparse.schema import FIRST_YEAR, NO_DAY, is_dated

# A clock without a day that goes back by more passed midnight.
HALF_A_DAY = timedelta(hours=12)
# Of a log without a stamp for so long within a year, what is after that pause was printed before it.
HALF_A_YEAR = timedelta(days=183)


@dataclass(frozen=True)
class RunClock:
    """Which stamps are of the clock of the step lines: those with a year (``dated``), or those without.

    ``new_year``: stamps without a year that are later than this are of the year before. ``midnights`` are the file and
    the line of each first step of a new day, where stamps have no day.
    """

    dated: bool
    new_year: datetime | None
    midnights: tuple[tuple[str, int], ...] = ()

    def kept(self, name: str) -> pl.Expr:
        """The column ``name`` with null for each stamp of another clock."""
        stamp = pl.col(name)
        mine = (stamp.dt.year() >= FIRST_YEAR) == self.dated
        if self.new_year is None:
            return pl.when(mine).then(self._of_its_day(stamp))
        placed = pl.when(stamp > self.new_year).then(stamp.dt.offset_by("-1y")).otherwise(stamp)
        return pl.when(mine).then(placed)

    def _of_its_day(self, stamp: pl.Expr) -> pl.Expr:
        if not self.midnights:
            return stamp
        after = [(pl.col("source") == file) & (pl.col("line_number") >= line) for file, line in self.midnights]
        return stamp + pl.duration(days=pl.sum_horizontal(after))


def clock_of_steps(steps: pl.DataFrame, others: Sequence[pl.Series]) -> RunClock:
    """The clock of ``steps``, also by the ``others`` among its stamps: those before the first step line."""
    latest: Any = steps["timestamp"].max()
    if latest is None or is_dated(latest):
        return RunClock(dated=True, new_year=None)
    if latest.year >= NO_DAY:
        return RunClock(dated=False, new_year=None, midnights=_midnights(steps))
    every = pl.concat([steps["timestamp"], *others]).drop_nulls().unique().sort()
    mine = every.filter(every.dt.year() < NO_DAY)
    pauses = mine.diff()
    longest = pauses.arg_max()
    if longest is None or pauses[longest] <= HALF_A_YEAR:
        return RunClock(dated=False, new_year=None)
    return RunClock(dated=False, new_year=mine[longest - 1])


def _midnights(steps: pl.DataFrame) -> tuple[tuple[str, int], ...]:
    """The file and the line of each first step of a new day, where all stamps are of one day."""
    stamped = steps.select("source", "line_number", "timestamp").drop_nulls()
    if stamped["timestamp"].dt.date().n_unique() > 1:
        return ()
    back = (pl.col("timestamp").diff() < -HALF_A_DAY).over("source")
    return tuple(stamped.filter(back).select("source", "line_number").iter_rows())
