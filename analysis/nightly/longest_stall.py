"""The metrics that include stalls, without the longest stall of each run.

Comes in: runs of a history. Goes out: numbers, one per run. A single pause of one step moves the mean of a short run by
several percent and is no change of the job. Many slow steps remain when the longest is left out.
"""

from __future__ import annotations

import polars as pl

from analysis.compare.comparison import values_of
from analysis.metrics import Metric

# Share of runs that have a pause, as long as the earlier runs of a job show no higher one.
PAUSED_RUNS = 0.2
# Without their longest stall some runs still have a pause: only what chance explains this rarely is a change.
REST_CHANCE = 1e-5
_STALL = pl.col("longest_stall_ms")
_CLOCK_MS = pl.col("wall_clock_step_time_ms") * pl.col("wall_clock_steps")
_WITHOUT = {
    "with_stalls_step_time_ms": pl.col("with_stalls_step_time_ms") - _STALL / pl.col("with_stalls_steps"),
    "goodput": pl.col("goodput") * _CLOCK_MS / (_CLOCK_MS - _STALL),
}


def without_longest_stall(runs: pl.DataFrame, metric: Metric) -> list[float] | None:
    """``metric`` of each of ``runs``; None for one without stalls, or if no run has its longest stall recorded."""
    expression = _WITHOUT.get(metric.column)
    if expression is None or runs["longest_stall_ms"].is_null().all():
        return None
    value = pl.when(expression > 0).then(expression)
    return values_of(runs.with_columns(pl.coalesce(value, metric.column).alias(metric.column)), metric)
