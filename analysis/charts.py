"""Steps to Altair charts: pure functions, frame in, chart out. Nothing is computed that is not drawn.

Rows that do not count are drawn hollow with their reason. More than MAX_POINTS rows are thinned, and the chart says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

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
    return _series(steps, "loss", "Training loss")


def time_chart(steps: pl.DataFrame) -> alt.LayerChart:
    """Time of every step, with the median of those that count."""
    median = steps.filter("counted").select(pl.col("step_time_ms").median()).item()
    rule = None if median is None else Rule(median, f"median {median:,.1f} ms")
    return _series(steps, "step_time_ms", "Time per iteration", "ms", clip=True, rule=rule)


def tokens_chart(steps: pl.DataFrame) -> alt.LayerChart:
    """Tokens per second and device by step."""
    return _series(steps, "tokens_per_second_per_device", "Throughput")


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
    return {name: draw() for name, (column, draw) in charts.items() if steps[column].is_not_null().any()}


def thin(steps: pl.DataFrame, column: str, most: int = MAX_POINTS) -> pl.DataFrame:
    """At most ``most`` rows that keep the extremes: of each run of neighbours the smallest, the largest."""
    known = steps.filter(pl.col(column).is_finite())
    if len(known) <= most:
        return known
    bucket = pl.int_range(pl.len()) * (most // 2) // pl.len()
    extreme = (pl.col(column) == pl.col(column).min().over(bucket)) | (
        pl.col(column) == pl.col(column).max().over(bucket)
    )
    return known.filter(extreme).head(most)


def _series(
    steps: pl.DataFrame,
    column: str,
    title: str,
    unit: str | None = None,
    clip: bool = False,
    percent: bool = False,
    rule: Rule | None = None,
) -> alt.LayerChart:
    import altair as alt

    rows = thin(steps, column)
    unit = UNITS.get(column, "") if unit is None else unit
    data = rows.select("step", column, why=pl.col("excluded_reason").fill_null("counts")).to_dicts()
    scale = _scale(rows, column) if clip else alt.Scale(zero=False)
    digits = "~s" if steps.select(pl.col("step").max()).item() > 99_999 else "d"
    x = alt.X("step:Q", title="step", scale=alt.Scale(nice=False), axis=alt.Axis(format=digits, grid=False))
    y = alt.Y(f"{column}:Q", title=unit or title, scale=scale, axis=alt.Axis(format="%" if percent else ",~r"))
    base = alt.Chart(alt.InlineData(values=data)).encode(x=x, y=y)
    why = alt.condition(alt.datum.why == "counts", alt.value(COUNTED), alt.value(EXCLUDED))
    value = alt.Tooltip(f"{column}:Q", title=unit or title, format=".2%" if percent else ",.5~g")
    points = base.mark_point(size=16, filled=True, clip=True).encode(
        color=why, tooltip=[alt.Tooltip("step:Q"), value, alt.Tooltip("why:N", title="counts")]
    )
    line = base.mark_line(strokeWidth=1, color=COUNTED, opacity=0.5, clip=True).transform_filter(
        alt.datum.why == "counts"
    )
    layers = [line, points, *_rule_layers(rule)]
    return alt.LayerChart(layer=layers, width=WIDTH, height=HEIGHT, title=_title(title, steps, rows))


def _title(title: str, steps: pl.DataFrame, rows: pl.DataFrame) -> alt.TitleParams:
    import altair as alt

    parts = [str(steps["run"].first() or "")]
    if excluded := int((~steps["counted"]).sum()):
        parts.append(f"orange: {excluded} of {len(steps)} rows left out of the metrics")
    if len(rows) < len(steps):
        parts.append(f"{len(rows)} of {len(steps)} points drawn, extremes kept")
    return alt.TitleParams(text=title, subtitle=" | ".join(p for p in parts if p), anchor="start")


def _scale(rows: pl.DataFrame, column: str) -> alt.Scale:
    """Show the rows that count in full; compilation would flatten them to a line."""
    import altair as alt

    counted = rows.filter("counted")[column]
    if counted.is_empty():
        return alt.Scale(zero=True)
    highest, usual = rows.filter("counted").select(pl.col(column).max(), high=pl.col(column).quantile(0.99)).row(0)
    top = min(highest, usual * 1.5)
    return alt.Scale(domain=[0, top * 1.1], clamp=False)


def _rule_layers(rule: Rule | None) -> list[Any]:
    import altair as alt

    if rule is None:
        return []
    base = alt.Chart(alt.InlineData(values=[{"value": rule.value, "text": rule.text}])).encode(y="value:Q")
    label = base.mark_text(align="right", dx=-4, dy=-7, color=RULE).encode(text="text:N", x=alt.value(WIDTH))
    return [base.mark_rule(color=RULE, strokeDash=[6, 4]), label]
