"""How many rows at the beginning of a start are warm-up.

Comes in: rows that ``restarts`` has traced. Goes out: a number for each start. ``row_selection`` marks the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from analysis.run.rates.baseline_step_time import FEW_ROWS
from analysis.run.rows.frame_filters import only, starts_of
from analysis.run.rows.restarts import OWN
from logparse.light_dataclass import dataclass

# A row is settled when it takes at most this much longer than the median of itself and the rows after it.
SETTLED_WITHIN, ROWS_AFTER = 1.10, 20
# The step from which on a lone row is not the first row of a run.
MIDWAY = 1000
# A time that this share of the rows of a start takes too is a pace of the run.
A_PACE = 0.2


@dataclass(frozen=True)
class WarmUpRule:
    """Which rows at the beginning of a start are warm-up.

    ``asked`` rows if the user says so; None finds them from the data. ``profiling_steps`` are slow by design at the
    beginning of each start. ``times_are_shared``: rows with one time print the mean of them all, so that the first
    row's warm-up is in each.
    """

    asked: int | None = None
    profiling_steps: int = 0
    times_are_shared: bool = False

    def rows_of(self, rows: pl.DataFrame) -> pl.Expr:
        """How many rows at the beginning of the row's start are warm-up."""
        if self.asked is not None:
            return pl.lit(self.asked)
        read = ("segment", "step", "step_time_ms", "beginning_shown", *OWN.meta.root_names())
        own_rows = only(rows.select(*read, batch=pl.col("global_batch_size").fill_null(1)), OWN)
        by_profiling = _rows_within(own_rows, self.profiling_steps) if self.profiling_steps else {}
        counts = {
            segment: max(
                _warm_up_of(start["step_time_ms"], start["batch"], self.times_are_shared, _begins_midway(start)),
                by_profiling.get(segment, 0),
            )
            for segment, start in starts_of(own_rows)
        }
        return pl.col("segment").replace_strict(counts, default=1, return_dtype=pl.Int64)


FROM_THE_DATA = WarmUpRule()


def _rows_within(rows: pl.DataFrame, profiling_steps: int) -> dict[int, int]:
    done = pl.col("step") - pl.col("step").first() < profiling_steps
    return dict(rows.group_by("segment").agg(done.sum()).iter_rows())


def _begins_midway(start: pl.DataFrame) -> bool:
    """Whether the log begins in the middle of a run: no line shows a beginning, and earlier steps are missing."""
    step = start["step"]
    if start["segment"][0] != 0 or start["beginning_shown"][0] or step[0] is None:
        return False
    between = step.diff().median()
    return bool(step[0] > (MIDWAY if between is None else 2 * float(between)))  # type: ignore[arg-type]


def _warm_up_of(times: pl.Series, batches: pl.Series, shared: bool, midway: bool) -> int:
    """Rows before the first settled one; at least one unless the log begins ``midway``, and all of one mean with it."""
    shared_rows = 0 if midway else _equal_times(times) if shared else 1
    # A first mean at the pace of the rows after it: what is slow between them is no warm-up.
    after = _following(times, batches, shared_rows) if shared and shared_rows and times[0] is not None else []
    if after and _is_settled(times[0], batches[0], after):
        return shared_rows
    for index in range(shared_rows, len(times)):
        following = _following(times, batches, index)
        here = times[index]
        if here is not None and _is_settled(here, batches[index], following):
            return _less_own_pace(times, batches, shared_rows, index)
    return len(times)


def _following(times: pl.Series, batches: pl.Series, index: int) -> list[tuple[float, int]]:
    """The times from ``index`` on that are known, with their batches."""
    near = zip(times.slice(index, ROWS_AFTER), batches.slice(index, ROWS_AFTER), strict=True)
    return [(time, n) for time, n in near if time is not None]


def _equal_times(times: pl.Series) -> int:
    """How many of the first times are the same."""
    other = times.ne_missing(times[0]).arg_max()
    return other or len(times)


def _less_own_pace(times: pl.Series, batches: pl.Series, least: int, settled: int) -> int:
    """The rows before ``settled``, at least ``least``, but for the last ones at a pace of the rows from it on.

    Where two paces take turns, the first rows can be of the slower one.
    """
    while settled > least:
        time, batch = times[settled - 1], batches[settled - 1]
        following = times[settled:].filter(batches[settled:] == batch).drop_nulls()
        as_slow = 0 if time is None else (SETTLED_WITHIN * following >= time).sum()
        if len(following) < FEW_ROWS or as_slow < A_PACE * len(following):
            break
        settled -= 1
    return settled


def _is_settled(time: float, batch: int, following: Sequence[tuple[float, int]]) -> bool:
    """Whether a row takes as long as those from it on.

    Per sample first. But a step has fixed costs, so that a batch that grows is compared with rows of its own. Where
    these are few, it must take no longer than the next larger batches.
    """
    # Damaged rows may have no sample.
    if time / max(batch, 1) <= SETTLED_WITHIN * _middle([t / max(n, 1) for t, n in following]):
        return True
    larger = [t for t, n in following if n > batch]
    same = [t for t, n in following if n == batch]
    if not larger:
        return False
    return time <= SETTLED_WITHIN * _middle(same if len(same) >= FEW_ROWS else larger[:FEW_ROWS])


def _middle(values: Sequence[float]) -> float:
    """The median; of two in the middle the lower."""
    return sorted(values)[(len(values) - 1) // 2]
