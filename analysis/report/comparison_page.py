"""The page of a comparison: what the terminal shows, and the runs of both sides in charts."""

from __future__ import annotations

from analysis.charts.comparison import HELP, comparison_charts, overlay_runs, rename_sides
from analysis.compare.comparison import Comparison
from analysis.present.html import html
from analysis.present.views.compare import compose_answer, compose_drawn, compose_notes, page_title
from analysis.present.words import word
from analysis.report.document import Drawing, Text, Tracks, render_document
from analysis.report.payload import ROWS
from logparse.language import tr


def comparison_page(comparison: Comparison, details: bool = False) -> str:
    """The page, in the language in use; ``details`` adds the p-values and how they were computed."""
    overlay = overlay_runs(comparison)
    titled = rename_sides(overlay, {side: word("sides", side) for side in overlay.runs})
    pieces: list[Text | Drawing] = [
        Text(html(compose_answer(comparison, details), 2)),
        Text(f'<div id="notes">{html(compose_notes(comparison, details))}</div>'),
        *(
            Drawing(name, chart, along=True, help=tr(HELP[name]))
            for name, chart in comparison_charts(titled, ROWS).items()
        ),
        Text(html(compose_drawn(comparison, overlay), 2)),
    ]
    tracks = Tracks(titled.all_names, titled.all_rows, titled.single, titled.axis, further=["loss_difference"])
    return render_document(page_title(comparison), pieces, tracks)
