"""A page of sentences, tables and charts about what is not one run: a comparison, a trend. It looks as the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from analysis.charts.drawn_rows import SERIES
from analysis.charts.series import SEPARATOR
from analysis.report.layers import zoomed
from analysis.report.page_frame import render
from analysis.report.payload import columns, page_data, specification
from logparse.light_dataclass import dataclass

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True)
class Text:
    """HTML of which every word is escaped that is not ours."""

    html: str


@dataclass(frozen=True)
class Drawing:
    """A chart; one that is ``along`` the steps draws the rows of the page, called ROWS, and zooms with the others.

    ``help`` is a sentence for a reader who asks what it shows.
    """

    name: str
    chart: alt.LayerChart
    along: bool = False
    help: str = ""


@dataclass(frozen=True)
class Tracks:
    """What the charts along the steps draw: rows in the order of the steps, whose ``run`` is one of ``names``.

    ``smoothing`` lets the reader smooth them, which takes the mean of neighbours of one name. ``axis`` is the column of
    their places; columns that are not in SERIES are ``further`` ones.
    """

    names: Sequence[str]
    rows: pl.DataFrame
    smoothing: bool = True
    axis: str = "step"
    further: Sequence[str] = ()


def render_document(title: str, pieces: Sequence[Text | Drawing], tracks: Tracks | None = None) -> str:
    """The page of ``pieces`` in their order, in the language in use; it asks no network."""
    drawings = [piece for piece in pieces if isinstance(piece, Drawing)]
    specs = {drawing.name: _drawn(drawing) for drawing in drawings}
    return render(
        "document.html.j2",
        title,
        _data(drawings, specs, tracks),
        pieces=pieces,
        titles={name: spec["title"]["text"] for name, spec in specs.items()},
        remarks=dict(_remarks(specs)),
        names=tracks.names if tracks else (),
        smoothing=tracks is not None and tracks.smoothing,
    )


def _drawn(drawing: Drawing) -> dict[str, Any]:
    spec = specification(drawing.chart)
    return zoomed(spec) if drawing.along else spec


def _data(drawings: Sequence[Drawing], specs: dict[str, Any], tracks: Tracks | None) -> dict[str, Any]:
    """A chart that is not along the steps has the one axis ``none``."""
    axis = tracks.axis if tracks else "step"
    charts = {drawing.name: {axis if drawing.along else "none": specs[drawing.name]} for drawing in drawings}
    if tracks is None:
        return page_data([], [axis], [], {}, charts)
    series = [name for name in (*SERIES, *tracks.further) if name in tracks.rows.columns]
    return page_data(list(tracks.names), [axis], series, columns(tracks.rows), charts)


def _remarks(specs: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The remarks below each chart, by its name; a remark is given once, at the first chart that has it."""
    before: set[str] = set()
    for name, spec in specs.items():
        parts = [part for part in spec["usermeta"]["remarks"] if part not in before]
        before.update(parts)
        yield name, SEPARATOR.join(parts)
