"""The stencils of a log: which lines of a block are read without cutting them, and which are left.

They pay where lines of interest stand close. Whether and which there are changes how fast a block is read and nothing
else: what fits none is left to ``layouts`` and ``pairs``, which give the same rows, only slower.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING

import polars as pl

from logparse.read.contents import Wanted
from logparse.read.learnt_stencil import blank_stencil, learn_stencil
from logparse.read.lines import TextBlock
from logparse.read.stencil import EqualLines, LinesRead, Stencil, StepLayout, cut_stencil, least_and_room

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Lines of one length, and which share of a block, that are worth it; which share of a block must be alike to learn how
# they are read, which takes as long as to read some thousands; and how long lines may be.
FEWEST, SHARE, SHARE_OF_NEW, LONGEST = 512, 0.25, 0.05, 4096
# Stencils that are kept; lines of a block that are tried as new ones, and blocks in a row that may disappoint before
# no more are tried.
MOST, MOST_NEW, TRIES = 256, 16, 4


@dataclass
class Stencils:
    """The stencils that lines have shown so far, the last first; threads may share them.

    ``dense`` says whether lines of interest stood close in the block before, ``misses`` how many blocks in a row did
    not fit all the same. ``refused`` are lines of which none could be cut, each digit a 0, with the number of layouts
    that were known then: another may tell.
    """

    known: tuple[Stencil, ...] = ()
    dense: bool = False
    misses: int = 0
    refused: set[tuple[bytes, int]] = field(default_factory=set)
    learning: Lock = field(default_factory=Lock)

    def read(self, block: TextBlock, wanted: Wanted) -> tuple[list[LinesRead], TextBlock]:
        """What the lines that fit say, those of each stencil by themselves, and the other lines of the block."""
        if not self.dense or self.misses >= TRIES:
            return [], block
        found = list(self._found(block, wanted))
        taken = pl.concat([pl.Series(dtype=pl.Int64), *(read.numbers for read in found)])
        self.misses = 0 if len(taken) >= SHARE * block.count else self.misses + 1
        return found, block.without(taken.to_numpy())

    def judge(self, block: TextBlock, lines: int) -> None:
        """Whether the next block is worth it, by how many ``lines`` of one are of interest."""
        self.dense = lines >= SHARE * block.count

    def forgotten(self) -> Stencils:
        """None, for lines of which something else is wanted."""
        return replace(self, known=(), refused=set())

    def _found(self, block: TextBlock, wanted: Wanted) -> Iterator[LinesRead]:
        """What the lines of each stencil say."""
        new, enough = iter(range(MOST_NEW)), max(FEWEST, SHARE_OF_NEW * block.count)
        for lines in _by_length(block):
            yield from self._read(lines, wanted, new, enough)

    def _read(self, lines: EqualLines, wanted: Wanted, new: Iterator[int], enough: float) -> Iterator[LinesRead]:
        """What those ``lines`` say that fit; as many as are ``new`` may become stencils, where ``enough`` are alike."""
        while len(lines) >= FEWEST:
            middle = lines.line(len(lines) // 2)
            stencil = self._known(middle)
            if stencil is None:
                alike = _alike(middle, lines)
                # What another thread learns meanwhile need not be learnt again.
                with self.learning:
                    known = self._known(middle)
                    stencil = known or (self._new(middle.tobytes(), wanted, new) if alike.sum() >= enough else None)
            if stencil is not None:
                # A stamp that is no time is left to the patterns, and all lines that came with it.
                try:
                    alike, read = stencil.read(lines)
                except ValueError:
                    return
                yield read
            if alike.sum() < FEWEST:
                return
            lines = lines.only(~alike)

    def _known(self, line: NDArray[np.uint8]) -> Stencil | None:
        alike = (stencil for stencil in self.known if len(stencil.least) == len(line))
        return next((stencil for stencil in alike if stencil.fits(line)), None)

    def _new(self, line: bytes, wanted: Wanted, new: Iterator[int]) -> Stencil | None:
        kind = least_and_room(line)[0].tobytes(), sum(len(layouts.known) for layouts in wanted.layouts.values())
        if kind in self.refused:
            return None
        stencil = blank_stencil(line, wanted)
        if stencil is None and next(new, None) is None:
            return None
        stencil = stencil or _stencil_of(line, wanted)
        if stencil is None:
            self.refused.add(kind)
        else:
            self.known = (stencil, *self.known)[:MOST]
        return stencil


def _stencil_of(line: bytes, wanted: Wanted) -> Stencil | None:
    """The stencil of a line by a layout of its format; by trial where none tells it, or not all of its numbers."""
    cut = next(filter(None, _cut(line, wanted)), None)
    if cut is not None and isinstance(cut.layout, StepLayout) and not cut.layout.holds_number:
        return cut
    return learn_stencil(line, wanted) or cut


def _cut(line: bytes, wanted: Wanted) -> Iterator[Stencil | None]:
    """The stencils of a step line by the layouts of its format; where formats share a marker, only of the first."""
    earlier: set[str] = set()
    for layouts in wanted.layouts.values():
        mine = {marker for marker in layouts.fmt.marker if marker.encode() in line}
        if mine and not mine & earlier:
            yield from (cut_stencil(line, layout) for layout in layouts.known if layout.explained)
        earlier |= set(layouts.fmt.marker)


def _alike(line: NDArray[np.uint8], lines: EqualLines) -> NDArray[np.bool_]:
    """Which of ``lines`` differ from ``line`` in digits and bars alone."""
    import numpy as np

    return np.concatenate([alike for _, alike in lines.held_against(*least_and_room(line.tobytes()))])


def _by_length(block: TextBlock) -> Iterator[EqualLines]:
    """Lines that are equally long, where there are enough of them, the most first."""
    import numpy as np

    text, lengths = np.frombuffer(block.text, np.uint8), np.diff(block.ends, prepend=-1) - 1
    counts = np.bincount(np.minimum(lengths, LONGEST))[:LONGEST]
    counts[:1] = 0
    for length in np.argsort(-counts)[: np.count_nonzero(counts >= FEWEST)].tolist():
        places = np.flatnonzero(lengths == length)
        yield EqualLines(block.source, places + block.first, block.ends[places] - length, text, length)
