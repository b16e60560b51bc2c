"""Numbers as people read them."""

from __future__ import annotations

import math

from analysis.charts.along import Along
from analysis.metrics import IMPOSSIBLE, Metric
from analysis.present.numbers import percent as percentage
from analysis.present.words.forms import span
from logparse.language import tr

NONE = "–"
# Seconds below which a tenth of one is worth saying.
SHORT = 60


def shown(metric: Metric, value: float | None) -> str:
    """``value`` of ``metric`` in its unit and with its decimals; marked where it cannot be."""
    return number(value, metric.digits, metric.scale) + metric.mark(value)


def number(value: float | None, digits: int = 1, scale: float = 1.0) -> str:
    """``value`` times ``scale`` with ``digits`` decimals and thousands apart; a dash where it is unknown."""
    # The sum turns a negative zero into a plain one.
    return NONE if value is None or not math.isfinite(value) else f"{round(value * scale, digits) + 0.0:,.{digits}f}"


def figure(value: float | None, chart: Along) -> str:
    """``value`` of a chart along the run, in its unit and digits."""
    if value is not None and chart.significant is not None:
        return f"{value * chart.scale:.{chart.significant}g}"
    return number(value, chart.digits, chart.scale)


def percent(share: float | None, digits: int = 1) -> str:
    """A part of a whole in percent; marked where it is more than all of it."""
    if share is None or not math.isfinite(share):
        return NONE
    # The sum turns a negative zero into a plain one.
    return percentage(round(share, digits + 2) + 0.0, digits) + (IMPOSSIBLE if share > 1 else "")


def difference(value: float | None, first: float | None) -> str:
    """How far ``value`` lies from that of the first run, in percent; empty where one of them is unknown."""
    if value is None or not first:
        return ""
    return f"{(value / first - 1) * 100:+z.1f} %"


def interval(low: float | None, high: float | None, digits: int = 1, metric: Metric | None = None) -> str:
    """A 95 % interval, in the unit of ``metric``; empty where it is unknown."""
    if low is None or high is None:
        return ""
    scale, mark = (metric.scale, metric.mark) if metric else (1.0, lambda _: "")
    least, most = (number(end, digits, scale) + mark(end) for end in (low, high))
    return tr("95 %: {low} to {high}", low=least, high=most)


def lasted(seconds: float) -> str:
    """A time as people say it; a short one to a tenth of a second."""
    return span(seconds) if abs(seconds) >= SHORT else tr("{n} s", n=number(seconds, 1))


def engineering(value: float) -> str:
    """A large number of operations, such as 4.541 x 10^10."""
    exponent = math.floor(math.log10(abs(value))) if value else 0
    return f"{value / 10**exponent:.4f} × 10{str(exponent).translate(str.maketrans('0123456789-', '⁰¹²³⁴⁵⁶⁷⁸⁹⁻'))}"


# Shares of the device's peak, and of the clock.
OF_PEAK, OF_CLOCK = (0.30, 0.45), (0.80, 0.90)
LIMITS = {"mfu": OF_PEAK, "hfu": OF_PEAK, "goodput": OF_CLOCK}


def level_of(metric: str, share: float | None) -> str:
    """``low``, ``middle`` or ``high``; empty where ``metric`` has no limits or the share is unknown or impossible."""
    if share is None or metric not in LIMITS or share > 1:
        return ""
    low, high = LIMITS[metric]
    return "low" if share < low else "middle" if share < high else "high"
