"""Ends of the y axis: from zero with room for typical values, or fitted to the rows that count."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from analysis.charts.plot import Ends, Rule, Series

# The top of a scale over the typical value, where the first steps and stalls would flatten all other values.
CLIP = 1.5
# Room above and below the rows that count on a scale that fits them: of their span, and of their value at least.
FIT_ROOM, LEAST_ROOM = 0.12, 0.002
# A scale is logarithmic where the greatest value is more than this many times the typical one.
WIDE = 20


def wide(values: pl.Series, times: float = WIDE) -> bool:
    """Whether some value exceeds ``times`` the median, so that a linear scale would flatten all others."""
    known = values.filter(values.is_finite())
    if not len(known) or known.le(0).any():
        return False
    return bool((known > times * pl.Series([known.median()])).any())


def top_of(drawn: pl.DataFrame, series: Series, rules: Sequence[Rule], dashed: str | None) -> float | None:
    """The upper end of the scale: room for the text of the rule and, with ``clip``, only for typical rows.

    None where the data sets the scale.
    """
    if not series.from_zero or series.base:
        return None
    typical = drawn.filter("counted").select(pl.col(series.column).quantile(0.9)).item()
    most = highest(drawn, series.column, f"{series.column}_high", *([dashed] if dashed else []))
    top = min(most, typical * CLIP) if series.clip and typical else most
    return float(1.1 * max(top, *(rule.value for rule in rules), 0.0))


def highest(drawn: pl.DataFrame, *columns: str) -> float:
    """The greatest value of ``columns``; 1 where there is none."""
    greatest: float | None = drawn.select(pl.max_horizontal(columns).max()).item()
    return greatest or 1.0


def fit(drawn: pl.DataFrame, series: Series, top: float) -> Ends | None:
    """Ends of the scale that show the rows that count in full, with some room; None where none counts."""
    low, high = f"{series.column}_low", f"{series.column}_high"
    counted = drawn.filter("counted").select(
        low=pl.min_horizontal(series.column, low).min(), high=pl.max_horizontal(series.column, high).max()
    )
    least, most = counted.row(0)
    if least is None or most is None:
        return None
    most = min(most, top)
    room = max((most - least) * FIT_ROOM, most * LEAST_ROOM)
    return Ends(max(least - room, 0.0), most + room, highest(drawn, series.column, high))
