"""What lines of one stencil tell: the same rows of each, in which numbers alone differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import polars as pl

from logparse.formats._base import LogFormat
from logparse.read.contents import Frame
from logparse.read.records import Found
from logparse.read.steps import StepBlock, no_steps
from logparse.read.values import DTYPE, can_be
from logparse.schema import TIME

_MOST_OF_RECORD = 2**40


@dataclass(frozen=True)
class LinesRead:
    """What some lines say, of these ``numbers``: step lines of formats, by their names, and records."""

    numbers: pl.Series
    steps: dict[str, StepBlock]
    records: Found


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
        """Whether each number can be."""
        for name in self.numbers:
            value = pl.col(f"{at} {name}")
            column = self.cells["column"][0] if self.frame[0] == "pairs" else name
            # The patterns say which numbers of a record are too high to be one, before they are scaled.
            if self.frame[0] == "records":
                yield value.abs() < _MOST_OF_RECORD
            elif column in DTYPE and DTYPE[column] != TIME:
                yield can_be(column, value)


@dataclass(frozen=True)
class StencilLayout:
    """The ``rows`` that each of such lines gives, and how often each label of a format stands on it.

    ``told_once``: the first of the lines tells something that is read of no other.
    """

    formats: tuple[LogFormat, ...]
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
