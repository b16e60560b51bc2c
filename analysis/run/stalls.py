"""The stalls of a run: rows that took much longer than those around them, and were left out for it."""

from __future__ import annotations

import polars as pl

from analysis.run.baseline_step_time import longer, with_baseline
from analysis.run.exclusion_reasons import STALL


def stalled(steps: pl.DataFrame) -> pl.DataFrame:
    """The first row of each stall, with ``longer_ms``: its time above the baseline of the rows around, over all steps.

    Rows that share the mean of one span of a coarse clock are one stall.
    """
    if not (steps["excluded_reason"] == STALL).any():
        return steps.clear().with_columns(longer_ms=pl.lit(None, pl.Float64))
    rows = with_baseline(steps).with_row_index("at").filter(pl.col("excluded_reason") == STALL)
    same = (pl.col("at").diff() == 1) & (pl.col("step_time_ms").diff() == 0)
    # A time that a line prints is its own.
    by_clock = pl.col("time_resolution_ms").is_not_null() if "time_resolution_ms" in rows.columns else pl.lit(False)
    begins = ~(same & by_clock).fill_null(value=False)
    return rows.with_columns(longer_ms=longer().sum().over(begins.cum_sum())).filter(begins).drop("at")
