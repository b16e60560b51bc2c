"""Lines that differ in nothing but digits, to rows: bytes below bytes, neither cut nor searched.

A line that a layout reads is a stencil: its bytes are fixed, but for the digits of its numbers. All lines of its length
are laid below each other and held against it at once, and the numbers of those that fit are made of columns of digits.
Blanks before a number are fixed too, so that a number of one digit more is another stencil.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl
import regex

from logparse.read.line_layout import LineLayout
from logparse.read.records import Found
from logparse.read.steps import StepBlock, no_steps

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The sign of a number, its digits before and behind the point, its exponent.
_NUMBER = regex.compile(r"([-+]?)(\d+)\.?(\d*)(?:[eE]([-+]?\d{1,2}))?")
# With so many digits, times or over no higher power of ten, a float is the nearest to its text.
DIGITS, POWER = 15, 22
# Shorter fractions of a second than microseconds are rounded.
STAMP = "2026-01-01 00:00:00.123456"
# As ``rich`` writes a time.
MONTH_FIRST = "01/31/26 00:00:00"
# A block of a bar that is drawn, whole or in part, but for its last byte; and what that may be.
BAR, BARS = b"\xe2\x96", b"\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f"
# What is held against a stencil at once, in lines or in bytes, whichever is more: it stays near the processor, and is
# enough that threads seldom wait for each other.
_LINES, _BYTES = 1024, 2**17


@dataclass(frozen=True)
class EqualLines:
    """Lines of one ``length``: where they begin in a ``text``."""

    source: str
    numbers: NDArray[np.int64]
    begins: NDArray[np.int64]
    text: NDArray[np.uint8]
    length: int

    def __len__(self) -> int:
        return len(self.begins)

    def line(self, at: int) -> NDArray[np.uint8]:
        """The bytes of one of them."""
        return self.text[self.begins[at] :][: self.length]

    def only(self, which: NDArray[np.bool_]) -> EqualLines:
        """Some of them."""
        return replace(self, numbers=self.numbers[which], begins=self.begins[which])

    def held_against(
        self, least: NDArray[np.uint8], room: NDArray[np.uint8]
    ) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.bool_]]]:
        """Some lines at a time (lines by bytes), and which are nowhere less than ``least`` nor over ``room`` more."""
        import numpy as np

        # Each begins at another byte; as one item it is copied at once, and a whole part is one row of bytes.
        windows = np.ndarray((len(self.text) - self.length + 1,), f"V{self.length}", self.text, strides=(1,))
        count = max(_LINES, _BYTES // self.length)
        leasts, rooms = (np.tile(one, min(count, len(self))) for one in (least, room))
        for i in range(0, len(self), count):
            row = windows[self.begins[i : i + count]].view(np.uint8)
            off = row - leasts[: len(row)] > rooms[: len(row)]
            part = row.reshape(-1, self.length)
            yield part, np.logical_not(off.reshape(part.shape).any(axis=1) if off.any() else np.zeros(len(part)))


@dataclass(frozen=True)
class Number:
    """A number in a ``column`` of what ``StencilLayout.read`` takes; numbers of one column are added.

    Its digits stand at ``places`` and count 10 ** ``power``; then comes ``scale``, with the sign.
    """

    column: str
    places: tuple[int, ...]
    power: int
    scale: float

    def of(self, digits: NDArray[np.uint8]) -> NDArray[np.float64]:
        """The number on each line, whose ``digits`` (digits by lines) these are."""
        if len(digits) > DIGITS:
            return self._nearest(digits) * self.scale
        whole: NDArray[np.float64] = digits[0].astype("float64")
        for digit in digits[1:]:
            whole *= 10
            whole += digit
        ten = float(10 ** abs(self.power))
        return (whole / ten if self.power < 0 else whole * ten) * self.scale

    def _nearest(self, digits: NDArray[np.uint8]) -> NDArray[np.float64]:
        """The floats nearest to so many digits, as their text is read."""
        import numpy as np

        power = np.frombuffer(f"e{self.power}\n".encode(), np.uint8)
        text = np.empty((digits.shape[1], len(digits) + len(power)), np.uint8)
        text[:, : len(digits)], text[:, len(digits) :] = digits.T + np.uint8(ord("0")), power
        return pl.read_lines(io.BytesIO(text.tobytes()), name="number")["number"].cast(pl.Float64).to_numpy()


@dataclass(frozen=True)
class LinesRead:
    """What some lines say, of these ``numbers``: step lines of formats, by their names, and records."""

    numbers: pl.Series
    steps: dict[str, StepBlock]
    records: Found


class StencilLayout(Protocol):
    """What is known of lines that differ in digits alone."""

    @property
    def stamp_span(self) -> tuple[int, int]:
        """Where the time stamp begins and ends."""

    def read(self, numbers: pl.LazyFrame) -> LinesRead:
        """What the patterns make of the ``numbers`` on lines; a line with one that cannot be is left out."""


@dataclass(frozen=True)
class StepLayout:
    """The layout of a step line, all of whose lines say the ``same`` beside their numbers."""

    layout: LineLayout
    same: pl.DataFrame

    @property
    def stamp_span(self) -> tuple[int, int]:
        """Where the time stamp begins and ends."""
        return self.layout.stamp_span

    @property
    def holds_number(self) -> bool:
        """Whether a number is the same on every such line, such as ``14.6K``; 0 may be a word."""
        return any(self.same.row(0))

    def read(self, numbers: pl.LazyFrame) -> LinesRead:
        """The rows that the layout makes of the ``numbers``."""
        same = (pl.lit(self.same[name][0], self.same.schema[name]).alias(name) for name in self.same.columns)
        rows, fmt = self.layout.rows(numbers.with_columns(*same)), self.layout.fmt
        steps = replace(no_steps(fmt), rows=rows, labels=self.layout.labels_of(rows))
        return LinesRead(rows["line_number"], {fmt.name: steps}, {})


@dataclass(frozen=True)
class Stencil:
    """A line of ``layout``: a byte of another may be ``room`` more than the ``least``, 9 at a digit, elsewhere 0."""

    layout: StencilLayout
    least: NDArray[np.uint8]
    room: NDArray[np.uint8]
    numbers: tuple[Number, ...]

    def fits(self, line: NDArray[np.uint8]) -> bool:
        """Whether a line, as long as this one, differs in digits alone."""
        return bool((line - self.least <= self.room).all())

    def read(self, lines: EqualLines) -> tuple[NDArray[np.bool_], LinesRead]:
        """Which of ``lines`` fit, and what they say, but for lines with a number that cannot be.

        Raises ValueError for a day or an hour that does not exist.
        """
        import numpy as np

        places = list(chain.from_iterable(number.places for number in self.numbers))
        begin, end = self.layout.stamp_span
        fitting, digits, stamps = [], [], []
        for part, fits in lines.held_against(self.least, self.room):
            fitting.append(fits)
            some = part if fits.all() else part[fits]
            digits.append(some.T[places] - np.uint8(ord("0")))
            # A copy, or the whole lines would be held.
            stamps.append(some[:, begin:end].copy())
        fits = np.concatenate(fitting)
        columns = {"line_number": lines.numbers[fits], **self._columns(np.concatenate(digits, axis=1))}
        if begin < end:
            columns["timestamp"] = _moments(np.concatenate(stamps))
        return fits, self.layout.read(pl.LazyFrame(columns).with_columns(source=pl.lit(lines.source)))

    def _columns(self, digits: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        """The ``numbers``, whose ``digits`` (digits by lines) follow each other."""
        ends = accumulate((len(number.places) for number in self.numbers), initial=0)
        of_each = zip(self.numbers, pairwise(ends), strict=True)
        columns: dict[str, NDArray[Any]] = {}
        for number, (begin, end) in of_each:
            read = number.of(digits[begin:end])
            columns[number.column] = columns[number.column] + read if number.column in columns else read
        return columns


def least_and_room(line: bytes) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Each byte of lines that are alike: the least, and how much more it may be at a digit or at a block of a bar."""
    import numpy as np

    least = np.frombuffer(line, np.uint8).copy()
    digits, bars = [np.isin(least, np.frombuffer(some, np.uint8)) for some in (b"0123456789", BARS)]
    bars[:2] = False
    bars[2:] &= (least[:-2] == BAR[0]) & (least[1:-1] == BAR[1])
    least[digits], least[bars] = ord("0"), BARS[0]
    return least, np.where(digits, np.uint8(9), np.where(bars, np.uint8(len(BARS) - 1), np.uint8(0)))


def _moments(stamps: NDArray[np.uint8]) -> NDArray[np.datetime64]:
    """The times that ``stamps`` (lines by bytes) are. Raises ValueError for a day or an hour that does not exist."""
    if stamps.shape[1] == len(MONTH_FIRST):
        stamps = _year_first(stamps)
    stamps[stamps == ord(",")] = ord(".")
    stamps[:, [4, 7]], stamps[:, 10] = ord("-"), ord("T")
    return stamps.view(f"S{stamps.shape[1]}").ravel().astype("datetime64[us]")


def _year_first(stamps: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Times with the month in front. Raises ValueError for a year that may be of another century."""
    import numpy as np

    if (stamps[:, 6] > ord("5")).any():
        raise ValueError
    found = np.tile(np.frombuffer(b"2000-01-01 00:00:00", np.uint8), (len(stamps), 1))
    found[:, [5, 6, 8, 9, 2, 3]] = stamps[:, [0, 1, 3, 4, 6, 7]]
    found[:, 10:] = stamps[:, 8:]
    return found


def cut_stencil(line: bytes, layout: LineLayout) -> Stencil | None:
    """The stencil of a line; None where ``layout`` does not read it, or what it says takes more than its bytes."""
    text = line.decode("latin-1")
    if not (line.isascii() and text.isprintable()) or layout.stamp > len(STAMP):
        return None
    same = layout.numbers_on(text)
    if same.is_empty():
        return None
    import numpy as np

    numbers = tuple(_numbers(text, layout))
    least, room = np.frombuffer(line, np.uint8).copy(), np.zeros(len(line), np.uint8)
    free = [place for number in numbers for place in number.places]
    free += [place for place in range(*layout.stamp_span) if text[place].isdigit()]
    least[free], room[free] = ord("0"), 9
    own = [number.column for number in numbers] + (["timestamp"] if layout.stamp else [])
    return Stencil(StepLayout(layout, same.drop(own)), least, room, numbers)


def _numbers(text: str, layout: LineLayout) -> Iterator[Number]:
    """The numbers on a line of ``layout`` that digits make; one of too high a power is left fixed."""
    for column, scale, begin, end in _values(text, layout):
        found = _NUMBER.fullmatch(text, begin, end)
        if found is None:
            continue
        places = (*range(*found.span(2)), *range(*found.span(3)))
        power = int(found[4] or 0) - len(found[3])
        if abs(power) <= POWER:
            yield Number(column, places, power, -scale if found[1] == "-" else scale)


def _values(text: str, layout: LineLayout) -> Iterator[tuple[str, float, int, int]]:
    """Of each value that is a plain number: its column in ``LineLayout.rows``, its scale, where it begins and ends."""
    delimiter = layout.fmt.delimiter
    parts = text.split(delimiter)
    begins = list(accumulate((len(part) + len(delimiter) for part in parts), initial=0))
    begin = layout.stamp_span[1] + len(layout.between)
    head = regex.fullmatch(layout.fmt.head, text[begin : begins[layout.head_pieces]])
    if head is not None:
        yield from ((name, 1.0, begin + head.start(name), begin + head.end(name)) for name in layout.groups)
    for i, piece in layout.valued:
        value = parts[i].removeprefix(piece.before).removesuffix(piece.after)
        end = begins[i] + len(piece.before) + len(value.rstrip())
        if piece.plain:
            scale = piece.reading.scale if piece.reading else 1.0
            yield f"number {i}", scale, end - len(value.strip()), end
