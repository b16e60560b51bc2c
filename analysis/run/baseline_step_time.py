"""The time that is usual for a row: that of its neighbours, by its own batch.

Comes in: rows that ``window`` marks or has marked. Goes out: ``pace``, a time relative to what its batch costs, and
``usual_ms``, the time of one step that the rows around let expect. A step has fixed costs, so that a small batch takes
longer per sample than a large one: where batches change, each is measured by its own rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import polars as pl

from analysis.run.batch_sizes import mean_batch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The rows on both sides and the row itself; fewer rows of a batch than this do not tell what it costs.
NEIGHBOURS, FEW_ROWS = 51, 3
# Further apart than this, two rows in the middle of so many are of two paces, and no row ran at their mean.
ONE_PACE, PACE_ROWS = 0.10, 8


def middle(name: str, slow: Literal["higher", "lower"] = "higher") -> pl.Expr:
    """The median of a column; where the two rows in the middle differ, the ``slow`` one of them: a pace that ran."""
    value = pl.col(name)
    lower, higher = (value.quantile(0.5, side) for side in ("lower", "higher"))
    apart = (higher > (1 + ONE_PACE) * lower) & (value.count() >= PACE_ROWS)
    return pl.when(apart).then(value.quantile(0.5, slow)).otherwise(value.median())


# What tells the pace of a row, beside the batches of the rows before.
READ = ("segment", "iterations", "step_time_ms", "global_batch_size", "consumed_samples")


def add_pace(rows: pl.DataFrame, settled: pl.Expr) -> pl.DataFrame:
    """Add ``cost``, what a step of the row's batch takes, and ``pace``, the row's time over it.

    Of a start with one batch the cost is in samples; else in ms, the median of the ``settled`` rows of the batch, on a
    line between those of the next batches, in proportion beyond them.
    """
    told = rows.with_columns(cost=_samples())
    points = _points(told.select(pl.col("segment", "cost", "step_time_ms").filter(settled)))
    if len(points):
        told = told.with_columns(cost=_costs(told, points))
    return told.with_columns(pace=pl.col("step_time_ms") / pl.col("cost"))


def _points(rows: pl.DataFrame) -> pl.DataFrame:
    """What batches cost in starts of several (segment, cost in samples, ms); rows of rare batches are put together."""
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
    found = ordered.group_by("segment", "rare", "batch").agg(
        pl.col("cost", "step_time_ms").median(),
        n=pl.len(),
        mean=pl.col("step_time_ms").mean(),
        spread=pl.col("step_time_ms").std() / pl.col("step_time_ms").mean(),
    )
    return found.filter(pl.col("n") >= FEW_ROWS).sort("segment", "cost").unique(["segment", "cost"], keep="first")


def _costs(rows: pl.DataFrame, points: pl.DataFrame) -> pl.Series:
    """``cost`` in ms where ``points`` of the row's start tell it; else in samples, as it is."""
    segment, cost = rows["segment"].to_numpy(), rows["cost"].to_numpy().copy()
    for (start,), known in points.sort("cost").group_by("segment"):
        mine = segment == start
        cost[mine] = _through(known["cost"].to_numpy(), known["step_time_ms"].to_numpy(), cost[mine])
    return pl.Series("cost", cost)


def batch_points(rows: pl.DataFrame) -> pl.DataFrame:
    """What steps of the batches of the counted ``rows`` took, batch by batch; empty where there is one batch alone.

    ``cost`` in samples, ``step_time_ms`` in the mean of ``n`` rows, ``spread``: their standard deviation over it.
    """
    points = _points(rows.filter("counted").select("segment", "step_time_ms", cost=_samples()))
    return points.with_columns(step_time_ms="mean").sort("cost") if len(points) else points


def _through(samples: NDArray[np.float64], ms: NDArray[np.float64], asked: NDArray[np.float64]) -> NDArray[np.float64]:
    """The line through the points; beyond its ends as it goes on, but never more than in proportion nor against it."""
    import numpy as np

    found = np.interp(asked, samples, ms)
    for end, next_to in ((0, 1), (-1, -2)):
        beyond = asked < samples[0] if end == 0 else asked > samples[-1]
        rise = (ms[end] - ms[next_to]) / (samples[end] - samples[next_to]) if len(samples) > 1 else ms[0] / samples[0]
        line, whole = ms[end] + (asked - samples[end]) * rise, ms[end] * asked / samples[end]
        found = np.where(beyond, np.clip(line, np.minimum(whole, ms[end]), np.maximum(whole, ms[end])), found)
    return np.asarray(found)


def with_usual(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with the column ``usual_ms``, which they may have already."""
    return rows if "usual_ms" in rows.columns else rows.with_columns(usual_ms=usual_ms(rows))


def usual_ms(rows: pl.DataFrame) -> pl.Series:
    """Per row the time of a step that the counted rows around it, of the same start, let expect.

    Rows whose neighbours do not count take the nearest that do; a start none of whose rows counts takes the time per
    sample of the whole run; null where no row counts at all, and of copies.
    """
    own = rows.select("counted", *READ).with_row_index("at").filter(pl.col("iterations").is_not_null())
    paced = add_pace(own, pl.col("counted"))
    # Only rows that do not count are asked; the others need no median.
    odd = (~pl.col("counted")).cast(pl.Float64)
    near = paced.filter(odd.rolling_max(NEIGHBOURS, min_samples=1, center=True).over("segment") > 0)
    counted = pl.when("counted").then("pace")
    around = counted.rolling_median(NEIGHBOURS, min_samples=1, center=True).over("segment")
    joined = paced.join(near.select("at", local=around), on="at", how="left", maintain_order="left")
    pace = pl.coalesce("local", counted).forward_fill().over("segment")
    filled = pace.fill_null(pl.coalesce("local", counted).backward_fill().over("segment"))
    anywhere = pl.when("counted").then(pl.col("step_time_ms") / _samples()).median() * _samples()
    usual = joined.select("at", usual_ms=pl.coalesce(filled * pl.col("cost"), anywhere))
    places = rows.select(at=pl.int_range(pl.len(), dtype=pl.UInt32))
    return places.join(usual, on="at", how="left", maintain_order="left")["usual_ms"]


def _samples() -> pl.Expr:
    return mean_batch().cast(pl.Float64).fill_null(1.0)
