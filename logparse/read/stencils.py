"""The stencils of a log: which lines of a block are read without cutting them, and which are left.

They pay where lines of interest stand close. Whether and which there are changes how fast a block is read and nothing
else: what fits none is left to ``layouts`` and ``pairs``, which give the same rows, only slower.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING

import polars as pl

from logparse.read.contents import Wanted
from logparse.read.even_stencil import EvenLines, EvenStencil, even_lines, even_stencil
from logparse.read.learnt_stencil import blank_stencil, learn_stencil
from logparse.read.lines import TextBlock
from logparse.read.outlines import EqualLines, in_parts, outlined
from logparse.read.stencil import Columns, Stencil, least_and_room
from logparse.read.stencil_layout import LinesRead

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Lines that are read together, and how many must have been seen to learn how they are read, which takes as long as to
# read some thousands; which share of a block is worth it; and how long lines may be.
FEWEST, ENOUGH, SHARE, LONGEST = 16, 1024, 0.25, 4096
# Which share of a block must be equally long to be held against what is as wide.
SHARE_OF_EVEN = 0.03
# Stencils that are kept; lines of a block that are tried as new ones; lines of a kind that may teach none, and blocks
# in a row that may disappoint, before no more are tried.
MOST, MOST_NEW, REFUSALS, TRIES = 256, 16, 3, 4
# Outlines of which lines are counted, in a log of ever other words.
MOST_SEEN = 4096


@dataclass
class Stencils:
    """The stencils that lines have shown so far, the last first; threads may share them.

    ``dense`` says whether lines of interest stood close in the block before, ``misses`` how many blocks in a row did
    not fit all the same. Of outlines, each digit a 0, ``seen`` is how many lines there were that none fitted, and
    ``refused`` how many of them taught none. ``even`` are stencils for lines as wide as one; in so many blocks in a row
    few lines were, ``uneven``.
    """

    known: tuple[Stencil, ...] = ()
    even: tuple[EvenStencil, ...] = ()
    uneven: int = 0
    dense: bool = False
    misses: int = 0
    refused: Counter[bytes] = field(default_factory=Counter)
    seen: Counter[bytes] = field(default_factory=Counter)
    learning: Lock = field(default_factory=Lock)

    def read(self, block: TextBlock, wanted: Wanted) -> tuple[list[LinesRead], TextBlock]:
        """What the lines that fit say, those of each stencil by themselves, and the other lines of the block."""
        if not self.dense or self.misses >= TRIES:
            return [], block
        even = list(self._even(block)) if self.uneven < TRIES else []
        rest = block.without(_taken(even))
        if self.known:
            self.uneven = 0 if block.count - rest.count >= SHARE * block.count else self.uneven + 1
        found = list(self._found(rest, wanted))
        rest = rest.without(_taken(found))
        self.misses = 0 if block.count - rest.count >= SHARE * block.count else self.misses + 1
        return [*even, *found], rest

    def judge(self, block: TextBlock, lines: int) -> None:
        """Whether the next block is worth it, by how many ``lines`` of one are of interest."""
        self.dense = lines >= SHARE * block.count

    def forgotten(self) -> Stencils:
        """None, for lines of which something else is wanted."""
        return replace(self, known=(), even=(), refused=Counter())

    def _even(self, block: TextBlock) -> Iterator[LinesRead]:
        """What lines say that are as wide as many others, in a block of which no line is left out."""
        found: dict[int, tuple[Stencil, list[Columns]]] = {}
        enough = max(FEWEST, SHARE_OF_EVEN * block.count)
        for every in even_lines(block, int(enough), LONGEST) if self.known else ():
            lines, even = every, self._even_stencil(every)
            while even is not None and len(lines) >= enough:
                try:
                    fits, columns = even.fitting(lines)
                except ValueError:
                    break
                found.setdefault(id(even.stencil), (even.stencil, []))[1].append(columns)
                if fits.sum() < enough:
                    break
                lines = lines.only(~fits)
                even = self._even_stencil(lines) if len(lines) >= enough else None
        yield from (stencil.said(block.source, columns) for stencil, columns in found.values())

    def _even_stencil(self, lines: EvenLines) -> EvenStencil | None:
        """The one that fits a line of them, made of a stencil where there is none."""
        line = lines.line(len(lines) // 2)
        known = next((even for even in self.even if even.fits(line)), None)
        if known is not None:
            return known
        # An empty outline has no length.
        for outline in outlined(line.tobytes() + b"\n").by_length(1, LONGEST):
            stencil = next((one for one in self.known if one.length == outline.length and one.fits(outline)), None)
            even = even_stencil(stencil, outline) if stencil else None
            self.even = (even, *self.even)[:MOST] if even else self.even
            return even
        return None

    def _found(self, block: TextBlock, wanted: Wanted) -> Iterator[LinesRead]:
        """What the lines of each stencil say."""
        found: dict[int, tuple[Stencil, list[Columns]]] = {}
        new = iter(range(MOST_NEW))
        for part in in_parts(block):
            for lines in part.by_length(FEWEST, LONGEST):
                for stencil, columns in self._read(lines, wanted, new):
                    found.setdefault(id(stencil), (stencil, []))[1].append(columns)
        yield from (stencil.said(block.source, columns) for stencil, columns in found.values())

    def _read(self, lines: EqualLines, wanted: Wanted, new: Iterator[int]) -> Iterator[tuple[Stencil, Columns]]:
        """The numbers on those ``lines`` that fit; as many as are ``new`` may become stencils."""
        # Stencils that other threads learn meanwhile are tried too.
        tried: tuple[Stencil, ...] = ()
        while len(lines):
            known = self.known
            for stencil in (one for one in known if one not in tried and one.length == lines.length):
                # A stamp that is no time is left to the patterns, and all lines that came with it.
                try:
                    fits, columns = stencil.fitting(lines)
                except ValueError:
                    return
                if fits.any():
                    yield stencil, columns
                    lines = lines.only(~fits)
            tried = known
            if len(lines) < FEWEST:
                return
            middle = lines.one(len(lines) // 2)
            least, room = least_and_room(middle.outline(0))
            alike = lines.held_against(least, room)
            if alike.sum() < FEWEST:
                return
            with self.learning:
                kind = least.tobytes()
                if len(self.seen) > MOST_SEEN:
                    self.seen.clear()
                self.seen[kind] += alike.sum()
                if self.known is known and (self.seen[kind] < ENOUGH or not self._new(middle, kind, wanted, new)):
                    lines = lines.only(~alike)

    def _new(self, line: EqualLines, kind: bytes, wanted: Wanted, new: Iterator[int]) -> bool:
        """Whether one can be learnt of a line of that ``kind``."""
        text = line.text(0)
        if self.refused[kind] == REFUSALS:
            return False
        stencil = blank_stencil(text, wanted)
        if stencil is None and next(new, None) is None:
            return False
        stencil = stencil or learn_stencil(text, wanted)
        if stencil is None:
            self.refused[kind] += 1
        else:
            self.known = (stencil, *self.known)[:MOST]
        return stencil is not None


def _taken(found: Sequence[LinesRead]) -> NDArray[np.int64]:
    """The numbers of the lines that were read."""
    return pl.concat([pl.Series(dtype=pl.Int64), *(read.numbers for read in found)]).to_numpy()
