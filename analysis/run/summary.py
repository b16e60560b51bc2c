"""One row per metric over the rows that count.

Times are averaged before dividing: the mean of a rate is total work over total time, because the mean of rates is
biased towards fast steps.
"""

from __future__ import annotations

import polars as pl

from logparse.schema import SUMMARY_COLUMNS, UNITS, conform

TIME = "elapsed_time_per_iteration_ms"
RATES = (
    "samples_per_second_per_device",
    "tokens_per_second_per_device",
    "tflops_per_second_per_device",
    "model_tflops_per_second_per_device",
    "hardware_tflops_per_second_per_device",
    "mfu",
    "hfu",
)
METRICS = (TIME, *RATES)


def summarize(steps: pl.DataFrame) -> pl.DataFrame:
    """Median, mean, 10th and 90th percentile and n of every metric; null where nothing counts."""
    counted = steps.filter("counted")
    rows = [_row(counted, name) for name in METRICS]
    frame = pl.DataFrame(rows, schema={c.name: c.dtype for c in SUMMARY_COLUMNS if c.name != "run"})
    return conform(frame.with_columns(run=pl.lit(steps["run"].first())), SUMMARY_COLUMNS)


def _row(counted: pl.DataFrame, name: str) -> dict[str, object]:
    column = "step_time_ms" if name == TIME else name
    values = counted.select("step_time_ms", column) if column != "step_time_ms" else counted.select("step_time_ms")
    values = values.drop_nulls()
    x = values[column]
    return {
        "metric": name,
        "unit": UNITS[name],
        "median": x.median(),
        "mean": x.mean() if name == TIME else _mean_rate(values, column),
        "p10": x.quantile(0.1, "linear"),
        "p90": x.quantile(0.9, "linear"),
        "n": len(x),
    }


def _mean_rate(values: pl.DataFrame, rate: str) -> float | None:
    """Work is rate times time, so this is total work over total time."""
    return (
        values.select((pl.col(rate) * pl.col("step_time_ms")).sum() / pl.col("step_time_ms").sum()).item()
        if len(values)
        else None
    )
