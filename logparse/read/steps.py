"""Step lines to rows, for one format. All lines are decoded at once, as columns.

Comes in: the lines that hold one of the format's markers. Goes out: one row per step line, and the account of what
could not be read. Settings are not read here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl
import regex

from logparse.formats._base import NUMBER, Companion, LogFormat, Reading
from logparse.read.records import clock
from logparse.schema import BOOL, DECODED_COLUMNS, INT, UNITS, conform

_DTYPE = {c.name: c.dtype for c in DECODED_COLUMNS}
# What a measured value can be: nothing negative, and what a float holds exactly. No step takes ten years.
_LEAST = {"elapsed_time_per_iteration_ms": math.ulp(0.0), "global_batch_size": 1.0, "seq_length": 1.0}
_MOST = {"elapsed_time_per_iteration_ms": 10 * 365.25 * 86_400_000}
_EXACT = 2.0**53 - 1


@dataclass(frozen=True)
class Malformed:
    """One value that could not be read."""

    source: str
    line_number: int
    label: str
    text: str


@dataclass(frozen=True)
class StepLines:
    """What the step lines of one format hold. ``labels`` counts every label seen; ``unread`` those nobody knows."""

    steps: pl.DataFrame
    torn: int = 0
    labels: dict[str, int] = field(default_factory=dict)
    unread: dict[str, int] = field(default_factory=dict)
    malformed: tuple[Malformed, ...] = ()


def decode_steps(lines: pl.DataFrame, fmt: LogFormat) -> StepLines:
    """Decode ``lines`` (source, line_number, text, complete) with ``fmt``.

    A step line without its step or one of the format's required columns is torn: counted, not kept.
    """
    heads = _find_heads(lines, fmt)
    pairs = _split_pairs(heads, fmt)
    known = pairs.filter(pl.col("column").is_not_null())
    rows = _with_step(_with_companions(_rows(heads, known), lines, fmt))
    whole = rows.filter(pl.all_horizontal(pl.col(name).is_not_null() for name in ("step", *fmt.required)))
    return StepLines(
        steps=conform(whole, DECODED_COLUMNS),
        torn=len(rows) - len(whole),
        labels=_count(pairs),
        unread=_count(pairs.filter(pl.col("column").is_null() & ~_ignored(fmt))),
        malformed=(*_malformed(known.filter("malformed")), *_malformed_in_companions(lines, fmt)),
    )


def _find_heads(lines: pl.DataFrame, fmt: LogFormat) -> pl.DataFrame:
    """One row per head: its named groups, the text behind it, and the clock before it.

    A line is cut before each head and at carriage returns: progress bars and other ranks' text may stand on it too.
    """
    pieces = (
        lines.filter(pl.col("text").str.contains_any(list(fmt.marker)))
        .with_columns(
            pl.col("text").str.replace_all(rf"({fmt.head})", "\n${1}").str.replace_all("\r", "\n").str.split("\n")
        )
        .explode("text")
        .with_columns(before=pl.col("text").shift(1).over("source", "line_number"))
    )
    heads = pieces.filter(pl.col("text").str.contains("^" + fmt.head)).with_row_index("row")
    body = pl.col("text").str.replace("^" + fmt.head, "")
    if fmt.foreign:
        body = body.str.replace(rf"(?:{fmt.foreign}).*$", "")
    # The last value of a line that was cut off may have lost digits; where all values stand in the head, none is sure.
    sure = pl.col("text") if fmt.pair else pl.when("complete").then(pl.col("text"))
    return heads.with_columns(
        sure.str.extract_groups("^" + fmt.head).alias("head"),
        clock(pl.col("before")).alias("timestamp"),
        pl.when("complete").then(body).otherwise(body.str.extract(rf"^(.*(?:{fmt.separator}))")).alias("body"),
    ).unnest("head")


def _split_pairs(heads: pl.DataFrame, fmt: LogFormat) -> pl.DataFrame:
    """One row per pair: row, label, value text, column, number, malformed."""
    if not fmt.pair:
        return pl.DataFrame(schema={"row": pl.UInt32, "label": pl.String, "column": pl.String, "malformed": pl.Boolean})
    found = (
        heads.select("row", "source", "line_number", pl.col("body").str.extract_all(fmt.pair))
        .explode("body")
        .drop_nulls("body")
    )
    groups = pl.col("body").str.extract_groups(fmt.pair)
    value = pl.coalesce(groups.struct[i] for i in range(1, regex.compile(fmt.pair).groups))
    pairs = found.with_columns(label=groups.struct[0].str.replace_all(r"\s+", " ").str.strip_chars(), text=value)
    tails = _tails(heads, fmt)
    return pl.concat([pairs.drop("body"), tails]).pipe(_with_numbers, fmt)


def _tails(heads: pl.DataFrame, fmt: LogFormat) -> pl.DataFrame:
    """Pairs that stand last without a separator, as some trainers print them.

    Only where most lines of the log end so: elsewhere it is a line that was cut off, and digits may be lost.
    """
    labels = "|".join(regex.escape(label, special_only=True) for label in fmt.tail) or r"\b\B"
    groups = pl.col("body").str.extract_groups(rf"(?:^|\|)\s*({labels}):\s*({NUMBER})\s*$")
    named = heads.filter("complete").select(
        "row", "source", "line_number", label=groups.struct[0], text=groups.struct[1]
    )
    tails = named.drop_nulls("label")
    return tails if len(tails) > len(heads) / 2 else tails.clear()


def _with_numbers(pairs: pl.DataFrame, fmt: LogFormat) -> pl.DataFrame:
    """Read each label's values in one go."""
    numbers, columns, absent = pl.lit(None, pl.Float64), pl.lit(None, pl.String), pl.col("text").is_null()
    for label, reading in fmt.labels.items():
        here = pl.col("label") == label
        numbers = pl.when(here).then(_number(reading)).otherwise(numbers)
        columns = pl.when(here).then(pl.lit(reading.column)).otherwise(columns)
        absent = pl.when(here).then(_bare().str.contains(f"^(?:{reading.absent})?$")).otherwise(absent)
    read = pairs.with_columns(number=numbers, column=columns, absent=absent)
    return read.with_columns(malformed=pl.col("number").is_null() & ~pl.col("absent") & pl.col("column").is_not_null())


def _bare() -> pl.Expr:
    """The value without numpy's brackets and spaces."""
    return pl.col("text").str.strip_chars(" []")


def _number(reading: Reading) -> pl.Expr:
    if _DTYPE[reading.column] == BOOL:
        word = _bare().str.to_lowercase()
        return pl.when(word == "true").then(1.0).when(word == "false").then(0.0)
    digits = _bare().str.extract(rf"^({NUMBER})(?:{reading.suffix})?$", 1)
    return _possible(reading.column, _float(digits) * reading.scale)


def _float(text: pl.Expr) -> pl.Expr:
    """Null unless a number; a comma that does not part thousands could be a decimal comma."""
    parted = text.str.contains(r"^[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:[.eE]|$)")
    plain = pl.when(parted).then(text.str.replace_all(",", "")).otherwise(text)
    return plain.str.to_lowercase().cast(pl.Float64, strict=False)


def _possible(column: str, number: pl.Expr) -> pl.Expr:
    """Null unless a number that the column can hold; what has no unit, such as a loss, may be negative and NaN too."""
    if UNITS[column]:
        number = pl.when(number.is_between(_LEAST.get(column, 0.0), _MOST.get(column, _EXACT))).then(number)
    return _whole(number) if _DTYPE[column] == INT else number


def _whole(number: pl.Expr) -> pl.Expr:
    """Null unless a whole number that a float holds exactly."""
    return pl.when((number == number.floor()) & (number.abs() <= _EXACT)).then(number)


def _ignored(fmt: LogFormat) -> pl.Expr:
    pattern = "|".join(fmt.ignored_patterns)
    by_name = pl.col("label").is_in(sorted(fmt.ignored))
    return by_name | pl.col("label").str.contains(f"^(?:{pattern})$") if pattern else by_name


def _rows(heads: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Spread the pairs over columns, one row per head; the first of a repeated label counts."""
    groups = [c for c in heads.columns if c in _DTYPE and c not in ("source", "line_number", "timestamp")]
    rows = heads.select("row", "source", "line_number", "timestamp", *(_group(c) for c in groups))
    if pairs.is_empty():
        return rows
    wide = pairs.pivot("column", index="row", values="number", aggregate_function="first")
    joined = rows.join(wide, on="row", how="left", maintain_order="left", suffix=" of pair")
    twice = [c for c in groups if c in wide.columns]
    return joined.with_columns(pl.coalesce(c, f"{c} of pair") for c in twice).drop(f"{c} of pair" for c in twice)


def _group(name: str) -> pl.Expr:
    return _possible(name, _float(pl.col(name))).alias(name)


def _with_companions(rows: pl.DataFrame, lines: pl.DataFrame, fmt: LogFormat) -> pl.DataFrame:
    missing = [r.column for r in fmt.labels.values()] + list(fmt.required)
    rows = rows.with_columns(pl.lit(None, pl.Float64).alias(c) for c in dict.fromkeys(missing) if c not in rows.columns)
    for companion in fmt.companions:
        rows = _with_companion(rows, lines, companion)
    return rows.sort("row")


def _with_companion(rows: pl.DataFrame, lines: pl.DataFrame, companion: Companion) -> pl.DataFrame:
    """Join each step line with the first companion line behind it, of the same file."""
    names = list(regex.compile(companion.pattern).groupindex)
    found = _companion_lines(lines, companion).select("source", pl.col("line_number").alias("at"), *map(_group, names))
    joined = rows.sort("line_number").join_asof(
        found.sort("at"), left_on="line_number", right_on="at", by="source", strategy="forward", check_sortedness=False
    )
    if companion.belongs_to == "all":
        return joined.drop("at")
    following = pl.col("line_number").shift(-1).over("source")
    mine = following.is_null() | (pl.col("at") < following) | (pl.col("at") == pl.col("line_number"))
    return joined.with_columns(pl.when(mine).then(pl.col(n)).alias(n) for n in names).drop("at")


def _companion_lines(lines: pl.DataFrame, companion: Companion) -> pl.DataFrame:
    """Source, line number and the text of each named group."""
    found = lines.filter(
        pl.col("text").str.contains(companion.marker, literal=True) & pl.col("text").str.contains(companion.pattern)
    )
    groups = pl.col("text").str.extract_groups(companion.pattern).alias("groups")
    return found.select("source", "line_number", groups).unnest("groups")


def _malformed_in_companions(lines: pl.DataFrame, fmt: LogFormat) -> Iterator[Malformed]:
    for companion in fmt.companions:
        found = _companion_lines(lines, companion)
        for name in regex.compile(companion.pattern).groupindex:
            bad = found.filter(pl.col(name).is_not_null() & found.select(_group(name)).to_series().is_null())
            yield from (Malformed(s, n, name, text) for s, n, text in bad.select("source", "line_number", name).rows())


def _with_step(rows: pl.DataFrame) -> pl.DataFrame:
    """Count steps from the start of training where the log counts them within an epoch."""
    if "step" in rows.columns:
        return rows
    per_epoch = pl.col("steps_per_epoch") if "steps_per_epoch" in rows.columns else pl.col("step_in_epoch").max()
    return rows.with_columns(step=_whole((pl.col("epoch") - 1) * per_epoch + pl.col("step_in_epoch")))


def _count(pairs: pl.DataFrame) -> dict[str, int]:
    counts = pairs.group_by("label").len().sort("len", "label", descending=[True, False])
    return dict(counts.iter_rows())


def _malformed(pairs: pl.DataFrame) -> tuple[Malformed, ...]:
    if pairs.is_empty():
        return ()
    return tuple(Malformed(*row) for row in pairs.select("source", "line_number", "label", "text").iter_rows())
