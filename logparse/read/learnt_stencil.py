"""A stencil by trial: what the patterns make of a line when its digits change, whatever its words are.

A line that no layout reads has values without a delimiter between them. It is read again and again with other digits;
where each number of its row proves to be the digits of one place, times a factor, or a sum of such as ``1:02:03`` is,
lines like it need no pattern.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import chain

import polars as pl
import regex

from logparse.formats._base import TIMESTAMP, LogFormat
from logparse.read.records import find_records
from logparse.read.stencil import POWER, STAMP, EqualLines, Number, Stencil
from logparse.read.steps import StepBlock, decode_block
from logparse.read.values import can_be, group_names, there
from logparse.read.versions import versions_of

# Digits, with commas between thousands; those behind the point; the exponent. Not those of a word such as ``bf16``.
_NUMBER = regex.compile(r"(?<!\b[^\W\d]\w*)(\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.(\d+))?(?:[eE]([-+]\d{1,2}))?")
# Lines with other digits that must be read alike, and how many of them must have numbers that can be.
TRIALS, MOST_ODD = 48, 16
# Digits of a time stamp that may be any.
_ANY = (15, 18, *range(20, len("2026-01-01 00:00:00.123456")))


@dataclass(frozen=True)
class LearntLayout:
    """What the rows of such lines are: their ``schema``, the ``numbers`` among them, how often each label stands."""

    fmt: LogFormat
    stamp_span: tuple[int, int]
    labels: Counter[str]
    schema: pl.Schema
    numbers: tuple[str, ...]

    def labels_of(self, rows: pl.DataFrame) -> Counter[str]:
        """How often each label stands on the lines of ``rows``."""
        return Counter({label: times * len(rows) for label, times in self.labels.items()})

    def rows(self, numbers: pl.LazyFrame) -> pl.DataFrame:
        """Rows of the schema; a line is left out that has a number that cannot be, or 0, which may stand for none."""
        return numbers.filter(self._possible).select(pl.col(n).cast(t) for n, t in self.schema.items()).collect()

    @cached_property
    def _possible(self) -> pl.Expr:
        possible = [can_be(name, pl.col(name)) & (pl.col(name) != 0) for name in self.numbers]
        return pl.all_horizontal(pl.lit(value=True), *possible)


@dataclass(frozen=True)
class _Token:
    """A number on a line: the ``places`` of its digits, which count 10 ** ``power``, and its ``least`` digits."""

    places: tuple[int, ...]
    least: str
    power: int

    def varied(self, letters: list[str], digits: str, draw: random.Random) -> None:
        """Put others of ``digits`` there."""
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


def learn_stencil(line: bytes, fmt: LogFormat, others: Sequence[LogFormat]) -> Stencil | None:
    """The stencil of a step line of ``fmt``; None where trials contradict, or something else of interest is on them.

    ``others`` are the formats whose lines are looked for beside.
    """
    text = line.decode("latin-1")
    if not (line.isascii() and text.replace("\t", " ").isprintable()):
        return None
    told = _decoded([text], fmt)
    # A number of the head that cannot be is none, and with other digits it may be one.
    if told is None or _groups(text, fmt) != {name for name in group_names(fmt.head) if told.rows[name][0] is not None}:
        return None
    stamp = _stamp(text, told.rows["timestamp"][0])
    if stamp is None:
        return None
    draw = random.Random(text)
    tokens = list(_tokens(text))
    texts = [text, *(_varied(text, [token], "123456789", draw) for token in tokens)]
    told = _decoded(texts, fmt)
    if told is None or told.malformed:
        return None
    effects = _effects(told.rows, tokens)
    numbers = [
        token.number(name, (text, texts[at]), (told.rows[name][0], told.rows[name][at]))
        for at, token in enumerate(tokens, start=1)
        for name in effects.get(token, ())
    ]
    if not _exact(numbers):
        return None
    # What tells nothing may be any digits.
    free = [token if names else replace(token, least="0" * len(token.places)) for token, names in effects.items()]
    labels = Counter({label: times // len(texts) for label, times in told.labels.items()})
    schema = told.rows.schema
    layout = LearntLayout(fmt, stamp, labels, schema, tuple(number.column for number in numbers))
    stencil = _stencil(line, layout, free, numbers, told.rows[:1])
    trials = [_varied(_at_another_time(text, stamp, draw), free, "0123456789", draw) for _ in range(TRIALS)]
    return stencil if _proves(stencil, trials) and not _say_more([text, *trials], fmt, others) else None


def _lines(texts: Sequence[str]) -> pl.DataFrame:
    return pl.DataFrame({"source": "", "line_number": range(len(texts)), "text": texts, "complete": True})


def _decoded(texts: Sequence[str], fmt: LogFormat) -> StepBlock | None:
    """What the patterns make of the lines; None unless each is a row, and nothing but that."""
    found, _ = decode_block(_lines(texts), fmt)
    beside = len(found.tails) + len(found.pairs) + sum(map(len, found.companions))
    each = found.rows["line_number"].to_list() == list(range(len(texts)))
    return found if each and not beside and all(n % len(texts) == 0 for n in found.labels.values()) else None


def _groups(text: str, fmt: LogFormat) -> set[str]:
    """The groups of the head that are there."""
    head = regex.search(fmt.head, text)
    return {name for name, value in head.groupdict().items() if value is not None} if head else set()


def _say_more(texts: Sequence[str], fmt: LogFormat, others: Sequence[LogFormat]) -> bool:
    """Whether anything beside a step of ``fmt`` stands on the lines."""
    lines = _lines(texts)
    if any(map(len, find_records(lines, [fmt, *others]).values())) or versions_of(lines):
        return True
    sentences = ((told.marker, told.pattern) for other in (fmt, *others) for told in other.sentences)
    starts = ((block.marker, block.start) for other in (fmt, *others) for block in other.blocks)
    patterns = (*sentences, *starts)
    if any(marker in text and regex.search(pattern, text) for marker, pattern in patterns for text in texts):
        return True
    steps = (decode_block(lines, other)[0] for other in others if there(lines["text"], other.step_markers))
    return any(found.holds_any for found in steps)


def _stamp(text: str, moment: datetime | None) -> tuple[int, int] | None:
    """Where the time of the row stands, nowhere where it has none; None where it is none that a stencil can read."""
    if moment is None:
        return 0, 0
    written = moment.strftime("%Y.%m.%d.%H:%M:%S")
    spans = [found.span() for found in regex.finditer(TIMESTAMP, text) if len(found.group()) <= len(STAMP)]
    return next((span for span in spans if regex.match(written, text, pos=span[0])), None)


def _tokens(text: str) -> Iterator[_Token]:
    """The numbers on a line; what is written as a time is none, since it may be one with other digits."""
    times = [found.span() for found in regex.finditer(TIMESTAMP, text)]
    outside = (f for f in _NUMBER.finditer(text) if not any(begin <= f.start() < end for begin, end in times))
    for found in outside:
        whole = [place for place in range(*found.span(1)) if text[place].isdigit()]
        places, power = (*whole, *range(*found.span(2))), int(found[3] or 0) - len(found[2] or "")
        # No digit becomes 0, and no number gets a 0 in front, but for minutes and seconds of a clock.
        clock = regex.match(r"(?<=\d:)\d\d(?!\d)", text, pos=places[0])
        first = "1" if text[places[0]] != "0" and (len(places) == 1 or len(whole) > 1) and not clock else "0"
        if abs(power) <= POWER:
            yield _Token(places, first + "0" * (len(places) - 1), power)


def _varied(text: str, tokens: Sequence[_Token], digits: str, draw: random.Random) -> str:
    letters = list(text)
    for token in tokens:
        token.varied(letters, digits, draw)
    return "".join(letters)


def _at_another_time(text: str, stamp: tuple[int, int], draw: random.Random) -> str:
    letters = list(text)
    for place in (stamp[0] + offset for offset in _ANY if stamp[0] + offset < stamp[1]):
        letters[place] = draw.choice("0123456789")
    return "".join(letters)


def _effects(rows: pl.DataFrame, tokens: Sequence[_Token]) -> dict[_Token, list[str]]:
    """The columns that each token gives, or adds to; left out is one that gives a column that is 0.

    The first row is of the line itself, each other one of the line with other digits at the next token.
    """
    columns = [name for name in rows.columns if name not in ("source", "line_number")]
    changed = {
        token: [name for name in columns if rows[name][at] != rows[name][0]] for at, token in enumerate(tokens, start=1)
    }
    return {
        token: names
        for at, (token, names) in enumerate(changed.items(), start=1)
        if all(isinstance(rows[name][at], float) and rows[name][0] for name in names)
    }


def _exact(numbers: Sequence[Number]) -> bool:
    """Whether every sum is of whole numbers, which are added without rounding."""
    times = Counter(number.column for number in numbers)
    sums = (number for number in numbers if times[number.column] > 1)
    return all(number.power == 0 and number.scale.is_integer() for number in sums)


def _stencil(
    line: bytes, layout: LearntLayout, free: Sequence[_Token], numbers: Sequence[Number], row: pl.DataFrame
) -> Stencil:
    """The stencil of a ``line`` whose ``row`` this is, with ``free`` digits."""
    import numpy as np

    least, room = np.frombuffer(line, np.uint8).copy(), np.zeros(len(line), np.uint8)
    for token in free:
        least[list(token.places)] = np.frombuffer(token.least.encode(), np.uint8)
    stamp = [place for place in range(*layout.stamp_span) if line[place : place + 1].isdigit()]
    least[stamp] = ord("0")
    open_places = [*stamp, *chain.from_iterable(token.places for token in free)]
    room[open_places] = ord("9") - least[open_places]
    own = ["source", "line_number", *layout.numbers, *(["timestamp"] if stamp else [])]
    return Stencil(layout, least, room, tuple(numbers), row.drop(own))


def _proves(stencil: Stencil, texts: Sequence[str]) -> bool:
    """Whether it reads the lines as the patterns do, but for a few that it leaves to them."""
    import numpy as np

    told = _decoded(texts, stencil.layout.fmt)
    if told is None:
        return False
    size = len(texts[0])
    windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer("".join(texts).encode(), np.uint8), size)
    at = np.arange(len(texts))
    fits, rows = stencil.read(EqualLines("", at, at * size, windows))
    same = told.rows.filter(pl.col("line_number").is_in(rows["line_number"].implode()))
    labels = Counter({label: times // len(texts) for label, times in told.labels.items()})
    enough = bool(fits.all()) and len(rows) >= len(texts) - MOST_ODD
    return enough and rows.equals(same) and stencil.layout.labels_of(rows[:1]) == labels
