"""Forms in which a field of a template is shown where a number format does not do. All take a value, all give text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from logparse.language import tr

DAY, HOUR = 86_400, 3_600
# Names that a sentence lists.
MOST_NAMES = 8


def _first(count: int) -> Callable[[Sequence[Any]], str]:
    """The first ``count`` of a list, with a sign that there are more."""
    return lambda values: ", ".join(map(str, values[:count])) + (" ..." if len(values) > count else "")


def some(names: Sequence[str]) -> str:
    """The first of ``names``, and how many more there are."""
    told = tr(", ").join(names[:MOST_NAMES])
    return tr("{names} and {n} more", names=told, n=len(names) - MOST_NAMES) if len(names) > MOST_NAMES else told


def span(seconds: float) -> str:
    """A time in the unit that people would take: days, hours or seconds."""
    if seconds >= DAY:
        return tr("{n} days", n=f"{seconds / DAY:,.1f}")
    return tr("{n} h", n=f"{seconds / HOUR:,.1f}") if seconds >= HOUR else tr("{n} s", n=f"{seconds:,.0f}")


def _clock_span(seconds: float) -> str:
    """A difference of clocks, as hours, minutes and seconds."""
    return str(abs(timedelta(seconds=round(seconds))))


FORMS: Mapping[str, Callable[[Any], str]] = {
    "first3": _first(3),
    "first5": _first(5),
    "some": some,
    "span": span,
    "clock": _clock_span,
    "gb": lambda size: f"{size / 1e9:,.2f}",
    "said": lambda text: tr(str(text)),
    "range": lambda ends: f"{ends[0]}" if ends[0] == ends[-1] else tr("{low} to {high}", low=ends[0], high=ends[-1]),
}
