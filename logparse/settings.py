"""Settings of a run, as the framework printed them: blocks (argument dumps, configs) and sentences.

Comes in: lines. Goes out: a frame of name, value, kind, source, line number. What a setting means is not decided here.
Settings are read only inside a block of the format or a sentence of it, because libraries print names like
``world_size`` of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl
import regex

from logparse.formats._base import Block, LogFormat, Sentence
from logparse.schema import SETTING_COLUMNS

SCHEMA = {c.name: c.dtype for c in SETTING_COLUMNS}


class Setting(NamedTuple):
    """One row of the settings frame."""

    name: str
    value: str
    kind: str
    source: str
    line_number: int


@dataclass
class OpenBlock:
    """A block whose end has not been seen yet. ``lines`` are (line number, text)."""

    block: Block
    lines: list[tuple[int, str]] = field(default_factory=list)
    closed: bool = False

    def feed(self, lines: Iterable[tuple[int, str]]) -> None:
        """Take lines up to the block's end."""
        is_end = regex.compile(self.block.end).search
        for number, text in lines:
            opening = not self.lines
            self.lines.append((number, text))
            if not opening and (is_end(text) or len(self.lines) > self.block.max_lines):
                self.closed = True
                return


def read_blocks(frames: Iterable[pl.DataFrame], blocks: tuple[Block, ...]) -> Iterator[OpenBlock]:
    """Collect the lines of every block in a file's frames; a block may run from one frame into the next."""
    running: list[OpenBlock] = []
    for frame in frames:
        for block in running:
            block.feed(_lines(frame))
        running = [b for b in running if not b.closed]
        for opened in _openings(frame, blocks):
            yield opened
            if not opened.closed:
                running.append(opened)


def _openings(frame: pl.DataFrame, blocks: tuple[Block, ...]) -> Iterator[OpenBlock]:
    for block in dict.fromkeys(blocks):
        hits = frame["text"].str.contains(block.marker, literal=True).arg_true()
        for index in hits:
            if regex.search(block.start, frame["text"][index]):
                opened = OpenBlock(block)
                opened.feed(_lines(frame.slice(index, block.max_lines + 1)))
                yield opened


def _lines(frame: pl.DataFrame) -> Iterator[tuple[int, str]]:
    """Lines that are whole: the last value of a file that was cut off may have lost digits."""
    return frame.filter("complete").select("line_number", "text").iter_rows()


def settings_of_block(opened: OpenBlock, source: str) -> Iterator[Setting]:
    """The settings of one block, names joined by dots where the block is nested."""
    path: list[tuple[int, str]] = []
    entry = regex.compile(opened.block.entry)
    for number, text in opened.lines:
        for found in entry.finditer(text):
            name, value = found.group(1), found.group(2).strip().rstrip(",").strip()
            if opened.block.nested:
                column = found.start(1)
                path = [part for part in path if part[0] < column]
                if value.startswith("{"):
                    path.append((column, name))
                name, value = ".".join((*(part for _, part in path), name)), value.rstrip("}")
            if value and not value.startswith("{"):
                yield Setting(name, value.strip("'\""), opened.block.kind, source, number)


def settings_of_sentences(lines: pl.DataFrame, sentences: tuple[Sentence, ...]) -> Iterator[Setting]:
    """The settings that stand in prose."""
    for sentence in sentences:
        search = regex.compile(sentence.pattern).search
        hits = lines.filter(pl.col("complete") & pl.col("text").str.contains(sentence.marker, literal=True))
        rows = hits.select("source", "line_number", "text").iter_rows()
        found = [(source, number, match) for source, number, text in rows if (match := search(text))]
        for source, number, match in found[-1:] if sentence.last else found:
            for name, value in match.groupdict().items():
                yield Setting(name, value, sentence.kind, source, number)


def settings_frame(lines: pl.DataFrame, blocks: Iterable[tuple[str, OpenBlock]], fmt: LogFormat) -> pl.DataFrame:
    """Every setting that ``fmt`` finds, in order of appearance."""
    mine = ((source, opened) for source, opened in blocks if opened.block in fmt.blocks)
    rows = [row for source, opened in mine for row in settings_of_block(opened, source)]
    rows += settings_of_sentences(lines, fmt.sentences)
    return pl.DataFrame(rows, schema=SCHEMA, orient="row").sort("line_number", maintain_order=True)
