"""Sizes that follow from printed rates: a line that has the time of a step and a rate holds the work of the step.

Comes in: step rows with a printed time, what is known of the run, settings. Goes out: the number of devices, and the
batch, where the rows agree on a whole number. A mean over other steps than the time's gives none. The rates of a whole
run, and the samples consumed, give the batch too.
"""

from __future__ import annotations

from math import ceil
from typing import Any

import polars as pl
import regex

from logparse.context.relations import Fact
from logparse.context.run_context import RunContext
from logparse.context.step_times import resolution
from logparse.findings import Origin

# The rules by which a size follows.
BATCH_OF_RATE, DEVICES_OF_RATES = "global_batch_of_rate", "world_size_of_rates"
BATCH_OF_RUN, BATCH_OF_CONSUMED = "global_batch_of_rates_of_run", "global_batch_of_consumed_samples"
STEPS = "logged_steps_per_second"
# The kind of settings that are rates of a whole run; their names are columns of steps.
SUMMARY = "summary"
SECONDS = pl.col("elapsed_time_per_iteration_ms") / 1000
TOKENS, TOKENS_EACH = "logged_tokens_per_second", "logged_tokens_per_second_per_device"
SAMPLES, SAMPLES_EACH = "logged_samples_per_second", "logged_samples_per_second_per_device"
# Rows that must agree at least, how far the size may be from a whole number, and how far a row may be from it.
FEWEST_ROWS, WHOLE, ROW, MOST_ROWS_OFF = 3, 5e-4, 0.02, 0.2
# Of two whole numbers that are nearer to each other than this rounding cannot choose one.
ONLY_ONE = 0.5
# The rates of a whole run count the samples that there are: the last batch of each epoch can be smaller. With so many
# times more steps in an epoch than samples in a batch, only the batch itself is whole within such a rounding.
STEPS_OF_EPOCH, MOST_ROUNDING = 2, 0.1
NO_SETTINGS = pl.DataFrame(
    schema=dict.fromkeys(("source", "kind", "name", "value"), pl.String) | {"line_number": pl.Int64}
)


def sizes_of_rates(steps: pl.DataFrame, context: RunContext, settings: pl.DataFrame = NO_SETTINGS) -> dict[str, Fact]:
    """The unknown ones of batch and number of devices that the rates of ``steps`` give, with their rule as origin.

    ``settings`` hold the rates of the whole run.
    """
    facts: dict[str, Fact] = {}
    known = {name: context.get(name) for name in ("world_size", "global_batch_size", "seq_length")}
    batch = pl.col("global_batch_size").cast(pl.Float64).fill_null(pl.lit(known["global_batch_size"], pl.Float64))
    length = pl.col("seq_length").cast(pl.Float64).fill_null(pl.lit(known["seq_length"], pl.Float64))
    if known["global_batch_size"] is None and steps["global_batch_size"].is_null().all():
        counted = steps.drop_nulls("consumed_samples").select(pl.col("step", "consumed_samples").diff())
        _add(facts, "global_batch_size", BATCH_OF_CONSUMED, counted, [pl.col("consumed_samples") / pl.col("step")])
        _add(facts, "global_batch_size", BATCH_OF_RATE, steps, [pl.col(SAMPLES) * SECONDS])
        if not facts and (size := _batch_of_run(steps, settings)):
            facts["global_batch_size"] = Fact(size, Origin("derived", rule=BATCH_OF_RUN))
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
        if "world_size" not in facts and (devices := _devices_of_rounded(steps)):
            facts["world_size"] = Fact(devices, Origin("derived", rule=DEVICES_OF_RATES))
    return facts


def _devices_of_rounded(steps: pl.DataFrame) -> int | None:
    """The only number of devices that all lines allow with the rates of all and of one, rounded as they are printed."""
    rows = steps.select(all=TOKENS, one=TOKENS_EACH).drop_nulls().filter((pl.col("all") > 0) & (pl.col("one") > 0))
    if len(rows) < FEWEST_ROWS:
        return None
    of_all, of_one = (_unit(rows[name]) / 2 for name in ("all", "one"))
    low, high = (pl.col("all") - of_all) / (pl.col("one") + of_one), (pl.col("all") + of_all) / (pl.col("one") - of_one)
    least, most, widest = rows.select(low.max(), most=high.min(), widest=(high - low).max()).row(0)
    size = round((least + most) / 2)
    return size if least <= size <= most and widest < ONLY_ONE else None


def _unit(values: pl.Series) -> float:
    """To what numbers are rounded: the largest power of ten that all are multiples of."""
    unit = resolution(values)
    while unit >= 1 and (values % (10 * unit) == 0).all():
        unit *= 10
    return unit


def _batch_of_run(steps: pl.DataFrame, settings: pl.DataFrame) -> int | None:
    """Samples of a step by the two rates that a line prints of the whole run; None where they do not prove them."""
    rates = settings.filter(pl.col("name").is_in([SAMPLES, STEPS]) & (pl.col("kind") == SUMMARY))
    found = set()
    for _, printed in rates.group_by("source", "line_number"):
        values = dict(printed.select("name", "value").iter_rows())
        found.add(_ratio(values[SAMPLES], values[STEPS]) if len(values) == 2 else None)
    size = found.pop() if len(found) == 1 else None
    return size if size and _steps_of_epoch(steps) >= STEPS_OF_EPOCH * size else None


def _ratio(above: str, below: str) -> int | None:
    """The whole number that is the ratio of two printed numbers, as far as their decimals show it."""
    (high, of_high), (low, of_low) = _read(above), _read(below)
    if not (high > 0 and low > 0):
        return None
    ratio, whole = high / low, round(high / low)
    rounding = ratio * (of_high / high + of_low / low)
    return whole if whole and abs(ratio - whole) <= rounding <= MOST_ROUNDING else None


def _read(printed: str) -> tuple[float, float]:
    """A printed number, and half the unit of its last decimal; 0 where it is none."""
    if not regex.fullmatch(r"\d+(?:\.\d+)?", printed):
        return 0.0, 0.0
    return float(printed), 0.5 * 10.0 ** -len(printed.partition(".")[2])


def _steps_of_epoch(steps: pl.DataFrame) -> float:
    """Steps of an epoch; of the training, where no line shows its epochs."""
    most: dict[str, Any] = steps.select(pl.col("step", "train_steps", "epoch", "epochs").max()).row(0, named=True)
    return (most["train_steps"] or most["step"] or 0) / max(1, ceil(most["epochs"] or most["epoch"] or 1))


def _add(facts: dict[str, Fact], name: str, code: str, steps: pl.DataFrame, sizes: list[pl.Expr]) -> None:
    whole = (_whole(steps.select(size=size)["size"]) for size in sizes)
    value = next((size for size in whole if size), None)
    if value is not None and name not in facts:
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
