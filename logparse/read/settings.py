"""Settings of a run, as the framework printed them: blocks (argument dumps, configs) and sentences.

Comes in: lines. Goes out: a frame of name, value, kind, source, line number. What a setting means is not decided here.
Settings are read only inside a block of the format or a sentence of it, because libraries print names like
``world_size`` of their own.

So that a line of any length costs little, settings are read from its first 8 KiB, and a value that does not end there
is cut at its last space; blocks are nested 50 deep at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl
import regex

from logparse.formats._base import Block, LogFormat, SettingSentence
from logparse.schema import SETTING_COLUMNS

SCHEMA = {c.name: c.dtype for c in SETTING_COLUMNS}
# Characters of a line in which settings are looked for, and how deep a nested block may go.
LONGEST, DEEPEST = 8192, 50
# ``opened`` is the line number on which the block of a line begins.
INSIDE = {"opened": pl.Int64(), "line_number": pl.Int64(), "text": pl.String()}


class Setting(NamedTuple):
    """One row of the settings frame."""

    name: str
    value: str
    kind: str
    source: str
    line_number: int


def read_blocks(frames: Iterable[pl.DataFrame], blocks: Sequence[Block]) -> dict[Block, pl.DataFrame]:
    """The lines inside each block of a file (see INSIDE); a block may run from one frame into the next.

    A line is in one block of a kind at most: a start ends the block before it. So a log of nothing but starts costs no
    more than any other.
    """
    found = {block: [pl.DataFrame(schema=INSIDE)] for block in blocks}
    running: dict[Block, int | None] = dict.fromkeys(blocks)
    for frame in frames:
        for block in found:
            inside, running[block] = _inside(frame, block, running[block])
            found[block].append(inside)
    return {block: pl.concat(parts) for block, parts in found.items()}


def _inside(frame: pl.DataFrame, block: Block, running: int | None) -> tuple[pl.DataFrame, int | None]:
    """Lines of ``frame`` inside a ``block``, and where the block begins that is open at its end.

    ``running`` is where the block begins that was open before.
    """
    marked = frame["text"].str.contains(block.marker, literal=True)
    if running is None and not marked.any():
        return pl.DataFrame(schema=INSIDE), None
    starts = marked & frame["text"].str.contains(block.start)
    opened = pl.when(starts).then("line_number").forward_fill().fill_null(pl.lit(running, pl.Int64))
    near = frame.with_columns(opened=opened).filter(pl.col("line_number") - pl.col("opened") <= block.max_lines)
    ends = pl.col("text").str.contains(block.end) & (pl.col("line_number") > pl.col("opened"))
    inside = near.filter(~ends.cum_max().over("opened"))
    still_open = not inside.is_empty() and inside["line_number"][-1] == frame["line_number"][-1]
    # The last value of a file that was cut off may have lost digits.
    return inside.filter("complete").select(INSIDE.keys()), inside["opened"][-1] if still_open else None


def _beginning(text: str) -> str:
    """As much of a line as is read; what is cut off begins at a space, so that no number loses digits."""
    return text if len(text) <= LONGEST else text[: LONGEST + 1].rpartition(" ")[0]


def settings_of_block(block: Block, lines: Iterable[tuple[str, int, int, str]]) -> Iterator[Setting]:
    """The settings on ``lines`` (source, opened, line number, text), names joined by dots where the block is nested."""
    path: list[tuple[int, str]] = []
    entry = regex.compile(block.entry)
    for source, opened, number, text in lines:
        if number == opened:
            path = []
        for found in entry.finditer(_beginning(text)):
            name, value = found.group(1), found.group(2).replace("\r", " ").strip().rstrip(",").strip()
            if block.nested:
                column = found.start(1)
                path = [part for part in path if part[0] < column]
                if value.startswith("{") and len(path) < DEEPEST:
                    path.append((column, name))
                name, value = ".".join((*(part for _, part in path), name)), value.rstrip("}")
            if value and not value.startswith("{"):
                yield Setting(name, value.strip("'\""), block.kind, source, number)


def settings_of_sentences(lines: pl.DataFrame, sentences: tuple[SettingSentence, ...]) -> Iterator[Setting]:
    """The settings that stand in prose."""
    whole = lines.filter("complete").select("source", "line_number", "text")
    marked = {m: whole.filter(pl.col("text").str.contains(m, literal=True)) for m in {s.marker for s in sentences}}
    for sentence in sentences:
        search = regex.compile(sentence.pattern).search
        rows = marked[sentence.marker].iter_rows()
        found = [(source, number, match) for source, number, text in rows if (match := search(_beginning(text)))]
        for source, number, match in found[-1:] if sentence.last else found:
            for name, value in match.groupdict().items():
                yield Setting(name, value, sentence.kind, source, number)


def settings_frame(lines: pl.DataFrame, inside: Mapping[Block, pl.DataFrame], fmt: LogFormat) -> pl.DataFrame:
    """Every setting that ``fmt`` finds in sentences on ``lines`` or ``inside`` its blocks, in order of appearance."""
    columns = ("source", *INSIDE)
    rows = [
        row for b in dict.fromkeys(fmt.blocks) for row in settings_of_block(b, inside[b].select(columns).iter_rows())
    ]
    rows += settings_of_sentences(lines, fmt.sentences)
    return pl.DataFrame(rows, schema=SCHEMA, orient="row").sort("line_number", maintain_order=True)
