"""How the times of the steps that count are spread."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl

from analysis.charts.along import TITLES
from analysis.charts.drawn_rows import DIGITS
from analysis.charts.plot import HEIGHT
from analysis.charts.unchecked import layered, unchecked
from logparse.language import tr

if TYPE_CHECKING:
    import altair as alt

WIDTH, BINS = 300, 30


@unchecked
def time_histogram(steps: pl.DataFrame) -> alt.LayerChart:
    """Share of the rows that count by step time, with the median of each run."""
    import altair as alt

    counted = steps.filter(pl.col("counted") & pl.col("step_time_ms").is_finite())
    runs = steps["run"].unique(maintain_order=True).to_list()
    color = alt.Color("run:N", scale=alt.Scale(domain=runs), legend=None)
    bars = (
        alt.Chart(alt.InlineData(values=histogram(counted).to_dicts()))
        .mark_bar(opacity=1 if len(runs) == 1 else 0.55, binSpacing=0)
        .encode(
            x=alt.X(
                "from:Q",
                title="ms",
                scale=alt.Scale(zero=False, nice=False, padding=16),
                axis=alt.Axis(format=",.1~f", tickCount=4, grid=False),
            ),
            x2=alt.X2("to"),
            y=alt.Y(
                "share:Q",
                title=tr("share of counted rows"),
                axis=alt.Axis(format=".2~%", tickCount=5),
                stack=None,
            ),
            y2=alt.Y2Datum(0),
            color=color,
            tooltip=[
                *([alt.Tooltip("run:N", title=tr("run"))] if len(runs) > 1 else []),
                alt.Tooltip("from:Q", title=tr("from, ms"), format=",.1~f"),
                alt.Tooltip("to:Q", title=tr("to, ms"), format=",.1~f"),
                alt.Tooltip("rows:Q", title=tr("rows"), format=",d"),
            ],
        )
    )
    medians = counted.group_by("run", maintain_order=True).agg(pl.col("step_time_ms").median()).to_dicts()
    rule = alt.Chart(alt.InlineData(values=medians)).mark_rule(strokeDash=[6, 4], tooltip=False)
    drawn = rule.encode(x=alt.X("step_time_ms:Q"), **({"color": color} if len(runs) > 1 else {}))
    subtitle = tr("counted steps; dashed: median")
    heading = alt.TitleParams(text=tr(TITLES["time_histogram"]), subtitle=subtitle)
    return layered(layer=[bars, drawn], width=WIDTH, height=HEIGHT, title=heading)


def histogram(counted: pl.DataFrame) -> pl.DataFrame:
    """One row per run and bin that holds a row: ``from``, ``to``, ``rows``, ``share`` of the run's rows."""
    begin, width = _bins(counted["step_time_ms"])
    # What lies on an edge but for its rounding is on the edge.
    at = ((pl.col("step_time_ms") - begin) / width + 1e-9).floor()
    bins = counted.group_by("run", at.alias("bin"), maintain_order=True).agg(pl.len().alias("rows"))
    share = pl.col("rows") / pl.col("rows").sum().over("run")
    start = begin + pl.col("bin") * width
    return bins.select("run", start.alias("from"), (start + width).alias("to"), "rows", share.alias("share"))


def _bins(times: pl.Series) -> tuple[float, float]:
    """Where the first bin begins, and the width of each: 1, 2 or 5 of a unit, and no finer than what is printed.

    Bins as fine as that, or of equal times, have the times in their middle.
    """
    distinct = times.unique().sort()
    if distinct.is_empty():
        return 0.0, 1.0
    low, high = distinct[0], distinct[-1]
    apart: Any = distinct.diff().drop_nulls().round_sig_figs(DIGITS).min()
    if apart is None:
        width = _round_width(max(abs(low), 1.0) / 100)
        return low - width / 2, width
    width = max(_round_width((high - low) / BINS), apart)
    return (low - width / 2 if width == apart else math.floor(low / width) * width), width


def _round_width(least: float) -> float:
    """The first of 1, 2, 5, 10 of a power of ten that is not below ``least``."""
    ten = 10.0 ** math.floor(math.log10(least))
    return next(n * ten for n in (1, 2, 5, 10) if n * ten >= least * (1 - 1e-9))
