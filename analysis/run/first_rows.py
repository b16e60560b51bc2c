"""The time of the first rows of a start, which the log does not give: where times come from the stamps of lines, say.

Comes in: marked rows, events. Goes out: the same rows, where the first ones have the time that their steps take at the
baseline, at most what passed since the line before them. So these steps are no start-up.
"""

from __future__ import annotations

import polars as pl

from analysis.run.baseline_step_time import with_baseline
from analysis.run.exclusion_reasons import COPY, OTHER_JOB, TIMED, has_untimed
from analysis.run.pause_times import BEGINNINGS


def time_first_rows(steps: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """``steps``, of which the stamped rows before the first row with a time in each start have one; the frame itself
    where there are none.
    """
    if not has_untimed(steps):
        return steps
    own = pl.col("excluded_reason").ne_missing(COPY) & pl.col("excluded_reason").ne_missing(OTHER_JOB)
    timed = (TIMED & own).cum_sum().over("segment")
    first = own & (timed == 0) & pl.col("timestamp").is_not_null() & pl.col("iterations").is_not_null()
    if not steps.select(first.any()).item():
        return steps
    rows = with_baseline(steps).with_columns(
        first=first, since=pl.max_horizontal(pl.col("timestamp").shift(1), _begun(steps, events))
    )
    room_ms = (pl.col("timestamp") - pl.col("since")).dt.total_microseconds() / 1000
    time = pl.min_horizontal("baseline_ms", room_ms / pl.col("iterations"))
    known = pl.col("first") & pl.col("baseline_ms").is_not_null() & (room_ms > 0)
    return rows.with_columns(
        step_time_ms=pl.when(known).then(time).otherwise("step_time_ms"),
        # A row without a reason is useful as far as its steps were kept.
        excluded_reason=pl.when(known).then(None).otherwise("excluded_reason"),
    ).drop("first", "since")


def _begun(steps: pl.DataFrame, events: pl.DataFrame) -> pl.Series:
    """For each row the last stamp up to its own at which a log, a process or a training began."""
    begins = events.filter(pl.col("kind").is_in(BEGINNINGS)).select(begun="timestamp").drop_nulls().sort("begun")
    stamps = steps.select("timestamp").with_row_index("at").sort("timestamp", nulls_last=True)
    joined = stamps.filter(pl.col("timestamp").is_not_null()).join_asof(begins, left_on="timestamp", right_on="begun")
    return stamps.join(joined.select("at", "begun"), on="at", how="left").sort("at")["begun"]
