"""What a metric is called, in the language in use, and what its work counts in a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.metrics import Metric
from analysis.run.result import Analysis
from logparse.language import tr


def titled(metric: Metric) -> str:
    """A metric with its unit, unless its name holds that."""
    label, unit = tr(metric.label), metric.shown_unit
    return label if unit in metric.label else tr(", ").join((label, unit))


def named(metric: Metric) -> str:
    """A metric at the head of a narrow column."""
    label, unit = tr(metric.label), metric.shown_unit
    return label if unit in metric.label else f"{label} {unit}"


def work_counted(metric: Metric, analysis: Analysis) -> str:
    """Of TFLOP/s whether its work includes what is recomputed; else nothing."""
    again = analysis.computation.quoted.layers > 0
    return tr("with recompute") if metric.column == "tflops_per_second_per_device" and again else ""


def counting(metric: Metric, analysis: Analysis) -> str:
    """A metric with its unit and with what its work counts."""
    counts = work_counted(metric, analysis)
    return tr("{metric} ({work})", metric=titled(metric), work=counts) if counts else titled(metric)


def headed(metric: Metric, analysis: Analysis) -> str:
    """A metric at the head of a column, over what its work counts."""
    counts = work_counted(metric, analysis)
    return "\n".join((named(metric), *counts.split()))


def cell_of(metric: Metric, rate: Mapping[str, Any], analysis: Analysis) -> str:
    """The value of ``metric`` in a row of the rates; both ends where HFU is a range."""
    value, mfu = rate[metric.column], rate["mfu"]
    times = analysis.computation.executed_times() if metric.column == "hfu" else None
    if value is not None or times is None or mfu is None:
        return metric.text(value)
    return tr("{low} to {high}", low=metric.text(mfu * times[0]), high=metric.text(mfu * times[1]))
