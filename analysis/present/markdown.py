"""Parts as Markdown, for a pull request or an issue."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.present.parts import Bar, Cell, Heading, Part, RunTitle, ScreenRows, Sentence, Sentences, Sparkline, Table
from logparse.language import tr, visible

FORMS = {"plain": "{}\n", "warning": "- **{}**", "info": "- {}"}
SPECIAL = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]<>|#"})


def markdown(parts: Sequence[Part]) -> str:
    """``parts`` as text that any Markdown reader shows unchanged; sparklines are left out."""
    pieces = (_part(part) for part in parts if not isinstance(part, Sparkline))
    return "\n".join(piece for piece in pieces if piece) + "\n"


def _part(part: RunTitle | ScreenRows | Heading | Sentence | Sentences | Table | Bar) -> str:
    if isinstance(part, RunTitle | ScreenRows):
        return _first_screen(part)
    if isinstance(part, Heading):
        return _heading(part)
    if isinstance(part, Sentence):
        return FORMS[part.kind].format(_plain(part.text) + (f" <{part.link}>" if part.link else ""))
    if isinstance(part, Sentences):
        return "\n".join(map(_part, part.items))
    if isinstance(part, Table):
        return _table(part)
    return FORMS["plain"].format(_plain(tr("; ").join((part.words, part.scale))))


def _first_screen(part: RunTitle | ScreenRows) -> str:
    if isinstance(part, RunTitle):
        return f"### {_plain(tr(', ').join(part.who))}\n\n{_plain(tr(' · ').join(part.extent))}\n"
    rows = [(row.label, row.value, row.explanation) for row in part.rows]
    return _table(Table(("", "", ""), rows, prose={1, 2}))


def _heading(heading: Heading) -> str:
    if heading.kind == "title":
        return f"### {_plain(heading.text)}\n"
    return f"\n{_plain(tr('{heading}:', heading=heading.text))}\n"


def _table(table: Table) -> str:
    sides = ["---" if not at or at in table.prose else "---:" for at in range(len(table.headings))]
    rows = [[_cell(cell) for cell in row] for row in table.cells]
    lines = [[_plain(heading) for heading in table.headings], sides, *rows]
    caption = [f"{_plain(table.caption)}\n"] if table.caption else []
    return "\n".join([*caption, *(f"| {' | '.join(line)} |" for line in lines)]) + "\n"


def _cell(cell: Cell) -> str:
    return " ".join(_plain(text) for text in (cell.text, cell.remark) if text)


def _plain(text: str) -> str:
    """Words of a log must not become a link, a tag or a heading."""
    return visible(" ".join(text.split())).translate(SPECIAL)
