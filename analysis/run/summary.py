"""One row per metric over the rows that count.

Times are averaged before dividing: the mean of a rate is total work over total time, because the mean of rates is
biased towards fast steps.
"""

from __future__ import annotations

import polars as pl

from analysis.metrics import OF_ROWS, Metric
from analysis.run.usual import middle
from analysis.tables import SUMMARY_COLUMNS
from logparse.schema import conform

# What the time of a row stands in.
TIME = "step_time_ms"


def summarize(steps: pl.DataFrame) -> pl.DataFrame:
    """Median, mean, 10th and 90th percentile and n of every metric; null where nothing counts."""
    read = dict.fromkeys((TIME, *(str(metric.row_column) for metric in OF_ROWS)))
    counted = steps.select("counted", *read).filter("counted").drop_nulls(TIME)
    rows = [_row(counted, metric) for metric in OF_ROWS]
    frame = pl.DataFrame(rows, schema={c.name: c.dtype for c in SUMMARY_COLUMNS if c.name != "run"})
    return conform(frame.with_columns(run=pl.lit(steps["run"].first())), SUMMARY_COLUMNS)


def _row(counted: pl.DataFrame, metric: Metric) -> dict[str, object]:
    column = str(metric.row_column)
    x, time = counted[column], counted[TIME]
    return {
        "metric": metric.column,
        "unit": metric.unit,
        "median": counted.select(middle(column, "higher" if column == TIME else "lower")).item(),
        "mean": x.mean() if column == TIME else _mean_rate(x, time.filter(x.is_not_null())),
        "p10": x.quantile(0.1, "linear"),
        "p90": x.quantile(0.9, "linear"),
        "n": x.count(),
    }


def _mean_rate(rate: pl.Series, time: pl.Series) -> float | None:
    """Work is rate times time, so this is total work over total time."""
    return float((rate.drop_nulls() * time).sum()) / float(time.sum()) if len(time) else None
