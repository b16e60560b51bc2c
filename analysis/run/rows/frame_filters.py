"""Rows of a frame, without copying what stays as it is: a filter or a group copies each of some fifty columns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_

import polars as pl


def only(rows: pl.DataFrame, which: pl.Expr | pl.Series) -> pl.DataFrame:
    """The rows for which ``which`` holds; the frame itself where it holds for all."""
    holds = rows.select(which.fill_null(value=False)).to_series() if isinstance(which, pl.Expr) else which
    return rows if holds.all(ignore_nulls=False) else rows.filter(holds)


def with_known(rows: pl.DataFrame, *names: str) -> pl.DataFrame:
    """The rows with a value in each of these columns; the frame itself where all have one."""
    return rows.drop_nulls(names) if any(rows[name].has_nulls() for name in names) else rows


def known(values: pl.Series) -> pl.Series:
    """The values that are not null; the column itself where none is."""
    return values.drop_nulls() if values.has_nulls() else values


def stamps_of(events: pl.DataFrame, *kinds: str) -> pl.Series:
    """The stamps of the events of these kinds."""
    return events["timestamp"].filter(reduce(or_, (events["kind"] == kind for kind in kinds)))


def in_order(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """The rows in the order of a column, those of one value as they came; the frame itself where they are."""
    return rows if rows[name].is_sorted() else rows.sort(name, maintain_order=True)


def starts_of(rows: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
    """The rows of each ``segment``, which follow each other."""
    begin = 0
    for n, segment in rows["segment"].rle().struct.unnest().iter_rows():
        yield segment, rows.slice(begin, n)
        begin += n
