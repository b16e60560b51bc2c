"""Stalls: rows or stretches far slower than the pace around them; and times that lost digits, which are far faster.

Comes in: rows with their pace. Goes out: each reason with its rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from analysis.run.rates.baseline_step_time import NEIGHBOURS
from analysis.run.rates.changepoints import ENOUGH_ROWS, FEWEST, ROBUST, find_levels, slow_stretches
from analysis.run.rows.exclusion_reasons import STALL, TIME_DAMAGED
from analysis.run.rows.frame_filters import starts_of
from analysis.run.rows.restarts import STAMP_MS

# A stall is slower than its neighbours by this share and by this many robust standard deviations.
STALL_SHARE, STALL_SIGMAS = 0.25, 6.0
# A time below this share of its neighbours' lost digits, where nothing bears it out, and such rows are lone and at most
# this share of a start. Small steps can be twice as fast as their neighbours; a fifth is no step of the same work.
DAMAGED_BELOW, DAMAGED_RARE = 0.2, 0.1
# Printed rates, whose product with the time is the work of a step; how near the work of two steps is, and how near
# stamps must lie to show that a step was faster than typical.
RATES = (
    "logged_tflops_per_second_per_device",
    "logged_samples_per_second",
    "logged_samples_per_second_per_device",
    "logged_tokens_per_second",
    "logged_tokens_per_second_per_device",
)
SAME_WORK, SHORT_SHARE = 0.05, 0.75


def find_outlier_times(clean: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Each reason with its rows; all columns of ``clean`` stay."""
    lone = list(_lone(clean))
    yield from lone
    for _, rows in lone:
        if len(rows):
            clean = clean.join(rows, on="at", how="anti", maintain_order="left")
    yield STALL, _stretches(clean)


def _stretches(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of stretches longer than neighbours can show, from which the run came back to the pace before."""
    # In most starts too few rows for a stretch are slow at all.
    slow = (pl.col("pace") > (1 + STALL_SHARE) * pl.col("pace").quantile(0.25)).sum()
    able = rows.filter(((pl.len() >= ENOUGH_ROWS) & (slow >= FEWEST)).over("segment"))
    slow_rows = [
        start.slice(level.begin, len(level))
        for _, start in starts_of(able)
        for level in slow_stretches(find_levels(start["pace"].to_numpy()))
    ]
    return pl.concat(slow_rows) if slow_rows else rows.clear()


def _lone(clean: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    near = rows_near_outliers(clean)
    if near.is_empty():
        return
    # The pace can be another one in each start.
    around = near.with_columns(local=_around(pl.col("pace")))
    excess = pl.col("pace") - pl.col("local")
    judged = around.with_columns(excess=excess, distance=excess.abs(), sigma=ROBUST * _around(excess.abs()))
    yield STALL, judged.filter(_slow())
    if (judged["pace"] < DAMAGED_BELOW * judged["local"]).any():
        yield TIME_DAMAGED, judged.filter(_lost_digits())


def rows_near_outliers(clean: pl.DataFrame) -> pl.DataFrame:
    """The only rows that must be seen to judge the ``outlying`` ones: few, in most runs.

    A median lies between the least and the greatest of its rows; by those, all other rows are in line.
    """
    pace = pl.col("pace")
    least, greatest = (of(NEIGHBOURS, min_samples=1, center=True) for of in (pace.rolling_min, pace.rolling_max))
    marked = clean.with_columns(
        of_start=pl.len().over("segment"),
        outlying=(pace - least.over("segment") > STALL_SHARE * least.over("segment"))
        | (pace < DAMAGED_BELOW * greatest.over("segment")),
    )
    if not marked["outlying"].any():
        return marked.clear()
    # The neighbours, whose distances are asked, have neighbours themselves.
    reached = pl.col("outlying").cast(pl.Float64).rolling_max(2 * NEIGHBOURS - 1, min_samples=1, center=True)
    return marked.filter(reached.over("segment") > 0)


def _around(value: pl.Expr) -> pl.Expr:
    """The median of ``value`` over the neighbours of the same start."""
    return value.rolling_median(NEIGHBOURS, min_samples=1, center=True).over("segment")


def _slow() -> pl.Expr:
    excess = pl.col("excess")
    return pl.col("outlying") & (excess > STALL_SHARE * pl.col("local")) & (excess > STALL_SIGMAS * pl.col("sigma"))


def _lost_digits() -> pl.Expr:
    """Rare fast rows between typical ones. Several in a row are a faster pace; after a slow row one makes up for it."""
    fast = (pl.col("pace") < DAMAGED_BELOW * pl.col("local")) & (-pl.col("excess") > STALL_SIGMAS * pl.col("sigma"))
    typical = pl.col("distance") <= STALL_SHARE * pl.col("local")
    between = (typical.shift(rows).over("segment").fill_null(True) for rows in (1, -1))
    lone = pl.all_horizontal("outlying", fast, *between)
    at_most = pl.max_horizontal(pl.lit(1.0), DAMAGED_RARE * pl.col("of_start"))
    return lone & (lone.sum().over("segment") <= at_most)


def borne_out() -> pl.Expr:
    """Another figure of the line or the clock says that a row took its time, however short.

    A rate that is the work of the other rows over the time, or stamps nearer each other than those of typical steps.
    """
    time, stamp, iterations = pl.col("step_time_ms"), pl.col("timestamp"), pl.col("iterations")
    works = [pl.col(rate) * time for rate in RATES]
    at_baseline = [((work / work.median().over("segment") - 1).abs() < SAME_WORK).fill_null(False) for work in works]
    gap = (stamp - stamp.shift(1).over("segment")).dt.total_microseconds() / 1000
    # Stamps cut to seconds say nothing of shorter steps.
    typical = time.median().over("segment") * iterations * SHORT_SHARE
    return pl.any_horizontal(*at_baseline, (gap + STAMP_MS < typical).fill_null(False))
