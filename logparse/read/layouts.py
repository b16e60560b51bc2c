"""Step lines of one layout to rows, all at once: the same labels in the same order, numbers between them.

A run prints one line a thousand times with other numbers. What stands on it, the first such line tells, read by the
patterns of its format; the others are split at the delimiter, and every piece must begin with the same words and hold
a number. Whatever does not fit is left for ``pairs``, which gives the same rows, only slower.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl
import regex

from logparse.formats._base import NUMBER, TIMESTAMP, LogFormat, Reading
from logparse.read.line_layout import LineLayout, Piece
from logparse.read.pairs import read_values
from logparse.read.values import DTYPE
from logparse.read.versions import MARKERS as VERSION_MARKERS
from logparse.schema import BOOL

# With fewer lines than this, looking for a layout costs more than it saves.
FEWEST = 32
# Layouts that a format keeps, since the ranks of one file may each print a name of their own in front; and how many
# lines of a block are tried that show none.
MOST, TRIES = 16, 4
# What stands in front of the last carriage return of a line, such as the states of a progress bar.
_PROGRESS = r"^((?s:.*)\r)"


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
    clock = _clock(before[begin:end])
    if clock is None:
        return None
    return LineLayout(
        fmt,
        before=before[:begin],
        stamp=end - begin,
        clock=clock,
        between=before[end:],
        groups=tuple(name for name, value in heads[0].groupdict().items() if value is not None),
        head_pieces=front.count(fmt.delimiter),
        pieces=tuple(pieces),
        explained=not any(marker in text for marker in markers),
    )


def _clock(stamp: str) -> str | None:
    """How to read stamps that are written as this one, exactly, which is faster than to guess; None where it is odd."""
    if not stamp:
        return ""
    seconds, point, digits = f"%Y{stamp[4]}%m{stamp[7]}%d{stamp[10]}%H:%M:%S", stamp[19:20], len(stamp) - 20
    if not point:
        return seconds
    return f"{seconds}{point}%{digits}f" if digits in (3, 6, 9) else None


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
    lead, digits, trail = _number_in(value, reading, pair["number"])
    spaced = _may_be_spaced(before, f"{value}{after}{fmt.delimiter}", fmt)
    return Piece(
        before=(before + lead).rstrip() if spaced else before + lead,
        after=trail + after if (trail + after).strip() or not spaced else "",
        label=pair["label"],
        reading=reading,
        valued=True,
        plain=digits is not None,
        none=value.strip() if pair["number"] is None else None,
        commas="," in value,
        spaced=spaced,
    )


def _may_be_spaced(before: str, rest: str, fmt: LogFormat) -> bool:
    """Whether a pair reads the same with any blanks between the words ``before`` its value and the ``rest``."""
    texts = (f"{before.rstrip()}{' ' * blanks}{rest.lstrip()}" for blanks in (0, 1, 3))
    matches = (regex.search(fmt.pair, text) for text in texts)
    found = {match and tuple(part and part.strip() for part in match.groups()) for match in matches}
    return len(found) == 1


def _number_in(value: str, reading: Reading | None, number: float | None) -> tuple[str, str | None, str]:
    """The digits of a value that is a number, between words that are the same on every line, such as ``[`` or ``ms``.

    None where it is no such number: a word, or another number beside it.
    """
    found = regex.fullmatch(rf"([ \[]*)({NUMBER})(\D*)", value)
    if found is None or "," in found[2] or (reading and DTYPE[reading.column] == BOOL):
        return "", None, ""
    if reading is None:
        return ("", found[2], "") if found[2] == value else ("", None, "")
    same = number is not None and (number == float(found[2]) * reading.scale or number != number)
    return (found[1], found[2], found[3]) if same else ("", None, "")


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
    """The layouts of one format that a log has shown so far. ``formats`` say what is of interest beside.

    Which layouts are known changes how fast a line is read and nothing else, so that threads may share them.
    """

    fmt: LogFormat
    formats: tuple[LogFormat, ...]
    known: list[LineLayout] = field(default_factory=list)

    @cached_property
    def markers(self) -> list[str]:
        """Words of interest on a step line beside its own: what lies beneath the format is not read where it is.

        A marker of two formats is of interest to the other one.
        """
        fmt = self.fmt
        others = (other.markers for other in self.formats if other is not fmt and other.beneath <= fmt.beneath)
        return sorted(set(VERSION_MARKERS).union(*others, set(fmt.markers) - set(fmt.marker)))

    def read(self, lines: pl.DataFrame) -> Fitted | None:
        """Those of ``lines`` (of one file) that fit; None where there are too few to look."""
        if len(lines) < FEWEST or not (self.fmt.pair and self.fmt.delimiter):
            return None
        left = _behind_progress(lines.filter("complete"), self.fmt)
        found: list[tuple[LineLayout, pl.DataFrame]] = []
        for layout in tuple(self.known):
            left = _take(layout, left, found)
        for attempt in range(TRIES):
            if len(left) < FEWEST or len(self.known) >= MOST:
                break
            text = left["text"][len(left) * attempt // TRIES]
            new = find_layout(text, self.fmt, self.markers)
            # One that does not read its own line would be tried on all others in vain.
            if new is not None and new.reads(text):
                self.known.append(new)
                left = _take(new, left, found)
        rows = [rows for _, rows in found]
        return Fitted(
            rows=pl.concat(rows, how="diagonal") if rows else lines.clear().select("source", "line_number"),
            labels=sum((layout.labels_of(rows) for layout, rows in found), Counter[str]()),
            explained=self._explained(lines, [rows["line_number"] for layout, rows in found if layout.explained]),
            left=without(lines, *(found["line_number"] for found in rows)),
        )

    def _explained(self, lines: pl.DataFrame, fitted: Sequence[pl.Series]) -> pl.Series:
        """The numbers of the ``fitted`` lines; a line with a word of interest in front of its progress is not."""
        numbers = pl.concat([lines["line_number"].clear(), *fitted])
        progress = lines.filter(pl.col("text").str.contains("\r", literal=True))
        if progress.is_empty():
            return numbers
        telling = progress.filter(pl.col("text").str.extract(_PROGRESS).str.contains_any(self.markers))
        return numbers.filter(~numbers.is_in(telling["line_number"].implode())) if len(telling) else numbers


def _behind_progress(lines: pl.DataFrame, fmt: LogFormat) -> pl.DataFrame:
    """``lines`` without what stands in front of a carriage return; one with a head there is left to the patterns."""
    text = pl.col("text")
    if not lines["text"].str.contains("\r", literal=True).any():
        return lines
    plain = lines.filter(~text.str.extract(_PROGRESS).fill_null("").str.contains(fmt.head))
    return plain.with_columns(text.str.extract(r"([^\r]*)$"))


def _take(layout: LineLayout, lines: pl.DataFrame, found: list[tuple[LineLayout, pl.DataFrame]]) -> pl.DataFrame:
    """Read what fits ``layout``, and give back the other ``lines``."""
    rows = layout.fit(lines) if len(lines) else lines
    if rows.is_empty():
        return lines
    found.append((layout, rows))
    return without(lines, rows["line_number"])


def without(lines: pl.DataFrame, *numbers: pl.Series) -> pl.DataFrame:
    """The ``lines`` with none of these line numbers, each of which is one of theirs."""
    if sum(map(len, numbers)) == len(lines):
        return lines.clear()
    for some in numbers:
        lines = lines.filter(~pl.col("line_number").is_in(some.implode()))
    return lines
