"""Still pictures of the charts along a run, for readers whose program runs no script, such as a preview of mail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import polars as pl

from analysis.charts.along import ALONG, DASHED
from analysis.charts.look import LIGHT
from analysis.charts.plot import HEIGHT, WIDTH
from analysis.report.shown_numbers import figure, number
from logparse.language import tr

# Pixels left of and below the frame for its numbers; points of a line, each the mean of neighbouring rows.
LEFT, BELOW, POINTS = 70, 22, 240
# A value is drawn no higher than so many times the median of those that count.
CUT = 1.5
SHORT_UNIT = 3


def stills(rows: pl.DataFrame, names: Sequence[str]) -> dict[str, str]:
    """SVG by the name of a chart along the run; ``rows`` are those that the page draws."""
    counted = rows.filter("counted")
    runs = rows["run"].unique(maintain_order=True).to_list()
    thin = pl.concat([_thinned(counted.filter(pl.col("run") == run)) for run in runs])
    return {name: _still(thin, name, runs) for name in names if name in ALONG and thin[ALONG[name].column].count()}


def _thinned(rows: pl.DataFrame) -> pl.DataFrame:
    """At most POINTS rows of a run, each the mean of neighbours of one start."""
    each = -(-len(rows) // POINTS) or 1
    values = [*(chart.column for chart in ALONG.values()), *DASHED.values(), "step"]
    bucket = pl.int_range(pl.len()) // each
    return rows.group_by("run", "segment", bucket.alias("bucket"), maintain_order=True).agg(pl.col(values).mean())


def _still(rows: pl.DataFrame, name: str, runs: Sequence[str]) -> str:
    chart = ALONG[name]
    columns = [chart.column, *([DASHED[chart.column]] if chart.column in DASHED else [])]
    values = pl.concat([rows[column].rename("value") for column in columns]).drop_nulls()
    low, high, middle = (float(value or 0) for value in (values.min(), values.max(), values.median()))  # type: ignore[arg-type]
    high = min(high, CUT * middle) if middle > 0 and name == "time_per_iteration" else high
    first, last = (float(value or 0) for value in (rows["step"].min(), rows["step"].max()))  # type: ignore[arg-type]
    frame = (first, last if last > first else first + 1, low, high if high > low else low + 1)
    lines = "".join(_lines(rows, columns, runs, frame))
    # A longer unit has no room next to the frame; the title has it.
    unit = chart.unit if len(chart.unit) < SHORT_UNIT else ""
    top, foot = (f"{figure(value, chart)} {unit}".strip() for value in (high, low))
    return (
        f'<svg class="picture" viewBox="0 0 {WIDTH} {HEIGHT + BELOW}" width="{WIDTH}" role="img" font-size="11">'
        f"<title>{escape(tr(chart.title))}</title>{lines}{_words(top, foot, first, last)}</svg>"
    )


def _lines(rows: pl.DataFrame, columns: Sequence[str], runs: Sequence[str], frame: Any) -> Iterator[str]:
    colors = LIGHT["range"]["category"]
    for (run, _), start in rows.group_by("run", "segment", maintain_order=True):
        color = runs.index(str(run)) % len(colors)
        for dashed, column in enumerate(columns):
            known = start.select("step", column).drop_nulls().rows()
            points = " ".join(_point(step, value, frame) for step, value in known)
            style = f'stroke="{colors[color]}" style="stroke:var(--run{color})" fill="none"'
            dash = ' stroke-dasharray="5 3"' if dashed else ""
            yield f'<polyline points="{points}" {style} stroke-width="1.5" stroke-linecap="round"{dash}/>'


def _point(step: float, value: float, frame: tuple[float, float, float, float]) -> str:
    first, last, low, high = frame
    x = LEFT + (WIDTH - LEFT - 4) * (step - first) / (last - first)
    y = HEIGHT - 4 - (HEIGHT - 20) * (min(value, high) - low) / (high - low)
    return f"{x:.0f},{y:.1f}"


def _words(high: str, low: str, first: float, last: float) -> str:
    """The ends of both axes."""
    places = (
        (LEFT - 6, 20, "end", high),
        (LEFT - 6, HEIGHT, "end", low),
        (LEFT, HEIGHT + BELOW - 6, "start", f"{tr('step')} {number(first, 0)}"),
        (WIDTH - 4, HEIGHT + BELOW - 6, "end", number(last, 0)),
    )
    texts = (f'<text x="{x}" y="{y}" text-anchor="{side}">{escape(text)}</text>' for x, y, side, text in places)
    return f'<g fill="#57616b" class="ends">{"".join(texts)}</g>'
