"""The loss with which runs end, at equal steps: that of a longer run is lower, and proves nothing.

Comes in: the steps of the runs of both sides. Goes out: one loss for each run that prints any.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from analysis.run.reasons import OF_THE_RUN

# Losses of single batches vary; so many are averaged.
LAST = 10


def final_losses(runs: Iterable[tuple[str, pl.DataFrame]]) -> dict[str, float | None]:
    """By run id the mean of the finite losses at the last LAST steps that all print; of a step done again the last.

    None where none of them is finite, or all are 0, which no training reaches. Runs that print no loss are left out.
    """
    printed = {run_id: losses for run_id, steps in runs if len(losses := _losses(steps))}
    if not printed:
        return {}
    common = sorted(set.intersection(*(set(losses["step"]) for losses in printed.values())))[-LAST:]
    return {run_id: _mean(losses, common) for run_id, losses in printed.items()} if common else {}


def _losses(steps: pl.DataFrame) -> pl.DataFrame:
    own = steps.filter(OF_THE_RUN).select("step", "loss").drop_nulls()
    return own.unique("step", keep="last", maintain_order=True).sort("step")


def _mean(losses: pl.DataFrame, steps: list[int]) -> float | None:
    mean = losses.filter(pl.col("step").is_in(steps) & pl.col("loss").is_finite())["loss"].mean()
    return float(mean) if isinstance(mean, float) and mean != 0 else None
