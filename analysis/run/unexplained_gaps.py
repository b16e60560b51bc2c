"""Gaps between step lines that no line explains: how many, how long, how often.

Comes in: rows as analysed, pauses. Goes out: a finding. Stamps are cut to seconds and steps vary, so only gaps far
above rounding and late lines are reported.
"""

from __future__ import annotations

import polars as pl

from analysis.run.exclusion_reasons import ROW_MS, TIMED
from analysis.run.interruptions import Pauses, count_between
from analysis.run.step_time_patterns import find_period
from logparse.findings import Note, info

# A gap is reported from here on, in seconds and as a share of the time of the row after it.
LEAST_S, LEAST_SHARE = 3.0, 0.5


def describe_gaps(steps: pl.DataFrame, pauses: Pauses) -> Note | None:
    """The gaps within starts that hold neither a save nor an evaluation, nor missing lines; None without any."""
    row_s = ROW_MS / 1000
    read = steps["step", "iterations", "segment", "timestamp", "step_time_ms", "excluded_reason", "copied"]
    rows = read.filter(TIMED & ~pl.col("copied") & pl.col("timestamp").is_not_null() & row_s.is_not_null())
    after = pl.col("step").shift(1)
    gaps = rows.select(
        "step",
        same=(pl.col("segment") == pl.col("segment").shift(1)) & (pl.col("step").diff() <= pl.col("iterations")),
        paused=(count_between(pauses.saved, after, pl.col("step")) > 0)
        | (count_between(pauses.evaluated, after, pl.col("step")) > 0),
        seconds=pl.col("timestamp").diff().dt.total_microseconds() / 1e6 - row_s,
        least=pl.max_horizontal(LEAST_S, row_s * LEAST_SHARE),
    )
    unexplained = gaps.filter("same", ~pl.col("paused"), pl.col("seconds") > pl.col("least"))
    if unexplained.is_empty():
        return None
    before = unexplained["step"].to_list()
    fields = {"n": len(unexplained), "each": unexplained["seconds"].median(), "steps": before}
    period = find_period(before)
    return info("gaps_periodic", **fields, period=period) if period else info("gaps_not_explained", **fields)
