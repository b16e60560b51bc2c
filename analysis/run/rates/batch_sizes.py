"""The batch of a row against the samples consumed since the row before; and the tokens that the log counts.

Comes in: rows that ``restarts`` has traced and ``fill_batch`` has filled. Goes out: the mean batch of each row.
Counted tokens beat samples times sequence length, which counts padding that no batch has.
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


def with_mean_batch(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with the column ``mean_batch``, which they may have already."""
    return rows if "mean_batch" in rows.columns else rows.with_columns(mean_batch=mean_batch())


def batch_changes() -> pl.Expr:
    """The batch was another one in a part of the row's steps, so that its time is not that of the printed one."""
    return (pl.col("mean_batch") != pl.col("global_batch_size")).fill_null(False)


def _consumed() -> pl.Expr:
    """Samples consumed since the row before of the same start."""
    return pl.col("consumed_samples") - _before("consumed_samples")


def _before(name: str) -> pl.Expr:
    """The value on the row before of the same start; copies and damaged rows have no steps and are skipped."""
    has_steps = pl.col("iterations").is_not_null()
    return pl.when(has_steps).then(name).forward_fill().shift(1).over("segment")


def describe_batches(steps: pl.DataFrame) -> Iterator[Note]:
    """A note where the samples consumed contradict the batch on most rows, outside a ramp, or an epoch has fewer."""
    beyond = steps["epoch_samples"] < steps["global_batch_size"]
    if beyond.any():
        samples, batch = (steps[name].filter(beyond)[0] for name in ("epoch_samples", "global_batch_size"))
        yield warning("batch_beyond_epoch", samples=samples, batch=batch)
    if not steps["consumed_samples"].count():
        return
    steady = steps.select(
        "source",
        "line_number",
        batch="global_batch_size",
        mean=pl.when(pl.col("global_batch_size") == _before("global_batch_size")).then(
            _consumed() / pl.col("iterations")
        ),
    ).drop_nulls()
    wrong = steady["mean"] != steady["batch"]
    if (n := wrong.sum()) > len(steady) / 2:
        source, line, batch, mean = steady.filter(wrong).row(0)
        yield warning("consumed_samples_differ", mean=mean, batch=batch, source=source, line=line, more=n - 1)


# A count that differs by less from the sequence length is rounded; one of so few digits says nothing of a step.
AGREES, MOST_ROUNDED = 0.01, 1e-3


def tokens_per_sample(steps: pl.DataFrame) -> float | None:
    """Mean tokens of a sample, where the lines count tokens and these are not the sequence length times the samples."""
    if not steps["consumed_tokens"].count():
        return None
    before, last = pl.col("consumed_tokens").shift(1).over("segment"), pl.col("step").shift(1).over("segment")
    rows = (
        steps.filter(pl.col("iterations").is_not_null() & pl.col("consumed_tokens").is_not_null())
        .with_columns(
            # Across missing lines the count is of more steps than the row.
            tokens=pl.when(pl.col("step") - last == pl.col("iterations")).then(pl.col("consumed_tokens") - before),
            samples=pl.col("iterations") * pl.col("global_batch_size"),
        )
        .filter((pl.col("tokens") > 0) & (pl.col("samples") > 0))
    )
    if rows.is_empty() or _is_rounded(rows):
        return None
    tokens, samples = float(rows["tokens"].sum()), float(rows["samples"].sum())
    by_length = float((rows["samples"] * rows["seq_length"]).sum()) if rows["seq_length"].null_count() == 0 else None
    if by_length and abs(tokens / by_length - 1) <= AGREES:
        return None
    return tokens / samples


def _is_rounded(rows: pl.DataFrame) -> bool:
    """Whether the counts have too few digits to give the tokens of a step.

    Counts that grow by the same number each step are exact to one unit of the last digit over all rows: a rounded one
    of another size would have drifted. So are counts of which one has a last digit.
    """
    tokens, of_a_step = rows["tokens"], rows.select(pl.col("tokens") / pl.col("iterations")).to_series()
    resolution = _resolution(rows)
    if of_a_step.n_unique() == 1 and resolution <= AGREES * float(tokens.sum()):
        return False
    return resolution > max(1, MOST_ROUNDED * float(tokens.median() or 0.0))  # type: ignore[arg-type]


def _resolution(rows: pl.DataFrame) -> int:
    """The largest power of ten that divides every count: counts such as 1.258B are rounded."""
    power = 1
    while rows.select((pl.col("consumed_tokens") % (10 * power) == 0).all()).item() and power < 10**12:
        power *= 10
    return power


def counts_beyond_length(printed: pl.DataFrame, counted: float | None) -> bool:
    """Whether a sample has more tokens by the count than any line prints as its length: a curriculum is not counted."""
    lengths = printed["seq_length"]
    if counted is None or lengths.is_empty() or lengths.null_count():
        return False
    return counted > (1 + AGREES) * float(lengths.max())  # type: ignore[arg-type]


def describe_counted_tokens(steps: pl.DataFrame, counted: float | None, beyond: bool = False) -> Iterator[Note]:
    """A warning where the log counts other tokens than the sequence length gives.

    ``beyond``: more than the lines print as the length, so that the count is not used.
    """
    length = steps["seq_length"].last(ignore_nulls=True)
    if counted is not None and length is not None:
        yield warning("count_beyond_length" if beyond else "tokens_counted", counted=counted, length=length)
