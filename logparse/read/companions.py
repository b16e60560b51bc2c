"""Lines behind a step line that complete it."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from logparse.formats._base import Companion
from logparse.read.values import group, group_names


def find_companions(lines: pl.DataFrame, companion: Companion) -> pl.DataFrame:
    """Source, line number and the text of each named group."""
    found = lines.filter(
        pl.col("text").str.contains(companion.marker, literal=True) & pl.col("text").str.contains(companion.pattern)
    )
    groups = pl.col("text").str.extract_groups(companion.pattern).alias("groups")
    return found.select("source", "line_number", groups).unnest("groups")


def join_companions(rows: pl.DataFrame, found: pl.DataFrame, companion: Companion) -> pl.DataFrame:
    """Complete each step line with the first companion line behind it, of the same file."""
    names = group_names(companion.pattern)
    numbers = found.select("source", pl.col("line_number").alias("at"), *map(group, names))
    joined = rows.sort("line_number").join_asof(
        numbers.sort("at"),
        left_on="line_number",
        right_on="at",
        by="source",
        strategy="forward",
        check_sortedness=False,
    )
    if companion.belongs_to == "all":
        return joined.drop("at")
    following = pl.col("line_number").shift(-1).over("source")
    mine = following.is_null() | (pl.col("at") < following) | (pl.col("at") == pl.col("line_number"))
    return joined.with_columns(pl.when(mine).then(pl.col(n)).alias(n) for n in names).drop("at")


def malformed_companions(found: pl.DataFrame, companion: Companion) -> Iterator[tuple[str, int, str, str]]:
    """Source, line number, name and text of each value that could not be read."""
    for name in group_names(companion.pattern):
        bad = found.filter(pl.col(name).is_not_null() & found.select(group(name)).to_series().is_null())
        for source, number, text in bad.select("source", "line_number", name).rows():
            yield source, number, name, text
