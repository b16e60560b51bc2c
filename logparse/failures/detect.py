"""What a log says of its failure: the last error lines after the last step, and who printed a log without steps.

Comes in: the first and last lines of each file, as the reader kept them. Goes out: findings, and an error's text. The
patterns are data, in ``signatures.toml``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

import polars as pl
import regex

from logparse.findings import Note, info, warning
from logparse.formats._base import LogFormat
from logparse.inputs.blocks import LINE_COLUMNS, TextBlock
from logparse.masking import mask_text

# Roles, the most informative first. A line of noise has no role; lines after a planned end are tear-down.
ROLES = ("cause", "finding", "follows")
# Tables of kinds, in the order in which they are looked through, and the role of each that has another name.
TABLES = ("aftermath", *ROLES)
_ROLE_OF = {"aftermath": "follows"}
# Lines that are quoted, and characters of each.
MOST_QUOTED, LONGEST_QUOTE = 3, 160
# Characters at each end of a long line in which signs of a failure are looked for.
LONGEST_END = 4096
# What launchers put before a line: "[rank3]:", "3: ", "(Worker pid=1)".
_PREFIX = regex.compile(r"^(?: *(?:\[\w+\]:|\d+:|\(\w+ pid=[^)]*\)))*")
# A row of a Markdown table: it speaks of trainers, none prints it.
_PROSE = r"^\s*\|.*\|\s*$"
# An exception that does not say what was wrong; the line of code above it does, at most so many lines before.
BARE, FAR = "AssertionError", 20


@dataclass(frozen=True)
class ErrorLine:
    """A line that reports a failure: its ``kind`` and ``role`` are those of signatures.toml."""

    source: str
    line_number: int
    text: str
    kind: str
    role: str


@dataclass(frozen=True)
class FileEnds:
    """The first and the last lines of the files that were read, as far as they are kept."""

    heads: Sequence[TextBlock] = ()
    tails: Sequence[TextBlock] = ()


@dataclass(frozen=True)
class Trainer:
    """Who printed a log, the line that shows it, and whether a format reads its step lines."""

    name: str
    source: str
    line_number: int
    is_read: bool


def describe_end(ends: FileEnds, steps: pl.DataFrame) -> Iterator[Note]:
    """Error lines after the last step line, where the run is not known to have done all its steps."""
    done, planned = steps["step"].max(), steps["train_steps"].drop_nulls().last() if len(steps) else None
    if isinstance(done, int) and isinstance(planned, int) and done >= planned:
        return
    last_lines = steps.lazy().group_by("source").agg(pl.col("line_number").max())
    # In portions, since a key of text is written out for each row: of a large log these are hundreds of megabytes.
    last = dict(last_lines.collect(engine="streaming").iter_rows())
    errors = error_lines(ends.tails, last)
    if quoted := quote(errors):
        lines = [_note(line, several=len(ends.tails) > 1) for line in quoted]
        fields = {"step": done, "n": len(errors), "lines": lines}
        yield (
            warning("ended_with_errors", **fields)
            if planned is None
            else warning("ended_early_with_errors", of=planned, **fields)
        )


def _note(line: ErrorLine, several: bool) -> Note:
    fields = {"line": line.line_number, "kind": line.kind, "text": line.text}
    return info("error_line_of_file", source=line.source, **fields) if several else info("error_line", **fields)


def error_lines(tails: Iterable[TextBlock], last: Mapping[str, int] | None = None) -> list[ErrorLine]:
    """All error lines of ``tails`` in their order, for each source those after its line ``last``.

    For a source that ends as planned, lines after that end are left out.
    """
    return list(chain.from_iterable(_of_tail(tail, (last or {}).get(tail.source, 0)) for tail in tails))


def _of_tail(tail: TextBlock, last: int) -> Iterator[ErrorLine]:
    if tail.first + tail.count - 1 <= last:
        return
    lines = tail.lines.filter(pl.col("line_number") > last)
    for number, text in (
        lines.filter(pl.col("text").str.contains(_any_mark())).select("line_number", "text").iter_rows()
    ):
        role, kind, mark = _kind_of(_ends_of(_bare(text)))
        if role == "planned":
            return
        if role in ROLES:
            message = _asserted(lines, number, text) if _bare(text) == BARE else text
            yield ErrorLine(tail.source, number, _quoted(message, mark), kind, role)


def _ends_of(text: str) -> str:
    """``text``, or of a long line its beginning and its end: the patterns take a time that grows with its square."""
    return text if len(text) <= 2 * LONGEST_END else f"{text[:LONGEST_END]}\n{text[-LONGEST_END:]}"


def _quoted(text: str, mark: str) -> str:
    """``text`` without secrets, or if it is long the part around ``mark``, as after a progress bar."""
    at = max(0, text.find(mark))
    text = mask_text(text[max(0, at - LONGEST_END) : at + LONGEST_END])
    begin = max(0, text.find(mark) - LONGEST_QUOTE // 2) if len(text) > LONGEST_QUOTE else 0
    shown = f"…{text[begin:]}" if begin else text
    return " ".join(shown.split())[:LONGEST_QUOTE]


def _bare(text: str) -> str:
    """``text`` without what a launcher put before it."""
    return text[_PREFIX.match(text).end() :].lstrip()  # type: ignore[union-attr]


def _asserted(lines: pl.DataFrame, number: int, text: str) -> str:
    """``text`` and the assertion that the same rank printed before it."""
    rank = text.removesuffix(_bare(text)).rstrip()
    above = lines.filter(pl.col("line_number").is_between(number - FAR, number - 1))["text"].to_list()
    of_rank = (_bare(line) for line in reversed(above) if line.startswith(rank))
    asserted = next((line for line in of_rank if line.startswith("assert ")), None)
    return text if asserted is None else f"{text}: {asserted}"


def quote(errors: Sequence[ErrorLine]) -> list[ErrorLine]:
    """The first line of the most informative role, then the last lines whose message differs.

    If there is a cause, its consequences are left out.
    """
    if not errors:
        return []
    role = next(role for role in ROLES if any(line.role == role for line in errors))
    first = next(line for line in errors if line.role == role)
    informative = [line for line in errors if role != ROLES[0] or line.role != ROLES[-1]]
    others = {_words(line): line for line in informative if _words(line) != _words(first)}
    last = sorted(others.values(), key=errors.index)[1 - MOST_QUOTED :]
    return sorted([first, *last], key=errors.index)


def same_message(line: ErrorLine, other: ErrorLine) -> bool:
    """Whether two lines differ in nothing but numbers and what a launcher put before them."""
    return _words(line) == _words(other)


def _words(line: ErrorLine) -> str:
    """Its text but for numbers: many ranks say the same."""
    return regex.sub(r"\d+", "", _bare(line.text))


def find_trainer(ends: FileEnds, formats: Sequence[LogFormat] = ()) -> Trainer | None:
    """Who printed the log: the first trainer of the tables that any line names, or None.

    Trainers with ``traces`` in ``formats`` come before the others; libraries beneath a trainer come after them.
    """
    blocks = [block.lines for block in (*ends.heads, *ends.tails)]
    lines = pl.concat(blocks) if blocks else pl.DataFrame(schema=LINE_COLUMNS)
    lines = lines.filter(~pl.col("text").str.contains(_PROSE))
    others, trainers, libraries = (_table()[name] for name in ("others", "trainers", "other_libraries"))
    known = (*_traces(formats, beneath=False), *trainers.items(), *_traces(formats, beneath=True), *libraries.items())
    for name, marks in (*others.items(), *known):
        named = lines.filter(pl.col("text").str.contains("|".join(marks))).head(1)
        for source, number in named[["source", "line_number"]].iter_rows():
            return Trainer(name, source, number, is_read=name not in others)
    return None


def _traces(formats: Sequence[LogFormat], beneath: bool) -> Iterator[tuple[str, Sequence[str]]]:
    """The frameworks of ``formats`` and the traces of each; one framework may have several formats."""
    traced = (fmt for fmt in formats if fmt.traces and bool(fmt.beneath) == beneath)
    return ((fmt.framework, fmt.traces) for fmt in traced if fmt.framework)


def _kind_of(text: str) -> tuple[str, str, str]:
    """Role and kind of a line, and the words that show them; all empty where the line reports no failure."""
    matches = ((role, kind, mark.search(text)) for role, kind, mark in _marks())
    return next(((role, kind, match[0]) for role, kind, match in matches if match), ("", "", ""))


@cache
def _marks() -> tuple[tuple[str, str, regex.Pattern[str]], ...]:
    kinds = ((name, kind, marks) for name in ("noise", "planned", *TABLES) for kind, marks in _table()[name].items())
    return tuple((_ROLE_OF.get(name, name), kind, regex.compile("|".join(marks))) for name, kind, marks in kinds)


# To find lines of interest a mark may be anywhere in a line; ASCII letters are found faster than those of all scripts.
_LOOSER = {"(?:^|[\\]:)] *)": "", "^": "", "\\b": "", "\\w": "[0-9A-Za-z_]", "\\d": "[0-9]", "\\S": "[^ ]"}


@cache
def _any_mark() -> str:
    """A pattern for polars that finds every line of interest, and some more."""
    marks = chain.from_iterable(chain.from_iterable(_table()[name].values()) for name in ("planned", *TABLES))
    pattern = "|".join(f"(?:{mark})" for mark in marks)
    for strict, loose in _LOOSER.items():
        pattern = pattern.replace(strict, loose)
    return pattern


def failure_kinds() -> list[str]:
    """Every kind of error line, for which there are words."""
    return [kind for name in TABLES for kind in _table()[name]]


@cache
def _table() -> dict[str, dict[str, list[str]]]:
    return tomllib.loads((Path(__file__).parent / "signatures.toml").read_text(encoding="utf-8"))
