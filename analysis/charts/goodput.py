"""Goodput over time: since the beginning, and over the last hour."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from analysis.charts.along import TITLES
from analysis.charts.axes import legend_columns
from analysis.charts.drawn_rows import DIGITS
from analysis.charts.plot import HEIGHT, WIDTH
from analysis.charts.unchecked import layered, unchecked
from logparse.language import tr

if TYPE_CHECKING:
    import altair as alt

# More labels of hours would touch each other.
MOST_TICKS = 12


@unchecked
def goodput_chart(curve: pl.DataFrame) -> alt.LayerChart:
    """ETTR of each run in ``curve``: a line since the first stamp, a dashed one over the hour before."""
    import altair as alt

    runs = curve["run"].unique(maintain_order=True).to_list()
    values = curve.with_columns(pl.selectors.float().round_sig_figs(DIGITS)).to_dicts()
    base = alt.Chart().encode(
        x=alt.X("hours:Q", title=tr("wall clock, hours"), axis=alt.Axis(grid=False, tickCount=MOST_TICKS)),
        color=alt.Color("run:N", scale=alt.Scale(domain=runs), legend=_legend(runs)),
    )
    whole = _line(base, "ettr").mark_line(clip=True)
    of_hour = _line(base, "ettr_of_hour").mark_line(clip=True, strokeDash=[5, 3], opacity=0.8)
    subtitle = tr("goodput since the start")
    if (curve["hours"] > 1).any():
        subtitle = tr("goodput since the start; dashed: over the last hour")
    heading = alt.TitleParams(text=tr(TITLES["goodput"]), subtitle=subtitle)
    data = alt.InlineData(values=values)
    return layered(data=data, layer=[of_hour, whole], width=WIDTH, height=HEIGHT, title=heading)


def _legend(runs: list[str]) -> alt.Legend | None:
    import altair as alt

    if len(runs) == 1:
        return None
    return alt.Legend(title=None, orient="top", columns=legend_columns(runs), symbolType="square", symbolOpacity=1)


def _line(base: alt.Chart, column: str) -> alt.Chart:
    import altair as alt

    scale, axis = alt.Scale(domain=[0, 1]), alt.Axis(format="~%", tickCount=5)
    return base.encode(y=alt.Y(f"{column}:Q", title=tr("goodput"), scale=scale, axis=axis))
