"""Gaps between step lines that no line explains: how many, how long, how often.

Comes in: rows as analysed, pauses. Goes out: a finding. Stamps are cut to seconds and steps vary, so only gaps far
above rounding and late lines are reported.
"""

from __future__ import annotations

import polars as pl

from analysis.run.exclusion_reasons import TIMED
from analysis.run.interruptions import Pauses
from analysis.run.pause_times import holds
from analysis.run.step_time_patterns import find_period
from logparse.findings import Note, info

# A gap is reported from here on, in seconds and as a share of the time of the row after it.
LEAST_S, LEAST_SHARE = 3.0, 0.5


def describe_gaps(steps: pl.DataFrame, pauses: Pauses) -> Note | None:
    """The gaps within starts that hold neither a save nor an evaluation, nor missing lines; None without any."""
    row_s = pl.col("step_time_ms") * pl.col("iterations") / 1000
    rows = steps.filter(TIMED & ~pl.col("copied") & pl.col("timestamp").is_not_null() & row_s.is_not_null())
    if rows.is_empty():
        return None
    gaps = rows.select(
        "step",
        same=(pl.col("segment") == pl.col("segment").shift(1)) & (pl.col("step").diff() <= pl.col("iterations")),
        after=pl.col("step").shift(1),
        to=pl.col("step"),
        seconds=pl.col("timestamp").diff().dt.total_microseconds() / 1e6 - row_s,
        least=pl.max_horizontal(LEAST_S, row_s * LEAST_SHARE),
    ).filter("same", pl.col("seconds") > pl.col("least"))
    unexplained = gaps.filter(~holds(gaps, pauses.saved) & ~holds(gaps, pauses.evaluated))
    if unexplained.is_empty():
        return None
    before = unexplained["step"].to_list()
    fields = {"n": len(unexplained), "each": unexplained["seconds"].median(), "steps": before}
    period = find_period(before)
    return info("gaps_periodic", **fields, period=period) if period else info("gaps_not_explained", **fields)
