"""What the log itself prints of rates: the framework's own figures, never mixed with ours.

Comes in: rows marked by ``row_selection``, and settings. Goes out: a median for each printed rate, over the rows that
count; over all rows where none counts. Where no row has it, the rate that the log prints of the whole run.
"""

from __future__ import annotations

import math
import statistics

import polars as pl

from analysis.run.frame_filters import known
from logparse.context.relations import SUMMARY
from logparse.light_dataclass import dataclass
from logparse.schema import UNITS

PREFIX = "logged_"
COUNTED, ALL, WHOLE = "counted rows", "all rows", "whole run"
# Rates spread if 80 % of the lines are further apart than this, of at least so many.
APART, LINES = 1.5, 10


@dataclass(frozen=True)
class LoggedRate:
    """The ``median`` of a rate over ``n`` rows, as the log prints it; ``covers`` says which rows these are."""

    unit: str
    median: float
    n: int
    covers: str


def printed_rates(steps: pl.DataFrame, settings: pl.DataFrame | None = None) -> dict[str, LoggedRate]:
    """Each rate that rows print, by the name of ours: ``tokens_per_second_per_device``, ``mfu`` and so on."""
    printed = {}
    for column in (name for name in steps.columns if name.startswith(PREFIX)):
        values, covers = _values(steps, column)
        if len(values):
            name = column.removeprefix(PREFIX)
            printed[name] = LoggedRate(UNITS[column], _median(values), len(values), covers)
    whole = _of_whole_run(settings) if settings is not None else {}
    # A format can give every row the rate of the whole run, as the only one from which its time follows.
    return printed | {
        name: rate for name, rate in whole.items() if name not in printed or printed[name].median == rate.median
    }


def _values(steps: pl.DataFrame, column: str) -> tuple[pl.Series, str]:
    """The values of the counted rows, or of all where none of these has one; and which rows that are."""
    values = steps[column]
    if not values.count():
        return values.clear(), ALL
    counted = known(values.filter(steps["counted"]))
    return (counted, COUNTED) if len(counted) else (known(values), ALL)


def spread_of(name: str, steps: pl.DataFrame) -> tuple[float, float] | None:
    """Between what 80 % of the lines print the rate ``name``; None where that is close together or lines are few."""
    values, _ = _values(steps, PREFIX + name)
    low, high = values.quantile(0.1, "nearest"), values.quantile(0.9, "nearest")
    return (low, high) if len(values) >= LINES and low and high and high > APART * low else None


def _of_whole_run(settings: pl.DataFrame) -> dict[str, LoggedRate]:
    """The rates of a summary, the last one of each where a log has several; 0 is a rate that was not counted."""
    if not (settings["kind"] == SUMMARY).any():
        return {}
    summary = settings.filter(pl.col("kind") == SUMMARY, pl.col("name").str.starts_with(PREFIX))
    rows = summary.select("name", pl.col("value").cast(pl.Float64, strict=False))
    return {
        name.removeprefix(PREFIX): LoggedRate(UNITS[name], value, 1, WHOLE)
        for name, value in rows.iter_rows()
        if value is not None and math.isfinite(value) and value > 0
    }


def _median(values: pl.Series) -> float:
    """The median. The mean of two in the middle overflows for numbers that no rate has."""
    ordered = values.sort()
    return float(statistics.median(ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]))
