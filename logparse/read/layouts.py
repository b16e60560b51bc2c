"""Step lines of one layout to rows, all at once: the same labels in the same order, numbers between them.

A run prints one line a thousand times with other numbers. What stands on it, the first such line tells, read by the
patterns of its format; the others are split at the delimiter, and every piece must begin with the same words and hold
a number. Whatever does not fit is left for ``pairs``, which gives the same rows, only slower.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import regex

from logparse.formats._base import NUMBER, TIMESTAMP, LogFormat, Reading
from logparse.read.pairs import read_values
from logparse.read.values import DTYPE, can_be, group, group_names, moment, number
from logparse.schema import BOOL

# With fewer lines than this, looking for a layout costs more than it saves.
FEWEST = 32
# Layouts that a format keeps, since the ranks of one file may each print a name of their own in front; and how many
# lines of a block are tried that show none.
MOST, TRIES = 16, 4
# What a value may be beside a plain number, such as 171.176T, [45.7] or 0.5/0.7; not a word of interest.
_LIKE_A_NUMBER = r"^[-+\[\]\d./eE]+ ?[A-Za-z%]{0,8}\]?$"


@dataclass(frozen=True)
class Piece:
    """What stands between two delimiters: ``before`` up to the value, the value, and what comes ``after`` it.

    ``label`` None has no pair, and the whole piece is ``before``; so it is where a label has no value. ``reading`` None
    is a label that nobody reads. ``plain`` is a value that is a number and nothing else; ``none`` is the value of the
    first line where that stands for no number.
    """

    before: str
    after: str = ""
    label: str | None = None
    reading: Reading | None = None
    valued: bool = False
    plain: bool = False
    none: str | None = None

    def fits(self, piece: pl.Expr) -> pl.Expr:
        """Whether the words are the same."""
        if not self.valued:
            return piece == self.before
        begins = piece.str.starts_with(self.before)
        return begins & piece.str.ends_with(self.after) if self.after else begins

    def value(self, piece: pl.Expr) -> pl.Expr:
        """The text of the value on each line."""
        text = piece.str.strip_prefix(self.before)
        return (text.str.strip_suffix(self.after) if self.after else text).str.strip_chars()

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
            known &= text.str.contains(_LIKE_A_NUMBER)
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
        read = self._numbers(self._texts(lines))
        known = [can_be(name, pl.col(name)) for name in self.groups]
        known += [piece.understood(pl.col(f"value {i}"), pl.col(f"number {i}")) for i, piece in self._valued()]
        if self.stamp:
            known.append(pl.col("stamp").str.contains(f"^{TIMESTAMP}$"))
        return read.filter(*known).select("source", "line_number", "timestamp", *self._columns())

    def _texts(self, lines: pl.DataFrame) -> pl.DataFrame:
        """The texts of head, time stamp and values on lines that have the same words."""
        count = self.head_pieces + len(self.pieces)
        split = pl.col("text").str.splitn(self.fmt.delimiter, count).struct.unnest()
        parts = lines.filter(pl.col("text").str.starts_with(self.before)).select("source", "line_number", split)
        front = pl.concat_str(*map(_part, range(self.head_pieces)), pl.lit(""), separator=self.fmt.delimiter)
        parts = parts.with_columns(front.str.slice(len(self.before)).alias("front"))
        words = [piece.fits(_part(i)) for i, piece in enumerate(self.pieces, start=self.head_pieces)]
        if self.between:
            words.append(pl.col("front").str.slice(self.stamp, len(self.between)) == self.between)
        head = pl.col("front").str.slice(self.stamp + len(self.between))
        return parts.filter(*words).select(
            "source",
            "line_number",
            head.str.extract_groups(f"^(?:{self.fmt.head})$").alias("head"),
            pl.col("front").str.slice(0, self.stamp).alias("stamp"),
            *(piece.value(_part(i)).alias(f"value {i}") for i, piece in self._valued()),
        )

    def _numbers(self, texts: pl.DataFrame) -> pl.DataFrame:
        """``texts`` and the numbers that they are."""
        return texts.unnest("head").with_columns(
            *(pl.col(name).cast(pl.Float64, strict=False) for name in self.groups),
            *(piece.number(pl.col(f"value {i}")).alias(f"number {i}") for i, piece in self._valued()),
            timestamp=moment(pl.col("stamp"), self.clock) if self.stamp else pl.lit(None, pl.Datetime),
        )

    def _valued(self) -> list[tuple[int, Piece]]:
        """The pieces that have a value, by their place on the line."""
        return [(i, piece) for i, piece in enumerate(self.pieces, start=self.head_pieces) if piece.valued]

    def _columns(self) -> Iterator[pl.Expr]:
        """Groups of the head, and the first pair of each column; where both have one, the head's."""
        first = {piece.reading.column: pl.col(f"number {i}") for i, piece in reversed(self._valued()) if piece.reading}
        groups = group_names(self.fmt.head)
        for name in groups:
            number = pl.col(name) if name in self.groups else group(name)
            yield pl.coalesce(number, first[name]).alias(name) if name in first else number
        yield from (number.alias(name) for name, number in first.items() if name not in groups)


def _part(number: int) -> pl.Expr:
    return pl.col(f"field_{number}")


def find_layout(text: str, fmt: LogFormat, markers: Sequence[str]) -> LineLayout | None:
    """The layout of one line; None where the line has something that takes the patterns to read."""
    heads = list(regex.finditer(fmt.head, text))
    if len(heads) != 1 or not any(heads[0].groups()) or "\r" in text or not heads[0].group().endswith(fmt.delimiter):
        return None
    front, body = text[: heads[0].end()], text[heads[0].end() :]
    pieces = _pieces(body, fmt)
    if pieces is None or (fmt.foreign and regex.search(fmt.foreign, body)):
        return None
    before = text[: heads[0].start()]
    stamp = regex.search(f"^.*({TIMESTAMP})", before)
    begin, end = stamp.span(1) if stamp else (len(before), len(before))
    return LineLayout(
        fmt,
        before=before[:begin],
        stamp=end - begin,
        clock=_clock(before[begin:end]),
        between=before[end:],
        groups=tuple(name for name, value in heads[0].groupdict().items() if value is not None),
        head_pieces=front.count(fmt.delimiter),
        pieces=tuple(pieces),
        explained=not any(marker in text for marker in markers),
    )


def _clock(stamp: str) -> str:
    """How to read stamps that are written as this one, exactly, which is faster than to guess."""
    if not stamp:
        return ""
    point, digits = stamp[19:20], len(stamp) - 20
    fraction = {3: "%3f", 6: "%6f", 9: "%9f"}.get(digits)
    return f"%Y-%m-%d{stamp[10]}%H:%M:%S" + (f"{point}{fraction}" if fraction else "%.f" if point else "")


def _pieces(body: str, fmt: LogFormat) -> list[Piece] | None:
    """What stands between the delimiters; None where a pair reaches over one, or has a value that cannot be read."""
    found = list(regex.finditer(fmt.pair, body))
    spans = [next((m.span(i) for i in range(2, len(m.groups()) + 1) if m.group(i) is not None), None) for m in found]
    pairs = pl.DataFrame(
        {
            "label": [" ".join(match.group(1).split()) for match in found],
            "text": [span and body[slice(*span)] for span in spans],
        },
        schema={"label": pl.String, "text": pl.String},
    )
    read = read_values(pairs, fmt)
    pieces, at = [], 0
    for text in body.split(fmt.delimiter):
        end = at + len(text)
        mine = [i for i, match in enumerate(found) if at <= match.start(1) < end]
        if len(mine) > 1 or any((spans[i] or found[i].span(1))[1] > end or read["malformed"][i] for i in mine):
            return None
        pieces.append(_piece(text, at, spans[mine[0]], read.row(mine[0], named=True), fmt) if mine else Piece(text))
        at = end + len(fmt.delimiter)
    # A pair that ends with the line counts only where most lines end so, which the patterns see to.
    return None if fmt.tail and pieces[-1].before.strip() else pieces


def _piece(text: str, at: int, span: tuple[int, int] | None, pair: dict[str, Any], fmt: LogFormat) -> Piece:
    """The piece ``text``, which begins ``at`` a place of the body and has the value at ``span``."""
    reading = fmt.labels.get(pair["label"])
    if span is None:
        return Piece(text, label=pair["label"], reading=reading)
    before, value, after = text[: span[0] - at], text[span[0] - at : span[1] - at], text[span[1] - at :]
    whole = bool(regex.fullmatch(NUMBER, value)) and "," not in value
    return Piece(
        before=before.rstrip(),
        after=after if after.strip() else "",
        label=pair["label"],
        reading=reading,
        valued=True,
        plain=whole and (reading is None or DTYPE[reading.column] != BOOL),
        none=value.strip() if pair["number"] is None else None,
    )


@dataclass(frozen=True)
class Fitted:
    """``rows`` of the lines that fit a layout, and the lines ``left``.

    ``explained`` are the numbers of lines on which nothing else of interest stands.
    """

    rows: pl.DataFrame
    labels: Counter[str]
    explained: pl.Series
    left: pl.DataFrame


@dataclass
class Layouts:
    """The layouts of one format that a log has shown so far. ``markers`` are words of interest beside the step lines.

    Which layouts are known changes how fast a line is read and nothing else, so that threads may share them.
    """

    fmt: LogFormat
    markers: Sequence[str]
    known: list[LineLayout] = field(default_factory=list)

    def read(self, lines: pl.DataFrame) -> Fitted | None:
        """Those of ``lines`` (of one file) that fit; None where there are too few to look."""
        if len(lines) < FEWEST or not (self.fmt.pair and self.fmt.delimiter):
            return None
        left = lines.filter("complete")
        found: list[tuple[LineLayout, pl.DataFrame]] = []
        for layout in tuple(self.known):
            left = _take(layout, left, found)
        for attempt in range(TRIES):
            if len(left) < FEWEST or len(self.known) >= MOST:
                break
            new = find_layout(left["text"][len(left) * attempt // TRIES], self.fmt, self.markers)
            if new is not None:
                self.known.append(new)
                left = _take(new, left, found)
        rows = [rows for _, rows in found]
        explained = [rows["line_number"] for layout, rows in found if layout.explained]
        return Fitted(
            rows=pl.concat(rows, how="diagonal") if rows else lines.clear().select("source", "line_number"),
            labels=sum((layout.labels_of(rows) for layout, rows in found), Counter[str]()),
            explained=pl.concat(explained) if explained else lines["line_number"].clear(),
            left=_without(lines, rows),
        )


def _take(layout: LineLayout, lines: pl.DataFrame, found: list[tuple[LineLayout, pl.DataFrame]]) -> pl.DataFrame:
    """Read what fits ``layout``, and give back the other ``lines``."""
    rows = layout.fit(lines) if len(lines) else lines
    if rows.is_empty():
        return lines
    found.append((layout, rows))
    return _without(lines, [rows])


def _without(lines: pl.DataFrame, read: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The ``lines`` that are on none of the rows that were ``read``."""
    if sum(map(len, read)) == len(lines):
        return lines.clear()
    for rows in read:
        lines = lines.filter(~pl.col("line_number").is_in(rows["line_number"].implode()))
    return lines
