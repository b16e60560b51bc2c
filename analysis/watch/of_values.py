"""Rules on what is trained: NaN, spikes and a flat loss, updates that are skipped, a loss scale that falls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from analysis.run.rates.changepoints import ROBUST
from analysis.run.rows.updates import printed_skips
from analysis.watch.watched import Watched

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Lines in which a value that is not finite is news.
NEWS = 5
# Losses before the last ones that show what is typical, and those without which nothing is.
LOSSES, FEWEST_LOSSES = 200, 50
# Of the last lines so many must be spikes; a spike is also so much above the losses before, as a share of them.
LAST, SPIKES, LEAST_RISE = 3, 2, 0.2
# Losses that vary are not flat: so many of those before must differ.
VARIED = 0.5
SKIPS, SCALES = 20, 100
# A loss scale of 1 or less can fall no further.
LEAST_SCALE = 1.0


def is_nan(watched: Watched) -> dict[str, Any] | None:
    """A loss or a gradient norm of the last lines is NaN or infinite, and no loss scaler left the update out."""
    bad = watched.start.select((pl.col("update_is_nan") | _counts_nan()).fill_null(value=False)).to_series()
    last = bad.tail(NEWS)
    if not last.any():
        return None
    # What is not finite began before the last lines, where no line between is.
    found = len(bad) - len(last) + (last.arg_max() or 0)
    good = (~bad.head(found)).arg_true()
    first = watched.start.row(good[-1] + 1 if len(good) else 0, named=True)
    return {"step": first["step"], "lines": int(last.sum()), "origin": watched.at(first)}


def _counts_nan() -> pl.Expr:
    """Whether a row counts iterations that were NaN."""
    return (pl.col("nan_iterations") > 0).fill_null(value=False)


def loss_spikes(watched: Watched) -> dict[str, Any] | None:
    """The last losses are far above those before, by their median and their median absolute deviation."""
    import numpy as np

    rows = _losses(watched).tail(LOSSES + LAST)
    if len(rows) < FEWEST_LOSSES + LAST:
        return None
    values = rows["loss"].to_numpy()
    before, last = values[:-LAST], values[-LAST:]
    level, spread = _level(before)
    limit = level + max(watched.limits.spike_sigmas * spread, LEAST_RISE * abs(level))
    high = np.flatnonzero(last > limit)
    if len(high) < SPIKES:
        return None
    row = rows.row(len(before) + int(high[0]), named=True)
    return {"loss": float(last[high].max()), "before": level, "step": row["step"], "origin": watched.at(row)}


def _level(values: NDArray[np.float64]) -> tuple[float, float]:
    """The present level of a series that drifts, and the standard deviation about its drift, both robust."""
    import numpy as np

    recent = float(np.median(values[-FEWEST_LOSSES // 2 :]))
    # Differences know no drift; of two values they have twice the variance.
    steps = np.diff(values)
    of_steps = ROBUST * float(np.median(np.abs(steps - np.median(steps)))) / 2**0.5
    tail = values[-FEWEST_LOSSES:]
    of_level = ROBUST * float(np.median(np.abs(tail - np.median(tail))))
    return recent, max(of_steps, of_level)


def loss_is_flat(watched: Watched) -> dict[str, Any] | None:
    """The last losses are all equal, after losses that varied."""
    lines = int(watched.limits.flat_lines)
    rows = _losses(watched)
    before, last = rows["loss"].slice(max(0, len(rows) - lines - LOSSES), LOSSES), rows["loss"].tail(lines)
    if len(rows) < lines + FEWEST_LOSSES or last.n_unique() > 1 or before.n_unique() < VARIED * len(before):
        return None
    first = rows.row(len(rows) - lines, named=True)
    return {"loss": last[0], "lines": lines, "step": first["step"], "origin": watched.at(first)}


def updates_are_skipped(watched: Watched) -> dict[str, Any] | None:
    """Most updates of the last lines were skipped, after some that were made."""
    rows = watched.start.with_columns(skips=printed_skips())
    last, earlier = rows.tail(SKIPS), rows.head(max(0, len(rows) - SKIPS))
    # A loss scale is searched for at the beginning.
    if len(last) < SKIPS or not (earlier["skips"] == 0).any():
        return None
    skipped, steps = int(last["skips"].sum()), int(last["iterations"].sum() or SKIPS)
    if skipped < watched.limits.skipped_share * steps:
        return None
    first = last.filter(pl.col("skips") > 0).row(0, named=True)
    return {"n": skipped, "of": steps, "step": first["step"], "origin": watched.at(first)}


def scale_falls(watched: Watched) -> dict[str, Any] | None:
    """The loss scale fell many times within a hundred lines, after updates that were made at a higher one."""
    rows = watched.start.filter(pl.col("loss_scale") > 0).with_columns(skips=printed_skips())
    made = rows.with_row_index("at").filter(pl.col("skips") == 0)
    if made.is_empty():
        return None
    recent = rows.slice(made["at"][0]).tail(SCALES)
    highest, now = float(recent["loss_scale"].max()), float(recent["loss_scale"][-1])  # type: ignore[arg-type]
    if highest <= LEAST_SCALE or highest < watched.limits.scale_factor * now:
        return None
    row = recent.row(-1, named=True)
    return {"before": highest, "now": now, "step": row["step"], "origin": watched.at(row)}


def _losses(watched: Watched) -> pl.DataFrame:
    """The lines of the last start with a finite loss."""
    return watched.start.filter(pl.col("loss").is_finite())
