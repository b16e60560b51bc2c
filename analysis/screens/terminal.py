"""Parts of a run on a terminal. A number is never cut: a narrow terminal wraps the line."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.screens.analyze import Grid, Line, Part, Trace
from analysis.screens.console import fold
from logparse.language import tr

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

STYLES = {"title": "bold", "heading": "", "plain": "", "warning": "yellow", "info": "dim"}
SIGNS = {"warning": "! ", "info": "- "}
BARS = "▁▂▃▄▅▆▇█"
LEAST_BARS = 10
# A table of numbers takes what it needs up to this, one with prose at least the other.
WIDEST, LEAST_WIDTH = 1000, 72
# Columns on each side of a cell in a table with prose, and the least that prose gets beside long names.
PROSE_PADDING, LEAST_PROSE = 2, 24


def print_parts(console: Console, parts: Sequence[Part]) -> None:
    """Print ``parts`` with an empty line before each table of numbers and each heading."""
    for part in parts:
        if isinstance(part, Line):
            before = "\n" if part.kind == "heading" else ""
            console.print(before + fold(SIGNS.get(part.kind, "") + part.text, console.width), style=STYLES[part.kind])
        elif isinstance(part, Trace):
            _print_trace(console, part)
        else:
            _print_grid(console, part)
    console.print()


def _print_grid(console: Console, grid: Grid) -> None:
    from rich.measure import Measurement

    table = _table(grid)
    wide = console.options.update(max_width=WIDEST)
    needed = LEAST_WIDTH if grid.prose else Measurement.get(console, wide, table).maximum
    if not grid.prose:
        console.print()
    width, console.width = console.width, max(console.width, needed)
    console.print(_table(_folded(grid, console.width)) if grid.prose else table)
    console.width = width


def _folded(grid: Grid, width: int) -> Grid:
    """``grid`` with its prose in lines that fit beside the other columns."""
    from rich.cells import cell_len

    shown = (grid.headings, *grid.rows) if grid.headed else grid.rows
    lines = ((line for cell in column for line in cell.splitlines()) for column in zip(*shown, strict=True))
    others = [max(map(cell_len, column), default=0) + 2 * _padding(grid) for column in lines][:-1]
    least = LEAST_PROSE if grid.headed else LEAST_BARS
    rows = tuple((*row[:-1], fold(row[-1], max(width - sum(others), least))) for row in grid.rows)
    return replace(grid, rows=rows)


def _table(grid: Grid) -> Table:
    from rich.table import Table

    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, _padding(grid)),
        collapse_padding=not grid.prose,
        show_header=grid.headed or not grid.prose,
    )
    last = len(grid.headings) - 1
    for index, heading in enumerate(grid.headings):
        if grid.prose and index == last:
            table.add_column(heading, ratio=1, style="dim", overflow="fold")
        elif grid.headed and not index:
            # Long names wrap where prose needs the room.
            table.add_column(heading, overflow="fold")
        else:
            table.add_column(heading, justify="right" if index else "left", no_wrap=True)
    for row in grid.rows:
        table.add_row(*row)
    return table


def _padding(grid: Grid) -> int:
    """Columns on each side of a cell; prose without headings stands further apart."""
    return PROSE_PADDING if grid.prose and not grid.headed else 1


def _print_trace(console: Console, trace: Trace) -> None:
    """Not on a terminal that cannot show block characters, nor where there is no room."""
    from rich.cells import cell_len

    ends = tr("{low} to {high} {unit}", low=f"{trace.low:,.1f}", high=f"{trace.high:,.1f}", unit=trace.unit)
    words = tr("{name}, {ends}: ", name=trace.name, ends=ends)
    room = console.width - cell_len(words)
    if console.encoding.lower().startswith("utf") and room >= LEAST_BARS:
        console.print(words + sparkline(trace.values, room), no_wrap=True)


def sparkline(values: Sequence[float], width: int) -> str:
    """``values`` as at most ``width`` bars from zero up; half the height is the median, full height twice that or more.

    A bar that stands for several values shows the largest, so that no stall is hidden.
    """
    groups = min(width, len(values))
    ends = [round(i * len(values) / groups) for i in range(groups + 1)]
    full = 2 * statistics.median(values) or 1.0
    heights = (max(values[a:b]) / full for a, b in itertools.pairwise(ends))
    return "".join(BARS[max(0, round(8 * min(height, 1)) - 1)] for height in heights)
