"""One layout of a step line: which words stand where, and what the numbers between them are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from logparse.formats._base import TIMESTAMP, LogFormat, Reading
from logparse.read.values import DTYPE, can_be, group, group_names, moment, number
from logparse.schema import BOOL

# What a value may be beside a plain number: 171.176T, [45.7], 0.5/0.7, 1h 2m 3s, 1:02:03; not a word of interest.
_NUMBERS, _SPELLED, _CLOCK = r"[-+\[\]\d./eE]+ ?[A-Za-z%]{0,8}\]?", r"(?:\d+[dhms] ?)+", r"\d+(?::\d\d)+"
_LIKE_A_NUMBER = f"^(?:{_NUMBERS}|{_SPELLED}|{_CLOCK})$"
# The same, and thousands that are parted, for a value that has a comma on the first line.
_WITH_COMMAS = rf"^(?:{_NUMBERS}|{_SPELLED}|{_CLOCK}|[-+]?\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)? ?[A-Za-z%]{{0,8}})$"


@dataclass(frozen=True)
class Piece:
    """What stands between two delimiters: ``before`` up to the value, the value, and what comes ``after`` it.

    ``label`` None has no pair, and the whole piece is ``before``; so it is where a label has no value. ``reading`` None
    is a label that nobody reads. ``plain`` is a value that is a number and nothing else; ``none`` is the value of the
    first line where that stands for no number. ``commas``: that value has a comma, so that a value may. ``spaced``: any
    blanks may stand before and behind the value; elsewhere they are as on the first line.
    """

    before: str
    after: str = ""
    label: str | None = None
    reading: Reading | None = None
    valued: bool = False
    plain: bool = False
    none: str | None = None
    commas: bool = False
    spaced: bool = True

    def fits(self, piece: pl.Expr) -> pl.Expr:
        """Whether the words are the same."""
        if not self.valued:
            return piece == self.before
        begins = piece.str.starts_with(self.before)
        return begins & piece.str.ends_with(self.after) if self.after else begins

    def value(self, piece: pl.Expr) -> pl.Expr:
        """The text of the value on each line."""
        text = piece.str.strip_prefix(self.before)
        if not self.spaced:
            return text.str.strip_suffix(self.after) if self.after else text
        # A blank in front of a unit is not as the first line has it.
        return text.str.strip_suffix(self.after).str.strip_chars_start(" ") if self.after else text.str.strip_chars(" ")

    def number(self, text: pl.Expr) -> pl.Expr:
        """The number that the text of the value is; null where there is none."""
        if not self.plain:
            return number(text, self.reading) if self.reading else pl.lit(None, pl.Float64)
        read = text.cast(pl.Float64, strict=False)
        return read * self.reading.scale if self.reading and self.reading.scale != 1 else read

    def understood(self, text: pl.Expr, read: pl.Expr) -> pl.Expr:
        """Whether the patterns would say the same of the value."""
        if self.plain:
            return can_be(self.reading.column, read) if self.reading else read.is_not_null()
        known = read.is_not_null() if self.reading else pl.lit(True)
        if not (self.reading and DTYPE[self.reading.column] == BOOL):
            absent = text.str.contains(f"^(?:{self.reading.absent})$") if self.reading else pl.lit(False)
            known = (known | absent) & text.str.contains(_WITH_COMMAS if self.commas else _LIKE_A_NUMBER)
        return known if self.none is None else known | (text == self.none)


@dataclass(frozen=True)
class LineLayout:
    """One layout: words in front, the head, and the pieces behind it.

    ``before`` and ``between`` are the words around a time stamp of ``stamp`` characters in front of the head, which
    ``clock`` says how to read; without one all of them are ``before``. ``groups`` of the head have a value;
    ``head_pieces`` delimiters stand up to its end. ``explained``: nothing else of interest stands on such a line.
    """

    fmt: LogFormat
    before: str
    stamp: int
    clock: str
    between: str
    groups: tuple[str, ...]
    head_pieces: int
    pieces: tuple[Piece, ...]
    explained: bool

    def labels_of(self, rows: pl.DataFrame) -> Counter[str]:
        """How often each label stands on the lines of ``rows``."""
        once = Counter(piece.label for piece in self.pieces if piece.label is not None)
        return Counter({label: times * len(rows) for label, times in once.items()})

    def fit(self, lines: pl.DataFrame) -> pl.DataFrame:
        """The rows of those ``lines`` that fit, in the columns of the schema, numbers as floats."""
        return self._read(lines).select(self._columns)

    def _read(self, lines: pl.DataFrame) -> pl.DataFrame:
        begun = lines.filter(self._begins).select("source", "line_number", self._split)
        texts = begun.with_columns(self._front).filter(self._words).select(self._texts)
        return texts.unnest("head").with_columns(self._numbers).filter(self._possible & self._known)

    def reads(self, text: str) -> bool:
        """Whether it reads a line."""
        return not self._read(pl.DataFrame({"source": "", "line_number": 0, "text": text})).is_empty()

    # Expressions are put together once, because for each block that would take a tenth of the time.

    @cached_property
    def _begins(self) -> pl.Expr:
        return pl.col("text").str.starts_with(self.before)

    @cached_property
    def _split(self) -> pl.Expr:
        count = self.head_pieces + len(self.pieces)
        return pl.col("text").str.splitn(self.fmt.delimiter, count).struct.unnest()

    @cached_property
    def _front(self) -> pl.Expr:
        """The head and the time stamp in front of it."""
        parts = pl.concat_str(*map(_part, range(self.head_pieces)), pl.lit(""), separator=self.fmt.delimiter)
        return parts.str.slice(len(self.before)).alias("front")

    @cached_property
    def _words(self) -> pl.Expr:
        """Whether the words are the same."""
        words = [piece.fits(_part(i)) for i, piece in enumerate(self.pieces, start=self.head_pieces)]
        if self.between:
            words.append(pl.col("front").str.slice(self.stamp, len(self.between)) == self.between)
        return pl.all_horizontal(pl.lit(value=True), *words)

    @cached_property
    def _texts(self) -> list[pl.Expr]:
        """The texts of head, time stamp and values."""
        head = pl.col("front").str.slice(self.stamp + len(self.between))
        return [
            pl.col("source", "line_number"),
            head.str.extract_groups(f"^(?:{_ascii(self.fmt.head)})$").alias("head"),
            pl.col("front").str.slice(0, self.stamp).alias("stamp"),
            *(piece.value(_part(i)).alias(f"value {i}") for i, piece in self.valued),
        ]

    @cached_property
    def _numbers(self) -> list[pl.Expr]:
        """The numbers that the texts are."""
        stamp = moment(pl.col("stamp"), self.clock) if self.stamp else pl.lit(None, pl.Datetime)
        return [
            *(pl.col(name).cast(pl.Float64, strict=False) for name in self.groups),
            *(piece.number(pl.col(f"value {i}")).alias(f"number {i}") for i, piece in self.valued),
            stamp.alias("timestamp"),
        ]

    @cached_property
    def _possible(self) -> pl.Expr:
        """Whether the numbers can be."""
        possible = [can_be(name, pl.col(name)) for name in self.groups]
        possible += [self._understood(i, piece) for i, piece in self.valued if piece.plain and piece.reading]
        return pl.all_horizontal(pl.lit(value=True), *possible)

    @cached_property
    def _known(self) -> pl.Expr:
        """Whether the patterns would say the same."""
        known = [self._understood(i, piece) for i, piece in self.valued if not (piece.plain and piece.reading)]
        if self.stamp:
            known.append(pl.col("stamp").str.contains(f"^{TIMESTAMP}$"))
        return pl.all_horizontal(pl.lit(value=True), *known)

    def _understood(self, i: int, piece: Piece) -> pl.Expr:
        return piece.understood(pl.col(f"value {i}"), pl.col(f"number {i}"))

    @cached_property
    def _columns(self) -> list[pl.Expr]:
        """Groups of the head, and the first pair of each column; where both have one, the head's."""
        first = {piece.reading.column: pl.col(f"number {i}") for i, piece in reversed(self.valued) if piece.reading}
        columns = [pl.col("source", "line_number", "timestamp")]
        for name in group_names(self.fmt.head):
            number = pl.col(name) if name in self.groups else group(name)
            columns.append(pl.coalesce(number, first[name]).alias(name) if name in first else number)
        others = (number.alias(name) for name, number in first.items() if name not in group_names(self.fmt.head))
        return [*columns, *others]

    @property
    def valued(self) -> list[tuple[int, Piece]]:
        """The pieces that have a value, by their place on the line."""
        return [(i, piece) for i, piece in enumerate(self.pieces, start=self.head_pieces) if piece.valued]


def _ascii(pattern: str) -> str:
    """``pattern`` with no other digits and blanks than those of ASCII, which reads its groups in half the time."""
    return pattern.replace(r"\d", "[0-9]").replace(r"\s", r"[ \t]")


def _part(number: int) -> pl.Expr:
    return pl.col(f"field_{number}")
