"""What the patterns make of some lines, cell by cell: what stencils are held to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import polars as pl
import polars.selectors as cs
import regex

from logparse.formats._base import LogFormat
from logparse.read.contents import BlockContents, Frame, Wanted, find_in, frames_of
from logparse.read.line_sample import times_on
from logparse.read.lines import TextBlock
from logparse.read.stencil import STAMP
from logparse.read.versions import versions_of

# What a line tells: the frame, the how-manieth row of the line there, the column.
Cell = tuple[Frame, int, str]


@dataclass(frozen=True)
class LinesTold:
    """What the patterns make of some lines, and the cells that each of ``lines`` gives."""

    contents: BlockContents
    lines: tuple[dict[Cell, object], ...]

    def number(self, line: int, cell: Cell) -> float:
        """The number in the cell of a line."""
        value = self.lines[line][cell]
        assert isinstance(value, int | float)
        return value

    def reads(self, line: int) -> bool:
        """Whether nothing on it is malformed."""
        return not any(frame[0] == "malformed" for frame, *_ in self.lines[line])

    @property
    def alike(self) -> bool:
        """Whether their labels may be the same, and no pair counts on some logs alone."""
        blocks = self.contents.steps.values()
        same = all(times % len(self.lines) == 0 for block in blocks for times in block.labels.values())
        return same and not any(len(block.tails) for block in blocks)

    @cached_property
    def frames(self) -> dict[Frame, pl.DataFrame]:
        """The rows, in order of the lines."""
        every = frames_of(self.contents.steps, self.contents.records)
        return {frame: rows for frame, rows in every if len(rows)}

    @cached_property
    def of_first(self) -> dict[Frame, pl.DataFrame]:
        """The rows that the first line gives."""
        mine = pl.col("line_number") == 0
        return {frame: rows.filter(mine) for frame, rows in self.frames.items() if 0 in rows["line_number"]}

    @cached_property
    def labels(self) -> dict[str, Counter[str]]:
        """How often each label of a format stands on one of the lines, where they are alike."""
        n, steps = len(self.lines), self.contents.steps.items()
        return {name: Counter({label: times // n for label, times in block.labels.items()}) for name, block in steps}


def block_of(texts: Sequence[str]) -> TextBlock:
    """Lines of such bytes."""
    return TextBlock("", 0, len(texts), True, "".join(f"{text}\n" for text in texts).encode("latin-1"))


def told_of(texts: Sequence[str], rule: Wanted) -> LinesTold:
    """What the patterns make of the lines."""
    found = find_in(block_of(texts).lines, rule, 0)
    lines = cells_of(frames_of(found.steps, found.records), len(texts))
    blocks = found.steps.values()
    for bad in chain.from_iterable((*block.malformed, *block.malformed_beside) for block in blocks):
        lines[bad.line_number][("malformed",), 0, bad.label] = True
    return LinesTold(found, tuple(lines))


def cells_of(frames: Iterable[tuple[Frame, pl.DataFrame]], lines: int) -> list[dict[Cell, object]]:
    """The cells that each line gives; a time is microseconds, and NaN is equal to itself."""
    found: list[dict[Cell, object]] = [{} for _ in range(lines)]
    for frame, rows in (told for told in frames if len(told[1])):
        seen = Counter[int]()
        plain = rows.sort("line_number", maintain_order=True).with_columns(cs.datetime().to_physical()).drop("source")
        for row in plain.iter_rows(named=True):
            at = row.pop("line_number")
            cells = {(frame, seen[at], name): value if value == value else "NaN" for name, value in row.items()}
            found[at] |= cells
            seen[at] += 1
    return found


def hides_number(frames: Mapping[Frame, pl.DataFrame], text: str, formats: Sequence[LogFormat]) -> bool:
    """Whether a number of a head is none because it cannot be; with other digits it may be one."""
    line = block_of([text]).lines["text"][0]
    for fmt in (fmt for fmt in formats if ("rows", fmt.name) in frames):
        rows = frames["rows", fmt.name]
        if len(rows) > 1 or any(rows[name][0] is None for name in _groups(line, fmt)):
            return True
    return False


def _groups(text: str, fmt: LogFormat) -> set[str]:
    """The groups of the head that are there."""
    head = regex.search(fmt.head, text)
    return {name for name, value in head.groupdict().items() if value is not None} if head else set()


def told_once(texts: Sequence[str], wanted: Wanted) -> bool | None:
    """Whether a sentence stands on the lines of which the first is read; None where there is more beside rows."""
    lines = block_of(texts).lines
    read = lines["text"].to_list()

    def stands(marker: str, pattern: str) -> bool:
        return any(marker in text and regex.search(pattern, text) for text in read)

    sentences = [told for fmt in wanted.whole for told in fmt.sentences if stands(told.marker, told.pattern)]
    begins = any(stands(block.marker, block.start) for fmt in wanted.formats for block in fmt.blocks)
    if begins or versions_of(lines) or not all(told.first for told in sentences):
        return None
    return bool(sentences)


def stamp_of(text: str, frames: Mapping[Frame, pl.DataFrame]) -> tuple[int, int]:
    """Where the time of the rows stands last; nowhere where they have none, or none that a stencil can read."""
    timed = [rows["timestamp"].drop_nulls() for rows in frames.values() if "timestamp" in rows.columns]
    told = (
        span
        for span, clock in reversed(times_on(text))
        for moment in chain.from_iterable(times.dt.strftime(clock.written) for times in timed)
        if span[1] - span[0] <= len(STAMP) and regex.match(moment, text, pos=span[0])
    )
    return next(told, (0, 0))
