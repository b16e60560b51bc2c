"""Parts as a piece of HTML, for a notebook and for a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby

from analysis.screens.analyze import Grid, Line, Part

# Characters of a cell that may be wrapped; a number is shorter.
LONG = 32
# A table of fewer columns is not spread over the page.
FEW = 4


def html(parts: Sequence[Part], level: int = 4) -> str:
    """``parts`` with every word escaped, titles as headings of ``level``; a trace is left to the charts."""
    shown = [part for part in parts if isinstance(part, Line | Grid)]
    return "\n".join(piece for listed, group in groupby(shown, _is_info) for piece in _pieces(group, listed, level))


def _is_info(part: Line | Grid) -> bool:
    return isinstance(part, Line) and part.kind == "info"


def _pieces(group: Iterable[Line | Grid], listed: bool, level: int) -> Iterator[str]:
    if listed:
        yield f"<ul>{''.join(f'<li>{escape(part.text)}</li>' for part in group if isinstance(part, Line))}</ul>"
        return
    for part in group:
        yield _line(part, level) if isinstance(part, Line) else _table(part)


def _line(line: Line, level: int) -> str:
    if line.kind == "warning":
        return f'<p class="warning"><b>!</b> {escape(line.text)}</p>'
    tag = {"title": f"h{level}", "heading": f"h{level + 1}"}.get(line.kind, "p")
    return f"<{tag}>{escape(line.text)}</{tag}>"


def _table(grid: Grid) -> str:
    """A table that scrolls by itself where the page is narrow."""
    label = escape(", ".join(heading for heading in grid.headings if heading))
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in grid.headings)
    rows = "".join(f"<tr>{''.join(_cell(cell, place) for place, cell in enumerate(row))}</tr>" for row in grid.rows)
    narrow = ' class="narrow"' if len(grid.headings) < FEW else ""
    table = f"<table{narrow}><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="scroll" tabindex="0" role="group" aria-label="{label}">{table}</div>'


def _cell(text: str, place: int) -> str:
    if place == 0:
        return f'<th scope="row">{escape(text)}</th>'
    return f'<td class="long">{escape(text)}</td>' if len(text) > LONG else f"<td>{escape(text)}</td>"
