"""Parts on a terminal. A number is never cut: a narrow terminal wraps the line."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.present.console import cut, fill, fold
from analysis.present.parts import Bar, Cell, Heading, Part, RunTitle, ScreenRows, Sentence, Sentences, Sparkline, Table
from logparse.language import tr, visible

if TYPE_CHECKING:
    import rich.table
    from rich.console import Console

STYLES = {"plain": "", "warning": "yellow", "info": "dim"}
# By the mark of a cell.
MARKS = {"regression": "red", "suspicious": "yellow", "improvement": "green"}
SIGNS = {"warning": "! ", "info": "- "}
BARS = "▁▂▃▄▅▆▇█"
LEAST_BARS = 10
# A table of numbers takes what it needs up to this, one that ends in prose at least the other.
WIDEST, LEAST_WIDTH = 1000, 72
# Columns on each side of a cell in a table that ends in prose, and the least that prose gets next to long names.
PROSE_PADDING, LEAST_PROSE = 2, 24
# A table of at most so many rows is turned where only so it fits.
MOST_TURNED = 5
# The least that words get in a table with headings that ends in numbers.
LEAST_WORDS = 11
# What names get in addition before a narrow terminal leaves out no more columns.
ROOM_OF_NAMES = 12
# How far from the middle half of the values bars reach, in its widths; it is taken for no narrower than a share.
REACH, LEAST_SPREAD = 3, 0.01
# The least columns of a label and of a value on the first screen.
LEAST_LABEL, LEAST_VALUE = 12, 11
# From here on numbers have no decimals.
LARGE = 1000


def print_parts(console: Console, parts: Sequence[Part]) -> None:
    """Print ``parts`` with an empty line before each table of numbers and each heading of a section."""
    for part in parts:
        _print(console, part)
    console.print()


def _print(console: Console, part: Part) -> None:
    if isinstance(part, Heading):
        title = part.kind == "title"
        console.print(("" if title else "\n") + fold(part.text, console.width), style="bold" if title else "")
    elif isinstance(part, Sentence):
        text = SIGNS.get(part.kind, "") + part.text + (f" {part.link}" if part.link else "")
        lines = cut(text, console.width, part.cut) if part.cut else fold(text, console.width)
        console.print(lines, style=STYLES[part.kind])
    elif isinstance(part, Sentences):
        for sentence in part.items:
            _print(console, sentence)
    elif isinstance(part, Table):
        _print_table(console, part)
    elif isinstance(part, Bar):
        _print(console, Sentence(tr("; ").join((part.words, part.scale))))
    elif isinstance(part, Sparkline):
        _print_sparkline(console, part)
    else:
        _print_first_screen(console, part)


def _print_first_screen(console: Console, part: RunTitle | ScreenRows) -> None:
    """Lines break between clauses only; those of a row go on below the first clause."""
    from rich.cells import cell_len

    if isinstance(part, RunTitle):
        console.print("\n".join(fill(part.who, ", ", console.width)), style="bold", soft_wrap=True)
        console.print("\n".join(fill(part.extent, " · ", console.width)) + "\n", soft_wrap=True)
        return
    labels = max((cell_len(row.label) for row in part.rows), default=0)
    for row in part.rows:
        head = _padded(row.label, max(labels, LEAST_LABEL) + 2)
        if row.value:
            head += _padded(row.value, LEAST_VALUE) if row.clauses else row.value
        lines = fill(row.clauses, row.separator, console.width - cell_len(head)) or [""]
        indented = ("\n" + " " * cell_len(head)).join(lines)
        console.print((head + indented).rstrip(), soft_wrap=True)


def _padded(text: str, width: int) -> str:
    from rich.cells import cell_len

    return text + " " * max(width - cell_len(text), 2)


def _print_table(console: Console, table: Table) -> None:
    if table.spare and console.is_terminal:
        _print_fitting(console, table)
    else:
        _print_whole(console, table)


def _print_fitting(console: Console, table: Table) -> None:
    """As many columns as there is room for; a pipe gets all of them, since a program reads them."""
    for n in range(len(table.spare) + 1):
        left_out = sorted(table.spare[:n])
        # Headed, so that long names wrap.
        fitting = replace(table.without(left_out), headed=True)
        rows = [[_text(cell) for cell in row] for row in fitting.cells]
        if _width(console, fitting, rows) - _slack(fitting, rows) + ROOM_OF_NAMES <= console.width:
            break
    _print_whole(console, fitting)
    if left_out:
        names = tr(", ").join(str(table.headings[at]).replace("\n", " ") for at in left_out)
        text = tr("left out on this narrow terminal: {names}; a wider one, or JSON, has all", names=names)
        console.print(fold(text, console.width), style=STYLES["info"])


def _print_whole(console: Console, table: Table) -> None:
    prose = _ends_in_prose(table)
    if not prose:
        console.print()
    if table.caption:
        console.print(fold(table.caption, console.width))
    rows = [[_text(cell) for cell in row] for row in table.cells]
    needed = LEAST_WIDTH if prose else _width(console, table, rows)
    if needed > console.width and not prose and _can_be_turned(table):
        turned = _turned(table)
        turned_rows = [[_text(cell) for cell in row] for row in turned.cells]
        if (width := _width(console, turned, turned_rows)) <= console.width:
            table, rows, needed = turned, turned_rows, width
    if not prose and needed - _slack(table, rows) <= console.width:
        # Else the terminal wraps every line, and nothing is won.
        needed = console.width
    width, console.width = console.width, max(console.width, needed)
    console.print(_drawn(table, _folded(table, rows, console.width) if prose else rows))
    console.width = width


def _width(console: Console, table: Table, rows: Sequence[Sequence[str]]) -> int:
    """The columns that a table of numbers needs so that no line is wrapped."""
    from rich.measure import Measurement

    wide = console.options.update(max_width=WIDEST)
    return Measurement.get(console, wide, _drawn(table, rows)).maximum


def _can_be_turned(table: Table) -> bool:
    """Whether rows and columns may change places: few rows of numbers, whose names need no heading."""
    return not table.headings[0] and not table.prose and 0 < len(table.rows) <= MOST_TURNED


def _turned(table: Table) -> Table:
    """The table with rows and columns exchanged."""
    names, *columns = zip(*table.cells, strict=True)
    headings = ("", *(_text(name) for name in names))
    rows = [(Cell(heading), *column) for heading, column in zip(table.headings[1:], columns, strict=True)]
    return Table(headings, rows, table.caption)


def _ends_in_prose(table: Table) -> bool:
    return len(table.headings) - 1 in table.prose


def _slack(table: Table, rows: Sequence[Sequence[str]]) -> int:
    """By how much a table that ends in numbers can be narrower where its words wrap; without headings they do not."""
    from rich.cells import cell_len

    places = {0, *table.prose} if table.headed else ()
    longest = (max((cell_len(row[at]) for row in rows), default=0) for at in places)
    return sum(max(0, length - LEAST_WORDS) for length in longest)


def _text(cell: Cell) -> str:
    return " ".join(text for text in (cell.text, cell.remark) if text)


def _folded(table: Table, rows: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """``rows`` with their prose in lines that fit next to the other columns."""
    from rich.cells import cell_len

    shown = [table.headings, *rows] if table.headed else rows
    lines = ((line for cell in column for line in cell.splitlines()) for column in zip(*shown, strict=True))
    widths = [max(map(cell_len, column), default=0) + 2 * _padding(table) for column in lines][:-1]
    least = LEAST_PROSE if table.headed else LEAST_BARS
    return [[*row[:-1], fold(row[-1], max(width - sum(widths), least))] for row in rows]


def _drawn(table: Table, rows: Sequence[Sequence[str]]) -> rich.table.Table:
    import rich.table
    from rich.text import Text

    prose = _ends_in_prose(table)
    drawn = rich.table.Table(
        box=None,
        pad_edge=False,
        padding=(0, _padding(table)),
        collapse_padding=not prose,
        show_header=table.headed or not prose,
    )
    last = len(table.headings) - 1
    for at, heading in enumerate(table.headings):
        if prose and at == last:
            drawn.add_column(heading, ratio=1, style="dim", overflow="fold")
        elif table.headed and (not at or (at in table.prose and not prose)):
            # Long names wrap where others need the room.
            drawn.add_column(heading, overflow="fold")
        else:
            drawn.add_column(heading, justify="right" if at and at not in table.prose else "left", no_wrap=True)
    for cells, row in zip(table.cells, rows, strict=True):
        drawn.add_row(*(Text(visible(text), MARKS.get(cell.mark, "")) for cell, text in zip(cells, row, strict=True)))
    return drawn


def _padding(table: Table) -> int:
    """Columns on each side of a cell; prose without headings gets more."""
    return PROSE_PADDING if _ends_in_prose(table) and not table.headed else 1


def _print_sparkline(console: Console, line: Sparkline) -> None:
    """Not on a terminal that cannot show block characters, nor where there is no room."""
    from rich.cells import cell_len

    words = _scale(line)
    room = console.width - cell_len(words)
    if console.encoding.lower().startswith("utf") and room >= LEAST_BARS:
        console.print(words + sparkline(line.values, room), no_wrap=True)


def _scale(line: Sparkline) -> str:
    """The least and the greatest value that the bars distinguish, and how many values lie beyond them."""
    low, high = _ends(line.values)
    above, below = sum(value > high for value in line.values), sum(value < low for value in line.values)
    inside = [value for value in line.values if low <= value <= high]
    low, high = min(inside), max(inside)
    least, most = (f"{end:,.{0 if high >= LARGE else 1}f}" for end in (low, high))
    ends = most if least == most else tr("{low} to {high}", low=least, high=most)
    words = [
        f"{line.name}{tr(', ')}{ends} {line.unit}".rstrip(),
        *([tr("{n} above", n=f"{above:,}")] if above else []),
        *([tr("{n} below", n=f"{below:,}")] if below else []),
    ]
    return tr("{name}: ", name=tr(", ").join(words))


def sparkline(values: Sequence[float], width: int) -> str:
    """``values`` as at most ``width`` bars, from the least to the greatest except for outliers.

    A bar of several values shows the largest, so that no stall is hidden.
    """
    low, high = _ends(values)
    groups = min(width, len(values))
    ends = [round(i * len(values) / groups) for i in range(groups + 1)]
    heights = ((max(values[a:b]) - low) / ((high - low) or 1.0) for a, b in itertools.pairwise(ends))
    return "".join(BARS[round((len(BARS) - 1) * min(max(height, 0.0), 1.0))] for height in heights)


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """The values of the lowest and of the highest bar."""
    if len(values) < 2:
        return values[0], values[0]
    first, _, third = statistics.quantiles(values, method="inclusive")
    reach = REACH * max(third - first, LEAST_SPREAD * third)
    return max(min(values), first - reach), min(max(values), third + reach)
