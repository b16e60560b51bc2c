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


def mark_nan_updates(steps: pl.DataFrame) -> pl.DataFrame:
    """Add ``update_is_nan``: the loss is NaN, infinite or no longer printed, or the gradient norm is NaN."""
    vanished = pl.col(VANISHED) if VANISHED in steps.columns else pl.lit(value=False)
    loss, gradient = (pl.col(name).is_nan().fill_null(value=False) for name in ("loss", "grad_norm"))
    # What overflows in fp16 is NaN or infinite; its update is skipped, and counts as such.
    return steps.with_columns(
        update_is_nan=loss | vanished | (gradient & ~_skipped()) | (is_infinite("loss") & ~_skipped())
    )


def is_infinite(name: str) -> pl.Expr:
    """Whether a row prints an infinite ``name``."""
    return pl.col(name).is_infinite().fill_null(value=False)


def _skipped() -> pl.Expr:
    return (pl.col("skipped_iterations") > 0).fill_null(value=False) | pl.col("overflow").fill_null(value=False)


def describe_nan_updates(steps: pl.DataFrame) -> Iterator[Note]:
    """A warning that says how many rows are NaN or infinite, and where the first one is."""
    own = steps.filter(~pl.col("copied"))
    nan = own.filter(pl.col("update_is_nan") | (is_infinite("grad_norm") & ~_skipped()))
    if len(nan):
        source, line = nan.select("source", "line_number").row(0)
        # A loss that is no longer printed is null.
        of_gradient = nan["loss"].is_finite().fill_null(value=False).all()
        what = "gradient norm" if of_gradient else "loss"
        yield warning("not_a_number", n=len(nan), of=len(own), what=what, source=source, line=line)


def describe_zero_losses(steps: pl.DataFrame, how: Computation) -> Iterator[Note]:
    """A warning where losses are exactly 0. In reinforcement learning the loss of a policy often is."""
    own = steps.filter(~pl.col("copied"))
    zero = own.filter(pl.col("loss") == 0)
    if len(zero) and how.shape.mixed_step != ROLLOUTS:
        source, line = zero.select("source", "line_number").row(0)
        yield warning("loss_is_zero", n=len(zero), of=len(own), source=source, line=line)
