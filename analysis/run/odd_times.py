"""Times out of line with those around them: stalls, and times that lost digits.

Comes in: the rows of all starts that have no reason yet, with ``segment`` and their ``pace``. Goes out: the rows by
reason. The rows are marked in ``window``.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from analysis.run.reasons import STALL, TIME_DAMAGED

# A stall is slower than its neighbours by this share and by this many robust standard deviations.
STALL_SHARE, STALL_SIGMAS, NEIGHBOURS = 0.25, 6.0, 51
# A time below this share of its neighbours' lost digits, where such rows are lone and at most this share of a start.
DAMAGED_BELOW, DAMAGED_RARE = 0.5, 0.1
ROBUST = 1.4826  # median absolute deviation to standard deviation of a normal distribution


def find_odd_times(clean: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Each reason with its rows; all columns of ``clean`` stay."""
    near = near_odd_rows(clean)
    if near.is_empty():
        return
    # The pace can be another one in each start.
    around = near.with_columns(local=_around("pace")).with_columns(excess=pl.col("pace") - pl.col("local"))
    told = around.with_columns(distance=pl.col("excess").abs())
    known = told.with_columns(sigma=ROBUST * _around("distance"))
    yield STALL, known.filter(_slow())
    yield TIME_DAMAGED, known.filter(_lost_digits())


def near_odd_rows(clean: pl.DataFrame) -> pl.DataFrame:
    """The only rows that must be seen to judge the ``odd`` ones: few, in most runs.

    A median lies between the least and the greatest of its rows; by those, all other rows are in line.
    """
    pace = pl.col("pace")
    least, greatest = (of(NEIGHBOURS, min_samples=1, center=True) for of in (pace.rolling_min, pace.rolling_max))
    odd = clean.with_columns(
        of_start=pl.len().over("segment"),
        odd=(pace - least.over("segment") > STALL_SHARE * least.over("segment"))
        | (pace < DAMAGED_BELOW * greatest.over("segment")),
    )
    # The neighbours, whose distances are asked, have neighbours themselves.
    reached = pl.col("odd").cast(pl.Float64).rolling_max(2 * NEIGHBOURS - 1, min_samples=1, center=True)
    return odd.filter(reached.over("segment") > 0)


def _around(name: str) -> pl.Expr:
    """The median of a column over the neighbours of the same start."""
    return pl.col(name).rolling_median(NEIGHBOURS, min_samples=1, center=True).over("segment")


def _slow() -> pl.Expr:
    excess = pl.col("excess")
    return pl.col("odd") & (excess > STALL_SHARE * pl.col("local")) & (excess > STALL_SIGMAS * pl.col("sigma"))


def _lost_digits() -> pl.Expr:
    """Rare fast rows between usual ones. Several in a row are a faster pace; beside a slow one they make up for it."""
    fast = (pl.col("pace") < DAMAGED_BELOW * pl.col("local")) & (-pl.col("excess") > STALL_SIGMAS * pl.col("sigma"))
    usual = pl.col("distance") <= STALL_SHARE * pl.col("local")
    beside = (usual.shift(rows).over("segment").fill_null(True) for rows in (1, -1))
    lone = pl.all_horizontal("odd", fast, *beside)
    at_most = pl.max_horizontal(pl.lit(1.0), DAMAGED_RARE * pl.col("of_start"))
    return lone & (lone.sum().over("segment") <= at_most)
