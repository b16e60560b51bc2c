"""Parts of a run as Markdown, for a pull request or an issue."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.screens.analyze import Grid, Line, Part
from logparse.language import tr

FORMS = {
    "title": "### {}\n",
    "heading": "\n{}\n",
    "plain": "{}\n",
    "warning": "- **{}**",
    "info": "- {}",
}
SPECIAL = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]<>|#"})


def markdown(parts: Sequence[Part]) -> str:
    """``parts`` as text that any Markdown reader shows as it stands; a trace has no room there."""
    return "\n".join(_part(part) for part in parts if isinstance(part, Line | Grid)) + "\n"


def _part(part: Line | Grid) -> str:
    if isinstance(part, Line):
        text = tr("{heading}:", heading=part.text) if part.kind == "heading" else part.text
        return FORMS[part.kind].format(_plain(text))
    last = len(part.headings) - 1
    sides = ["---" if not index or (part.prose and index == last) else "---:" for index in range(len(part.headings))]
    rows = [part.headings, sides, *part.rows]
    return (
        "\n".join(f"| {' | '.join(cell if cell in sides else _plain(cell) for cell in row)} |" for row in rows) + "\n"
    )


def _plain(text: str) -> str:
    """Words of a log must not become a link, a tag or a heading."""
    return " ".join(text.split()).translate(SPECIAL)
