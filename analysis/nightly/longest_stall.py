"""The metrics that include stalls, without the longest stall of each run.

Comes in: runs of a history. Goes out: numbers, one per run. A single pause of one step moves the mean of a short run by
several percent and is no change of the job. Many slow steps remain when the longest is left out. A single slow step of
each run is a change if it is the same one: a pause falls on any step.
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
_STEP = pl.col("longest_stall_step")
_REPEATED = (_STEP.shift(1) == _STEP) | (_STEP.shift(-1) == _STEP)
_CLOCK_MS = pl.col("wall_clock_step_time_ms") * pl.col("wall_clock_steps")
_WITHOUT = {
    "with_stalls_step_time_ms": pl.col("with_stalls_step_time_ms") - _STALL / pl.col("with_stalls_steps"),
    "goodput": pl.col("goodput") * _CLOCK_MS / (_CLOCK_MS - _STALL),
}


def without_longest_stall(runs: pl.DataFrame, metric: Metric, keep_repeated: bool = False) -> list[float] | None:
    """``metric`` of each of ``runs``; None for one without stalls, or if no run has its longest stall recorded.

    With ``keep_repeated`` a stall stays that is at the same step as that of the run before or after: pauses are not.
    """
    expression = _WITHOUT.get(metric.column)
    if expression is None or runs["longest_stall_ms"].is_null().all():
        return None
    if keep_repeated:
        runs = runs.with_columns(longest_stall_ms=pl.when(_REPEATED).then(0.0).otherwise(_STALL))
    value = pl.when(expression > 0).then(expression)
    return values_of(runs.with_columns(pl.coalesce(value, metric.column).alias(metric.column)), metric)


def repeated_by_chance(runs: pl.DataFrame) -> float:
    """The chance of a run to have a pause at a given step, such that its square is that of two runs in a row."""
    paused = (_STEP.is_not_null() & ~_REPEATED.fill_null(False)).mean()
    return float(runs.select(paused / pl.col("step_lines").median().sqrt()).item() or 0.0)
