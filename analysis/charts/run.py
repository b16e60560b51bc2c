"""All charts of a run, or of several that are compared, that have data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from analysis.charts.along import ALONG
from analysis.charts.drawn_rows import NameOf, Rows, chart_rows
from analysis.charts.goodput import goodput_chart
from analysis.charts.histogram import time_histogram
from analysis.charts.plot import WIDTH
from analysis.charts.ranks import ranks_chart
from analysis.charts.series import (
    grad_norm_chart,
    learning_rate_chart,
    loss_chart,
    loss_scale_chart,
    metric_chart,
    mfu_chart,
    tflops_chart,
    time_chart,
)
from analysis.charts.time_breakdown import time_breakdown_chart
from analysis.metrics import DRAWN

if TYPE_CHECKING:
    import altair as alt

# A bucket for each pixel of a picture, which cannot be zoomed as a page can: more make its line a second band, and
# drawing them takes twice as long.
MOST_DRAWN = 2 * WIDTH
# Two curves are the same if their ratio differs by no more than this share.
SAME_RATIO = 1e-6


def run_charts(
    steps: pl.DataFrame,
    time_breakdown: pl.DataFrame | None = None,
    evaluations: pl.DataFrame | None = None,
    peaks: Sequence[float] = (),
    formula: str | None = None,
    reasons: NameOf = str,
    parts: NameOf = str,
    ranks: pl.DataFrame | None = None,
    goodput: pl.DataFrame | None = None,
) -> dict[str, alt.LayerChart]:
    """Every chart that has data, by file name, each with its data in it.

    ``reasons`` and ``parts`` say what the codes of ``excluded_reason`` and of the parts of the time are called.
    """
    charts = series_charts(steps, evaluations, peaks, formula, rows=Rows(chart_rows(steps, reasons, MOST_DRAWN)))
    there = with_data(steps, time_breakdown, ranks, goodput)
    if "time_histogram" in there:
        charts["time_histogram"] = time_histogram(steps)
    if time_breakdown is not None and "time_breakdown" in there:
        charts["time_breakdown"] = time_breakdown_chart(time_breakdown, parts)
    if goodput is not None and "goodput" in there:
        charts["goodput"] = goodput_chart(goodput)
    if ranks is not None and "ranks" in there:
        charts["ranks"] = ranks_chart(steps, ranks)
    return charts


def with_data(
    steps: pl.DataFrame,
    time_breakdown: pl.DataFrame | None = None,
    ranks: pl.DataFrame | None = None,
    goodput: pl.DataFrame | None = None,
) -> list[str]:
    """The names of the charts that ``run_charts`` draws."""
    along = [name for name, chart in ALONG.items() if steps[chart.column].is_finite().any()]
    # A setting that never changes is not drawn.
    constant = [name for name in ("loss_scale", "learning_rate") if steps[name].drop_nulls().n_unique() < 2]
    others = {
        "time_histogram": (steps["counted"] & steps["step_time_ms"].is_finite()).any(),
        "time_breakdown": time_breakdown is not None and (time_breakdown["share"] > 0).any(),
        "goodput": goodput is not None and not goodput.is_empty(),
        "ranks": ranks is not None and not ranks.is_empty(),
    }
    return [*(name for name in along if name not in constant), *(name for name, there in others.items() if there)]


def same_curves(steps: pl.DataFrame) -> list[str]:
    """The charts of throughput that show the curve of the first one in another unit.

    They differ only where batch or length varies, or several runs with different models or devices are drawn.
    """
    drawn = [metric.column for metric in DRAWN if steps[metric.column].is_finite().any()]
    if not drawn:
        return []
    first, *others = drawn
    ratios = steps.select((pl.col(other) / pl.col(first)).alias(other) for other in others)
    return [name for name in others if _constant(ratios[name], steps[first], steps[name])]


def _constant(ratio: pl.Series, one: pl.Series, other: pl.Series) -> bool:
    """Whether ``ratio`` is the same in all rows, and both are known in the same rows."""
    finite = ratio.filter(ratio.is_finite())
    if not len(finite) or bool((one.is_finite().fill_null(False) != other.is_finite().fill_null(False)).any()):
        return False
    low, high = float(finite.min()), float(finite.max())  # type: ignore[arg-type]
    return high - low <= SAME_RATIO * abs(high)


def series_charts(
    steps: pl.DataFrame,
    evaluations: pl.DataFrame | None = None,
    peaks: Sequence[float] = (),
    formula: str | None = None,
    x: str = "step",
    rows: Rows | None = None,
) -> dict[str, alt.LayerChart]:
    """The charts along the run that have data."""
    draw: dict[str, Callable[[], alt.LayerChart]] = {
        "loss": lambda: loss_chart(steps, evaluations, x, rows),
        "learning_rate": lambda: learning_rate_chart(steps, x, rows),
        "time_per_iteration": lambda: time_chart(steps, x, rows),
        **{metric.column: partial(metric_chart, metric, steps, x, rows) for metric in DRAWN},
        "tflops_per_second_per_device": lambda: tflops_chart(steps, peaks, formula, x, rows),
        "mfu": lambda: mfu_chart(steps, x, rows),
        "grad_norm": lambda: grad_norm_chart(steps, x, rows),
        "loss_scale": lambda: loss_scale_chart(steps, x, rows),
    }
    there = with_data(steps)
    return {name: make() for name, make in draw.items() if name in there}
