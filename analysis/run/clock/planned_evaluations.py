"""Evaluations that no line prints: the interval of the settings, where steps take longer after each of its multiples.

Another rank prints their results. Comes in: rows that ``restarts`` has traced. Goes out: the pauses with these steps.
"""

from __future__ import annotations

import polars as pl

from analysis.run.clock.interruptions import Pauses, count_between
from analysis.run.rows.exclusion_reasons import ROW_MS
from analysis.run.rows.frame_filters import only
from analysis.run.rows.restarts import OWN
from logparse.light_dataclass import replace

# Nearly all evaluations take longer than nearly all other lines do, and longer than this share of a step.
NEARLY_ALL, LONGER, FEWEST, AROUND = 0.8, 0.25, 2, 11


def with_planned_evaluations(pauses: Pauses, steps: pl.DataFrame, every: int | None) -> Pauses:
    """``pauses`` with an evaluation ``every`` so many steps, if the log prints none and the times show each."""
    rows = only(steps, OWN & (pl.col("step_time_ms") > 0) & pl.col("iterations").is_not_null())
    if pauses.evaluated or every is None or every < 1 or rows.is_empty():
        return pauses
    last: int = rows["step"].max()  # type: ignore[assignment]
    marks = range(every, last, every)
    begun, step = pl.col("step") - pl.col("iterations"), pl.col("step")
    typical = pl.col("step_time_ms").rolling_median(AROUND, min_samples=1, center=True).over("segment")
    # From line to line, where one follows the other, else the time on the line.
    follows = begun == step.shift(1).over("segment")
    gap = pl.when(follows).then(pl.col("timestamp").diff().dt.total_microseconds() / 1000)
    judged = rows.select(
        longer=pl.max_horizontal(gap, ROW_MS) - typical * pl.col("iterations"),
        evaluated=count_between(marks, begun, step) > 0,
        saved=count_between(pauses.saved, begun, step) > 0,
        typical=typical,
    ).filter(~pl.col("saved"))
    after, others = judged.filter("evaluated")["longer"], judged.filter(~pl.col("evaluated"))["longer"]
    if len(after) < FEWEST or len(others) < len(after):
        return pauses
    shortest, longest = after.quantile(1 - NEARLY_ALL, "lower"), others.quantile(NEARLY_ALL, "higher")
    least: float = LONGER * judged["typical"].median()  # type: ignore[operator, assignment]
    is_shown = (shortest or 0.0) > max(longest or 0.0, least)
    return replace(pauses, evaluated=tuple(marks)) if is_shown else pauses
