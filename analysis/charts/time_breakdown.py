"""Where the time went, as one stacked bar for each run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from analysis.charts.along import TITLES
from analysis.charts.axes import legend_columns
from analysis.charts.drawn_rows import NameOf
from analysis.charts.look import PARTS
from analysis.charts.unchecked import layered, unchecked
from analysis.run.clock.pause_times import BETWEEN
from analysis.run.useful.time_breakdown import USEFUL
from logparse.language import tr

if TYPE_CHECKING:
    import altair as alt

WIDTH, BAR = 720, 44


def parts_in_order(time_breakdown: pl.DataFrame) -> list[str]:
    """Useful work first, then the rest, the most costly over all runs first."""
    total = time_breakdown.group_by("part", maintain_order=True).agg(pl.col("seconds").sum())
    not_useful = total.filter(pl.col("part") != USEFUL).sort("seconds", descending=True, maintain_order=True)
    return [*([USEFUL] if len(not_useful) < len(total) else []), *not_useful["part"]]


def by_cause(time_breakdown: pl.DataFrame) -> pl.DataFrame:
    """The time breakdown with one part for each cause, whether its time lay in the lines or between them."""
    cause = pl.col("part").str.strip_suffix(BETWEEN)
    return time_breakdown.group_by("run", cause, maintain_order=True).agg(pl.col("seconds", "share").sum())


def color_of(part: str) -> str:
    """The colour of a part by its code."""
    return PARTS.get(part, PARTS["not_explained"])


@unchecked
def time_breakdown_chart(time_breakdown: pl.DataFrame, name_of: NameOf = str) -> alt.LayerChart:
    """Shares of the clock; parts below zero, such as stamps that overlap, cannot be drawn and are left out.

    ``name_of`` says what the code of a part is called.
    """
    import altair as alt

    time_breakdown = by_cause(time_breakdown)
    order = parts_in_order(time_breakdown)
    ranked = {part: rank for rank, part in enumerate(order)}
    positive = time_breakdown.filter(pl.col("share") > 0).with_columns(
        rank=pl.col("part").replace_strict(ranked, return_dtype=pl.Int64),
        color=pl.col("part").map_elements(color_of, pl.String),
        part=pl.col("part").replace({code: name_of(code) for code in order}),
    )
    runs = time_breakdown["run"].unique(maintain_order=True).to_list()
    drawn = positive.sort("rank").with_columns(end=pl.col("share").cum_sum().over("run"))
    values = drawn.with_columns(begin=pl.col("end") - pl.col("share")).to_dicts()
    first_rows = drawn.unique("part", keep="first", maintain_order=True)
    parts, colors = first_rows["part"].to_list(), first_rows["color"].to_list()
    base = alt.Chart().encode(
        y=alt.Y("run:N", title=None, sort=runs, axis=alt.Axis(labels=len(runs) > 1, ticks=False, domain=False)),
    )
    legend = alt.Legend(title=None, orient="bottom", columns=legend_columns(parts), symbolType="square")
    bars = base.mark_bar(height=BAR - 12, stroke="white", strokeWidth=1).encode(
        x=alt.X("begin:Q", title=None, scale=alt.Scale(nice=False), axis=alt.Axis(format=".0%", tickCount=5)),
        x2=alt.X2("end"),
        color=alt.Color("part:O", sort=parts, scale=alt.Scale(domain=parts, range=colors), legend=legend),
        tooltip=[
            *([alt.Tooltip("run:N", title=tr("run"))] if len(runs) > 1 else []),
            alt.Tooltip("part:N", title=tr("part")),
            alt.Tooltip("share:Q", title=tr("share"), format=".2~%"),
            alt.Tooltip("seconds:Q", title=tr("seconds"), format=",.1f"),
        ],
    )
    heading = alt.TitleParams(text=tr(TITLES["time_breakdown"]))
    data = alt.InlineData(values=values)
    return layered(data=data, layer=[bars], width=WIDTH, height=BAR * len(runs), title=heading)
