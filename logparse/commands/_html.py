"""Parts of a run as a piece of HTML, for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from logparse.commands._screen import Grid, Line, Part

FORMS = {
    "title": "<h4>{}</h4>",
    "heading": "<p>{}</p>",
    "plain": "<p>{}</p>",
    "warning": "<p><strong>! {}</strong></p>",
    "info": "<p>{}</p>",
}


def html(parts: Sequence[Part]) -> str:
    """``parts`` with every word escaped; a trace is left to the charts."""
    return "\n".join(_part(part) for part in parts if isinstance(part, Line | Grid))


def _part(part: Line | Grid) -> str:
    if isinstance(part, Line):
        return FORMS[part.kind].format(escape(part.text))
    head = "".join(f"<th>{escape(heading)}</th>" for heading in part.headings)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in part.rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
