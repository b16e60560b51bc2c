"""Steps of several sizes: batch, sequence length, devices. A step time, a rate and a mean are of one of them.

Comes in: rows with their rates and the devices of each. Goes out: a row for each size, the longest run first, and the
rows that the steady rate is of.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from analysis.run.rows.exclusion_reasons import OF_THE_RUN, ROW_MS, TIMED, WARM_UP
from analysis.run.rows.frame_filters import known
from logparse.findings import Note, info, warning

BATCH, LENGTH, DEVICES = SIZES = ("global_batch_size", "seq_length", "devices")
CODES = {
    BATCH: ("step_time_of_one_batch", "batch"),
    LENGTH: ("step_time_of_one_length", "length"),
    DEVICES: ("step_time_of_some_devices", "devices"),
}
TIME, SAMPLES, TOKENS = "step_time_ms", "samples_per_second_per_device", "tokens_per_second_per_device"
# Sizes differ if at least so many steps have another one than the longest run, with times or rates so far apart.
OF_STEPS, APART = 0.1, 0.1
# A size has so many rows, and the longest run so many of the steps: a batch of so many tokens is another in each row.
ROWS_OF_SIZE, OF_LONGEST = 3, 0.2


def rates_by_size(steps: pl.DataFrame) -> pl.DataFrame:
    """Each size of the counted rows with its steps and the medians of its time and rates, the longest run first.

    Empty where nearly all steps have one size, where all sizes are as fast, and where most rows have one of their own.
    """
    rows = sized_rows(steps)
    varied = _varied(rows)
    figures = [pl.col(TIME, SAMPLES, TOKENS).median(), pl.col("iterations").sum().alias("steps")]
    fixed = pl.col([name for name in SIZES if name not in varied]).first()
    each = (
        rows.filter("counted")
        .group_by(varied or pl.lit(0), maintain_order=True)
        .agg(fixed, *figures, rows=pl.len(), ms=ROW_MS.sum())
    )
    sizes = each.filter(pl.col("rows") >= ROWS_OF_SIZE).sort("ms", descending=True, maintain_order=True)
    others = rows.join(sizes.head(1), on=SIZES, how="anti", nulls_equal=True)
    total, of_others = int(rows["iterations"].sum()), int(others["iterations"].sum())
    is_one = of_others < OF_STEPS * total or total - of_others < OF_LONGEST * total
    if is_one or sizes.is_empty() or not _far_apart(sizes, others):
        sizes = sizes.clear()
    return sizes.select(*SIZES, "steps", TIME, SAMPLES, TOKENS)


def _varied(rows: pl.DataFrame) -> list[str]:
    """The sizes with several values. A size that some lines do not have is no size of the others."""
    return [name for name in SIZES if rows[name].n_unique() > 1 and not rows[name].has_nulls()]


def sized_rows(steps: pl.DataFrame) -> pl.DataFrame:
    """The rows of the run with a time, without warm-up."""
    timed = OF_THE_RUN & TIMED & pl.col("excluded_reason").ne_missing(WARM_UP)
    return steps.filter(timed).drop_nulls([TIME, "iterations"])


def _far_apart(sizes: pl.DataFrame, others: pl.DataFrame) -> bool:
    """Whether the rows of any size, or of all ``others`` than the first, are far from it in time or rate."""
    figures = pl.concat([sizes.select(TIME, SAMPLES), others.select(pl.col(TIME, SAMPLES).median())])
    far = [(pl.col(name) / pl.col(name).first() - 1).abs() > APART for name in (TIME, SAMPLES)]
    return bool(figures.select(pl.any_horizontal(far).any()).item())


def of_longest_run(steps: pl.DataFrame, sizes: pl.DataFrame) -> pl.DataFrame:
    """The rows of the first of ``sizes``; all of them where these do not differ."""
    return steps.join(sizes.head(1), on=SIZES, how="semi", nulls_equal=True) if len(sizes) else steps


def describe_sizes(steps: pl.DataFrame, sizes: pl.DataFrame) -> Iterator[Note]:
    """A warning for each size that differs, with the one that the step time is of; a note on batches as fast."""
    rows = sized_rows(steps)
    for name in _varied(rows) if len(sizes) else []:
        code, field = CODES[name]
        values = rows[name].unique().sort()
        yield warning(code, n=len(values), sizes=[values[0], values[-1]], **{field: sizes[name][0]})
    batches = known(steps.filter("counted")[BATCH]).n_unique()
    if batches > 1 and sizes.is_empty():
        yield info("several_batch_sizes", n=batches)
