"""A line of which others are made: the same words, other numbers.

What is learnt of a line by trial is learnt from such others. Here stands how numbers, times and bars are told from
words, and what each may become.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

import regex

from logparse.formats._base import TIMESTAMP
from logparse.read.outlines import BAR, BARS, BEFORE_SIGN, BLANKS, SIGN, WIDTH, ZERO
from logparse.read.stencil import DIGITS, Number

# Digits in a row, with the minus and the blanks before, as in an outline.
_FIGURE = regex.compile(rf"(?P<blanks> *)(?P<sign>(?<=[{regex.escape(BEFORE_SIGN.decode())}])-)?(?P<digits>[0-9]+)")
# Digits, with commas between thousands; those behind the point; the exponent. Not those of a word such as ``bf16``, nor
# of an exponent of three digits, which makes of most numbers 0 or none.
_NUMBER = regex.compile(
    r"(?<!\b[^\W\d]\w*|[0-9]|[0-9][eE][-+])([0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]++)(?:\.([0-9]++))?+"
    r"(?:[eE]([-+])([0-9]{1,2})(?![0-9]))?+(?![eE][-+]?[0-9])"
)
# The blocks of a bar, and the blanks behind.
_BAR_BYTE, _BARS = BAR.decode("latin-1"), BARS.decode("latin-1")
_BAR = regex.compile(rf"(?:{_BAR_BYTE}[{_BARS}])+(?P<blanks> *)")
# The most digits of a number that may be wider than it is, before the point and behind.
MOST_WHOLE, MOST_FRACTION = 12, 18
# No trial has a higher power of ten.
MOST_POWER = 13
_ANY, _NOT_ZERO = "0123456789", "123456789"


class StampStyle(NamedTuple):
    """How a time is written: its pattern, its digits, all of it, and a pattern for numbers that are wider or not."""

    pattern: str
    digits: str
    written: str
    loose: str


STAMP_STYLES = (
    StampStyle(TIMESTAMP, "%Y%m%d%H%M%S", "%Y.%m.%d.%H:%M:%S", r"\d+[-/]\d+[-/]\d+[ T,]+\d+:\d+:\d+"),
    StampStyle(
        r"(?<!\d)\d\d/\d\d/\d\d \d\d:\d\d:\d\d(?!\d)", "%m%d%y%H%M%S", "%m/%d/%y %H:%M:%S", r"\d+/\d+/\d+ +\d+:\d+:\d+"
    ),
)


@dataclass(frozen=True)
class LineFigure:
    """Digits in a row, with the words, the blanks and the minus before."""

    before: str
    blanks: int
    signed: bool
    digits: str

    def __str__(self) -> str:
        return f"{self.before}{' ' * self.blanks}{'-' * self.signed}{self.digits}"

    @property
    def shape(self) -> int:
        """What its byte of the shapes of an outline says, but for its width."""
        zero = self.digits[0] == "0" and len(self.digits) > 1
        return ZERO * zero | SIGN * self.signed | BLANKS * (self.blanks > 1)

    def shapes(self, free: Freedom | None) -> tuple[int, int, int, int] | None:
        """The least width, how much wider, and which other bits of the shape must be which; None where none can tell.

        More than one blank is more than one, however many there must be.
        """
        width = len(self.digits)
        may = free or Freedom(width, width, False)
        bound = ZERO * (not (free and free.zeros)) | SIGN * (not may.sign) | BLANKS * (not may.blanks)
        if self.shape & bound & BLANKS or may.widest >= WIDTH:
            return None
        return may.narrowest, may.widest - may.narrowest, bound, self.shape & bound

    @property
    def signable(self) -> bool:
        """Whether a minus would be a sign."""
        return bool(self.blanks) or self.before[-1:] in {*BEFORE_SIGN.decode()}


@dataclass(frozen=True)
class LineSample:
    """A line: its figures, and what stands behind the last."""

    figures: tuple[LineFigure, ...]
    tail: str

    @classmethod
    def of(cls, text: str) -> LineSample:
        """The line with that text, a character for a byte."""
        found, end = [], 0
        for figure in _FIGURE.finditer(text):
            before = text[end : figure.start()]
            found.append(LineFigure(before, len(figure["blanks"]), bool(figure["sign"]), figure["digits"]))
            end = figure.end()
        return cls(tuple(found), text[end:])

    @cached_property
    def text(self) -> str:
        """All of it."""
        return "".join((*map(str, self.figures), self.tail))

    def having(self, others: Mapping[int, LineFigure]) -> LineSample:
        """The line with some other figures."""
        return replace(self, figures=tuple(others.get(at, figure) for at, figure in enumerate(self.figures)))

    def with_bars(self, draw: random.Random) -> str:
        """Its text with other bars."""
        return _BAR.sub(lambda bar: _other_bar(len(bar["blanks"]), draw), self.text)

    @cached_property
    def places(self) -> dict[int, int]:
        """The figures by where in the text they begin, blanks and minus left out."""
        found, end = {}, 0
        for at, figure in enumerate(self.figures):
            end += len(str(figure))
            found[end - len(figure.digits)] = at
        return found

    @property
    def times_are_whole(self) -> bool:
        """Whether every time on the line begins and ends where a figure does."""
        ends = {place + len(self.figures[at].digits) for place, at in self.places.items()}
        return all(begin in self.places and end in ends for (begin, end), _ in times_on(self.text))


def _other_bar(blanks: int, draw: random.Random) -> str:
    blocks = "".join(_BAR_BYTE + draw.choice(_BARS) for _ in range(draw.randrange(1, 9)))
    return blocks + " " * (draw.randrange(1, 9) if blanks else 0)


class Freedom(NamedTuple):
    """How another line may differ at a figure: in its width, in its minus and in the blanks before.

    Its digits may be any, but for a 0 before others without ``zeros``, and for nothing but 0 without ``nought``.
    """

    narrowest: int
    widest: int
    zeros: bool
    nought: bool = True
    sign: bool = False
    blanks: bool = False

    def other(self, figure: LineFigure, draw: random.Random) -> LineFigure:
        """Another figure, mostly as wide."""
        width = len(figure.digits)
        if draw.random() < 0.5:
            width = draw.randint(self.narrowest, min(self.widest, width + 2) if draw.random() < 0.9 else self.widest)
        return replace(
            figure,
            digits=self.drawn(max(width, self.narrowest), draw),
            signed=draw.random() < 0.3 if self.sign else figure.signed,
            blanks=draw.randint(1, 9) if self.blanks and draw.random() < 0.5 else figure.blanks,
        )

    def extremes(self, figure: LineFigure, draw: random.Random) -> Iterator[tuple[dict[str, Any], LineFigure]]:
        """The figures that are the most unlike it, and how much less freedom would not allow them."""
        width = len(figure.digits)
        narrower = {size for size in (width - 1, self.narrowest) if self.narrowest <= size < width}
        wider = {size for size in (width + 1, self.widest) if width < size <= self.widest}
        for side, sizes in (("narrowest", sorted(narrower, reverse=True)), ("widest", sorted(wider))):
            before = width
            for size in sizes:
                yield {side: before}, replace(figure, digits=self.drawn(size, draw, _NOT_ZERO))
                before = size
        if self.nought and figure.digits.strip("0"):
            yield {"nought": False}, replace(figure, digits="0" * self.narrowest)
        if self.sign:
            yield {"sign": False}, replace(figure, signed=not figure.signed)
        if self.blanks:
            few = 2 if figure.blanks == 1 else 1
            yield from (({"blanks": False}, replace(figure, blanks=n)) for n in (few, 9))

    def narrowed(self, less: Mapping[str, Any]) -> Freedom:
        """With less freedom."""
        found = self._replace(**less)
        return found._replace(narrowest=max(found.narrowest, self.narrowest), widest=min(found.widest, self.widest))

    def drawn(self, width: int, draw: random.Random, digits: str = _ANY) -> str:
        """So many digits."""
        first = draw.choice(digits if self.zeros or (self.nought and width == 1) else _NOT_ZERO)
        return first + "".join(draw.choice(digits) for _ in range(width - 1))


@dataclass(frozen=True)
class Token:
    """A number on a line, by its figures: those before the point, the one behind, the exponent with its sign.

    ``free`` says how each of its figures may differ; the others stay. ``clock`` is how its digits are put, where it is
    a time; then it is none of the numbers that a line tells.
    """

    whole: tuple[int, ...]
    fraction: int | None
    exponent: int | None
    tens: int
    free: Mapping[int, Freedom]
    clock: str = ""

    @property
    def digits(self) -> tuple[int, ...]:
        """All of its figures but the exponent: if they are 0, so is the number."""
        return self.whole if self.fraction is None else (*self.whole, self.fraction)

    def bound(self, sample: LineSample) -> Token:
        """The same where each figure is as wide as it is, and the exponent stays."""
        widths = {at: len(sample.figures[at].digits) for at in self.free if at != self.exponent}
        free = {at: self.free[at]._replace(narrowest=n, widest=n, sign=False) for at, n in widths.items()}
        return replace(self, free=free)

    def silent(self, sample: LineSample) -> Token:
        """The same where it tells nothing: with another minus, or a second blank, its label may not be one."""
        free = {at: f._replace(sign=False, blanks=sample.figures[at].blanks > 1) for at, f in self.free.items()}
        return replace(self, free=free)

    def narrowed(self, figure: int, less: Mapping[str, Any]) -> Token:
        """The same with less freedom of a figure."""
        return replace(self, free={**self.free, figure: self.free[figure].narrowed(less)})

    def extremes(
        self, sample: LineSample, draw: random.Random
    ) -> Iterator[tuple[int | None, dict[str, Any], LineSample]]:
        """Lines with the most unlike figures, each by itself; which freedom would not allow it. The last has a 0."""
        if self.clock:
            return
        measured = {at: free for at, free in self.free.items() if at in self.digits}
        for at, free in measured.items():
            others = free.extremes(sample.figures[at], draw)
            yield from ((at, less, sample.having({at: other})) for less, other in others)
        zeros = {at: replace(sample.figures[at], digits="0" * free.narrowest) for at, free in measured.items()}
        yield None, {}, sample.having(zeros)

    def is_whole(self, sample: LineSample) -> bool:
        """Whether it is printed with a fraction of zeros."""
        return (
            self.fraction is not None and self.exponent is None and not sample.figures[self.fraction].digits.strip("0")
        )

    def other_digits(self, sample: LineSample, draw: random.Random) -> dict[int, LineFigure]:
        """The same figures with other digits, none of them 0."""
        found = {}
        for at in self.free:
            figure = sample.figures[at]
            digits = "".join(draw.choice(_NOT_ZERO.replace(digit, "")) for digit in figure.digits)
            found[at] = figure if at == self.exponent else replace(figure, digits=digits)
        return self.others(sample, draw) if self.clock else found

    def only_whole(self) -> Token:
        """The same without what is behind its point."""
        return replace(self, fraction=None, free={at: self.free[at] for at in self.whole})

    def others(self, sample: LineSample, draw: random.Random) -> dict[int, LineFigure]:
        """Other figures for it, or another time."""
        if not self.clock:
            return {at: self._other(at, sample.figures[at], draw) for at in self.free}
        moment = datetime(2001, 1, 1) + timedelta(seconds=draw.randrange(10**9))
        digits, found = f"{moment.strftime(self.clock)}{draw.randrange(10**9):09}", {}
        for at in self.whole:
            figure = sample.figures[at]
            found[at] = replace(figure, digits=digits[: len(figure.digits)])
            digits = digits[len(figure.digits) :]
        return found

    def _other(self, at: int, figure: LineFigure, draw: random.Random) -> LineFigure:
        if at != self.exponent:
            return self.free[at].other(figure, draw)
        # Higher powers make numbers that cannot be.
        width = len(figure.digits)
        return replace(figure, digits=f"{draw.randrange(MOST_POWER if width > 1 else 10):0{width}}")

    def read(self, sample: LineSample) -> float:
        """The number that it is, without its minus."""
        digits = [figure.digits for figure in sample.figures]
        exponent = 0 if self.exponent is None else self.tens * int(digits[self.exponent])
        fraction = "0" if self.fraction is None else digits[self.fraction]
        return float(f"{''.join(digits[at] for at in self.whole)}.{fraction}e{exponent}")

    def number(self, column: str, samples: tuple[LineSample, LineSample], values: tuple[float, float]) -> Number:
        """What it adds to the column, whose ``values`` are those of two ``samples`` with other digits here alone."""
        before, after = (self.read(sample) * (-1) ** sample.figures[self.whole[0]].signed for sample in samples)
        scale = float(f"{(values[1] - values[0]) / (after - before):.12g}")
        return Number(column, self.whole, self.fraction, self.exponent, self.tens, scale)


# A token with the figure that is unlike, the freedom that would not allow it, and the line; no figure where it is 0.
Unlike = tuple[Token, int | None, Mapping[str, Any], LineSample]


def tokens_of(sample: LineSample) -> Iterator[Token]:
    """The numbers on a line, and the times."""
    text, places = sample.text, sample.places
    times = times_on(text)
    for (begin, end), clock in times:
        whole = tuple(at for place, at in places.items() if begin <= place < end)
        widths = {at: len(sample.figures[at].digits) for at in whole}
        yield Token(whole, None, None, 1, {at: Freedom(n, n, True) for at, n in widths.items()}, clock.digits)
    almost = almost_times(text)
    outside = (f for f in _NUMBER.finditer(text) if not any(begin <= f.start() < end for (begin, end), _ in times))
    for found in outside:
        whole = tuple(at for place, at in places.items() if found.start(1) <= place < found.end(1))
        fraction, exponent = (places[found.start(n)] if found[n] else None for n in (2, 4))
        token = Token(whole, fraction, exponent, -1 if found[3] == "-" else 1, {})
        if len(found[1]) <= DIGITS:
            token = replace(token, free=dict(_free(token, sample, clock=_is_of_clock(text, found.start(1)))))
            like_time = any(begin <= found.start() < end for begin, end in almost)
            yield token.bound(sample).silent(sample) if like_time else token


def _is_of_clock(text: str, place: int) -> bool:
    """Whether minutes or seconds of a clock stand there."""
    return bool(regex.match(r"(?<=\d:)\d\d(?!\d)", text, pos=place))


def _free(token: Token, sample: LineSample, clock: bool) -> Iterator[tuple[int, Freedom]]:
    """How figures may differ until a trial says otherwise."""
    first, *thousands = token.whole
    figure = sample.figures[first]
    width = len(figure.digits)
    same = clock or (figure.digits[0] == "0" and width > 1)
    most = 3 if thousands else max(MOST_WHOLE, width)
    free = Freedom(width, width, True) if same else Freedom(1, most, False, nought=not thousands)
    yield first, free._replace(sign=figure.signable, blanks=figure.blanks > 0)
    yield from ((at, Freedom(3, 3, True)) for at in thousands)
    if token.fraction is not None:
        yield token.fraction, Freedom(1, max(MOST_FRACTION, len(sample.figures[token.fraction].digits)), True)
    if token.exponent is not None:
        width = len(sample.figures[token.exponent].digits)
        yield token.exponent, Freedom(width, width, True)


def times_on(text: str) -> list[tuple[tuple[int, int], StampStyle]]:
    """Where times stand on a line, and how they are written, in order."""
    return sorted((found.span(), clock) for clock in STAMP_STYLES for found in regex.finditer(clock.pattern, text))


def almost_times(text: str) -> list[tuple[int, int]]:
    """Where times would stand on a line, if numbers were as wide and blanks as few as a time wants."""
    return [found.span() for clock in STAMP_STYLES for found in regex.finditer(clock.loose, text)]
