"""Which settings were in force for which step lines: a run that starts again prints its settings again.

Comes in: the settings frame and the places of the step lines. Goes out: one Printing for each stretch of step lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from logparse.decode.values import collected
from logparse.light_dataclass import dataclass

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Printing:
    """The settings in force from the step line ``line_number`` of ``source`` on, by ``kind:name``.

    Without a line number no step line follows in that file, as in the file of a first rank that prints none.
    """

    source: str
    line_number: int | None
    rows: Mapping[str, Row]


def list_printings(settings: pl.DataFrame, places: pl.DataFrame) -> list[Printing]:
    """Group ``settings`` by the step line of ``places`` (source, line_number) that follows, in the order of the run.

    Of several printings before one step line the last is in force: the starts before it failed. In a file without step
    lines it is unknown which steps a printing is for, so the first is taken. Settings of a later start replace those
    of an earlier one of that file in the same kind of block; other kinds are kept.
    """
    lines = places.lazy().select("source", following="line_number").sort("following")
    followed = (
        settings.lazy()
        .sort("line_number", maintain_order=True)
        .join_asof(
            lines, left_on="line_number", right_on="following", by="source", strategy="forward", check_sortedness=False
        )
    )
    stepping = places["source"].unique(maintain_order=True).to_list()
    ahead = _for_next_file(collected(followed), places) if len(stepping) > 1 else collected(followed)
    last = pl.when(pl.col("following").first().is_null()).then(pl.all().first()).otherwise(pl.all().last())
    once = ahead.group_by("source", "following", "kind", "name", maintain_order=True).agg(last)
    printed: dict[str, dict[int | None, list[Row]]] = {}
    for row in once.iter_rows(named=True):
        printed.setdefault(row["source"], {}).setdefault(row["following"], []).append(row)
    # Files without step lines first, then the others in the order in which their step lines follow each other.
    sources = [s for s in printed if s not in stepping] + [s for s in stepping if s in printed]
    return [printing for source in sources for printing in _of_source(printed[source], source)]


def _for_next_file(settings: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """Settings after the last step line of a file are for the first one of the next file, if that prints none."""
    heads = places.group_by("source", maintain_order=True).agg(first=pl.col("line_number").min())
    after = heads.with_columns(
        next_source=pl.col("source").shift(-1), next_first=pl.col("first").shift(-1).cast(pl.Int64)
    )
    own = settings.select(next_source="source", next_first=pl.col("following").cast(pl.Int64), prints=True)
    own = own.drop_nulls().unique()
    followed = after.join(own, on=["next_source", "next_first"], how="left", maintain_order="left")
    free = followed.filter(pl.col("prints").is_null() & pl.col("next_source").is_not_null()).drop("first", "prints")
    joined = settings.join(free, on="source", how="left", maintain_order="left")
    last = pl.col("following").is_null() & pl.col("next_source").is_not_null()
    moved = {
        "source": pl.when(last).then("next_source").otherwise("source"),
        "following": pl.when(last).then("next_first").otherwise("following"),
    }
    return joined.with_columns(**moved).drop("next_source", "next_first")


def _of_source(printed: Mapping[int | None, Sequence[Row]], source: str) -> Iterator[Printing]:
    """The printings of one file, whose rows are ``printed`` before each step line."""
    known: dict[str, Row] = {}
    # After the last step line of a file that has some, nothing follows that the settings could be for.
    stepping = any(following is not None for following in printed)
    for following, rows in printed.items():
        if following is None and stepping:
            continue
        fresh = {f"{row['kind']}:{row['name']}": row for row in rows}
        kinds = {row["kind"] for row in rows}
        known = {key: row for key, row in known.items() if row["kind"] not in kinds} | fresh
        yield Printing(source, following, known)


def first_printed(printings: Sequence[Printing]) -> dict[str, Row]:
    """Every setting as it was in force first. A kind of block that a file printed before is not filled up later."""
    rows: dict[str, Row] = {}
    kinds: dict[str, set[str]] = {}
    for printing in printings:
        before = kinds.setdefault(printing.source, set())
        fresh = {key: row for key, row in printing.rows.items() if row["kind"] not in before}
        before.update(row["kind"] for row in fresh.values())
        rows = {**fresh, **rows}
    return rows
