"""The pages of trends: one for each job with its chart, its groups and its changes, and the index over all jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import polars as pl

from analysis.nightly.trend import ChangePoint, Trend
from analysis.present.html import html
from analysis.present.metric_names import titled
from analysis.present.numbers import signed_percent
from analysis.present.views.trend import NOTHING, compose_trend, page_title
from analysis.report.document import Drawing, Text, render_document
from analysis.report.page_frame import render
from logparse.language import msg, tr
from logparse.light_dataclass import dataclass

if TYPE_CHECKING:
    import altair as alt


# One sentence for a reader who asks what the chart shows.
HELP = msg("Each point is a run; a band covers p10 to p90 of a group, a dashed line marks a change.")


def trend_page(
    trend: Trend, chart: alt.LayerChart, remarks: Mapping[str, list[str]] = NOTHING, index: str | None = None
) -> str:
    """The page of one job, in the language in use; ``remarks`` are by run id, ``index`` the page of all jobs."""
    title, *parts = compose_trend(trend, remarks)
    back = f'<p><a href="{index}">{escape(tr("all jobs"))}</a></p>' if index else ""
    pieces: list[Text | Drawing] = [
        Text(back + html([title], 2)),
        Drawing("trend", chart, help=tr(HELP)),
        Text(html(parts, 2)),
    ]
    return render_document(page_title(), pieces)


@dataclass(frozen=True)
class JobCard:
    """A job on the index: its newest value, its course as SVG, and its newest change; ``level`` is worse or nothing."""

    name: str
    link: str
    value: str
    picture: str
    changes: str
    level: str = ""


def trends_page(trends: Sequence[Trend], links: Sequence[str]) -> str:
    """The index, in the language in use: a small chart of each job, the newest change first. It runs no script."""
    jobs = sorted(zip(trends, links, strict=True), key=lambda one: _newest(one[0]), reverse=True)
    changed = sum(bool(trend.changes) for trend in trends)
    return render(
        "trends.html.j2",
        page_title(),
        {},
        script="",
        styles=("page.css", "trends.css"),
        charts=False,
        metric=titled(trends[0].metric),
        counted=tr("{n} jobs, {changed} changed; newest change first", n=len(trends), changed=changed),
        cards=[_card(trend, link) for trend, link in jobs],
    )


def _newest(trend: Trend) -> tuple[str, bool, str]:
    """By what jobs are ordered: when each last changed, whether its newest run is off, and when that was."""
    last = trend.changes[-1].at if trend.changes else None
    changed = "" if last is None else str(trend.runs["when"][last])
    return changed, trend.newest_off is not None, str(trend.runs["when"].max())


def _card(trend: Trend, link: str) -> JobCard:
    form = trend.metric
    value = f"{form.text(trend.runs['value'][-1])} {form.shown_unit}".rstrip()
    worse = any(by * form.direction > 0 for by in _by(trend))
    return JobCard(trend.name, link, value, small_chart(trend), "; ".join(_changes(trend)), "worse" if worse else "")


def _by(trend: Trend) -> Iterator[float]:
    """By how much the job last changed, and how far its newest run is off."""
    if trend.changes:
        yield trend.changes[-1].change
    if (away := trend.newest_off) is not None:
        yield away


def _changes(trend: Trend) -> Iterator[str]:
    yield _changed(trend, trend.changes[-1]) if trend.changes else tr("no change found")
    if (away := trend.newest_off) is not None:
        yield tr("the newest run is {change} from the earlier runs", change=signed_percent(away))


def _changed(trend: Trend, change: ChangePoint) -> str:
    day = f"{trend.runs['when'][change.at]:%Y-%m-%d}"
    old, new = change.groups
    where = new if old == new else f"{old} -> {new}"
    return tr("{change} on {day} ({where})", change=signed_percent(change.change), day=day, where=where)


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
