"""The batch of a row against the samples consumed since the row before.

Comes in: rows that ``restarts`` has traced and ``fill_batch`` has filled. Goes out: the mean batch of each row.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from logparse.findings import Note, warning


def mean_batch() -> pl.Expr:
    """Samples per step of the row. While the batch ramps up, a line prints the batch of its last step only.

    A mean that does not lie between the batches of two rows is none of theirs: the samples consumed are wrong.
    """
    batch, before, mean = pl.col("global_batch_size"), _before("global_batch_size"), _consumed() / pl.col("iterations")
    ramps = (batch != before) & mean.is_between(pl.min_horizontal(batch, before), pl.max_horizontal(batch, before))
    # The first row of a training covers all samples consumed, of batches below its own while the batch ramps up; where
    # one batch is missing, the count is printed before the step.
    consumed, iterations = pl.col("consumed_samples"), pl.col("iterations")
    whole = (iterations == pl.col("step")) & (consumed != batch * (iterations - 1))
    first = before.is_null() & whole & (consumed > 0) & (consumed < batch * iterations)
    return pl.when(ramps).then(mean).when(first).then(consumed / iterations).otherwise(batch)


def batch_changes() -> pl.Expr:
    """The batch was another one in a part of the row's steps, so that its time is not that of the printed one."""
    return (mean_batch() != pl.col("global_batch_size")).fill_null(False)


def _consumed() -> pl.Expr:
    """Samples consumed since the row before of the same start."""
    return pl.col("consumed_samples") - _before("consumed_samples")


def _before(name: str) -> pl.Expr:
    """The value on the row before of the same start; copies and damaged rows have no steps and are skipped."""
    own = pl.col("iterations").is_not_null()
    return pl.when(own).then(name).forward_fill().shift(1).over("segment")


def describe_batches(steps: pl.DataFrame) -> Iterator[Note]:
    """A note where the samples consumed contradict the batch on most rows, outside a ramp."""
    steady = steps.select(
        "source",
        "line_number",
        batch="global_batch_size",
        mean=pl.when(pl.col("global_batch_size") == _before("global_batch_size")).then(
            _consumed() / pl.col("iterations")
        ),
    ).drop_nulls()
    wrong = steady.filter(pl.col("mean") != pl.col("batch"))
    if len(wrong) > len(steady) / 2:
        source, line, batch, mean = wrong.row(0)
        yield warning("consumed_samples_differ", mean=mean, batch=batch, source=source, line=line, more=len(wrong) - 1)
