"""Steps to Altair charts: pure functions, frame in, chart out. Nothing is computed that is not drawn.

Rows that do not count are orange and tell their reason; copies from other ranks are not drawn. More than MAX_POINTS
rows are thinned, times far above the usual stand on the upper edge, and the subtitle says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from analysis.window import COPY
from logparse.schema import UNITS

if TYPE_CHECKING:
    import altair as alt

MAX_POINTS = 4000
COUNTED, EXCLUDED, RULE = "#2563a8", "#d9822b", "#b3261e"
WIDTH, HEIGHT = 720, 260


@dataclass(frozen=True)
class Rule:
    """A dashed line across a chart, at ``value`` of the y axis."""

    value: float
    text: str


def loss_chart(steps: pl.DataFrame) -> alt.LayerChart:
    """Training loss by step."""
    return _series(steps, "loss", "Training loss", "loss", from_zero=False)


def time_chart(steps: pl.DataFrame) -> alt.LayerChart:
    """Time of every step, with the median of those that count."""
    median = steps.filter("counted").select(pl.col("step_time_ms").median()).item()
    rule = None if median is None else Rule(median, f"median {median:,.1f} ms")
    return _series(steps, "step_time_ms", "Time per iteration", "ms", clip=True, rule=rule)


def tokens_chart(steps: pl.DataFrame) -> alt.LayerChart:
    """Tokens per second and device by step."""
    return _series(steps, "tokens_per_second_per_device", "Tokens per second and device")


def tflops_chart(steps: pl.DataFrame, peak_tflops: float | None, formula: str) -> alt.LayerChart:
    """TFLOP/s per device by step, with the device's peak where it is known."""
    rule = None if peak_tflops is None else Rule(peak_tflops, f"peak {peak_tflops:g} TFLOP/s")
    return _series(steps, "tflops_per_second_per_device", f"TFLOP/s per device, formula {formula}", rule=rule)


def mfu_chart(steps: pl.DataFrame) -> alt.LayerChart:
    """MFU by step."""
    return _series(steps, "mfu", "Model FLOPs utilisation", "of peak", percent=True)


def run_charts(steps: pl.DataFrame, peak_tflops: float | None, formula: str) -> dict[str, alt.LayerChart]:
    """Every chart of a run that has data, by file name."""
    charts: dict[str, tuple[str, Callable[[], alt.LayerChart]]] = {
        "loss": ("loss", lambda: loss_chart(steps)),
        "time_per_iteration": ("step_time_ms", lambda: time_chart(steps)),
        "tokens_per_second_per_device": ("tokens_per_second_per_device", lambda: tokens_chart(steps)),
        "tflops_per_second_per_device": (
            "tflops_per_second_per_device",
            lambda: tflops_chart(steps, peak_tflops, formula),
        ),
        "mfu": ("mfu", lambda: mfu_chart(steps)),
    }
    return {name: draw() for name, (column, draw) in charts.items() if steps[column].is_finite().any()}


def thin(steps: pl.DataFrame, column: str, most: int = MAX_POINTS) -> pl.DataFrame:
    """At most ``most`` rows that keep the extremes: of each run of neighbours one smallest and one largest."""
    known = steps.filter(pl.col(column).is_finite())
    if len(known) <= most:
        return known
    at = pl.int_range(pl.len())
    ends = (
        known.select(column, at=at, bucket=at * (most // 2) // pl.len())
        .group_by("bucket")
        .agg(
            pl.col("at").get(pl.col(column).arg_min()).alias("low"),
            pl.col("at").get(pl.col(column).arg_max()).alias("high"),
        )
    )
    return known[pl.concat([ends["low"], ends["high"]]).unique().sort()]


def _series(
    steps: pl.DataFrame,
    column: str,
    title: str,
    axis: str | None = None,
    clip: bool = False,
    from_zero: bool = True,
    percent: bool = False,
    rule: Rule | None = None,
) -> alt.LayerChart:
    import altair as alt

    own = steps.filter(pl.col("excluded_reason").ne_missing(COPY))
    rows = thin(own, column)
    top = _top(rows, column, rule, clip) if from_zero else float("inf")
    above = int((rows[column] > top).sum())
    axis = UNITS[column] if axis is None else axis
    data = rows.select("step", column, "segment", why=pl.col("excluded_reason").fill_null("counts")).to_dicts()
    digits = "~s" if steps.select(pl.col("step").max()).item() > 99_999 else "d"
    scale = alt.Scale(domain=[0, top]) if from_zero else alt.Scale(zero=False)
    base = alt.Chart(alt.InlineData(values=data)).encode(
        x=alt.X("step:Q", scale=alt.Scale(nice=False, padding=8), axis=alt.Axis(format=digits, grid=False)),
        y=alt.Y(f"{column}:Q", title=axis, scale=scale, axis=alt.Axis(format="%" if percent else ",~r")),
        tooltip=[
            alt.Tooltip("step:Q"),
            alt.Tooltip(f"{column}:Q", title=axis, format=".2%" if percent else ",.5~g"),
            alt.Tooltip("why:N", title="counts"),
        ],
    )
    layers = [_line(base), _points(base, 16 if len(rows) < WIDTH / 2 else 5), *_rule_layers(rule)]
    if above:
        layers.append(_edge(base.transform_filter(alt.datum[column] > top)))
    subtitle = _account(steps, own, column, len(rows), above)
    heading = alt.TitleParams(text=title, subtitle=subtitle, anchor="start")
    return alt.LayerChart(layer=layers, width=WIDTH, height=HEIGHT, title=heading)


def _line(base: alt.Chart) -> Any:
    """One line for each start: a step that was done again must not join two of them."""
    import altair as alt

    line = base.mark_line(strokeWidth=1, color=COUNTED, opacity=0.5, clip=True, tooltip=False)
    return line.encode(detail="segment:N").transform_filter(alt.datum.why == "counts")


def _points(base: alt.Chart, size: int) -> Any:
    """Rows that do not count are larger, or one of them among thousands would not be seen."""
    import altair as alt

    counts = alt.datum.why == "counts"
    color = alt.condition(counts, alt.value(COUNTED), alt.value(EXCLUDED))
    return base.mark_point(filled=True, clip=True).encode(
        color=color, size=alt.condition(counts, alt.value(size), alt.value(40))
    )


def _edge(above: alt.Chart) -> Any:
    """Rows that lie above the scale, as triangles on its upper edge."""
    import altair as alt

    color = alt.condition(alt.datum.why == "counts", alt.value(COUNTED), alt.value(EXCLUDED))
    return above.mark_point(shape="triangle-up", filled=True, size=50).encode(color=color, y=alt.value(5))


def _account(steps: pl.DataFrame, own: pl.DataFrame, column: str, drawn: int, above: int) -> list[str]:
    """What the chart shows of the run and what not; a line of the subtitle holds three parts."""
    excluded, copies = int((~own["counted"]).sum()), len(steps) - len(own)
    known = int(own[column].is_finite().sum())
    parts = {
        str(steps["run"].first() or ""): True,
        f"orange: {excluded} of {len(own)} rows left out of the metrics": excluded,
        f"{copies} rows of other ranks not drawn": copies,
        f"without a value: {len(own) - known}": known < len(own),
        f"{drawn} of {known} points drawn, extremes kept": drawn < known,
        f"triangles, above the scale: {above}": above,
    }
    said = [text for text, applies in parts.items() if text and applies]
    return [" | ".join(said[i : i + 3]) for i in range(0, len(said), 3)]


def _top(rows: pl.DataFrame, column: str, rule: Rule | None, clip: bool) -> float:
    """The upper end of the scale: room for the rule's words and, with ``clip``, only for the usual rows that count.

    Compilation and a stalled step would flatten all others to a line.
    """
    highest = rows.select(pl.col(column).max()).item() or 1.0
    usual = rows.filter("counted").select(pl.col(column).quantile(0.9)).item()
    top = highest if usual is None or not clip else min(highest, usual * 1.5)
    return float(1.1 * max(top, rule.value if rule else 0.0))


def _rule_layers(rule: Rule | None) -> list[Any]:
    import altair as alt

    if rule is None:
        return []
    base = alt.Chart(alt.InlineData(values=[{"value": rule.value, "text": rule.text}])).encode(y="value:Q")
    label = base.mark_text(align="right", dx=-4, dy=-7, color=RULE).encode(text="text:N", x=alt.value(WIDTH))
    return [base.mark_rule(color=RULE, strokeDash=[6, 4]), label]
