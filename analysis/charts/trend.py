"""The picture of a trend: every run a point, bands per release, a rule where it changed. A pure function."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl

from analysis.charts.axes import WHOLE_TICKS, legend_columns
from analysis.charts.look import PARTS
from analysis.charts.unchecked import layered, unchecked
from analysis.metrics import Metric
from analysis.nightly.trend import Trend
from logparse.language import msg, tr

if TYPE_CHECKING:
    import altair as alt

WIDTH, HEIGHT = 720, 300
# A reader cannot distinguish more points; of longer series every n-th is drawn.
MOST_POINTS = 2_000
# More groups than this make no legend.
MOST_NAMED = 12
# The colours of levels; those of groups without a colour of their own.
SLATE = PARTS["useful"]
FIRST, WORSE, BETTER = msg("first level"), msg("worse than the level before"), msg("better than the level before")
LEVELS = {FIRST: SLATE, WORSE: PARTS["stalls"], BETTER: PARTS["start_up"]}
# Pixels that the size of a change takes; where two changes are closer, only the text next to the chart has them.
WORD = 46


@unchecked
def trend_chart(trend: Trend) -> alt.LayerChart:
    """Runs in their order from left to right."""
    import altair as alt

    layers = [_bands(trend), _medians(trend), _points(trend), *_rules(trend)]
    title = alt.TitleParams(text=tr(trend.metric.label), subtitle=[trend.name] * bool(trend.name) + [_subtitle(trend)])
    return layered(layer=layers, width=WIDTH, height=HEIGHT, title=title)


def _subtitle(trend: Trend) -> str:
    step = _every(trend)
    counts = tr("{runs} runs, {changes} changes", runs=f"{len(trend.runs):,}", changes=len(trend.changes))
    return counts if step == 1 else tr("{said}; every {n}th run is shown", said=counts, n=step)


def _every(trend: Trend) -> int:
    return -(-len(trend.runs) // MOST_POINTS)


def _data(frame: pl.DataFrame, trend: Trend, *columns: str) -> alt.InlineData:
    """Rows with ``columns``, the values of the metric, in the unit in which they are shown."""
    import altair as alt

    scaled = frame.with_columns(pl.col(columns) * trend.metric.scale)
    return alt.InlineData(values=scaled.to_dicts())


def _x(column: str, trend: Trend) -> Any:
    """Runs are counted from 1; the axis shows the day of each, where all have one."""
    import altair as alt

    axis = alt.Axis(grid=False, format=",d", tickCount=alt.ExprRef(WHOLE_TICKS))
    days = trend.runs["when"].dt.to_string("%Y-%m-%d")
    if days.null_count():
        return alt.X(f"{column}:Q", title=tr("run"), axis=axis, scale=alt.Scale(nice=False, zero=False))
    # An array in the expression: the axis counts runs, as nights without a run take no room.
    label = f"{json.dumps(days.to_list())}[datum.value - 1] || ''"
    dated = alt.Axis(grid=False, labelExpr=label, tickCount=alt.ExprRef(WHOLE_TICKS))
    return alt.X(f"{column}:Q", title=tr("begun"), axis=dated, scale=alt.Scale(nice=False, zero=False))


def _y(column: str, trend: Trend) -> Any:
    import altair as alt

    axis = alt.Axis(tickCount=6, minExtent=46)
    scale = alt.Scale(zero=False, nice=False, padding=10)
    return alt.Y(f"{column}:Q", title=trend.metric.shown_unit, axis=axis, scale=scale)


def _color(trend: Trend) -> Any:
    """Few groups have a colour each; of many, as of nightly releases, a colour would have no meaning."""
    import altair as alt

    names = trend.groups["group"].to_list()
    if len(names) > MOST_NAMED:
        return alt.value(SLATE)
    legend = alt.Legend(
        title=None, orient="top", columns=legend_columns(names), symbolType="square", symbolOpacity=1, offset=WORD / 2
    )
    return alt.Color("group:N", scale=alt.Scale(domain=names), legend=legend if len(names) > 1 else None)


def _color_of_points(trend: Trend) -> Any:
    """Of many groups the level: worse or better than the level before it, or neither."""
    import altair as alt

    if len(trend.groups) <= MOST_NAMED:
        return _color(trend)
    names = [name for name in LEVELS if name in _levels(trend)]
    legend = alt.Legend(title=None, orient="top", symbolType="square", symbolOpacity=1, offset=WORD / 2)
    scale = alt.Scale(domain=[tr(name) for name in names], range=[LEVELS[name] for name in names])
    return alt.Color("level:N", scale=scale, legend=legend if len(names) > 1 else None)


def _levels(trend: Trend) -> list[str]:
    """The name of the level of each run."""
    ends = [*(change.at for change in trend.changes), len(trend.runs)]
    signs = [change.change * trend.metric.direction for change in trend.changes]
    names = [FIRST, *(WORSE if sign > 0 else BETTER for sign in signs)]
    begins = [0, *ends[:-1]]
    return [name for name, begin, end in zip(names, begins, ends, strict=True) for _ in range(end - begin)]


def _points(trend: Trend) -> Any:
    import altair as alt

    runs = trend.runs.gather_every(_every(trend)).select(
        "name",
        "group",
        "value",
        pl.col("at") + 1,
        pl.col("when").dt.to_string("%Y-%m-%d %H:%M"),
        pl.col("run_id").str.head(12),
        level=pl.Series([tr(name) for name in _levels(trend)][:: _every(trend)], dtype=pl.String),
    )
    return (
        alt.Chart(_data(runs, trend, "value"))
        .mark_point(filled=True, opacity=0.8, size=30 if len(runs) < 400 else 8)
        .encode(x=_x("at", trend), y=_y("value", trend), color=_color_of_points(trend), tooltip=_tooltip(trend.metric))
    )


def _tooltip(shown: Metric) -> list[alt.Tooltip]:
    import altair as alt

    return [
        alt.Tooltip("name:N", title=tr("name")),
        alt.Tooltip("group:N", title=tr("group")),
        alt.Tooltip("when:N", title=tr("begun")),
        alt.Tooltip("value:Q", title=shown.shown_unit, format=f",.{shown.digits}f"),
        alt.Tooltip("run_id:N", title=tr("run")),
    ]


def _bands(trend: Trend) -> Any:
    import altair as alt

    ends = {"x": _x("left", trend), "x2": "right:Q", "y": _y("p10", trend), "y2": "p90:Q"}
    return alt.Chart(_edges(trend)).mark_rect(opacity=0.15, tooltip=False).encode(color=_color(trend), **ends)


def _medians(trend: Trend) -> Any:
    import altair as alt

    base = alt.Chart(_edges(trend)).mark_rule(strokeWidth=2, tooltip=False)
    return base.encode(x=_x("left", trend), x2="right:Q", y=_y("median", trend), color=_color(trend))


def _edges(trend: Trend) -> alt.InlineData:
    """Where the groups begin and end: halfway between their outer runs and the next runs of other groups."""
    edges = trend.groups.select("group", "median", "p10", "p90", left=pl.col("first") + 0.5, right=pl.col("last") + 1.5)
    return _data(edges, trend, "median", "p10", "p90")


def _rules(trend: Trend) -> list[Any]:
    import altair as alt

    if not trend.changes:
        return []
    places = [change.at + 0.5 for change in trend.changes]
    values = [{"at": at, "text": f"{change.change:+.1%}"} for at, change in zip(places, trend.changes, strict=True)]
    base = alt.Chart(alt.InlineData(values=values)).encode(x=_x("at", trend))
    room = min((after - before for before, after in pairwise(places)), default=len(trend.runs)) / len(trend.runs)
    text = alt.ExprRef(f"{room} * width > {WORD} ? datum.text : ''")
    words = base.mark_text(align="center", baseline="bottom", tooltip=False, text=text).encode(y=alt.value(-3))
    return [base.mark_rule(strokeDash=[6, 4], tooltip=False), words]
