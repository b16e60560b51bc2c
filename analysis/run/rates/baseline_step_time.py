"""The baseline time of a row: the time of its neighbours, by its own batch.

Comes in: rows that ``row_selection`` marks or has marked. Goes out: ``pace``, the time of a row over the cost of its
batch, and ``baseline_ms``, the expected time of one step by the rows around it. A step has fixed costs, so that a small
batch takes longer per sample than a large one: where batches change, the cost of each comes from its own rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

import polars as pl

from analysis.run.rates.batch_sizes import mean_batch, with_mean_batch
from analysis.run.rows.exclusion_reasons import STALL
from analysis.run.rows.frame_filters import with_known

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Rows of the moving window around a row. A batch with fewer than FEW_ROWS rows has no cost of its own.
NEIGHBOURS, FEW_ROWS = 51, 3
# Two middle rows further apart than ONE_PACE are of two paces: no row ran at their mean. It takes PACE_ROWS to say so.
# Where one is more than TWICE the other, FAR_ROWS do.
ONE_PACE, PACE_ROWS = 0.10, 8
TWICE, FAR_ROWS = 2, 4


def middle(values: pl.Series, slow: Literal["higher", "lower"] = "higher") -> float | None:
    """The median; where the two values in the middle differ, the ``slow`` one of them: a pace that ran."""
    lower, higher, n = values.quantile(0.5, "lower"), values.quantile(0.5, "higher"), values.count()
    if lower is None or higher is None:
        return None
    # NaN is above all numbers.
    unlike, far = (not higher <= times * lower for times in (1 + ONE_PACE, TWICE))
    if (unlike and n >= PACE_ROWS) or (far and n >= FAR_ROWS):
        return higher if slow == "higher" else lower
    return cast("float", values.median())


# Columns that give the pace of a row; its mean batch also depends on the rows before it.
READ = ("segment", "step", "iterations", "step_time_ms", "global_batch_size", "consumed_samples")


def add_pace(rows: pl.DataFrame, settled: pl.Expr) -> pl.DataFrame:
    """Add ``cost``, what a step of the row's batch takes, and ``pace``, the row's time over it.

    In a start with one batch the cost is in samples. Else it is in ms: the median of the ``settled`` rows of the batch,
    on a line between those of the next batches, in proportion beyond them.
    """
    costed = with_mean_batch(rows).with_columns(cost=_samples())
    if costed["cost"].n_unique() > 1:
        points = _points(costed.select(pl.col("segment", "cost", "step_time_ms").filter(settled)))
        costed = costed.with_columns(_costs(costed, points)) if len(points) else costed
    return costed.hstack([(costed["step_time_ms"] / costed["cost"]).alias("pace")])


def _points(rows: pl.DataFrame) -> pl.DataFrame:
    """Points of starts with several batches: segment, cost in samples, ms; rows of rare batches are put together."""
    if rows["cost"].n_unique() < 2:
        return rows.clear()
    several = rows.filter((pl.col("cost").min() < pl.col("cost").max()).over("segment"))
    if several.is_empty():
        return several
    rare = pl.len().over("segment", "cost") < FEW_ROWS
    near = pl.when(rare).then(pl.int_range(pl.len()).over("segment", rare) // FEW_ROWS)
    ordered = several.sort("segment", "cost", maintain_order=True).with_columns(
        rare=near, batch=pl.when(~rare).then("cost")
    )
    points = ordered.group_by("segment", "rare", "batch").agg(
        pl.col("cost", "step_time_ms").median(),
        n=pl.len(),
        mean=pl.col("step_time_ms").mean(),
        spread=pl.col("step_time_ms").std() / pl.col("step_time_ms").mean(),
    )
    return points.filter(pl.col("n") >= FEW_ROWS).sort("segment", "cost").unique(["segment", "cost"], keep="first")


def _costs(rows: pl.DataFrame, points: pl.DataFrame) -> pl.Series:
    """``cost`` in ms where ``points`` has rows of the row's start; else in samples, as it is."""
    segment, cost = rows["segment"].to_numpy(), rows["cost"].to_numpy().copy()
    for (start,), known in points.sort("cost").group_by("segment"):
        mine = segment == start
        cost[mine] = _through(known["cost"].to_numpy(), known["step_time_ms"].to_numpy(), cost[mine])
    return pl.Series("cost", cost)


def batch_points(rows: pl.DataFrame) -> pl.DataFrame:
    """The time of a step of each batch of the counted ``rows``; empty where there is one batch alone.

    ``cost`` is in samples, ``step_time_ms`` the mean of ``n`` rows, ``spread`` their standard deviation over it.
    """
    counted = rows.filter("counted").with_columns(mean_batch=mean_batch())
    points = _points(counted.select("segment", "step_time_ms", cost=_samples()))
    return points.with_columns(step_time_ms="mean").sort("cost") if len(points) else points


def _through(samples: NDArray[np.float64], ms: NDArray[np.float64], asked: NDArray[np.float64]) -> NDArray[np.float64]:
    """The line through the points, at ``asked``; beyond its ends it stays between constant and proportional."""
    import numpy as np

    expected = np.interp(asked, samples, ms)
    for end, next_to in ((0, 1), (-1, -2)):
        beyond = asked < samples[0] if end == 0 else asked > samples[-1]
        rise = (ms[end] - ms[next_to]) / (samples[end] - samples[next_to]) if len(samples) > 1 else ms[0] / samples[0]
        line, whole = ms[end] + (asked - samples[end]) * rise, ms[end] * asked / samples[end]
        expected = np.where(beyond, np.clip(line, np.minimum(whole, ms[end]), np.maximum(whole, ms[end])), expected)
    return np.asarray(expected)


def with_baseline(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with the column ``baseline_ms``, which they may have already."""
    return rows if "baseline_ms" in rows.columns else rows.hstack([baseline_ms(rows)])


def longer() -> pl.Expr:
    """Milliseconds by which the steps of a row took longer than the baseline of the rows around, all together."""
    return (pl.col("step_time_ms") - pl.col("baseline_ms")) * pl.col("iterations").fill_null(1)


def baseline_ms(rows: pl.DataFrame) -> pl.Series:
    """The expected time of a step per row, from the counted rows around it in the same start.

    Rows without counted neighbours take the nearest counted rows. A start without counted rows takes the time per
    sample of the whole run. Null where no row counts at all, and for copies.
    """
    timed = with_known(with_mean_batch(rows)["counted", "mean_batch", *READ].with_row_index("at"), "iterations")
    paced = add_pace(timed, pl.col("counted"))
    # Only rows that do not count need the median of the rows around them.
    not_counted = (~pl.col("counted")).cast(pl.Float64)
    near = paced.filter(not_counted.rolling_max(NEIGHBOURS, min_samples=1, center=True).over("segment") > 0)
    counted = pl.when("counted").then("pace")
    around = counted.rolling_median(NEIGHBOURS, min_samples=1, center=True).over("segment")
    joined = paced.join(near.select("at", local=around), on="at", how="left", maintain_order="left")
    pace = pl.coalesce("local", counted).forward_fill().over("segment")
    filled = pace.fill_null(pl.coalesce("local", counted).backward_fill().over("segment"))
    anywhere = pl.when("counted").then(pl.col("step_time_ms") / _samples()).median() * _samples()
    baseline = joined.select("at", baseline_ms=pl.coalesce(filled * pl.col("cost"), anywhere))
    if len(baseline) == len(rows):
        return baseline["baseline_ms"]
    places = pl.select(at=pl.int_range(len(rows), dtype=pl.UInt32))
    return places.join(baseline, on="at", how="left", maintain_order="left")["baseline_ms"]


def _samples() -> pl.Expr:
    return pl.col("mean_batch").cast(pl.Float64).fill_null(1.0)


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
