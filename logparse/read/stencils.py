"""The stencils of a log: which lines of a block are read without cutting them, and which are left.

They pay where step lines stand close. Whether and which there are changes how fast a block is read and nothing else:
what fits none is left to ``layouts`` and ``pairs``, which give the same rows, only slower.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import polars as pl
import regex

from logparse.formats._base import LogFormat
from logparse.read.layouts import Layouts
from logparse.read.learnt_stencil import learn_stencil
from logparse.read.lines import TextBlock
from logparse.read.stencil import EqualLines, Stencil, StencilLayout, cut_stencil
from logparse.read.steps import StepBlock

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Lines of one length, and which share of a block, that are worth it; and how long they may be.
FEWEST, SHARE, LONGEST = 512, 0.25, 4096
# Stencils that are kept; lines of a block that are tried as new ones, and blocks in a row that may disappoint before
# no more are tried.
MOST, TRIES = 32, 4


@dataclass
class Stencils:
    """The stencils that the lines of ``layouts`` have shown so far, the last first; threads may share them.

    ``dense`` says whether the step lines of the block before stood close, ``misses`` how many blocks in a row did not
    fit all the same. ``refused`` are lines of which none could be cut, each digit a 0, with the number of
    layouts that were known then: another may tell.
    """

    layouts: Mapping[str, Layouts]
    known: tuple[Stencil, ...] = ()
    dense: bool = False
    misses: int = 0
    refused: set[tuple[bytes, int]] = field(default_factory=set)

    def read(self, block: TextBlock) -> tuple[list[tuple[StencilLayout, pl.DataFrame]], TextBlock]:
        """The rows of the lines that fit, each stencil's with its layout, and the other lines of the block."""
        if not self.dense or self.misses >= TRIES:
            return [], block
        new = iter(range(TRIES))
        found = [rows for lines in _by_length(block) for rows in self._read(lines, new)]
        taken = pl.concat([pl.Series(dtype=pl.Int64), *(rows["line_number"] for _, rows in found)])
        self.misses = 0 if len(taken) >= SHARE * block.count else self.misses + 1
        return found, block.without(taken.to_numpy())

    def judge(self, block: TextBlock, steps: Iterable[StepBlock]) -> None:
        """Whether the next block is worth it, by the ``steps`` of one."""
        self.dense = sum(len(found.rows) for found in steps) >= SHARE * block.count

    def narrowed(self, formats: Iterable[LogFormat]) -> Stencils:
        """Those of no other formats than these."""
        layouts = {fmt.name: self.layouts[fmt.name] for fmt in formats}
        known = tuple(stencil for stencil in self.known if stencil.layout.fmt.name in layouts)
        return replace(self, layouts=layouts, known=known, refused=set())

    def _read(self, lines: EqualLines, new: Iterator[int]) -> Iterator[tuple[StencilLayout, pl.DataFrame]]:
        """The rows of those ``lines`` that fit; as many as are ``new`` may become stencils."""
        while len(lines) >= FEWEST:
            middle = lines.windows[lines.begins[len(lines) // 2]]
            stencil = self._known(middle) or self._new(middle.tobytes(), new)
            if stencil is None:
                return
            # A stamp that is no time is left to the patterns, and all lines that came with it.
            try:
                fits, rows = stencil.read(lines)
            except ValueError:
                return
            yield stencil.layout, rows
            if len(rows) < FEWEST:
                return
            lines = lines.only(~fits)

    def _known(self, line: NDArray[np.uint8]) -> Stencil | None:
        alike = (stencil for stencil in self.known if len(stencil.least) == len(line))
        return next((stencil for stencil in alike if stencil.fits(line[None]).all()), None)

    def _new(self, line: bytes, new: Iterator[int]) -> Stencil | None:
        kind = regex.sub(rb"\d", b"0", line), sum(len(layouts.known) for layouts in self.layouts.values())
        if kind in self.refused or next(new, None) is None:
            return None
        stencil = self._cut(line)
        if stencil is None:
            self.refused.add(kind)
        return stencil

    def _cut(self, line: bytes) -> Stencil | None:
        """A stencil of a line that has nothing of interest but one step."""
        earlier: set[str] = set()
        for layouts in self.layouts.values():
            mine = {marker for marker in layouts.fmt.marker if marker.encode() in line}
            if mine and not mine & earlier and (stencil := _stencil_of(line, layouts)):
                self.known = (stencil, *self.known)[:MOST]
                return stencil
            earlier |= set(layouts.fmt.marker)
        return None


def _stencil_of(line: bytes, layouts: Layouts) -> Stencil | None:
    """The stencil of a line by a layout of its format; by trial where none tells it, or not all of its numbers."""
    cut = next(filter(None, (cut_stencil(line, layout) for layout in layouts.known if layout.explained)), None)
    if cut is not None and not cut.holds_number:
        return cut
    fmt = layouts.fmt
    others = [other for other in layouts.formats if other is not fmt and other.beneath <= fmt.beneath]
    return learn_stencil(line, fmt, others) or cut


def _by_length(block: TextBlock) -> Iterator[EqualLines]:
    """Lines that are equally long, where there are enough of them, the most first."""
    import numpy as np

    text, lengths = np.frombuffer(block.text, np.uint8), np.diff(block.ends, prepend=-1) - 1
    counts = np.bincount(np.minimum(lengths, LONGEST))[:LONGEST]
    counts[:1] = 0
    for length in np.argsort(-counts)[: np.count_nonzero(counts >= FEWEST)].tolist():
        places = np.flatnonzero(lengths == length)
        windows = np.lib.stride_tricks.sliding_window_view(text, length)
        yield EqualLines(block.source, places + block.first, block.ends[places] - length, windows)
