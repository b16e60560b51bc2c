"""Start-up that no clock covers: what lines print of its parts before the first stamp, or in a log without a clock.

Comes in: rows and events. Goes out: seconds to add to what the clock, or the step lines, cover.
"""

from __future__ import annotations

import polars as pl

from analysis.run.clock.pause_times import BEGINNINGS
from analysis.run.rows.exclusion_reasons import ROW_MS

# Each is printed once for a start; by several ranks, the slowest counts.
PARTS = ("initialized", "model setup", "data setup")
_START = ("source", "segment")


def start_up_beyond_clock(steps: pl.DataFrame, events: pl.DataFrame, clocked: bool) -> float:
    """Seconds of start-up before the first stamp if the run is ``clocked``; else of all starts.

    A line that prints how long a part took ends it, and parts follow each other. So a process began before each stamp
    by the parts printed until then. What stamps cover is never added again.
    """
    # Without such a line nothing is known of what the stamps do not cover.
    if not events["kind"].is_in([*PARTS, *BEGINNINGS]).any():
        return 0.0
    began = pl.col("timestamp") - pl.duration(milliseconds=ROW_MS.fill_null(0))
    own = steps.lazy().filter(~pl.col("copied"))
    firsts = own.group_by(_START).agg(pl.col("line_number").min(), began.drop_nulls().min().alias("stamp"))
    first_lines = firsts.select(*_START, "line_number").sort("line_number")
    seen = events.lazy().filter(pl.col("kind").is_in([*PARTS, *BEGINNINGS]))
    near = seen.sort("line_number").join_asof(
        first_lines, on="line_number", by="source", strategy="forward", check_sortedness=False
    )
    known = near.drop_nulls("segment").select(*_START, "kind", "line_number", "seconds", stamp="timestamp")
    is_part = pl.col("kind").is_in(PARTS)
    parts = (
        known.filter(is_part).group_by(*_START, "kind").agg(pl.col("line_number", "stamp").last(), pl.max("seconds"))
    )
    printed = pl.col("seconds").fill_null(0.0).cum_sum().over(_START, order_by="line_number")
    lines = (
        pl.concat([parts, known.filter(~is_part), firsts], how="diagonal_relaxed")
        .sort("line_number")
        .with_columns(printed=printed)
    )
    process = pl.col("stamp") - pl.duration(microseconds=pl.col("printed") * 1_000_000)
    after = pl.col("printed").last() - pl.col("printed").filter(pl.col("stamp").is_not_null()).last().fill_null(0.0)
    # Where the last stamp is that of the first step, nothing is left after it.
    starts = lines.group_by(_START).agg(
        pl.col("stamp").min(), last=pl.col("stamp").drop_nulls().last(), process=process.min(), after=after
    )
    if clocked:
        before = pl.col("stamp").min() - pl.col("process").min()
        seconds = starts.select(before.dt.total_microseconds() / 1e6)
    else:
        until_last = (pl.col("last") - pl.col("process")).dt.total_microseconds().fill_null(0) / 1e6
        seconds = starts.select((until_last.clip(0) + pl.col("after")).sum())
    # A run has few starts: to look for a better plan takes longer than this one.
    return float(seconds.collect(optimizations=pl.QueryOptFlags.none()).item() or 0.0)
