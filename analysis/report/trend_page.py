"""The page of trends: each series with its chart, its groups and its changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from analysis.compare.trend import Trend
from analysis.report.document import Drawing, Text, render_document
from analysis.screens.analyze import list_notes
from analysis.screens.html import html
from analysis.screens.trend import NOTHING, compose_trend, left_out, page_title, shown

if TYPE_CHECKING:
    import altair as alt


def trend_page(
    trends: Sequence[Trend], charts: Mapping[str, alt.LayerChart], said: Mapping[str, list[str]] = NOTHING
) -> str:
    """The page, in the language in use; ``charts`` are those of the trends that are shown, in their order.

    ``said`` are remarks by run id.
    """
    pieces: list[Drawing | Text] = []
    for trend, (name, chart) in zip(shown(trends), charts.items(), strict=True):
        title, *told = compose_trend(trend, said)
        pieces += [Text(html([title], 2)), Drawing(name, chart), Text(html(told, 2))]
    return render_document(page_title(), [*pieces, Text(html([list_notes(left_out(trends))]))])
