"""A stencil by trial: what the patterns make of a line when its digits change, whatever its words are.

A line that no layout reads has values without a delimiter between them, completes a step line, tells more than a step,
or nothing for all its markers. It is read again and again with other digits; where each number that it gives proves to
be the digits of one place, times a factor, or a sum of such as ``1:02:03`` is, lines like it need no pattern.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import polars as pl
import polars.selectors as cs
import regex

from logparse.formats._base import TIMESTAMP, LogFormat
from logparse.read.contents import BlockContents, Frame, Wanted, find_in, frames_of
from logparse.read.lines import TextBlock
from logparse.read.stencil import (
    BAR,
    BARS,
    DIGITS,
    POWER,
    STAMP,
    EqualLines,
    LinesRead,
    Number,
    Stencil,
    least_and_room,
)
from logparse.read.steps import StepBlock, no_steps
from logparse.read.values import DTYPE, can_be, group_names
from logparse.read.versions import versions_of
from logparse.schema import TIME

# Digits, with commas between thousands; those behind the point; the exponent. Not those of a word such as ``bf16``.
_NUMBER = regex.compile(r"(?<!\b[^\W\d]\w*)(\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.(\d+))?(?:[eE]([-+]\d{1,2}))?")
# Lines with other digits that must be read alike, and how many of them must have numbers that can be.
TRIALS, MOST_ODD = 48, 16
# A power of ten that no number has.
NO_NUMBER = 99
BARS_OF_TEXT = BARS.decode("latin-1")


class _Clock(NamedTuple):
    """How a time is written: its pattern, its digits, all of it, and the places of digits that may be any."""

    pattern: str
    digits: str
    written: str
    free: tuple[int, ...]


CLOCKS = (
    _Clock(TIMESTAMP, "%Y%m%d%H%M%S", "%Y.%m.%d.%H:%M:%S", (15, 18, *range(20, len(STAMP)))),
    _Clock(r"(?<!\d)\d\d/\d\d/\d\d \d\d:\d\d:\d\d(?!\d)", "%m%d%y%H%M%S", "%m/%d/%y %H:%M:%S", (13, 16)),
)
# What a line tells: the frame, the how-manieth row of the line there, the column.
Cell = tuple[Frame, int, str]


@dataclass(frozen=True)
class Row:
    """A row of a ``frame`` that each line gives: what it is on one line, and which of its cells are other ``numbers``.

    ``stamped``: its time is the time stamp of the line.
    """

    frame: Frame
    cells: pl.DataFrame
    numbers: frozenset[str]
    stamped: bool

    def of(self, numbers: pl.DataFrame, at: int) -> pl.DataFrame:
        """The rows on lines with such ``numbers``, of which those of this row are named by its place ``at``."""
        return numbers.select(self._column(name, at) for name in self.cells.columns)

    def _column(self, name: str, at: int) -> pl.Expr:
        if name in ("source", "line_number") or (name == "timestamp" and self.stamped):
            return pl.col(name).cast(self.cells.schema[name])
        if name in self.numbers:
            return pl.col(f"{at} {name}").cast(self.cells.schema[name]).alias(name)
        return pl.lit(self.cells[name][0], self.cells.schema[name]).alias(name)

    def possible(self, at: int) -> Iterator[pl.Expr]:
        """Whether each number can be, and is not 0, which may stand for none."""
        for name in self.numbers:
            value = pl.col(f"{at} {name}")
            column = self.cells["column"][0] if self.frame[0] == "pairs" else name
            yield value != 0
            # A record takes any number.
            if self.frame[0] != "records" and column in DTYPE and DTYPE[column] != TIME:
                yield can_be(column, value)


@dataclass(frozen=True)
class LearntLayout:
    """The ``rows`` that each of such lines gives, and how often each label of a format stands on it.

    ``told_once``: the first of the lines tells something that is read of no other.
    """

    formats: tuple[LogFormat, ...]
    stamp_span: tuple[int, int]
    rows: tuple[Row, ...]
    labels: Mapping[str, Counter[str]]
    told_once: bool

    def read(self, numbers: pl.LazyFrame) -> LinesRead:
        """What the patterns make of the ``numbers``; a line is left out that has one that cannot be."""
        kept = numbers.slice(int(self.told_once)).filter(self._possible).collect()
        rows: dict[Frame, list[pl.DataFrame]] = {}
        for at, row in enumerate(self.rows):
            rows.setdefault(row.frame, []).append(row.of(kept, at))
        frames = {frame: pl.concat(found) for frame, found in rows.items()}
        return LinesRead(
            numbers=kept["line_number"],
            steps={fmt.name: self._steps(fmt, frames, len(kept)) for fmt in self.formats},
            records={frame[1:]: found for frame, found in frames.items() if frame[0] == "records"},
        )

    def _steps(self, fmt: LogFormat, frames: Mapping[Frame, pl.DataFrame], lines: int) -> StepBlock:
        none = no_steps(fmt)
        beside = (frames.get(("companions", fmt.name, str(at)), no) for at, no in enumerate(none.companions))
        return replace(
            none,
            rows=frames.get(("rows", fmt.name), none.rows),
            pairs=frames.get(("pairs", fmt.name), none.pairs),
            companions=tuple(beside),
            labels=Counter({label: times * lines for label, times in self.labels[fmt.name].items()}),
        )

    @cached_property
    def _possible(self) -> pl.Expr:
        possible = chain.from_iterable(row.possible(at) for at, row in enumerate(self.rows))
        return pl.all_horizontal(pl.lit(value=True), *possible)


@dataclass(frozen=True)
class _Token:
    """A number on a line: the ``places`` of its digits, which count 10 ** ``power``, and its ``least`` digits.

    The last ``zeros`` are all that stands behind its point. What is no number, but a time or a block of a bar, has the
    power NO_NUMBER; the digits of a time are in the order of ``clock``.
    """

    places: tuple[int, ...]
    least: str
    power: int
    zeros: int = 0
    clock: str = ""

    def whole(self, text: str) -> _Token:
        """The same without what is behind its point."""
        places = self.places[: -self.zeros]
        return _Token(places, min("1", text[places[0]]) + "0" * (len(places) - 1), self.power + self.zeros)

    def any_digits(self) -> _Token:
        """The same where each digit may be 0."""
        return self if self.power == NO_NUMBER else replace(self, least="0" * len(self.places))

    def parted(self, text: str) -> bool:
        """Whether commas stand between its thousands."""
        return "," in text[self.places[0] : self.places[-1]]

    def varied(self, letters: list[str], digits: str, draw: random.Random) -> None:
        """Put others of ``digits`` there, or another time."""
        if self.least == BARS_OF_TEXT[0]:
            letters[self.places[0]] = draw.choice(BARS_OF_TEXT)
            return
        if self.clock:
            moment = datetime(2001, 1, 1) + timedelta(seconds=draw.randrange(10**9))
            written = f"{moment.strftime(self.clock)}{draw.randrange(10**9):09}"
            for place, digit in zip(self.places, written, strict=False):
                letters[place] = digit
            return
        for place, least in zip(self.places, self.least, strict=True):
            letters[place] = draw.choice([digit for digit in digits if digit >= least and digit != letters[place]])

    def read(self, text: str) -> float:
        """The number that stands there in ``text``."""
        digits = "".join(text[place] for place in self.places)
        return float(f"{digits}e{self.power}")

    def number(self, column: str, texts: tuple[str, str], values: tuple[float, float]) -> Number:
        """What this adds to the column, whose ``values`` are those of two ``texts`` with other digits here alone."""
        before, after = map(self.read, texts)
        return Number(column, self.places, self.power, float(f"{(values[1] - values[0]) / (after - before):.12g}"))

    def can_be(self, cell: Cell, before: object, after: object) -> bool:
        """Whether the digits make a ``cell``, which is no word, and not 0, and holds as many of them."""
        numbers = isinstance(before, int | float) and isinstance(after, int | float) and before != 0
        measured = isinstance(before, float) and cell[0][0] != "records"
        return numbers and (measured or len(self.places) + self.power <= DIGITS)


@dataclass(frozen=True)
class _Told:
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


def learn_stencil(line: bytes, wanted: Wanted) -> Stencil | None:
    """The stencil of a line; None where trials contradict, or nothing or too much of interest stands on it."""
    rule, text = Wanted(wanted.formats, wanted.whole, {}), line.decode("latin-1")
    draw, tokens = random.Random(text), list(_tokens(text))
    # Where a number must be whole, a fraction of zeros stays.
    tokens += [token.whole(text) for token in tokens if token.zeros]
    texts = [text, *(_varied(text, [token], "123456789", draw) for token in tokens)]
    told = _decoded(texts, rule) if _is_utf8(line) else None
    if told is None or not told.reads(0) or _hides_number(told.of_first, text, rule.formats):
        return None
    given = _given(told.lines, tokens)
    stamp = _stamp(text, told.of_first)
    rows = _rows(told.of_first, set(chain.from_iterable(given.values())), stamp)
    numbers = list(_numbers(told, texts, tokens, given, list(rows)))
    # What tells nothing may be any digits, but for a 0 before parted thousands, which is a fault.
    free = [token if given[token] or token.parted(text) else token.any_digits() for token in given]
    moved = _any_of_stamp(text, stamp)
    trials = [_varied(_at_another_time(text, moved, draw), free, "0123456789", draw) for _ in range(TRIALS)]
    once = _told_once([text, *trials], rule)
    if once is None or not _exact(numbers):
        return None
    named = {frame[1] for frame in told.of_first if frame[0] != "records"}
    formats = tuple(fmt for fmt in rule.formats if fmt.name in named)
    layout = LearntLayout(formats, stamp, tuple(rows.values()), told.labels, once)
    stencil = _stencil(line, layout, free, numbers)
    return stencil if _proves(stencil, trials, rule, told.labels) else None


def blank_stencil(line: bytes, wanted: Wanted) -> Stencil | None:
    """The stencil of a line on which no marker stands, whatever its digits are; None where one does or may."""
    least, room = least_and_room(line)
    text = least.tobytes()
    # Terminal codes and another encoding may hide one.
    if any(byte < ord(" ") and byte != ord("\t") for byte in line) or b"\x7f" in line or not _is_utf8(line):
        return None
    if any(regex.sub(rb"\d", b"0", marker.encode()) in text for marker in wanted.markers):
        return None
    return Stencil(LearntLayout((), (0, 0), (), {}, False), least, room, ())


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _lines(texts: Sequence[str]) -> pl.DataFrame:
    """Lines of such bytes, as they are read."""
    return TextBlock("", 0, len(texts), True, "".join(f"{text}\n" for text in texts).encode("latin-1")).lines


def _decoded(texts: Sequence[str], rule: Wanted) -> _Told | None:
    """What the patterns make of the lines; None where their labels differ, or a pair counts on some logs alone."""
    found = find_in(_lines(texts), rule, 0)
    blocks = found.steps.values()
    alike = all(times % len(texts) == 0 for block in blocks for times in block.labels.values())
    if any(len(block.tails) for block in blocks) or not alike:
        return None
    lines: list[dict[Cell, object]] = [{} for _ in texts]
    for frame, rows in (told for told in frames_of(found.steps, found.records) if len(told[1])):
        for at, cells in _cells(frame, rows):
            lines[at] |= cells
    for bad in chain.from_iterable((*block.malformed, *block.malformed_beside) for block in blocks):
        lines[bad.line_number][("malformed",), 0, bad.label] = True
    return _Told(found, tuple(lines))


def _cells(frame: Frame, rows: pl.DataFrame) -> Iterator[tuple[int, dict[Cell, object]]]:
    """The cells of each row, and the number of its line; a time is microseconds, and NaN is equal to itself."""
    seen = Counter[int]()
    for row in rows.with_columns(cs.datetime().to_physical()).drop("source").iter_rows(named=True):
        at = row.pop("line_number")
        yield at, {(frame, seen[at], name): value if value == value else "NaN" for name, value in row.items()}
        seen[at] += 1


def _hides_number(frames: Mapping[Frame, pl.DataFrame], text: str, formats: Sequence[LogFormat]) -> bool:
    """Whether a number of a head is none because it cannot be; with other digits it may be one."""
    line = _lines([text])["text"][0]
    for fmt in (fmt for fmt in formats if ("rows", fmt.name) in frames):
        rows = frames["rows", fmt.name]
        if len(rows) > 1 or _groups(line, fmt) != {n for n in group_names(fmt.head) if rows[n][0] is not None}:
            return True
    return False


def _groups(text: str, fmt: LogFormat) -> set[str]:
    """The groups of the head that are there."""
    head = regex.search(fmt.head, text)
    return {name for name, value in head.groupdict().items() if value is not None} if head else set()


def _told_once(texts: Sequence[str], wanted: Wanted) -> bool | None:
    """Whether a sentence stands on the lines of which the first is read; None where there is more beside rows."""
    lines = _lines(texts)
    read = lines["text"].to_list()

    def stands(marker: str, pattern: str) -> bool:
        return any(marker in text and regex.search(pattern, text) for text in read)

    sentences = [told for fmt in wanted.whole for told in fmt.sentences if stands(told.marker, told.pattern)]
    begins = any(stands(block.marker, block.start) for fmt in wanted.formats for block in fmt.blocks)
    if begins or versions_of(lines) or not all(told.first for told in sentences):
        return None
    return bool(sentences)


def _stamp(text: str, frames: Mapping[Frame, pl.DataFrame]) -> tuple[int, int]:
    """Where the time of the rows stands last; nowhere where they have none, or none that a stencil can read."""
    timed = [rows["timestamp"].drop_nulls() for rows in frames.values() if "timestamp" in rows.columns]
    told = (
        span
        for span, clock in reversed(_times(text))
        for moment in chain.from_iterable(times.dt.strftime(clock.written) for times in timed)
        if span[1] - span[0] <= len(STAMP) and regex.match(moment, text, pos=span[0])
    )
    return next(told, (0, 0))


def _times(text: str) -> list[tuple[tuple[int, int], _Clock]]:
    """Where times stand on a line, and how they are written, in order."""
    return sorted((found.span(), clock) for clock in CLOCKS for found in regex.finditer(clock.pattern, text))


def _tokens(text: str) -> Iterator[_Token]:
    """The numbers on a line, the times, and the blocks of bars."""
    times = _times(text)
    for (begin, end), written in times:
        places = tuple(place for place in range(begin, end) if text[place].isdigit())
        yield _Token(places, "0" * len(places), NO_NUMBER, clock=written.digits)
    for bar in regex.finditer(f"(?<={BAR.decode('latin-1')})[{BARS_OF_TEXT}]", text):
        yield _Token((bar.start(),), BARS_OF_TEXT[0], NO_NUMBER)
    outside = (f for f in _NUMBER.finditer(text) if not any(begin <= f.start() < end for (begin, end), _ in times))
    for found in outside:
        whole = [place for place in range(*found.span(1)) if text[place].isdigit()]
        places, fraction = (*whole, *range(*found.span(2))), found[2] or ""
        power = int(found[3] or 0) - len(fraction)
        # No digit becomes 0, and no number gets a 0 in front, but for minutes and seconds of a clock.
        clock = regex.match(r"(?<=\d:)\d\d(?!\d)", text, pos=places[0])
        first = "1" if text[places[0]] != "0" and (len(places) == 1 or len(whole) > 1) and not clock else "0"
        if abs(power) <= POWER:
            yield _Token(places, first + "0" * (len(places) - 1), power, 0 if fraction.strip("0") else len(fraction))


def _varied(text: str, tokens: Sequence[_Token], digits: str, draw: random.Random) -> str:
    letters = list(text)
    for token in tokens:
        token.varied(letters, digits, draw)
    return "".join(letters)


def _at_another_time(text: str, places: Sequence[int], draw: random.Random) -> str:
    letters = list(text)
    for place in places:
        letters[place] = draw.choice("0123456789")
    return "".join(letters)


def _any_of_stamp(text: str, stamp: tuple[int, int]) -> list[int]:
    """The places of those digits of the ``stamp`` that may be any."""
    found = (span[0] + at for span, clock in _times(text) if span == stamp for at in clock.free)
    return [place for place in found if place < stamp[1]]


def _given(lines: Sequence[Mapping[Cell, object]], tokens: Sequence[_Token]) -> dict[_Token, list[Cell]]:
    """The cells that each token gives, or adds to; left out is one that changes something else, or begins as another.

    The first of ``lines`` is the line itself, each other one the line with other digits at the next token.
    """
    first, *others = lines
    found: dict[_Token, list[Cell]] = {}
    begun = set()
    for token, line in zip(tokens, others, strict=True):
        changed = [cell for cell, value in first.items() if line.get(cell) != value]
        alike = line.keys() == first.keys() and all(token.can_be(cell, first[cell], line[cell]) for cell in changed)
        if alike and token.places[0] not in begun:
            found[token] = changed
            begun.add(token.places[0])
    return found


def _numbers(
    told: _Told,
    texts: Sequence[str],
    tokens: Sequence[_Token],
    given: Mapping[_Token, Sequence[Cell]],
    rows: Sequence[tuple[Frame, int]],
) -> Iterator[Number]:
    """The numbers of the ``rows`` that tokens give, by what is ``told`` of ``texts`` as of ``_given``."""
    for i, token in enumerate(tokens, start=1):
        for cell in given.get(token, ()):
            column = f"{rows.index(cell[:2])} {cell[2]}"
            yield token.number(column, (texts[0], texts[i]), (told.number(0, cell), told.number(i, cell)))


def _rows(
    frames: Mapping[Frame, pl.DataFrame], numbers: set[Cell], stamp: tuple[int, int]
) -> dict[tuple[Frame, int], Row]:
    """The rows that a line gives, of which some cells are ``numbers``, by their places."""
    rows = {}
    for frame, n in ((frame, n) for frame, found in frames.items() for n in range(len(found))):
        found = frames[frame]
        mine = frozenset(name for name in found.columns if (frame, n, name) in numbers)
        timed = "timestamp" in found.columns and found["timestamp"][n] is not None and "timestamp" not in mine
        rows[frame, n] = Row(frame, found[n : n + 1], mine, timed and stamp[0] < stamp[1])
    return rows


def _exact(numbers: Sequence[Number]) -> bool:
    """Whether every sum is of whole numbers, which are added without rounding."""
    times = Counter(number.column for number in numbers)
    sums = (number for number in numbers if times[number.column] > 1)
    return all(number.power == 0 and number.scale.is_integer() for number in sums)


def _stencil(line: bytes, layout: LearntLayout, free: Sequence[_Token], numbers: Sequence[Number]) -> Stencil:
    """The stencil of a ``line`` with ``free`` digits."""
    import numpy as np

    least, room = np.frombuffer(line, np.uint8).copy(), np.zeros(len(line), np.uint8)
    for token in free:
        least[list(token.places)] = np.frombuffer(token.least.encode("latin-1"), np.uint8)
    stamp = [place for place in range(*layout.stamp_span) if line[place : place + 1].isdigit()]
    least[stamp] = ord("0")
    open_places = [*stamp, *chain.from_iterable(token.places for token in free)]
    room[open_places] = np.where(least[open_places] < BARS[0], ord("9"), BARS[-1]) - least[open_places]
    return Stencil(layout, least, room, tuple(numbers))


def _proves(stencil: Stencil, texts: Sequence[str], rule: Wanted, labels: Mapping[str, Counter[str]]) -> bool:
    """Whether it reads lines with such ``labels`` as the patterns do, but for a few that it leaves to them."""
    import numpy as np

    told = _decoded(texts, rule)
    if told is None:
        return False
    text = np.frombuffer("".join(texts).encode("latin-1"), np.uint8)
    length, at = len(texts[0]), np.arange(len(texts))
    fits, read = stencil.read(EqualLines("", at, at * length, text, length))
    taken = pl.col("line_number").is_in(read.numbers.implode())
    every = frames_of(read.steps, read.records)
    found = {frame: rows.sort("line_number", maintain_order=True) for frame, rows in every if len(rows)}
    expected = {frame: rows.filter(taken) for frame, rows in told.frames.items()}
    enough = bool(fits.all()) and len(read.numbers) >= len(texts) - MOST_ODD
    same = found.keys() == expected.keys() and all(rows.equals(found[frame]) for frame, rows in expected.items())
    return enough and same and all(map(told.reads, read.numbers)) and told.labels == labels
