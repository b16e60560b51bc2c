"""Sizes that follow from printed rates: a line that has the time of a step and a rate holds the work of the step.

Comes in: step rows with a printed time, what is known of the run. Goes out: the number of devices, and the batch, where
the rows agree on a whole number. A mean over other steps than the time's gives none.
"""

from __future__ import annotations

import polars as pl

from logparse.context.derivations import Fact
from logparse.context.run_context import RunContext
from logparse.findings import Origin

# The rules by which a size follows.
BATCH_OF_RATE, DEVICES_OF_RATES = "global_batch_of_rate", "world_size_of_rates"
STEPS = "logged_steps_per_second"
SECONDS = pl.col("elapsed_time_per_iteration_ms") / 1000
TOKENS, TOKENS_EACH = "logged_tokens_per_second", "logged_tokens_per_second_per_device"
SAMPLES, SAMPLES_EACH = "logged_samples_per_second", "logged_samples_per_second_per_device"
# Rows that must agree at least, how far the size may be from a whole number, and how far a row may be from it.
FEWEST_ROWS, WHOLE, ROW, MOST_ROWS_OFF = 3, 5e-4, 0.02, 0.2


def sizes_of_rates(steps: pl.DataFrame, context: RunContext) -> dict[str, Fact]:
    """The unknown ones of batch and number of devices that the rates of ``steps`` give, with their rule as origin."""
    facts: dict[str, Fact] = {}
    known = {name: context.get(name) for name in ("world_size", "global_batch_size", "seq_length")}
    batch = pl.col("global_batch_size").cast(pl.Float64).fill_null(pl.lit(known["global_batch_size"], pl.Float64))
    length = pl.col("seq_length").cast(pl.Float64).fill_null(pl.lit(known["seq_length"], pl.Float64))
    if known["global_batch_size"] is None and steps["global_batch_size"].is_null().all():
        _add(facts, "global_batch_size", BATCH_OF_RATE, steps, [pl.col(SAMPLES) * SECONDS])
    if known["world_size"] is None:
        sizes = [
            pl.col(TOKENS) / pl.col(TOKENS_EACH),
            pl.col(SAMPLES) / pl.col(SAMPLES_EACH),
            batch * length / (SECONDS * pl.col(TOKENS_EACH)),
            # The work of a step over that of a device in its time; both rates are means of the same steps.
            pl.lit(context.get("tokens_per_step"), pl.Float64) * pl.col(STEPS) / pl.col(TOKENS_EACH),
            batch / (SECONDS * pl.col(SAMPLES_EACH)),
        ]
        _add(facts, "world_size", DEVICES_OF_RATES, steps, sizes)
    return facts


def _add(facts: dict[str, Fact], name: str, code: str, steps: pl.DataFrame, sizes: list[pl.Expr]) -> None:
    whole = (_whole(steps.select(size=size)["size"]) for size in sizes)
    value = next((size for size in whole if size), None)
    if value is not None:
        facts[name] = Fact(value, Origin("derived", rule=code))


def _whole(sizes: pl.Series) -> int | None:
    """The whole number that the rows agree on; None where they do not."""
    rows = sizes.filter(sizes.is_finite() & (sizes > 0))
    middle = rows.median()
    if len(rows) < FEWEST_ROWS or not isinstance(middle, float):
        return None
    size = round(middle)
    # A size of hundreds must be nearer to its whole number than half of one.
    if size < 1 or abs(middle - size) > max(min(WHOLE * size, 0.1), 2e-3):
        return None
    off = ((rows / size - 1).abs() > ROW).mean()
    return size if isinstance(off, float) and off <= MOST_ROWS_OFF else None
