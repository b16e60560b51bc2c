"""Charts of a run, as pure functions: frames in, an Altair chart out, nothing read or written.

``steps`` is ``Analysis.steps``, of one run or of several put together; runs differ in colour. Rows that do not count
are hollow marks whose shape shows the reason; rows of other ranks are not drawn. ``x`` is one of AXES. The colours are
those of the config a chart is drawn with: Altair's own, or ``chart.configure(**LIGHT)`` and DARK as in our files.
``name_of`` gives the text of a code, such as that of a reason; without it the code itself is drawn.
"""

from __future__ import annotations

from analysis.charts.along import CHART_NAMES
from analysis.charts.drawn_rows import AXES, Rows, axes_of, chart_rows, evaluation_rows
from analysis.charts.goodput import goodput_chart
from analysis.charts.histogram import time_histogram
from analysis.charts.look import DARK, LIGHT
from analysis.charts.ranks import ranks_chart
from analysis.charts.run import run_charts, same_curves, series_charts, with_data
from analysis.charts.series import (
    grad_norm_chart,
    learning_rate_chart,
    loss_chart,
    loss_scale_chart,
    metric_chart,
    mfu_chart,
    tflops_chart,
    time_chart,
    tokens_chart,
)
from analysis.charts.time_breakdown import time_breakdown_chart

__all__ = [
    "AXES",
    "CHART_NAMES",
    "DARK",
    "LIGHT",
    "Rows",
    "axes_of",
    "chart_rows",
    "evaluation_rows",
    "goodput_chart",
    "grad_norm_chart",
    "learning_rate_chart",
    "loss_chart",
    "loss_scale_chart",
    "metric_chart",
    "mfu_chart",
    "ranks_chart",
    "run_charts",
    "same_curves",
    "series_charts",
    "tflops_chart",
    "time_breakdown_chart",
    "time_chart",
    "time_histogram",
    "tokens_chart",
    "with_data",
]
