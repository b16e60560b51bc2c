"""Numbers as a screen shows them: three significant digits. JSON and Parquet have all of them."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context

from analysis.metrics import IMPOSSIBLE
from logparse.language import current_language, msg, tr

DIGITS = 3
# Seconds of a unit of long times, the largest unit first.
LONG_UNITS = ((86_400, msg("{n} d")), (3_600, msg("{n} h")), (60, msg("{n} min")))


def three(value: float) -> str:
    """``value`` in three significant digits, without an exponent: 3,270, 50.7, 0.799."""
    if not value or not math.isfinite(value):
        return f"{value:g}"
    # Half is rounded up, as readers do: 6,785 becomes 6,790.
    rounded = float(Context(prec=DIGITS, rounding=ROUND_HALF_UP).create_decimal(repr(float(value))))
    return f"{rounded:,.{max(0, DIGITS - 1 - math.floor(math.log10(abs(rounded))))}f}"


def percent(share: float, digits: int = 1) -> str:
    """A share as a percentage, with the blank that English puts before the sign. Only no share at all is 0."""
    text = f"{share * 100:,.{digits}f}"
    smaller = bool(share) and text.strip("-0.") == ""
    return (three(share * 100).rstrip("0") if smaller else text) + _percent_sign()


def signed_percent(share: float, digits: int = 2) -> str:
    """A difference as a percentage, with its sign."""
    return f"{share * 100:+,.{digits}f}{_percent_sign()}"


def with_unit(text: str, unit: str) -> str:
    """A number with its unit, which may be the sign of a percentage."""
    return text + _percent_sign() if unit == "%" else f"{text} {unit}".rstrip()


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
    unit, text = _long_unit(seconds)
    return tr(text, n=f"{seconds / unit:,.0f}")


def at_least(seconds: float) -> str:
    """A long time in one unit, rounded down."""
    unit, text = _long_unit(seconds)
    return tr("at least {time}", time=tr(text, n=f"{seconds // unit:,.0f}"))


def about_range(low: float, high: float) -> str:
    """Both ends of a long time, the unit once where both have it: 7 to 9 h; empty where they read the same."""
    least, most = about(low), about(high)
    if least == most:
        return ""
    unit, text = _long_unit(low)
    if (unit, text) == _long_unit(high):
        least = f"{low / unit:,.0f}"
    return tr("{low} to {high}", low=least, high=most)


def _long_unit(seconds: float) -> tuple[int, str]:
    """The largest unit that a long time fills nearly twice, and its text."""
    for unit, text in LONG_UNITS:
        if seconds >= 1.95 * unit or (unit == 60 and seconds >= unit):
            return unit, text
    return 1, msg("{n} s")
