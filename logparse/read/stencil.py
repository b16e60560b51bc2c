"""Lines that differ in nothing but numbers, to rows: bytes below bytes, neither cut nor searched.

A line whose words are known is a stencil: the bytes of its outline are fixed, but for the digits. All lines with an
outline of that length are held against it at once, and of those that fit the figures become numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from logparse.read.decimals import MANY, MOST_DIGITS, floats_of
from logparse.read.outlines import BAR, BARS, SIGN, WIDTH, EqualLines
from logparse.read.stencil_layout import LinesRead, StencilLayout

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# So many digits are a whole number that a float holds.
DIGITS = 15
# Shorter fractions of a second than microseconds are rounded.
STAMP = "2026-01-01 00:00:00.123456"
# As ``rich`` writes a time.
MONTH_FIRST = "01/31/26 00:00:00"


# By their names, the number of the line and what else is read of it.
Columns = dict[str, "NDArray[Any]"]


@dataclass(frozen=True)
class Number:
    """A number in a ``column`` of what ``StencilLayout.read`` takes; numbers of one column are added.

    Of the figures on a line it has those ``whole`` before the point, thousands by themselves, one of the ``fraction``
    and one of the ``exponent``, which counts ``tens``, 1 or -1; then comes ``scale``.
    """

    column: str
    whole: tuple[int, ...]
    fraction: int | None
    exponent: int | None
    tens: int
    scale: float

    @property
    def figures(self) -> tuple[int, ...]:
        """All of its figures, in order."""
        return tuple(figure for figure in (*self.whole, self.fraction, self.exponent) if figure is not None)

    def of(self, read: FiguresRead) -> NDArray[np.float64]:
        """The number on each line."""
        import numpy as np

        digits, widths = read.counted(self.whole[0]), read.widths(self.whole[0]).astype(np.int64)
        unsure = np.zeros(len(digits), np.bool_)
        for figure in self.whole[1:]:
            digits, widths = digits * np.uint64(1000) + read.counted(figure), widths + 3
        power = np.zeros(len(digits), np.int64)
        if self.exponent is not None:
            power = read.counted(self.exponent).astype(np.int64) * self.tens
        if self.fraction is not None:
            behind, fraction = read.widths(self.fraction).astype(np.int64), read.counted(self.fraction)
            unsure |= (fraction == MANY) | ((digits > 0) & (widths + behind > MOST_DIGITS))
            digits, power = digits * _tens()[np.minimum(behind, MOST_DIGITS)] + fraction, power - behind
        found, inexact = floats_of(digits, power)
        inexact |= unsure
        if inexact.any():
            found[inexact] = read.nearest(self.figures, inexact)
        signed = read.signed(self.whole[0])
        with np.errstate(over="ignore", invalid="ignore"):
            scaled: NDArray[np.float64] = np.where(signed, -found, found) * self.scale
        return scaled


@dataclass(frozen=True)
class FiguresRead:
    """What ``figures`` of some ``lines`` count."""

    lines: EqualLines
    some: NDArray[np.int64]

    @cached_property
    def _at(self) -> NDArray[np.int64]:
        return self.lines.figures(self.some)

    @cached_property
    def _counted(self) -> NDArray[np.uint64]:
        return self.lines.of.counted(self._at.ravel()).reshape(self._at.shape)

    @cached_property
    def _shapes(self) -> NDArray[np.uint8]:
        return self.lines.of.shapes[self._at]

    def _place(self, figure: int) -> int:
        import numpy as np

        return int(np.searchsorted(self.some, figure))

    def counted(self, figure: int) -> NDArray[np.uint64]:
        """What a figure counts on each line."""
        found: NDArray[np.uint64] = self._counted[self._place(figure)]
        return found

    def widths(self, figure: int) -> NDArray[np.uint8]:
        """How many digits it has."""
        found: NDArray[np.uint8] = self._shapes[self._place(figure)] & WIDTH
        return found

    def signed(self, figure: int) -> NDArray[np.bool_]:
        """Whether a minus stands before it."""
        found: NDArray[np.bool_] = self._shapes[self._place(figure)] & SIGN > 0
        return found

    def nearest(self, figures: tuple[int, ...], which: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The floats nearest to what stands from the first to the last of ``figures``, on those lines."""
        begins, ends = (self._at[self._place(figures[end])][which] for end in (0, -1))
        of = self.lines.of
        return of.floats(of.begins[begins], of.ends[ends])


@dataclass(frozen=True, eq=False)
class Stencil:
    """A line of ``layout``: a byte of another's outline may be ``room`` more than the ``least``.

    So may the widths of figures be ``wider`` than the ``narrowest``; what else their shapes say is ``bound`` to be
    ``shape``. Figures that are ``fixed`` count just that; of those that are ``never_zero`` together one is not 0.
    """

    layout: StencilLayout
    least: NDArray[np.uint8]
    room: NDArray[np.uint8]
    narrowest: NDArray[np.uint8]
    wider: NDArray[np.uint8]
    bound: NDArray[np.uint8]
    shape: NDArray[np.uint8]
    fixed: tuple[tuple[int, int], ...] = ()
    numbers: tuple[Number, ...] = ()
    never_zero: tuple[tuple[int, ...], ...] = ()
    stamp: tuple[int, int] | None = None

    @cached_property
    def _used(self) -> list[int]:
        """The figures of which is wanted what they count."""
        numbers = {figure for number in self.numbers for figure in number.figures}
        return sorted(numbers.union(*self.never_zero, (figure for figure, _ in self.fixed)))

    @property
    def length(self) -> int:
        """How long its outline is."""
        return len(self.least)

    def fits(self, line: EqualLines) -> bool:
        """Whether a line of its length does."""
        try:
            return bool(self.fitting(line)[0].all())
        except ValueError:
            return False

    def fitting(self, lines: EqualLines) -> tuple[NDArray[np.bool_], Columns]:
        """Which of ``lines`` fit, and their numbers. Raises ValueError for a day or an hour that does not exist."""
        import numpy as np

        fits = lines.held_against(self.least, self.room)
        if not fits.any():
            return fits, {}
        some = lines if fits.all() else lines.only(fits)
        if len(self.narrowest):
            shapes = some.of.shapes[some.figures(np.arange(len(self.narrowest)))]
            off = (shapes & WIDTH) - self.narrowest[:, None] > self.wider[:, None]
            off |= shapes & self.bound[:, None] != self.shape[:, None]
            some = _narrow(fits, some, ~np.any(off, axis=0))
        read = FiguresRead(some, np.array(self._used, np.int64))
        columns: Columns = {"line_number": some.numbers}
        for number in self.numbers:
            of = number.of(read)
            columns[number.column] = columns[number.column] + of if number.column in columns else of
        may = np.ones(len(some), np.bool_)
        for figure, count in self.fixed:
            may &= read.counted(figure) == count
        for figures in self.never_zero:
            may &= np.any([read.counted(figure) != 0 for figure in figures], axis=0)
        if not may.all():
            some = _narrow(fits, some, may)
            columns = {name: column[may] for name, column in columns.items()}
        if self.stamp is not None:
            figure, size = self.stamp
            begins = some.of.begins[some.figures(np.array([figure]))[0]]
            columns["timestamp"] = moments(some.of.windows(begins, size))
        return fits, columns

    def read(self, lines: EqualLines) -> LinesRead:
        """What those of ``lines`` say that fit, but for such with a number that cannot be.

        Raises ValueError for a day or an hour that does not exist.
        """
        fits, columns = self.fitting(lines)
        if not fits.any():
            return LinesRead(pl.Series(dtype=pl.Int64), {}, {})
        return self.said(lines.of.source, [columns])

    def said(self, source: str, some: Sequence[Columns]) -> LinesRead:
        """What lines of a file say that have these numbers, but for such with one that cannot be."""
        import numpy as np

        columns = {name: np.concatenate([part[name] for part in some]) for name in some[0]}
        return self.layout.read(pl.LazyFrame(columns).with_columns(source=pl.lit(source)))


def _narrow(fits: NDArray[np.bool_], some: EqualLines, may: NDArray[np.bool_]) -> EqualLines:
    """Those of the lines that fit which ``may``; ``fits`` is narrowed too."""
    if may.all():
        return some
    fits[fits] = may
    return some.only(may)


@cache
def _tens() -> NDArray[np.uint64]:
    """The powers of ten that whole numbers of 64 bits hold."""
    import numpy as np

    return np.array([10**n for n in range(MOST_DIGITS + 1)], np.uint64)


def least_and_room(outline: bytes) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Each byte of outlines that are alike: the least, and how much more a digit or a block of a bar may be."""
    import numpy as np

    least = np.frombuffer(outline, np.uint8).copy()
    digits, bars = [np.isin(least, np.frombuffer(some, np.uint8)) for some in (b"0123456789", BARS)]
    bars[:2] = False
    bars[2:] &= (least[:-2] == BAR[0]) & (least[1:-1] == BAR[1])
    least[digits], least[bars] = ord("0"), BARS[0]
    return least, np.where(digits, np.uint8(9), np.where(bars, np.uint8(len(BARS) - 1), np.uint8(0)))


def moments(stamps: NDArray[np.uint8]) -> NDArray[np.datetime64]:
    """The times that ``stamps`` (lines by bytes) are. Raises ValueError for a day or an hour that does not exist.

    They are counted here since numpy 2.4 dies of one such among 500 texts, for which it raises an error without the
    lock of the interpreter.
    """
    import numpy as np

    if stamps.shape[1] == len(MONTH_FIRST):
        stamps = _year_first(stamps)
    pairs = stamps[:, [0, 2, 5, 8, 11, 14, 17]].T * np.int64(10) + stamps[:, [1, 3, 6, 9, 12, 15, 18]].T - 11 * ord("0")
    century, year, month, day, hour, minute, second = pairs
    begins = ((century * 100 + year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days, next_month = begins.astype("datetime64[D]"), (begins + 1).astype("datetime64[D]")
    found = days + (day - 1)
    exists = (
        (month > 0) & (month <= 12) & (day > 0) & (found < next_month) & (hour < 24) & (minute < 60) & (second < 60)
    )
    if not exists.all():
        raise ValueError
    fraction = stamps[:, len("2026-01-01 00:00:00.") :] - np.int64(ord("0"))
    micros = fraction @ 10 ** np.arange(5, 5 - fraction.shape[1], -1)
    moment: NDArray[np.datetime64] = (
        found.astype("datetime64[us]") + ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros
    )
    return moment


def _year_first(stamps: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Times with the month in front. Raises ValueError for a year that may be of another century."""
    import numpy as np

    if (stamps[:, 6] > ord("5")).any():
        raise ValueError
    found = np.tile(np.frombuffer(b"2000-01-01 00:00:00", np.uint8), (len(stamps), 1))
    found[:, [5, 6, 8, 9, 2, 3]] = stamps[:, [0, 1, 3, 4, 6, 7]]
    found[:, 10:] = stamps[:, 8:]
    return found
