"""Steps whose update is not a number: they trained nothing.

Comes in: step rows. Goes out: ``update_is_nan``, and a warning. Where a gradient norm is NaN the weights become NaN, or
the update is left out.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from logparse.findings import Note, warning

VANISHED = "loss_vanished"


def mark_nan_updates(steps: pl.DataFrame) -> pl.DataFrame:
    """Add ``update_is_nan``: the loss or the gradient norm is NaN, or the loss is no longer printed."""
    vanished = pl.col(VANISHED) if VANISHED in steps.columns else pl.lit(value=False)
    loss, gradient = (pl.col(name).is_nan().fill_null(value=False) for name in ("loss", "grad_norm"))
    # A gradient that overflows in fp16 is NaN or infinite; its update is skipped, and counts as such.
    skipped = (pl.col("skipped_iterations") > 0).fill_null(value=False) | pl.col("overflow").fill_null(value=False)
    return steps.with_columns(update_is_nan=loss | vanished | (gradient & ~skipped))


def describe_nan_updates(steps: pl.DataFrame) -> Iterator[Note]:
    """A warning that says how many rows are NaN, and where the first one is."""
    own = steps.filter(~pl.col("copied"))
    nan = own.filter("update_is_nan")
    if len(nan):
        source, line = nan.select("source", "line_number").row(0)
        yield warning("not_a_number", n=len(nan), of=len(own), source=source, line=line)
