"""Parts as a piece of HTML, for a notebook and for a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from analysis.present.parts import Bar, Cell, Heading, Part, RunTitle, ScreenRows, Sentence, Sentences, Sparkline, Table
from logparse.language import tr

# Characters of a cell that may be wrapped; a number is shorter.
LONG = 32
# A table of fewer columns is not spread over the page.
FEW = 4


def html(parts: Sequence[Part], level: int = 4) -> str:
    """``parts`` with every word escaped, titles as headings of ``level``; a sparkline is left to the charts."""
    return "\n".join(_part(part, level) for part in parts if not isinstance(part, Sparkline))


def _part(part: RunTitle | ScreenRows | Heading | Sentence | Sentences | Table | Bar, level: int) -> str:
    if isinstance(part, RunTitle | ScreenRows):
        return _first_screen(part, level)
    if isinstance(part, Heading):
        tag = f"h{level if part.kind == 'title' else level + 1}"
        return f"<{tag}>{escape(part.text)}</{tag}>"
    if isinstance(part, Sentence):
        return _sentence(part)
    if isinstance(part, Sentences):
        return f"<ul>{''.join(map(_item, part.items))}</ul>" if part.items else ""
    return _table(part) if isinstance(part, Table) else _bar(part)


def _first_screen(part: RunTitle | ScreenRows, level: int) -> str:
    if isinstance(part, RunTitle):
        who, extent = tr(", ").join(part.who), tr(" · ").join(part.extent)
        return f"<h{level}>{escape(who)}</h{level}>\n<p>{escape(extent)}</p>"
    rows = (
        f'<tr><th scope="row">{escape(row.label)}</th><td><b>{escape(row.value)}</b> '
        f"{escape(row.explanation)}</td></tr>"
        for row in part.rows
    )
    return f'<table class="facts"><tbody>\n{chr(10).join(rows)}\n</tbody></table>'


def _sentence(sentence: Sentence) -> str:
    if sentence.kind == "warning":
        return f'<p class="warning"><b>!</b> {_text_and_places(sentence)}</p>'
    return f"<p>{_text_and_places(sentence)}</p>"


def _item(sentence: Sentence) -> str:
    if sentence.kind == "warning":
        return f'<li class="warning"><b>{escape(tr("warning"))}</b> {_text_and_places(sentence)}</li>'
    return f"<li>{_text_and_places(sentence)}</li>"


def _text_and_places(sentence: Sentence) -> str:
    link = [f'<a href="{escape(sentence.link)}">{escape(sentence.link)}</a>'] if sentence.link else []
    return " ".join([escape(sentence.text), *(_place(place, place) for place in sentence.places), *link])


def _place(place: str, text: str) -> str:
    """A file and line that a click copies, where the page has a script; without one it is the text."""
    return f'<span class="place" data-copy="{escape(place)}">{escape(text)}</span>'


def _table(table: Table) -> str:
    """A table that scrolls by itself where the page is narrow."""
    label = escape(table.caption or ", ".join(heading for heading in table.headings if heading))
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    words = [_class("words" * (at in table.prose)) for at in range(len(table.headings))]
    head = "".join(f'<th scope="col"{names}>{escape(h)}</th>' for h, names in zip(table.headings, words, strict=True))
    rows = "\n".join(f"<tr>{''.join(_cells(row, table))}</tr>" for row in table.cells)
    narrow = _class("narrow" * (len(table.headings) < FEW))
    drawn = f"<table{narrow}>{caption}<thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>"
    return f'<div class="scroll" tabindex="0" role="group" aria-label="{label}">{drawn}</div>'


def _cells(row: Sequence[Cell], table: Table) -> Iterator[str]:
    for at, cell in enumerate(row):
        tag, scope = ("td", "") if at else ("th", ' scope="row"')
        names = _class(cell.mark, "words" * (at in table.prose), "long" * (at > 0 and len(cell.text) > LONG))
        remark = f" <small>{_place(cell.place, cell.remark) if cell.place else escape(cell.remark)}</small>"
        bar = "" if cell.bar is None else f'<i class="bar" style="--share:{max(cell.bar, 0):.3f}"></i>'
        yield f"<{tag}{scope}{names}>{bar}{escape(cell.text)}{remark if cell.remark else ''}</{tag}>"


def _class(*names: str) -> str:
    classes = " ".join(name for name in names if name)
    return f' class="{classes}"' if classes else ""


def _bar(bar: Bar) -> str:
    """The lengths upon each other, and below what each of them is."""
    marks = [("mfu", f"width:{bar.mfu}%", "MFU")]
    marks += [] if bar.hfu is None else [("hfu", f"width:{bar.hfu}%", "HFU")]
    if bar.band:
        low, high = bar.band
        marks.append(("band", f"left:{low}%;width:{high - low}%", tr("peak range of the SKUs")))
    # What is drawn later lies upon what is drawn before.
    lengths = "".join(f'<span class="{name}" style="{place}"></span>' for name, place, _ in reversed(marks))
    peak = f'<span class="peak" style="left:{bar.peak}%"></span>'
    legend = "".join(
        f'<span><i class="{name}"></i>{escape(label)}</span>' for name, _, label in (*marks, ("peak", "", bar.scale))
    )
    return (
        f'<div class="gauge" role="img" aria-label="{escape(bar.words)}; {escape(bar.scale)}">'
        f'<div class="track">{lengths}{peak}</div><p class="scale"><b>{escape(bar.words)}</b>{legend}</p></div>'
    )
