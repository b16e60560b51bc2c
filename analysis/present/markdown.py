"""Parts as Markdown, for a pull request or an issue."""

from __future__ import annotations

import re
from collections.abc import Sequence

from analysis.present.parts import Bar, Cell, Heading, Part, RunTitle, ScreenRows, Sentence, Sentences, Sparkline, Table
from logparse.language import tr, visible

FORMS = {"plain": "{}\n", "warning": "- **{}**", "info": "- {}"}
SPECIAL = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]<>|#~&$"})
# What begins a list or a line across the page at the beginning of a paragraph.
BLOCK = re.compile(r"^(?:\d{1,9}(?=[.)](?:\s|$))|(?=[-+](?:[\s-]|$)))")
# A name that a code host would call somebody by, and an address that it would make a link.
CALL, ADDRESS = re.compile(r"(?<![\w.])@(?=\w)"), re.compile(r"\b(?:(?:https?|ftp)(?=://)|www(?=\.))", re.IGNORECASE)


def markdown(parts: Sequence[Part]) -> str:
    """``parts`` as text that any Markdown reader shows unchanged; sparklines are left out."""
    pieces = (_part(part) for part in parts if not isinstance(part, Sparkline))
    lines: list[str] = []
    for piece in filter(None, pieces):
        # What follows an item of a list on the next line would be of the item.
        goes_on = lines and lines[-1].startswith("- ") and not piece.startswith(("- ", "\n"))
        lines.append(f"\n{piece}" if goes_on else piece)
    return "\n".join(lines) + "\n"


def _part(part: RunTitle | ScreenRows | Heading | Sentence | Sentences | Table | Bar) -> str:
    if isinstance(part, RunTitle | ScreenRows):
        return _first_screen(part)
    if isinstance(part, Heading):
        return _heading(part)
    if isinstance(part, Sentence):
        return FORMS[part.kind].format(_line(part.text) + (f" <{part.link}>" if part.link else ""))
    if isinstance(part, Sentences):
        return "\n".join(map(_part, part.items))
    if isinstance(part, Table):
        return _table(part)
    return FORMS["plain"].format(_line(tr("; ").join((part.words, part.scale))))


def _first_screen(part: RunTitle | ScreenRows) -> str:
    if isinstance(part, RunTitle):
        return f"### {_plain(tr(', ').join(part.who))}\n\n{_plain(tr(' · ').join(part.extent))}\n"
    rows = [(row.label, row.value, row.explanation) for row in part.rows]
    return _table(Table(("", "", ""), rows, prose={1, 2}))


def _heading(heading: Heading) -> str:
    if heading.kind == "title":
        return f"### {_plain(heading.text)}\n"
    return f"\n{_line(tr('{heading}:', heading=heading.text))}\n"


def _table(table: Table) -> str:
    sides = ["---" if not at or at in table.prose else "---:" for at in range(len(table.headings))]
    rows = [[_cell(cell) for cell in row] for row in table.cells]
    lines = [[_plain(heading) for heading in table.headings], sides, *rows]
    caption = [f"{_line(table.caption)}\n"] if table.caption else []
    return "\n".join([*caption, *(f"| {' | '.join(line)} |" for line in lines)]) + "\n"


def _cell(cell: Cell) -> str:
    return " ".join(_plain(text) for text in (cell.text, cell.remark) if text)


def _plain(text: str) -> str:
    """Words of a log must not become a link, a tag, a heading or a call of a person."""
    shown = visible(" ".join(text.split())).translate(SPECIAL)
    return CALL.sub("@&#8203;", ADDRESS.sub(r"\g<0>\\", shown))


def _line(text: str) -> str:
    """``text`` as the beginning of a paragraph or of an item of a list."""
    return BLOCK.sub(r"\g<0>\\", _plain(text))
