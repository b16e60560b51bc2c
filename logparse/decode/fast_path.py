"""Step lines of the kinds that a log repeats, to rows: each kind by its template. The rest is left to the rule.

Which templates are known changes how fast a line is read and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import polars as pl

from logparse.decode.line_template import LONGEST, LineTemplate, kind_of, learn_template
from logparse.decode.versions import MARKERS as VERSION_MARKERS
from logparse.formats._base import LogFormat

# So many lines of a kind make learning it worth its time.
FEWEST = 1024
# Templates that a format keeps, and lines of a block from which one is tried to be learnt.
MOST, TRIES = 32, 4
# What is in front of the last carriage return of a line, such as the states of a progress bar.
_PROGRESS = r"^((?s:.*)\r)"


@dataclass(frozen=True)
class FastRows:
    """``rows`` of the lines that fit a template, and the lines ``left``; ``labels`` counts those of the rows.

    ``explained`` are the numbers of lines on which nothing else of interest is.
    """

    rows: pl.DataFrame
    labels: Counter[str]
    explained: pl.Series
    left: pl.DataFrame


@dataclass
class Templates:
    """The templates of one format that a log has shown so far; threads may share them.

    ``formats`` are those of the search, whose markers are of interest too. ``fewest`` lines of a kind are learnt from;
    ``refused`` are the kinds without a template.
    """

    fmt: LogFormat
    formats: tuple[LogFormat, ...]
    fewest: int = FEWEST
    known: list[LineTemplate] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)

    @cached_property
    def markers(self) -> list[str]:
        """Words of interest on a step line besides its own; what lies beneath the format is not read where it is.

        A marker of two formats is of interest to the other one.
        """
        fmt = self.fmt
        others = (other.markers for other in self.formats if other is not fmt and other.beneath <= fmt.beneath)
        return sorted(set(VERSION_MARKERS).union(*others, set(fmt.markers) - set(fmt.marker)))

    def read(self, lines: pl.DataFrame) -> FastRows | None:
        """The rows of ``lines`` of one file; None where none fits or there are too few to look."""
        if len(lines) < self.fewest:
            return None
        left = _after_progress(lines.filter("complete"), self.fmt)
        read: list[tuple[LineTemplate, pl.DataFrame]] = []
        for template in tuple(self.known):
            left = _take(template, left, read)
        for attempt in range(TRIES):
            if len(left) < self.fewest or len(self.known) >= MOST:
                break
            learnt = self._learn(left["text"], left["text"][len(left) * attempt // TRIES])
            left = _take(learnt, left, read) if learnt else left
        if not read:
            return None
        labels = Counter[str]()
        for template, rows in read:
            labels.update({label: times * len(rows) for label, times in template.base.labels.items()})
        return FastRows(
            rows=pl.concat((rows for _, rows in read), how="diagonal"),
            labels=labels,
            explained=self._explained(lines, [rows["line_number"] for template, rows in read if template.explained]),
            left=without(lines, *(rows["line_number"] for _, rows in read)),
        )

    def _learn(self, texts: pl.Series, text: str) -> LineTemplate | None:
        """The template of ``text``; None where few ``texts`` are of its kind, or that was refused."""
        if len(text) > LONGEST:
            return None
        kind = kind_of(text)
        if kind in self.refused or texts.str.contains(kind).sum() < self.fewest:
            return None
        template = learn_template(text, self.fmt, self.markers)
        if template is None:
            self.refused.add(kind)
        else:
            self.known.append(template)
        return template

    def _explained(self, lines: pl.DataFrame, fitted: Sequence[pl.Series]) -> pl.Series:
        """The numbers of the ``fitted`` lines without a word of interest in front of their progress."""
        numbers = pl.concat([lines["line_number"].clear(), *fitted])
        progress = lines.filter(pl.col("text").str.contains("\r", literal=True))
        if progress.is_empty():
            return numbers
        marked = progress.filter(pl.col("text").str.extract(_PROGRESS).str.contains_any(self.markers))
        return numbers.filter(~numbers.is_in(marked["line_number"].implode()))


def _after_progress(lines: pl.DataFrame, fmt: LogFormat) -> pl.DataFrame:
    """``lines`` without what is in front of a carriage return; one with a head there is left to the rule."""
    text = pl.col("text")
    if not lines["text"].str.contains("\r", literal=True).any():
        return lines
    plain = lines.filter(~text.str.extract(_PROGRESS).fill_null("").str.contains(fmt.head))
    return plain.with_columns(text.str.extract(r"([^\r]*)$"))


def _take(template: LineTemplate, lines: pl.DataFrame, read: list[tuple[LineTemplate, pl.DataFrame]]) -> pl.DataFrame:
    """Read what fits ``template``, and give back the other ``lines``."""
    rows = template.read(lines) if len(lines) else lines
    if rows.is_empty():
        return lines
    read.append((template, rows))
    return without(lines, rows["line_number"])


def without(lines: pl.DataFrame, *numbers: pl.Series) -> pl.DataFrame:
    """The ``lines`` with none of these line numbers, each of which is one of theirs."""
    if sum(map(len, numbers)) == len(lines):
        return lines.clear()
    for some in numbers:
        lines = lines.filter(~pl.col("line_number").is_in(some.implode()))
    return lines
