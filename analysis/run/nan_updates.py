"""Steps whose update is not a number: they trained nothing. Losses of exactly 0: perhaps they trained nothing.

Comes in: step rows. Goes out: ``update_is_nan``, and a warning. Where a gradient norm is NaN the weights become NaN, or
the update is left out. Where it is infinite and the loss stays finite, a loss scaler left out that one update.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from analysis.model.shape import ROLLOUTS
from analysis.run.throughput import Computation
from logparse.findings import Note, warning

VANISHED = "loss_vanished"


def update_is_nan(steps: pl.DataFrame) -> pl.Expr:
    """Whether the loss is NaN, infinite or no longer printed, or the gradient norm is NaN."""
    vanished = pl.col(VANISHED) if VANISHED in steps.columns else pl.lit(value=False)
    loss, gradient = (pl.col(name).is_nan().fill_null(value=False) for name in ("loss", "grad_norm"))
    # What overflows in fp16 is NaN or infinite; its update is skipped, and counts as such.
    return loss | vanished | (gradient & ~_skipped()) | (is_infinite("loss") & ~_skipped())


def is_infinite(name: str) -> pl.Expr:
    """Whether a row prints an infinite ``name``."""
    return pl.col(name).is_infinite().fill_null(value=False)


def _skipped() -> pl.Expr:
    return (pl.col("skipped_iterations") > 0).fill_null(value=False) | pl.col("overflow").fill_null(value=False)


def describe_nan_updates(steps: pl.DataFrame) -> Iterator[Note]:
    """A warning that says how many rows are NaN or infinite, and where the first one is."""
    nan = steps.filter(~pl.col("copied"), pl.col("update_is_nan") | (is_infinite("grad_norm") & ~_skipped()))
    if len(nan):
        # A loss that is no longer printed is null.
        of_gradient = nan["loss"].is_finite().fill_null(value=False).all()
        yield _of_rows("not_a_number", steps, nan, what="gradient norm" if of_gradient else "loss")


def describe_zero_losses(steps: pl.DataFrame, how: Computation) -> Iterator[Note]:
    """A warning where losses are exactly 0. In reinforcement learning the loss of a policy often is."""
    if (steps["loss"] == 0).any() and how.shape.mixed_step != ROLLOUTS:
        zero = steps.filter(~pl.col("copied"), pl.col("loss") == 0)
        if len(zero):
            yield _of_rows("loss_is_zero", steps, zero)


def _of_rows(code: str, steps: pl.DataFrame, rows: pl.DataFrame, **fields: str) -> Note:
    """A warning on some of the run's own ``rows``: how many of all they are, and where the first one is."""
    source, line = rows["source", "line_number"].row(0)
    return warning(code, n=len(rows), of=int((~steps["copied"]).sum()), **fields, source=source, line=line)
