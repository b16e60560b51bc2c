"""Numbers as a screen shows them: three significant digits. JSON and Parquet have all of them."""

from __future__ import annotations

import math

from analysis.metrics import IMPOSSIBLE
from logparse.language import current_language, tr

DIGITS = 3


def three(value: float) -> str:
    """``value`` in three significant digits, without an exponent: 3,270, 50.7, 0.799."""
    if not value or not math.isfinite(value):
        return f"{value:g}"
    rounded = float(f"{value:.{DIGITS}g}")
    return f"{rounded:,.{max(0, DIGITS - 1 - math.floor(math.log10(abs(rounded))))}f}"


def percent(share: float, digits: int = 1) -> str:
    """A share as a percentage, with the blank that English puts before the sign."""
    return f"{share * 100:,.{digits}f}{_percent_sign()}"


def signed_percent(share: float, digits: int = 2) -> str:
    """A difference as a percentage, with its sign."""
    return f"{share * 100:+,.{digits}f}{_percent_sign()}"


def _percent_sign() -> str:
    return " %" if current_language() == "en" else "%"


def percent_of_peak(share: float) -> str:
    """A share that is impossible above 1, marked where it is."""
    return percent(share) + (IMPOSSIBLE if share > 1 else "")


def step_time(ms: float) -> str:
    """The time of a step: milliseconds below a second, else seconds."""
    return tr("{n} ms", n=three(ms)) if ms < 1000 else tr("{n} s", n=three(ms / 1000))


def about(seconds: float) -> str:
    """A long time in one unit: 8 h, 40 min."""
    for unit, text in ((86_400, "{n} d"), (3_600, "{n} h"), (60, "{n} min")):
        if seconds >= 1.95 * unit or (unit == 60 and seconds >= unit):
            return tr(text, n=f"{seconds / unit:,.0f}")
    return tr("{n} s", n=f"{seconds:,.0f}")
