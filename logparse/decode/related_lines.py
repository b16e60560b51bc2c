"""Lines near a step line that complete it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal

import polars as pl
import polars.selectors as cs

from logparse.decode.values import DTYPE, group, group_names, holds, sure_text, with_others
from logparse.formats._base import Companion
from logparse.schema import TIME

# Two lines of one banner are at most so many lines apart.
BANNER = 10


def find_companions(lines: pl.DataFrame, companion: Companion) -> pl.DataFrame:
    """Source, line number and the text of each named group."""
    marked = lines.filter(holds(pl.col("text"), companion.marker))
    # To build the regex takes longer than to find that there is nothing to read.
    if marked.is_empty():
        return marked.select("source", "line_number")
    # A group around the whole pattern shows whether it matches, so that each line is searched once.
    groups = sure_text(marked).str.extract_groups(f"({companion.pattern})").alias("groups")
    searched = marked.select("source", "line_number", groups).unnest("groups")
    return searched.filter(pl.col("1").is_not_null()).drop("1")


def read_companions(texts: pl.DataFrame, companion: Companion) -> pl.DataFrame:
    """The numbers and times that the ``texts`` of groups hold."""
    return texts.select("source", "line_number", *map(_group, group_names(companion.pattern)))


def _group(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Int64, strict=False) if name == "part" else group(name)


@cache
def no_companions(companion: Companion) -> pl.DataFrame:
    """What ``read_companions`` gives where there is none."""
    groups = {name: _dtype(name) for name in group_names(companion.pattern)}
    return pl.DataFrame(schema={"source": pl.String(), "line_number": pl.Int64(), **groups})


def _dtype(name: str) -> pl.DataType:
    if name == "part":
        return pl.Int64()
    return pl.Datetime("us") if DTYPE[name] == TIME else pl.Float64()


def join_companions(rows: pl.DataFrame, related: pl.DataFrame, companion: Companion) -> pl.DataFrame:
    """Complete each step line with the first companion line after it (or the last before it), of the same file.

    A value that the step line prints itself is kept.
    """
    if companion.belongs_to == "sum":
        return _with_sums(rows, related, group_names(companion.pattern))
    if companion.belongs_to == "count":
        return _with_counts(rows, related, group_names(companion.pattern))
    names = group_names(companion.pattern)
    if companion.belongs_to == "file":
        related = related.sort("line_number").unique("source", keep="first", maintain_order=True)
    numbers = related.select(
        "source", pl.col("line_number").alias("at"), *(pl.col(name).alias(f"related {name}") for name in names)
    )
    joined = (
        rows.with_row_index("row")
        .sort("line_number")
        .join_asof(
            numbers.sort("at"),
            left_on="line_number",
            right_on="at",
            by="source",
            strategy="backward" if companion.belongs_to in ("next", "file", "since", "banner") else "forward",
            allow_exact_matches=companion.belongs_to != "behind",
            check_sortedness=False,
        )
    )
    mine = _belongs(companion)
    completed = {
        name: pl.coalesce(*([name] if name in rows.columns else []), pl.when(mine).then(f"related {name}"))
        for name in names
    }
    return joined.with_columns(**completed).sort("row").drop("row", "at", cs.starts_with("related "))


def banner_lines(
    lines: Sequence[pl.DataFrame], companions: Sequence[Companion], rows: pl.DataFrame
) -> list[pl.DataFrame]:
    """The ``lines`` of ``companions`` without those of a banner that no other line of the banner is next to.

    A line of ``rows`` between them separates them. A banner begins with the first of its companions: an evaluation
    prints that line too, and no other after it. Where no line has another one next to it, the first of each file is
    kept.
    """
    own = [companion.belongs_to == "banner" for companion in companions]
    if not any(len(frame) for frame, banner in zip(lines, own, strict=False) if banner):
        return list(lines)
    steps = rows.select("source", "line_number", step_line="line_number").sort("line_number")
    placed = [_after_steps(frame, steps) for frame, banner in zip(lines, own, strict=False) if banner]
    every = pl.concat(frame.select("source", "line_number", "step_line", n=pl.lit(n)) for n, frame in enumerate(placed))
    kept = iter(
        _of_banner(frame, every.filter(pl.col("n") != n), "nearest" if n else "forward")
        for n, frame in enumerate(placed)
    )
    return [next(kept) if banner else frame for frame, banner in zip(lines, own, strict=False)]


def _after_steps(lines: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """``lines`` in their order, with the last ``step_line`` before each; 0 before the first."""
    ordered = lines.sort("line_number")
    placed = ordered.join_asof(steps, on="line_number", by="source", allow_exact_matches=False, check_sortedness=False)
    return placed.with_columns(pl.col("step_line").cast(pl.Int64).fill_null(0))


def _of_banner(lines: pl.DataFrame, others: pl.DataFrame, strategy: Literal["nearest", "forward"]) -> pl.DataFrame:
    near = others.sort("line_number").select("source", "step_line", "line_number", near=pl.lit(value=True))
    joined = lines.join_asof(
        near,
        on="line_number",
        by=["source", "step_line"],
        strategy=strategy,
        tolerance=BANNER,
        check_sortedness=False,
    )
    own = joined.filter("near").drop("near", "step_line")
    first = lines.unique("source", keep="first", maintain_order=True).drop("step_line")
    return own if len(own) else first


def _with_sums(rows: pl.DataFrame, related: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Complete each step line with the sums of ``names`` on the lines since the step line before it, of the same file.

    A sum is null where one part is unreadable, or missing by the number of the next part; on the first step line of a
    file, where it has fewer parts than a step had so far.
    """
    part = pl.col("part") if "part" in names else pl.int_range(pl.len())
    names = [name for name in names if name != "part"]
    parts = related.sort("line_number").select("source", "line_number", *names, part=part)
    follows = (pl.col("part").diff().over("source") == 1).fill_null(value=True)
    places = rows.select("source", "line_number", "step").with_row_index("row").sort("line_number")
    first = pl.int_range(pl.len()).over("source") == 0
    mine = parts.with_columns(follows=follows, first=first).join_asof(
        places, on="line_number", by="source", strategy="forward", check_sortedness=False
    )
    as_many = (pl.len() * pl.col("step").first() >= pl.col("part").max()).fill_null(value=True)
    complete = pl.col("follows").all() & (~pl.col("first").any() | as_many)
    whole = {name: pl.col(name).is_not_null().all() & complete for name in names}
    sums = mine.group_by("row").agg(
        pl.when(there).then(pl.col(name).sum()).alias(name) for name, there in whole.items()
    )
    return with_others(rows, sums, "sum")


def _with_counts(rows: pl.DataFrame, related: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Complete each step line with the number of ``related`` lines since the step line before it, of the same file.

    Where there are none in the whole log, the numbers are unknown: it may be one that does not print them. A step line
    may count fewer, or print 0: Megatron does not know all that DeepSpeed skips.
    """
    if related.is_empty():
        return with_others(rows, pl.DataFrame(schema={"row": pl.UInt32, **dict.fromkeys(names, pl.Float64)}), "count")
    places = rows.select("source", "line_number").with_row_index("row").sort("line_number")
    lines = related.sort("line_number").select("source", "line_number")
    mine = lines.join_asof(places, on="line_number", by="source", strategy="forward", check_sortedness=False)
    counts = places.select("row").join(mine.drop_nulls("row").group_by("row").len(), on="row", how="left")
    number = pl.col("len").fill_null(0).cast(pl.Float64)
    counted = with_others(rows, counts.select("row", **{f"counted {name}": number for name in names}), "count")
    more = {name: pl.max_horizontal(*([name] if name in rows.columns else []), f"counted {name}") for name in names}
    return counted.with_columns(**more).drop(cs.starts_with("counted "))


def _belongs(companion: Companion) -> pl.Expr:
    """Whether no other step line lies between."""
    line, at = pl.col("line_number"), pl.col("at")
    previous, following = (line.shift(rows).over("source") for rows in (1, -1))
    belongs = {
        "all": pl.lit(True),
        "file": pl.lit(True),
        "since": pl.lit(True),
        "banner": pl.lit(True),
        "behind": following.is_null() | (at <= following),
        "next": previous.is_null() | (at > previous),
        "each": following.is_null() | (at < following) | (at == line),
    }
    return belongs[companion.belongs_to]


def malformed_companions(printed: pl.DataFrame, read: pl.DataFrame) -> Iterator[tuple[str, int, str, str]]:
    """Source, line number, name and text of each value ``printed`` that could not be ``read``."""
    for name in (name for name in printed.columns[2:] if name != "part"):
        texts, values = printed[name], read[name]
        if texts.null_count() < values.null_count():
            lost = printed.filter(texts.is_not_null() & values.is_null())
            yield from ((source, at, name, text) for source, at, text in lost["source", "line_number", name].rows())
