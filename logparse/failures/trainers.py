"""Who printed a log: the first trainer of ``trainers.toml`` that any of its first or last lines names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import polars as pl

from logparse.formats._base import LogFormat
from logparse.inputs.blocks import LINE_COLUMNS, TextBlock
from logparse.light_dataclass import dataclass
from logparse.package_tables import read_table

# A row of a Markdown table: it speaks of trainers, none prints it.
_PROSE = r"^\s*\|.*\|\s*$"


@dataclass(frozen=True)
class FileEnds:
    """The first and the last lines of the files that were read, as far as they are kept."""

    heads: Sequence[TextBlock] = ()
    tails: Sequence[TextBlock] = ()


@dataclass(frozen=True)
class Trainer:
    """Who printed a log, the line that shows it, and whether a format reads its step lines.

    ``by_epochs``: it prints a whole line once an epoch is done.
    """

    name: str
    source: str
    line_number: int
    is_read: bool
    by_epochs: bool = False


def find_trainer(ends: FileEnds, formats: Sequence[LogFormat] = ()) -> Trainer | None:
    """Who printed the log: the first trainer of the tables that any line names, or None.

    Trainers with ``traces`` in ``formats`` come before the others; libraries beneath a trainer come after them.
    """
    lines = _lines(ends).filter(~pl.col("text").str.contains(_PROSE))
    tables = ("by_epochs", "others", "trainers", "other_libraries")
    by_epochs, others, trainers, libraries = (_table()[name] for name in tables)
    known = (*_traces(formats, beneath=False), *trainers.items(), *_traces(formats, beneath=True), *libraries.items())
    for name, marks in (*by_epochs.items(), *others.items(), *known):
        for source, number in _places(lines, marks):
            return Trainer(name, source, number, is_read=name not in others, by_epochs=name in by_epochs)
    return None


def find_inference(ends: FileEnds) -> tuple[str, int] | None:
    """The file and number of the first line that shows inference, or None."""
    marks = [mark for of_trainer in _table()["inference"].values() for mark in of_trainer]
    return next(_places(_lines(ends), marks), None)


def _lines(ends: FileEnds) -> pl.DataFrame:
    blocks = [block.lines for block in (*ends.heads, *ends.tails)]
    return pl.concat(blocks) if blocks else pl.DataFrame(schema=LINE_COLUMNS)


def _places(lines: pl.DataFrame, marks: Sequence[str]) -> Iterator[tuple[str, int]]:
    """The file and number of the first line with any of the ``marks``."""
    named = lines.filter(pl.col("text").str.contains("|".join(marks))).head(1)
    yield from named[["source", "line_number"]].iter_rows()


def _traces(formats: Sequence[LogFormat], beneath: bool) -> Iterator[tuple[str, Sequence[str]]]:
    """The frameworks of ``formats`` and the traces of each; one framework may have several formats."""
    traced = (fmt for fmt in formats if fmt.traces and bool(fmt.beneath) == beneath)
    return ((fmt.framework, fmt.traces) for fmt in traced if fmt.framework)


@cache
def _table() -> dict[str, dict[str, list[str]]]:
    return read_table(Path(__file__).parent / "trainers.toml")
