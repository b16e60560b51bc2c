"""The course of a job in a picture the size of a thumb: its runs as a line, its changes as rules. A pure function."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import polars as pl

from analysis.nightly.trend import Trend
from logparse.language import tr

WIDTH, HEIGHT, EDGE = 300, 72, 5
# Points that so small a picture can show separately.
POINTS = 150
# From the least to the greatest value there are at least so many of the middle: noise is to look like noise.
LEAST_RANGE = 0.05


def small_chart(trend: Trend) -> str:
    """SVG without a script. Runs that are off are left to the page of the job, but for the newest."""
    last = len(trend.runs) - 1
    drawn = trend.runs.filter(~pl.col("at").is_in(trend.off) | (pl.col("at") == last))
    bucket = pl.col("at") // -(-len(trend.runs) // POINTS)
    thin = drawn.group_by(bucket.alias("bucket"), maintain_order=True).agg(pl.col("at", "value").mean())
    low, high = _range(thin["value"])
    points = [(_x(at, trend), _y(value, low, high)) for at, value in thin.select("at", "value").iter_rows()]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    (x, y), title = points[-1], tr("{runs} runs, {changes} changes", runs=len(trend.runs), changes=len(trend.changes))
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><title>{escape(title)}</title>{"".join(_rules(trend))}'
        f'<polyline points="{line}"/><circle cx="{x:.1f}" cy="{y:.1f}" r="3"/></svg>'
    )


def _rules(trend: Trend) -> Iterator[str]:
    """A rule where the level changed, before the first run of the new one."""
    for change in trend.changes:
        x, worse = _x(change.at - 0.5, trend), change.change * trend.metric.direction > 0
        yield f'<line class="{"worse" if worse else "better"}" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{HEIGHT}"/>'


def _x(at: float, trend: Trend) -> float:
    return EDGE + (WIDTH - 2 * EDGE) * at / max(len(trend.runs) - 1, 1)


def _y(value: float, low: float, high: float) -> float:
    return HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * (value - low) / (high - low)


def _range(values: pl.Series) -> tuple[float, float]:
    """The values at the bottom and at the top."""
    low, high = float(values.min()), float(values.max())  # type: ignore[arg-type]
    middle = (low + high) / 2
    half = max(high - low, LEAST_RANGE * middle) / 2
    return middle - half, middle + half
