"""The picture of a trend: every run a point, bands per release, a rule where it changed. A pure function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from analysis.releases.trend import Trend
from logparse.language import tr

if TYPE_CHECKING:
    import altair as alt

WIDTH, HEIGHT = 720, 300
# More points than this cannot be told apart; of longer series every n-th is drawn.
MOST_POINTS = 2_000
# More groups than this make no legend.
MOST_NAMED = 12


def trend_chart(trend: Trend) -> alt.TopLevelMixin:
    """Runs in their order from left to right."""
    import altair as alt

    layers = [_bands(trend), _medians(trend), _points(trend), *_rules(trend)]
    title = alt.Title(tr(trend.metric.title), subtitle=_subtitle(trend))
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT, title=title)


def _subtitle(trend: Trend) -> str:
    step = _every(trend)
    said = tr("{runs} runs, {changes} changes", runs=len(trend.runs), changes=len(trend.changes))
    return said if step == 1 else tr("{said}; every {n}th run is drawn", said=said, n=step)


def _every(trend: Trend) -> int:
    return -(-len(trend.runs) // MOST_POINTS)


def _data(frame: pl.DataFrame) -> alt.InlineData:
    import altair as alt

    clocks = frame.with_columns(pl.col(pl.Datetime).dt.to_string("iso"))
    return alt.InlineData(values=clocks.to_dicts())


def _x(column: str) -> Any:
    """Runs are counted from 1."""
    import altair as alt

    axis = alt.Axis(grid=False, tickMinStep=1, format=",d")
    return alt.X(f"{column}:Q", title=tr("run"), axis=axis, scale=alt.Scale(nice=False, zero=False))


def _y(column: str, trend: Trend) -> Any:
    import altair as alt

    return alt.Y(f"{column}:Q", title=trend.metric.unit, scale=alt.Scale(zero=False))


def _color(trend: Trend) -> Any:
    import altair as alt

    names = trend.groups["group"].to_list()
    legend = alt.Legend(title=None, orient="top") if len(names) <= MOST_NAMED else None
    return alt.Color("group:N", scale=alt.Scale(domain=names), legend=legend)


def _points(trend: Trend) -> Any:
    import altair as alt

    runs = trend.runs.gather_every(_every(trend)).with_columns(pl.col("at") + 1)
    tooltip = [
        "name:N",
        "group:N",
        "when:N",
        alt.Tooltip("value:Q", title=trend.metric.unit, format=",.4~g"),
        "run_id:N",
    ]
    return (
        alt.Chart(_data(runs))
        .mark_point(filled=True, opacity=0.8, size=30 if len(runs) < 400 else 8)
        .encode(x=_x("at"), y=_y("value", trend), color=_color(trend), tooltip=tooltip)
    )


def _bands(trend: Trend) -> Any:
    import altair as alt

    spread = _data(_edges(trend))
    ends = {"x": _x("left"), "x2": "right:Q", "y": _y("p10", trend), "y2": "p90:Q"}
    return alt.Chart(spread).mark_rect(opacity=0.15).encode(color=_color(trend), **ends)


def _medians(trend: Trend) -> Any:
    import altair as alt

    base = alt.Chart(_data(_edges(trend))).mark_rule(strokeWidth=2)
    return base.encode(x=_x("left"), x2="right:Q", y=_y("median", trend), color=_color(trend))


def _edges(trend: Trend) -> pl.DataFrame:
    return trend.groups.with_columns(left=pl.col("first") + 0.5, right=pl.col("last") + 1.5)


def _rules(trend: Trend) -> list[Any]:
    import altair as alt

    if not trend.changes:
        return []
    values = [{"at": c.at + 0.5, "text": f"{c.change:+.1%}"} for c in trend.changes]
    base = alt.Chart(alt.InlineData(values=values)).encode(x=_x("at"))
    words = base.mark_text(align="center", baseline="bottom").encode(y=alt.value(-3), text="text:N")
    return [base.mark_rule(strokeDash=[6, 4]), words]
