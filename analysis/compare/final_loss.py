"""The final loss of runs, compared at equal steps, since a longer run has a lower loss.

Comes in: the steps of the runs of both sides. Goes out: one loss for each run that prints any. Where a step of one run
has more tokens than that of another, they are equal tokens.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import polars as pl

from analysis.run.rows.exclusion_reasons import OF_THE_RUN

# Losses of single batches vary; so many are averaged.
LAST = 10
# Tokens of a step that differ by less are the same.
SAME_TOKENS = 0.005


def final_losses(runs: Iterable[tuple[str, pl.DataFrame]]) -> dict[str, float | None]:
    """By run id the mean of the finite losses at the last LAST steps that all print; of a step done again the last.

    None where none of them is finite, or all are 0, which no training reaches. Runs that print no loss are left out,
    and all runs if they have other batches and some do not count their tokens.
    """
    printed = {run_id: losses for run_id, steps in runs if len(losses := _losses(steps))}
    if not printed or have_other_batches(printed.values()):
        return {}
    by = "tokens" if _differ(printed.values()) else "step"
    common = sorted(set.intersection(*(set(losses[by].drop_nulls()) for losses in printed.values())))[-LAST:]
    return {run_id: _mean(losses, by, common) for run_id, losses in printed.items()} if common else {}


def _losses(steps: pl.DataFrame) -> pl.DataFrame:
    """Steps, their losses, and the tokens since the start of training where they are known."""
    batch = pl.col("global_batch_size")
    samples = pl.coalesce("consumed_samples", pl.when(batch.n_unique() == 1).then(batch * pl.col("step")))
    tokens = pl.coalesce("consumed_tokens", samples * pl.col("seq_length"))
    own = steps.filter(OF_THE_RUN).select("step", "loss", batch, tokens=tokens).drop_nulls(["step", "loss"])
    return own.unique("step", keep="last", maintain_order=True).sort("step")


def have_other_batches(runs: Collection[pl.DataFrame]) -> bool:
    """Whether steps of one number have other batches, and tokens do not show which steps are comparable."""
    batches = pl.concat(losses.select("step", "global_batch_size") for losses in runs).drop_nulls()
    others = batches.group_by("step").agg(pl.col("global_batch_size").n_unique() > 1)["global_batch_size"].any()
    return others and any(losses["tokens"].has_nulls() for losses in runs)


def _differ(runs: Collection[pl.DataFrame]) -> bool:
    """Whether steps of some runs have more tokens than those of others."""
    each = [tokens for losses in runs if (tokens := _tokens_per_step(losses)) is not None]
    return len(each) == len(runs) and max(each) > min(each) * (1 + SAME_TOKENS)


def _tokens_per_step(losses: pl.DataFrame) -> float | None:
    counted = losses.drop_nulls("tokens")
    steps, tokens = (int(counted[name].max() or 0) - int(counted[name].min() or 0) for name in ("step", "tokens"))  # type: ignore[arg-type]
    return tokens / steps if steps else None


def _mean(losses: pl.DataFrame, by: str, common: list[int]) -> float | None:
    mean = losses.filter(pl.col(by).is_in(common) & pl.col("loss").is_finite())["loss"].mean()
    return float(mean) if isinstance(mean, float) and mean != 0 else None
