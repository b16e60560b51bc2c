"""A stencil by trial: what the patterns make of a line when its numbers change, whatever its words are.

A line of interest is read again and again with other numbers: of other digits, more of them or fewer, with a minus and
with other blanks before. Where each number that the patterns give proves to be that of one place, times a factor, or a
sum of such as ``1:02:03`` is, lines with the same words need no pattern. What a trial contradicts stays as it is.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import polars as pl
import regex

from logparse.read.contents import Frame, Wanted, frames_of
from logparse.read.line_sample import LineFigure, LineSample, Token, Unlike, tokens_of
from logparse.read.outlines import EqualLines, outlined
from logparse.read.stencil import DIGITS, Number, Stencil, least_and_room
from logparse.read.stencil_layout import Row, StencilLayout
from logparse.read.trials import Cell, LinesTold, block_of, cells_of, hides_number, stamp_of, told_of, told_once

# Lines with other numbers that must be read alike, and how many of them may have numbers that cannot be.
TRIALS, MOST_ODD = 48, 24


@dataclass(frozen=True)
class _Part:
    """What tells a number of a line, the ``numbers`` that it gives, and whether it may be 0, which may be none."""

    token: Token
    numbers: tuple[Number, ...]
    zero: bool = True

    def without(self, figure: int | None, less: Mapping[str, Any]) -> _Part:
        """The same with less freedom of a figure; without one, it may not be 0."""
        return replace(self, zero=False) if figure is None else replace(self, token=self.token.narrowed(figure, less))


def learn_stencil(line: bytes, wanted: Wanted) -> Stencil | None:
    """The stencil of a line; None where trials contradict, or nothing or too much of interest stands on it."""
    if not _is_utf8(line):
        return None
    sample = LineSample.of(line.decode("latin-1"))
    # Of a time that begins or ends within digits none can tell which of them it has.
    if not sample.times_are_whole:
        return None
    # A 0 may tell nothing where another number does.
    for one in dict.fromkeys((_without_zeros(sample), sample)):
        # A stamp may be no time that a stencil reads.
        try:
            stencil = _learnt(one, Wanted(wanted.formats, wanted.whole, {}))
            one_line = _equal_lines([sample.text])
            if stencil is not None and stencil.length == one_line.length and stencil.fits(one_line):
                return stencil
        except ValueError:
            return None
    return None


def _without_zeros(sample: LineSample) -> LineSample:
    """The line with a 1 at the end of each number that is 0."""
    tokens = (token for token in tokens_of(sample) if not token.clock and not token.read(sample))
    ends = (token.whole[-1] if token.fraction is None else token.fraction for token in tokens)
    figures = {at: sample.figures[at] for at in ends}
    return sample.having({at: replace(figure, digits=figure.digits[:-1] + "1") for at, figure in figures.items()})


def _learnt(sample: LineSample, rule: Wanted) -> Stencil | None:
    """The stencil of a line that stands for others, of which it may not be one."""
    draw, tokens = random.Random(sample.text), list(tokens_of(sample))
    # Where a number must be whole, a fraction of zeros stays.
    tokens += [token.only_whole() for token in tokens if token.is_whole(sample)]
    samples = [sample, *(sample.having(token.other_digits(sample, draw)) for token in tokens)]
    unlike = [(token, *one) for token in tokens for one in token.extremes(sample, draw)]
    told = told_of([one.text for one in (*samples, *(one[-1] for one in unlike))], rule)
    if not told.reads(0) or hides_number(told.of_first, sample.text, rule.formats):
        return None
    given = _given(told.lines[: len(samples)], tokens)
    begin, end = stamp_of(sample.text, told.of_first)
    rows = _rows(told.of_first, set(chain.from_iterable(given.values())), begin < end)
    parts = list(_parts(given, tokens, samples, told, list(rows)))
    if not _exact([number for part in parts for number in part.numbers]):
        return None
    stamp = (sample.places[begin], end - begin) if begin < end else None
    parts += [_Part(token, ()) for token in tokens if stamp and stamp[0] in token.whole]
    kind = _Kind(sample, _layout(told, rows.values(), rule), stamp)
    freest = [
        part if part.numbers else replace(part, token=part.token.silent(sample))
        for part in kind.as_tried(parts, unlike, told.lines[len(samples) :])
    ]
    least_free = [replace(part, token=part.token.bound(sample), zero=False) for part in freest]
    return kind.proven(freest, rule, draw) or kind.proven(least_free, rule, draw)


def _layout(told: LinesTold, rows: Iterable[Row], rule: Wanted) -> StencilLayout:
    """What lines tell as the first that is ``told`` does; with which labels is still to be seen."""
    named = {frame[1] for frame in told.of_first if frame[0] != "records"}
    formats = tuple(fmt for fmt in rule.formats if fmt.name in named)
    return StencilLayout(formats, tuple(rows), {fmt.name: Counter() for fmt in formats}, told_once=False)


@dataclass(frozen=True)
class _Kind:
    """Lines with the words of a ``sample``: what they tell.

    Their time ``stamp`` begins at that figure, and has so many bytes.
    """

    sample: LineSample
    layout: StencilLayout
    stamp: tuple[int, int] | None

    def stencil(self, parts: Sequence[_Part]) -> Stencil | None:
        """The stencil of lines that differ in ``parts``; None where figures must stay that none can tell."""
        import numpy as np

        free = {at: freedom for part in parts for at, freedom in part.token.free.items()}
        fixed = {at: figure for at, figure in enumerate(self.sample.figures) if at not in free}
        shapes = [figure.shapes(free.get(at)) for at, figure in enumerate(self.sample.figures)]
        if any(len(figure.digits) > DIGITS for figure in fixed.values()) or None in shapes:
            return None
        narrowest, wider, bound, shape = np.array(shapes, np.uint8).reshape(-1, 4).T.copy()
        return Stencil(
            self.layout,
            *least_and_room(_outline(self.sample.text.encode("latin-1"))),
            narrowest,
            wider,
            bound,
            shape,
            fixed=tuple((at, int(figure.digits)) for at, figure in fixed.items()),
            numbers=tuple(number for part in parts for number in part.numbers),
            never_zero=(
                *(part.token.digits for part in parts if not part.zero),
                *((at,) for at, freedom in free.items() if not freedom.nought),
            ),
            stamp=self.stamp,
        )

    def as_tried(
        self, parts: Sequence[_Part], unlike: Sequence[Unlike], told: Sequence[Mapping[Cell, object]]
    ) -> list[_Part]:
        """The parts with as much freedom as is proven by lines of ``unlike`` figures, as patterns ``told`` them."""
        found = list(parts)
        stencil = self.stencil(parts)
        if stencil is None or not unlike:
            return found
        read = stencil.read(_equal_lines([sample.text for *_, sample in unlike]))
        taken = cells_of(frames_of(read.steps, read.records), len(unlike))
        known = set(read.numbers)
        places = {id(part.token): at for at, part in enumerate(parts)}
        for line, (token, figure, less, _) in enumerate(unlike):
            if id(token) in places and (line not in known or taken[line] != told[line]):
                at = places[id(token)]
                found[at] = found[at].without(figure, less)
        return found

    def proven(self, parts: Sequence[_Part], rule: Wanted, draw: random.Random) -> Stencil | None:
        """The stencil, where it reads lines with other numbers as the patterns do, but for some that it leaves."""
        texts = [self.sample.text, *(self._spaced(parts, blanks) for blanks in (1, 2, 9))]
        texts += [self._with_others(parts, draw) for _ in range(TRIALS)]
        told, once, stencil = told_of(texts, rule), told_once(texts, rule), self.stencil(parts)
        if stencil is None or once is None or not told.alike:
            return None
        stencil = replace(stencil, layout=replace(self.layout, labels=told.labels, told_once=once))
        read = stencil.read(_equal_lines(texts))
        taken = pl.col("line_number").is_in(read.numbers.implode())
        every = frames_of(read.steps, read.records)
        found = {frame: rows.sort("line_number", maintain_order=True) for frame, rows in every if len(rows)}
        expected = {frame: rows.filter(taken) for frame, rows in told.frames.items()}
        same = found.keys() == expected.keys() and all(rows.equals(found[frame]) for frame, rows in expected.items())
        enough = len(read.numbers) >= len(texts) - MOST_ODD
        return stencil if enough and same and all(map(told.reads, read.numbers)) else None

    def _spaced(self, parts: Sequence[_Part], blanks: int) -> str:
        """The line with so many blanks wherever it may have more or fewer."""
        free = [at for part in parts for at, freedom in part.token.free.items() if freedom.blanks]
        return self.sample.having({at: replace(self.sample.figures[at], blanks=blanks) for at in free}).text

    def _with_others(self, parts: Sequence[_Part], draw: random.Random) -> str:
        others: dict[int, LineFigure] = {}
        for part in parts:
            others |= part.token.others(self.sample, draw)
        return self.sample.having(others).with_bars(draw)


def blank_stencil(line: bytes, wanted: Wanted) -> Stencil | None:
    """The stencil of a line on which no marker stands, whatever its digits are; None where one does or may."""
    # Terminal codes and another encoding may hide one.
    if any(byte < ord(" ") and byte != ord("\t") for byte in line) or b"\x7f" in line or not _is_utf8(line):
        return None
    text = _words(line)
    if any(_words(marker.encode()) in text for marker in wanted.markers):
        return None
    outline = _outline(line)
    least, room = least_and_room(outline)
    import numpy as np

    none = np.zeros(sum(least == ord("0")), np.uint8)
    return Stencil(StencilLayout((), (), {}, told_once=False), least, room, none, none + np.uint8(255), none, none)


def _words(line: bytes) -> bytes:
    """What all lines with the outline of one share, and what a part of a line shares with those that hold it."""
    without_bars = regex.sub(rb"\xe2\x96[\x88-\x8f]", b"", line)
    return regex.sub(rb" +", b" ", regex.sub(rb"[0-9]+", b"0", without_bars.replace(b"-", b"")))


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _outline(line: bytes) -> bytes:
    return outlined(line + b"\n").outline[:-1].tobytes()


def _equal_lines(texts: Sequence[str]) -> EqualLines:
    """Lines of such bytes, those whose outline is as long as that of most."""
    return next(outlined(block_of(texts).text).by_length(1, 2**20))


def _given(lines: Sequence[Mapping[Cell, object]], tokens: Sequence[Token]) -> dict[int, list[Cell]]:
    """The cells that tokens give, or add to; left out is one that changes something else, or begins as another.

    The first of ``lines`` is the line itself, each other one the line with other digits at a token; by their places.
    """
    first, found, begun = lines[0], dict[int, list[Cell]](), set[int]()
    for at, (token, line) in enumerate(zip(tokens, lines[1:], strict=True), start=1):
        changed = [cell for cell, value in first.items() if line.get(cell) != value]
        alike = line.keys() == first.keys() and all(_can_be(token, first[cell], line[cell]) for cell in changed)
        if alike and token.whole[0] not in begun:
            found[at] = changed
            begun.add(token.whole[0])
    return found


def _parts(
    given: Mapping[int, Sequence[Cell]],
    tokens: Sequence[Token],
    samples: Sequence[LineSample],
    told: LinesTold,
    rows: Sequence[tuple[Frame, int]],
) -> Iterator[_Part]:
    """What tells numbers, by what is ``told`` of ``samples``, as ``_given`` has them; columns are named by ``rows``."""
    for at, cells in given.items():
        token, both = tokens[at - 1], (samples[0], samples[at])
        numbers = (
            token.number(f"{rows.index(cell[:2])} {cell[2]}", both, (told.number(0, cell), told.number(at, cell)))
            for cell in cells
        )
        yield _Part(token, tuple(numbers))


def _can_be(token: Token, before: object, after: object) -> bool:
    """Whether digits make what stood in a cell before and after, which is no word, and not 0."""
    return not token.clock and isinstance(before, int | float) and isinstance(after, int | float) and before != 0


def _rows(frames: Mapping[Frame, pl.DataFrame], numbers: set[Cell], stamped: bool) -> dict[tuple[Frame, int], Row]:
    """The rows that a line gives, of which some cells are ``numbers``, by their places; it may be ``stamped``."""
    rows = {}
    for frame, n in ((frame, n) for frame, found in frames.items() for n in range(len(found))):
        found = frames[frame]
        mine = frozenset(name for name in found.columns if (frame, n, name) in numbers)
        timed = "timestamp" in found.columns and found["timestamp"][n] is not None and "timestamp" not in mine
        rows[frame, n] = Row(frame, found[n : n + 1], mine, timed and stamped)
    return rows


def _exact(numbers: Sequence[Number]) -> bool:
    """Whether every sum is of whole numbers, which are added without rounding."""
    times = Counter(number.column for number in numbers)
    sums = (number for number in numbers if times[number.column] > 1)
    return all(number.fraction is None and number.exponent is None and number.scale.is_integer() for number in sums)
