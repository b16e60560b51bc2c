"""The losses of a run as curves that can be put next to those of another run: at equal steps, or at equal tokens.

Comes in: the steps of runs. Goes out: a curve for each loss of a run, and the axis along which curves are comparable.
A longer run has a lower loss, and so has one whose steps have more tokens.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import polars as pl

from analysis.run.rows.exclusion_reasons import OF_THE_RUN

Axis = Literal["step", "tokens"]
# Tokens of a step that differ by less are the same.
SAME_TOKENS = 0.005


def read_curve(steps: pl.DataFrame, column: str = "loss") -> pl.DataFrame:
    """Steps, the values of ``column`` as ``loss``, and the tokens since the start of training where they are known.

    Of a step that was done again it has the last value; ``segment`` is the start that gave it.
    """
    own = steps.filter(OF_THE_RUN).select(
        "step", "segment", "global_batch_size", "iterations", loss=column, tokens=consumed_tokens()
    )
    return own.drop_nulls(["step", "loss"]).unique("step", keep="last", maintain_order=True).sort("step")


def consumed_tokens() -> pl.Expr:
    """The tokens of a run since the start of training.

    Samples that the log does not count are those of so many steps if the whole run has one batch.
    """
    batch = pl.col("global_batch_size")
    samples = pl.coalesce("consumed_samples", pl.when(batch.n_unique() == 1).then(batch * pl.col("step")))
    return pl.coalesce("consumed_tokens", samples * pl.col("seq_length"))


def common_axis(curves: Collection[pl.DataFrame]) -> Axis:
    """Tokens if steps of some runs have more of them than those of others, and all runs count them; else steps."""
    each = [tokens for curve in curves if (tokens := _tokens_per_step(curve)) is not None]
    differ = 0 < len(each) == len(curves) and max(each) > min(each) * (1 + SAME_TOKENS)
    return "tokens" if differ else "step"


def have_other_batches(curves: Collection[pl.DataFrame]) -> bool:
    """Whether steps of one number have other batches, and tokens do not show which steps are comparable."""
    batches = pl.concat(curve.select("step", "global_batch_size") for curve in curves).drop_nulls()
    others = batches.group_by("step").agg(pl.col("global_batch_size").n_unique() > 1)["global_batch_size"].any()
    return others and any(curve["tokens"].has_nulls() for curve in curves)


def _tokens_per_step(curve: pl.DataFrame) -> float | None:
    counted = curve.drop_nulls("tokens")
    steps, tokens = (int(counted[name].max() or 0) - int(counted[name].min() or 0) for name in ("step", "tokens"))  # type: ignore[arg-type]
    return tokens / steps if steps else None
