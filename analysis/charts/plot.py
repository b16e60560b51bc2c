"""The layers of a chart of one value along the run: line, points, spans of buckets, rows left out, rules."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import polars as pl

from analysis.charts.axes import legend_columns, place_tooltip, x_channel
from analysis.charts.drawn_rows import EVALUATION
from analysis.charts.look import DASH_RUNS, DASHES
from logparse.language import tr
from logparse.light_dataclass import dataclass

if TYPE_CHECKING:
    import altair as alt

WIDTH, HEIGHT = 720, 240
# Above this many rows a point is as small as it can be seen.
MANY_ROWS = 400
# Above this many rows that do not count their marks are small too.
MANY_EXCLUDED = 60
# Where a row above the scale is drawn, in pixels above the frame.
GUTTER = -9
# Where words at the top of the frame begin, in pixels below it.
TOP_WORDS = 3
# Opacity of a mark that only a pointer meets; with none at all it would not.
UNSEEN = 0.001
# A reason why a row does not count has a hollow shape of its own; a row that counts is a full circle.
CROSS = "M-.7,-.7L.7,.7M.7,-.7L-.7,.7"
SHAPES = [
    "triangle-up",
    CROSS,
    "square",
    "diamond",
    "triangle-down",
    "cross",
    "triangle-left",
    "triangle-right",
    "wedge",
]
# Signals of a page that are the ends of a scale.
LOW, HIGH = "y_low", "y_high"


@dataclass(frozen=True)
class Series:
    """A column of the steps and how it is drawn; ``clip`` leaves unusually high values above the scale,
    ``base`` asks for a logarithmic one. ``of_time``: rows that do not count for time do not count here.
    """

    column: str
    title: str
    unit: str
    format: str
    from_zero: bool = True
    clip: bool = False
    base: int | None = None
    of_time: bool = True


@dataclass(frozen=True)
class Rule:
    """A dashed line across a chart, at ``value`` of the y axis; of one run where ``run`` is given.

    ``on_top``: its words are at the top of the frame, not at the line, which the data surrounds.
    """

    value: float
    text: str
    run: str | None = None
    on_top: bool = False


@dataclass(frozen=True)
class Ends:
    """Ends of a scale that fits the rows that count, and the highest value of all rows."""

    low: float
    high: float
    highest: float


@dataclass(frozen=True)
class Plot:
    """What the layers of one chart share. ``top`` is the upper end of the scale, None where the data sets it.

    ``crowded``: so many rows do not count that their marks would cover the line. ``evaluated``: evaluations are drawn.
    ``ends``: a page sets the ends of the scale, by its signals LOW and HIGH. Scales, axes and legends are plain dicts,
    since Altair copies each object of a layer several times, with all that it leaves undefined.
    """

    series: Series
    x: str
    runs: Sequence[str]
    reasons: Sequence[str]
    top: float | None
    crowded: bool = False
    evaluated: bool = False
    ends: Ends | None = None

    def base(self, data: alt.Data | pl.DataFrame | None = None) -> alt.Chart:
        """A layer with its axes and colours, without a mark; of ``data``, where that is not the chart's own."""
        import altair as alt

        chart = alt.Chart() if data is None else alt.Chart(data)
        return chart.encode(x=x_channel(self.x), y=self._y(self.series.column), color=self._color())

    def line(self, base: alt.Chart, column: str, dash: Sequence[int] = ()) -> Any:
        """One line for each start: a step that was done again must not join two of them."""
        import altair as alt

        how: dict[str, Any] = {"strokeDash": list(dash)} if dash else {}
        line = base.mark_line(strokeWidth=1.2, opacity=0.65, clip=True, tooltip=False, **how)
        drawn = line.encode(y=self._y(column), detail=alt.Detail("segment:N"))
        if len(self.runs) > DASH_RUNS and not dash:
            # Some readers cannot distinguish so many colours.
            styles = [list(DASHES[at // DASH_RUNS % len(DASHES)]) for at in range(len(self.runs))]
            scale = {"domain": list(self.runs), "range": styles}
            drawn = drawn.encode(strokeDash=alt.StrokeDash("run:N", scale=scale, legend=self._legend()))
        return self._where(drawn, self._counted(), self._below())

    def points(self, base: alt.Chart, rows: int) -> Any:
        """A row each."""
        import altair as alt

        marks = base.mark_point(filled=True, opacity=1, shape="circle", size=24 if rows < MANY_ROWS else 7, clip=True)
        return self._where(marks.encode(tooltip=self._tooltip()), alt.datum.rows == 1, self._counted(), self._below())

    def _counted(self) -> Any:
        """The rows of a time that count; None for other columns, of which every row does."""
        import altair as alt

        return alt.datum.counted if self.series.of_time else None

    @staticmethod
    def _where(layer: Any, *conditions: Any) -> Any:
        """The rows of ``layer`` that meet all ``conditions``; None is no condition."""
        asked = [condition for condition in conditions if condition is not None]
        return layer.transform_filter(reduce(and_, asked)) if asked else layer

    def band(self, base: alt.Chart) -> Any:
        """From the least to the greatest values of the buckets of each start, one shape: thousands would take seconds.

        Its edge shows what is too narrow for an area: an outlying bucket, a start of one bucket.
        """
        import altair as alt

        low, high = self._ends()
        color = alt.ExprRef("scale('color', datum.run)")
        edge: dict[str, Any] = {"stroke": color, "strokeWidth": 1, "strokeJoin": "bevel"}
        area = base.mark_area(opacity=0.3, clip=True, tooltip=False, **edge).encode(
            y=self._y(low), y2=alt.Y2(high), detail=alt.Detail("segment:N")
        )
        return area.transform_filter(alt.expr.isValid(alt.datum[low]))

    def spans(self, base: alt.Chart) -> Any:
        """Each bucket from its least to its greatest value: not seen, but what a pointer on the band meets."""
        import altair as alt

        low, high = self._ends()
        rule = base.mark_rule(strokeWidth=1.5, opacity=UNSEEN, clip=True).encode(
            y=self._y(low), y2=alt.Y2(high), tooltip=self._tooltip(bucket=True)
        )
        return rule.transform_filter(alt.datum.rows > 1)

    def _ends(self) -> tuple[str, str]:
        return f"{self.series.column}_low", f"{self.series.column}_high"

    def excluded(self, base: alt.Chart) -> Any:
        """Rows that do not count, larger, or one of them among thousands would not be seen."""
        import altair as alt

        return self._where(self._hollow(base), ~alt.datum.counted, self._below())

    def above(self, base: alt.Chart) -> Any:
        """Rows that lie above the scale, in the gutter over the frame."""
        import altair as alt

        over = alt.datum[self.series.column] > (alt.param(name=HIGH) if self.ends else self.top or 0)
        return self._hollow(base).encode(y=alt.YValue(GUTTER)).transform_filter(over)  # type: ignore[no-untyped-call]

    def evaluations(self, data: alt.Data | pl.DataFrame) -> Any:
        """Losses of evaluations, as hollow circles."""
        import altair as alt

        base = self._hollow(self.base(data))
        return base.encode(tooltip=[*self._tooltip()[:-1], alt.Tooltip("dataset:N", title=tr(EVALUATION))])

    def rules(self, rules: Sequence[Rule]) -> list[Any]:
        """Dashed lines; their words only where there is one, or they would lie upon each other."""
        import altair as alt

        if not rules:
            return []
        values = [{"value": rule.value, "text": rule.text, "run": rule.run} for rule in rules]
        base = alt.Chart(alt.InlineData(values=values)).encode(y=alt.Y("value:Q"))
        lines = base.mark_rule(strokeDash=[6, 4], tooltip=False)
        if len(rules) > 1:
            return [lines.encode(color=self._color()) if rules[0].run else lines]
        on_top = rules[0].on_top
        place: dict[str, Any] = {"baseline": "top"} if on_top else {"baseline": "bottom", "dy": -7}
        words = base.mark_text(align="right", dx=-2, **place).encode(
            text=alt.Text("text:N"),
            x=alt.XValue(alt.expr("width")),  # type: ignore[no-untyped-call]
        )
        return [lines, words.encode(y=alt.YValue(TOP_WORDS)) if on_top else words]  # type: ignore[no-untyped-call]

    def _hollow(self, base: alt.Chart) -> Any:
        import altair as alt

        names = [*self.reasons, *[tr(EVALUATION)] * self.evaluated]
        shapes = [SHAPES[at % len(SHAPES)] for at in range(len(self.reasons))] + ["circle"] * self.evaluated
        legend = {"title": None, "orient": "top", "columns": legend_columns(names), "symbolSize": 70}
        size, width = (16, 1.0) if self.crowded else (60, 1.6)
        return base.mark_point(filled=False, opacity=1, size=size, strokeWidth=width).encode(
            shape=alt.Shape("why:N", scale={"domain": names, "range": shapes}, legend=legend), tooltip=self._tooltip()
        )

    def _below(self) -> Any:
        """Whether a row lies on the scale; None where each does."""
        import altair as alt

        value = alt.datum[self.series.column]
        if self.ends:
            return (value <= alt.param(name=HIGH)) & (value >= alt.param(name=LOW))
        return None if self.top is None else value <= self.top

    def _y(self, column: str) -> alt.Y:
        import altair as alt

        scale: dict[str, Any] = {"zero": False} if self.top is None else {"domain": [0, self.top], "nice": False}
        if self.ends:
            low, high = alt.ExprRef(LOW), alt.ExprRef(HIGH)
            scale = {"domainMin": low, "domainMax": high, "nice": False, "zero": False}
        if self.series.base:
            scale = {"type": "log", "base": self.series.base}
        axis = {"format": self.series.format, "tickCount": 5, "minExtent": 46}
        return alt.Y(f"{column}:Q", title=self.series.unit, scale=scale, axis=axis)

    def _color(self) -> alt.Color:
        import altair as alt

        return alt.Color("run:N", scale={"domain": list(self.runs)}, legend=self._legend())

    def _legend(self) -> dict[str, Any] | None:
        if len(self.runs) == 1:
            return None
        columns = legend_columns(self.runs)
        return {"title": None, "orient": "top", "columns": columns, "symbolType": "square", "symbolOpacity": 1}

    def _tooltip(self, bucket: bool = False) -> list[alt.Tooltip]:
        import altair as alt

        column, style = self.series.column, self.series.format
        place = [alt.Tooltip("step:Q", title=tr("step"), format=",d")]
        if self.x != "step":
            place.append(place_tooltip(self.x))
        if len(self.runs) > 1:
            place.insert(0, alt.Tooltip("run:N", title=tr("run")))
        if not bucket:
            value = alt.Tooltip(f"{column}:Q", title=self.series.unit or self.series.title, format=style)
            return [*place, value, alt.Tooltip("why:N", title=tr("counted"))]
        ends = {"_low": tr("min"), "": tr("mean"), "_high": tr("max")}
        values = [alt.Tooltip(f"{column}{end}:Q", title=text, format=style) for end, text in ends.items()]
        return [*place, *values, alt.Tooltip("rows:Q", title=tr("rows"))]
