"""What a metric is called, in the language in use."""

from __future__ import annotations

from analysis.metrics import Metric
from logparse.language import tr


def titled(metric: Metric) -> str:
    """A metric with its unit, unless its name holds that."""
    label, unit = tr(metric.label), metric.shown_unit
    return label if unit in metric.label else tr(", ").join((label, unit))


def named(metric: Metric) -> str:
    """A metric at the head of a narrow column."""
    label, unit = tr(metric.label), metric.shown_unit
    return label if unit in metric.label else f"{label} {unit}"
