"""The final loss of runs, compared at equal steps, since a longer run has a lower loss.

Comes in: the steps of the runs of both sides. Goes out: one loss for each run that prints any. Where a step of one run
has more tokens than that of another, they are equal tokens.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from analysis.compare.loss_curves import common_axis, have_other_batches, read_curve

# Losses of single batches vary; so many are averaged.
LAST = 10


def final_losses(runs: Iterable[tuple[str, pl.DataFrame]]) -> dict[str, float | None]:
    """By run id the mean of the finite losses at the last LAST steps that all print; of a step done again the last.

    None where none of them is finite, or all are 0, which no training reaches. Runs that print no loss are left out,
    and all runs if they have other batches and some do not count their tokens.
    """
    printed = {run_id: curve for run_id, steps in runs if len(curve := read_curve(steps))}
    if not printed or have_other_batches(printed.values()):
        return {}
    by = common_axis(printed.values())
    common = sorted(set.intersection(*(set(curve[by].drop_nulls()) for curve in printed.values())))[-LAST:]
    return {run_id: _mean(curve, by, common) for run_id, curve in printed.items()} if common else {}


def _mean(curve: pl.DataFrame, by: str, common: list[int]) -> float | None:
    mean = curve.filter(pl.col(by).is_in(common) & pl.col("loss").is_finite())["loss"].mean()
    return float(mean) if isinstance(mean, float) and mean != 0 else None
