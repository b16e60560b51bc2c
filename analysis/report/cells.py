"""Numbers as people read them, and tables of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from logparse.language import tr

NONE = "–"


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, and a smaller remark under or behind it. ``mark`` is a class of the style sheet."""

    text: str
    remark: str = ""
    mark: str = ""


@dataclass(frozen=True)
class Table:
    """A table: the first cell of a row is its heading. ``words`` columns hold text, the others numbers."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    words: Sequence[int] = ()


def number(value: float | None, digits: int = 1, scale: float = 1.0) -> str:
    """``value`` times ``scale`` with ``digits`` decimals and thousands apart; a dash where it is unknown."""
    # The sum turns a negative zero into a plain one.
    return NONE if value is None or not math.isfinite(value) else f"{round(value * scale, digits) + 0.0:,.{digits}f}"


def percent(share: float | None, digits: int = 1) -> str:
    """A ratio in percent."""
    found = number(share, digits, 100.0)
    return found if found == NONE else f"{found} %"


def difference(value: float | None, first: float | None) -> str:
    """How far ``value`` lies from that of the first run, in percent; empty where one of them is unknown."""
    if value is None or not first:
        return ""
    return f"{(value / first - 1) * 100:+.1f} %"


def interval(low: float | None, high: float | None, digits: int = 1, scale: float = 1.0) -> str:
    """A 95 % interval; empty where it is unknown."""
    if low is None or high is None:
        return ""
    return tr("95 %: {low} to {high}", low=number(low, digits, scale), high=number(high, digits, scale))


def engineering(value: float) -> str:
    """A large number of operations, such as 4.541 x 10^10."""
    exponent = math.floor(math.log10(abs(value))) if value else 0
    return f"{value / 10**exponent:.4f} × 10{str(exponent).translate(str.maketrans('0123456789-', '⁰¹²³⁴⁵⁶⁷⁸⁹⁻'))}"
