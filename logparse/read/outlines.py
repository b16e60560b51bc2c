"""The outlines of lines: their bytes with one digit of each number, however wide it is printed.

A *figure* is digits in a row, with the minus and the blanks that stand before. In an outline it is its last digit, and
a bar is its last block: so lines whose numbers grow and shrink are still bytes below bytes. What was left out of a
figure, and what it counts, is read for all lines at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING

import polars as pl

from logparse.read.decimals import MANY, MOST_DIGITS, floats_in
from logparse.read.lines import TextBlock

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Before a minus that is a sign, and not one that parts words or the digits of a date.
BEFORE_SIGN = b" \t:=,(['\"|"
# A block of a bar that is drawn, whole or in part, but for its last byte; and what that may be.
BAR, BARS = b"\xe2\x96", b"\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f"
# What a byte says of a figure: how many digits it has, at most so many; whether 0 is the first of several; whether a
# minus stands before; whether more than one blank does.
WIDTH, ZERO, SIGN, BLANKS = 31, 32, 64, 128
# Zeros around a text, so that what is near a figure is always there.
_GAP = 64
# Texts of which floats are made sooner one by one.
_FEW = 512
# Bytes that are outlined at once.
_PART = 2**20
# What is held against a stencil at once, in lines or in bytes, whichever is more: it stays near the processor, and is
# enough that threads seldom wait for each other.
_LINES, _BYTES = 1024, 2**17


@dataclass(frozen=True)
class Outlines:
    """Some whole lines, of these ``numbers``.

    ``text`` is theirs, between zeros, and figures begin and end there; ``shapes`` are the bytes that say how they look.
    """

    source: str
    numbers: NDArray[np.int64]
    text: NDArray[np.uint8]
    line_ends: NDArray[np.int64]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    shapes: NDArray[np.uint8]
    outline: NDArray[np.uint8]

    @cached_property
    def line_begins(self) -> NDArray[np.int64]:
        """Where in the text lines begin."""
        import numpy as np

        return np.append(_GAP, self.line_ends + 1)[:-1]

    @cached_property
    def figures(self) -> NDArray[np.int64]:
        """The first figure of each line."""
        import numpy as np

        return np.searchsorted(self.begins, self.line_begins)

    @cached_property
    def outline_ends(self) -> NDArray[np.int64]:
        """Where in the outline its lines end."""

        return _places(self.outline == ord("\n"))

    def by_length(self, fewest: int, longest: int) -> Iterator[EqualLines]:
        """Lines whose outlines are equally long, where there are so many and they are no longer, the most first."""
        import numpy as np

        lengths = np.diff(self.outline_ends, prepend=-1) - 1
        counts = np.bincount(np.minimum(lengths, longest), minlength=1)[:longest]
        counts[:1] = 0
        for length in np.argsort(-counts)[: np.count_nonzero(counts >= fewest)].tolist():
            yield EqualLines(self, np.flatnonzero(lengths == length), length)

    def counted(self, figures: NDArray[np.int64]) -> NDArray[np.uint64]:
        """What ``figures`` of at most 24 digits count; MANY where so much is not counted."""
        import numpy as np

        ends, widths = self.ends[figures], (self.shapes[figures] & WIDTH).astype(np.uint64)
        # Eight bytes are one item, from whichever byte on.
        eights = np.ndarray((len(self.text) - 7,), "<u8", self.text, strides=(1,))
        widest, found = int(widths.max(initial=0)), _of_eight(eights[ends - 8], np.minimum(widths, 8))
        for left in range(8, min(widest, 24), 8):
            more = _of_eight(eights[ends - left - 8], np.clip(widths, left, left + 8) - np.uint64(left))
            found += more * np.uint64(10**left)
            if left == 16:
                found[more >= 10 ** (MOST_DIGITS - left)] = MANY
        if widest > 24:
            found[widths > 24] = MANY
        return found

    def floats(self, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.float64]:
        """The floats nearest to the texts that stand there, without the commas between thousands."""
        import numpy as np

        if len(begins) < _FEW:
            texts = (self.text[begin:end].tobytes() for begin, end in zip(begins, ends, strict=True))
            return np.array([float(text.replace(b",", b"")) for text in texts])
        widths = ends - begins
        most = int(widths.max())
        text = self.windows(ends - most, most)
        # With zeros before, all are equally long.
        text[np.arange(most) < (most - widths)[:, None]] = ord("0")
        return floats_in(text)

    def windows(self, begins: NDArray[np.int64], size: int) -> NDArray[np.uint8]:
        """So many bytes from each of these places on (places by bytes)."""
        return _windows(self.text, begins, size)


@dataclass(frozen=True)
class EqualLines:
    """Some lines, by their ``places``, whose outlines have one ``length``."""

    of: Outlines
    places: NDArray[np.int64]
    length: int

    def __len__(self) -> int:
        return len(self.places)

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The numbers of the lines."""
        found: NDArray[np.int64] = self.of.numbers[self.places]
        return found

    def text(self, at: int) -> bytes:
        """The bytes of one of them."""
        place = self.places[at]
        return self.of.text[self.of.line_begins[place] : self.of.line_ends[place]].tobytes()

    def outline(self, at: int) -> bytes:
        """The outline of one of them."""
        end = self.of.outline_ends[self.places[at]]
        return self.of.outline[end - self.length : end].tobytes()

    def figures(self, some: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of ``some`` places on each line (places by lines)."""
        found: NDArray[np.int64] = some[:, None] + self.of.figures[self.places]
        return found

    def one(self, at: int) -> EqualLines:
        """One of them."""
        return replace(self, places=self.places[at : at + 1])

    def only(self, which: NDArray[np.bool_]) -> EqualLines:
        """Some of them."""
        return replace(self, places=self.places[which])

    def held_against(self, least: NDArray[np.uint8], room: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Which of their outlines are nowhere less than ``least`` nor over ``room`` more."""
        import numpy as np

        begins = self.of.outline_ends[self.places] - self.length
        held = held_against(self.of.outline, begins, least, room)
        return np.concatenate([fits for _, fits in held] or [np.ones(0, np.bool_)])


def held_against(
    text: NDArray[np.uint8], begins: NDArray[np.int64], least: NDArray[np.uint8], room: NDArray[np.uint8]
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.bool_]]]:
    """Lines of a text (lines by bytes), some at a time, and which are nowhere less than ``least`` nor ``room`` more."""
    import numpy as np

    count = max(_LINES, _BYTES // len(least))
    leasts, rooms = (np.tile(one, min(count, len(begins))) for one in (least, room))
    for i in range(0, len(begins), count):
        row = _windows(text, begins[i : i + count], len(least)).reshape(-1)
        off = row - leasts[: len(row)] > rooms[: len(row)]
        part = row.reshape(-1, len(least))
        yield part, np.logical_not(off.reshape(part.shape).any(axis=1) if off.any() else np.zeros(len(part)))


def in_parts(block: TextBlock) -> Iterator[Outlines]:
    """The outlines of the whole lines of a block, some at a time, which stay near the processor."""
    import numpy as np

    numbers = np.arange(block.first, block.first + block.count) if block.numbers is None else block.numbers
    begin = 0
    while begin < len(block.text):
        end = block.text.find(b"\n", min(begin + _PART, len(block.text) - 1)) + 1 or len(block.text)
        part = outlined(block.text[begin:end], block.source, numbers)
        yield part
        begin, numbers = end, numbers[len(part.line_ends) :]


def outlined(lines: bytes, source: str = "", numbers: NDArray[np.int64] | None = None) -> Outlines:
    """The outlines of some lines, of these ``numbers`` or from 0 on; what is behind the last newline is left out."""
    import numpy as np

    gap = bytes(_GAP)
    text = np.frombuffer(b"".join((gap, lines, gap)), np.uint8)
    digit = text - np.uint8(ord("0")) < 10
    edges = _places(digit[1:] != digit[:-1]) + 1
    begins, ends = edges[::2].copy(), edges[1::2].copy()
    left_out = np.zeros(len(text), np.bool_)
    np.logical_and(digit[:-1], digit[1:], out=left_out[:-1])
    before = text[begins - 1]
    signed = before == ord("-")
    signed[signed] = _table(BEFORE_SIGN)[text[begins[signed] - 2]]
    left_out[begins[signed] - 1] = True
    before[signed] = text[begins[signed] - 2]
    padded = before == ord(" ")
    blanks = begins[padded] - 1 - signed[padded]
    more = text[blanks - 1] == ord(" ")
    padded[padded] = more
    _leave_out_blanks(text, left_out, blanks[more], -1)
    # A single byte is looked for much sooner than two.
    if BAR[:1] in lines and BAR in lines:
        _leave_out_blocks(text, left_out)
    widths = np.minimum(ends - begins, WIDTH).astype(np.uint8)
    zeros = (text[begins] == ord("0")) & (widths > 1)
    shapes = widths | zeros * np.uint8(ZERO) | signed * np.uint8(SIGN) | padded * np.uint8(BLANKS)
    line_ends = _places(text == ord("\n"))
    numbers = np.arange(len(line_ends)) if numbers is None else numbers
    # Polars picks bytes several times as fast as numpy.
    whole = slice(_GAP, len(text) - _GAP)
    outline = pl.Series(text[whole]).filter(~pl.Series(left_out[whole])).to_numpy()
    return Outlines(source, numbers, text, line_ends, begins, ends, shapes, outline)


def _places(which: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Where it is true."""
    size = len(which)
    numbers = _numbers()[:size] if size <= 2 * _PART else pl.int_range(size, dtype=pl.Int64, eager=True)
    return numbers.filter(pl.Series(which)).to_numpy().astype("int64")


@cache
def _numbers() -> pl.Series:
    """The places of a text that is outlined at once, in half the bytes, since all of them are moved."""
    return pl.int_range(2 * _PART, dtype=pl.Int32, eager=True)


def _leave_out_blanks(
    text: NDArray[np.uint8], left_out: NDArray[np.bool_], places: NDArray[np.int64], way: int
) -> None:
    """Leave out blanks from those at ``places`` on, but for the last of each ``way``."""
    while len(places):
        places = places[text[places + way] == ord(" ")]
        left_out[places if way < 0 else places + 1] = True
        places = places + way


def _leave_out_blocks(text: NDArray[np.uint8], left_out: NDArray[np.bool_]) -> None:
    """Leave out the blocks of a bar before its last, and the blanks behind it but for the first."""
    import numpy as np

    first = _places(text == BAR[1]) - 1
    first = first[(text[first] == BAR[0]) & _table(BARS)[text[first + 2]]]
    another = np.zeros(len(text), np.bool_)
    another[first] = True
    longer = first[another[first + 3]]
    for byte in range(3):
        left_out[longer + byte] = True
    last = first[~another[first + 3]] + 3
    _leave_out_blanks(text, left_out, last[text[last] == ord(" ")], 1)


def _table(some: bytes) -> NDArray[np.bool_]:
    """Whether a byte is one of ``some``."""
    import numpy as np

    return np.isin(np.arange(256), np.frombuffer(some, np.uint8))


def _windows(text: NDArray[np.uint8], begins: NDArray[np.int64], size: int) -> NDArray[np.uint8]:
    import numpy as np

    # Each begins at another byte; as one item it is copied at once.
    every = np.ndarray((len(text) - size + 1,), f"V{size}", text, strides=(1,))
    found: NDArray[np.uint8] = every[begins].view(np.uint8).reshape(-1, size)
    return found


def _of_eight(eight: NDArray[np.uint64], widths: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """What the last ``widths`` of eight digits count, of which the lowest byte is the first."""
    import numpy as np

    n = np.uint64
    # Of no digit all bits are moved out.
    others = (n(8) - widths) * n(8)
    found: NDArray[np.uint64] = (eight >> others << others) & n(0x0F0F0F0F0F0F0F0F)
    # Two digits, then four, then eight: what is in the lower byte counts more.
    for factor, bits, mask in ((10, 8, 0x00FF00FF00FF00FF), (100, 16, 0x0000FFFF0000FFFF), (10_000, 32, 0xFFFFFFFF)):
        found = (found * n(factor) + (found >> n(bits))) & n(mask)
    return found
