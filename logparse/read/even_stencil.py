"""Lines of a stencil whose figures are all as wide as those of one of them: no outline need be made of them.

Most lines of a log are of a few widths. Such are bytes below bytes as they stand, and digits of a number are columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any

from logparse.read.decimals import EXACT_POWER, MOST_DIGITS, floats_in, floats_of
from logparse.read.lines import TextBlock
from logparse.read.outlines import SIGN, ZERO, EqualLines, held_against
from logparse.read.stencil import DIGITS, Columns, Number, Stencil, least_and_room, moments

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class EvenLines:
    """Lines of one ``length``: their ``numbers``, and where they begin in a ``text``."""

    numbers: NDArray[np.int64]
    begins: NDArray[np.int64]
    text: NDArray[np.uint8]
    length: int

    def __len__(self) -> int:
        return len(self.begins)

    def line(self, at: int) -> NDArray[np.uint8]:
        """The bytes of one of them."""
        return self.text[self.begins[at] :][: self.length]

    def only(self, which: NDArray[np.bool_]) -> EvenLines:
        """Some of them."""
        return EvenLines(self.numbers[which], self.begins[which], self.text, self.length)


@dataclass(frozen=True)
class _Digits:
    """A number in a ``column``: its digits stand at ``places`` and count 10 ** ``power``; then comes ``scale``."""

    column: str
    places: tuple[int, ...]
    power: int
    scale: float

    def of(self, digits: NDArray[np.uint8]) -> NDArray[np.float64]:
        """The number on each line, whose ``digits`` (digits by lines) these are."""
        import numpy as np

        if len(digits) > MOST_DIGITS:
            return self._written(digits) * self.scale
        exact = len(digits) <= DIGITS
        whole = digits[0].astype("float64" if exact else "uint64")
        for digit in digits[1:]:
            whole *= whole.dtype.type(10)
            whole += digit
        if exact:
            ten = float(10 ** abs(self.power))
            found: NDArray[np.float64] = whole / ten if self.power < 0 else whole * ten
            return found * self.scale
        found, inexact = floats_of(whole, np.full(len(whole), self.power))
        if inexact.any():
            found[inexact] = self._written(digits[:, inexact])
        return found * self.scale

    def _written(self, digits: NDArray[np.uint8]) -> NDArray[np.float64]:
        """The numbers by their texts."""
        import numpy as np

        power = np.frombuffer(f"e{self.power}".encode(), np.uint8)
        return floats_in(np.hstack((digits.T + np.uint8(ord("0")), np.tile(power, (digits.shape[1], 1)))))


@dataclass(frozen=True, eq=False)
class EvenStencil:
    """A line of a ``stencil``: a byte of another may be ``room`` more than the ``least``."""

    stencil: Stencil
    least: NDArray[np.uint8]
    room: NDArray[np.uint8]
    numbers: tuple[_Digits, ...]
    never_zero: tuple[tuple[int, ...], ...]
    stamp: tuple[int, int]

    def fits(self, line: NDArray[np.uint8]) -> bool:
        """Whether a line does, but for what is never 0."""
        return len(line) == len(self.least) and bool((line - self.least <= self.room).all())

    def fitting(self, lines: EvenLines) -> tuple[NDArray[np.bool_], Columns]:
        """Which of ``lines`` fit, and their numbers. Raises ValueError for a day or an hour that does not exist."""
        import numpy as np

        begin, end = self.stamp
        places = list(chain.from_iterable(number.places for number in self.numbers))
        fitting, digits, stamps = [], [], []
        for part, fits in held_against(lines.text, lines.begins, self.least, self.room):
            for some in self.never_zero:
                fits &= (part[:, list(some)] != ord("0")).any(axis=1)
            fitting.append(fits)
            taken = part if fits.all() else part[fits]
            digits.append(taken.T[places] - np.uint8(ord("0")))
            # A copy, or the whole lines would be held.
            stamps.append(taken[:, begin:end].copy())
        fits = np.concatenate(fitting)
        columns = {"line_number": lines.numbers[fits], **self._columns(np.concatenate(digits, axis=1))}
        if begin < end:
            columns["timestamp"] = moments(np.concatenate(stamps))
        return fits, columns

    def _columns(self, digits: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        """The ``numbers``, whose ``digits`` (digits by lines) follow each other."""
        ends = accumulate((len(number.places) for number in self.numbers), initial=0)
        columns: dict[str, NDArray[Any]] = {}
        for number, (begin, end) in zip(self.numbers, pairwise(ends), strict=True):
            read = number.of(digits[begin:end])
            columns[number.column] = columns[number.column] + read if number.column in columns else read
        return columns


def even_stencil(stencil: Stencil, line: EqualLines) -> EvenStencil | None:
    """The stencil of lines as wide as ``line``, which fits ``stencil``; None for a power of ten that is not exact."""
    import numpy as np

    of, figures = line.of, line.figures(np.arange(len(stencil.narrowest)))[:, 0]
    begin = of.line_begins[line.places[0]]
    spans = [range(*span) for span in zip(of.begins[figures] - begin, of.ends[figures] - begin, strict=True)]
    least, room = least_and_room(line.text(0))
    exact = np.frombuffer(line.text(0), np.uint8)
    exponents = {number.exponent for number in stencil.numbers}
    for at, span in enumerate(spans):
        if at in dict(stencil.fixed) or at in exponents:
            least[span], room[span] = exact[span], 0
        elif len(span) > 1 and stencil.bound[at] & ZERO:
            least[span[0]], room[span[0]] = ord("1"), 8
    numbers = tuple(
        _digits(number, spans, exact, bool(of.shapes[figures[number.whole[0]]] & SIGN)) for number in stencil.numbers
    )
    if any(abs(number.power) > EXACT_POWER for number in numbers):
        return None
    never_zero = tuple(tuple(chain.from_iterable(spans[at] for at in some)) for some in stencil.never_zero)
    stamp = (
        (0, 0) if stencil.stamp is None else (spans[stencil.stamp[0]][0], spans[stencil.stamp[0]][0] + stencil.stamp[1])
    )
    return EvenStencil(stencil, least, room, numbers, never_zero, stamp)


def _digits(number: Number, spans: list[range], line: NDArray[np.uint8], signed: bool) -> _Digits:
    """A number of a line, whose figures stand at ``spans``."""
    fraction = () if number.fraction is None else tuple(spans[number.fraction])
    power = 0 if number.exponent is None else number.tens * int(line[spans[number.exponent]].tobytes())
    places = (*chain.from_iterable(spans[at] for at in number.whole), *fraction)
    return _Digits(number.column, places, power - len(fraction), -number.scale if signed else number.scale)


def even_lines(block: TextBlock, fewest: int, longest: int) -> Iterator[EvenLines]:
    """Lines of a block that are equally long, where there are so many and they are no longer, the most first."""
    import numpy as np

    text, lengths = np.frombuffer(block.text, np.uint8), np.diff(block.ends, prepend=-1) - 1
    counts = np.bincount(np.minimum(lengths, longest), minlength=1)[:longest]
    counts[:1] = 0
    for length in np.argsort(-counts)[: np.count_nonzero(counts >= fewest)].tolist():
        places = np.flatnonzero(lengths == length)
        yield EvenLines(places + block.first, block.ends[places] - length, text, length)
