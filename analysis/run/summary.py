"""One row per metric over the rows that count.

Times are averaged before dividing: the mean of a rate is total work over total time, because the mean of rates is
biased towards fast steps.
"""

from __future__ import annotations

from typing import Any, cast

import polars as pl

from analysis.metrics import OF_ROWS
from analysis.run.rates.baseline_step_time import middle
from analysis.run.rows.exclusion_reasons import OF_THE_RUN, STALL
from analysis.run.tables import SUMMARY_COLUMNS

# The column with the time of a row.
TIME = "step_time_ms"


def summarize(steps: pl.DataFrame) -> pl.DataFrame:
    """Median, mean, 10th and 90th percentile and n of every metric; null where nothing counts."""
    read = dict.fromkeys(("counted", TIME, *(str(metric.row_column) for metric in OF_ROWS)))
    counted, run = steps[list(read)].filter("counted", pl.col(TIME).is_not_null()), steps["run"].first()
    rows = [
        (run, metric.column, metric.unit, *_statistics(counted[str(metric.row_column)], counted[TIME]))
        for metric in OF_ROWS
    ]
    return pl.DataFrame(rows, {c.name: c.dtype for c in SUMMARY_COLUMNS}, orient="row")


def _statistics(values: pl.Series, time: pl.Series) -> tuple[Any, ...]:
    """Median, mean, 10th and 90th percentile and n."""
    of_time = values.name == TIME
    return (
        middle(values, "higher" if of_time else "lower"),
        values.mean() if of_time else _mean_rate(values, time),
        values.quantile(0.1, "linear"),
        values.quantile(0.9, "linear"),
        values.count(),
    )


def _mean_rate(rate: pl.Series, time: pl.Series) -> float | None:
    """Work is rate times time, so this is total work over total time; None where no rate is known."""
    if not rate.count():
        return None
    if rate.has_nulls():
        rate, time = rate.drop_nulls(), time.filter(rate.is_not_null())
    work, all_time = (cast("float", values.sum()) for values in (rate * time, time))
    return work / all_time


def largest_memory(steps: pl.DataFrame, memory: pl.DataFrame) -> dict[str, Any]:
    """The largest figures of the step lines and of the lines about memory, in bytes, by the columns of the steps."""
    measured = memory.filter(memory["kind"] == "measured")
    both = {
        "max_memory_allocated_bytes": "max_allocated_bytes",
        "max_memory_reserved_bytes": "max_reserved_bytes",
    }
    return {name: pl.concat([steps[name], measured[other].alias(name)]).max() for name, other in both.items()}


def last_finite(values: pl.Series) -> float | None:
    """The last finite of ``values``; None if there is none."""
    numbers = values.drop_nulls()
    finite = numbers.filter(numbers.is_finite())
    return float(finite[-1]) if len(finite) else None


def share_of_steps(steps: pl.DataFrame, column: str) -> float | None:
    """Steps counted in ``column``, as a share of the steps of the rows that print it; None if none does."""
    printed = steps.filter(OF_THE_RUN).drop_nulls(column)
    iterations = int(printed["iterations"].fill_null(1).sum())
    return int(printed[column].sum()) / iterations if iterations else None


def quantile_of_steps(steps: pl.DataFrame, quantile: float) -> float | None:
    """A quantile of the step times of the rows that count and of stalls, in ms; None where there are none.

    It is the time of a step, the lower of two, so that one pause of a short run is not half of a tail.
    """
    timed = steps.filter(pl.col("counted") | pl.col("excluded_reason").eq_missing(STALL))
    return timed[TIME].quantile(quantile, "lower")


def finite_median(values: pl.Series) -> float | None:
    """The median of the finite ``values``; None if there is none."""
    median = values.filter(values.is_finite()).median()
    return float(median) if isinstance(median, float) else None
