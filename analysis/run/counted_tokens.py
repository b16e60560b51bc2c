"""Tokens that the log counts: they beat samples times sequence length, which counts padding that no batch has.

Comes in: traced rows with their mean batch. Goes out: the mean tokens of a sample.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from logparse.findings import Note, warning

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
