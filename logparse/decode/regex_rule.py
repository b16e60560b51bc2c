"""Step lines to rows by the patterns of their format, for any line. Reads columns, block by block.

This is the rule; ``fast_path`` reads lines that repeat faster, and gives the same.
"""

from __future__ import annotations

import polars as pl
import regex

from logparse.decode.values import (
    DTYPE,
    clock,
    collected,
    group,
    group_names,
    is_absent,
    possible,
    reading_key,
    sure_text,
    with_others,
    written,
)
from logparse.formats._base import NUMBER, UNIT_GROUPS, LogFormat, Reading

PAIRS = {
    "row": pl.UInt32(),
    "source": pl.String(),
    "line_number": pl.Int64(),
    "label": pl.String(),
    "text": pl.String(),
}
# What ``read_values`` adds.
READ = {"column": pl.String(), "number": pl.Float64(), "malformed": pl.Boolean()}


def find_heads(lines: pl.DataFrame, fmt: LogFormat) -> pl.DataFrame:
    """One row per head: its named groups, the text after it, and the clock before it.

    A line is cut before each head and at carriage returns: it may also hold progress bars and other ranks' text.
    """
    pieces = (
        lines.lazy()
        .with_columns(
            pl.col("text").str.replace_all(rf"({fmt.head})", "\n${1}").str.replace_all("\r", "\n").str.split("\n")
        )
        .explode("text")
        .with_columns(
            before=pl.when(_goes_on()).then(pl.col("text").shift(1)),
            # Of a last line that was cut off, only the last piece was.
            complete=pl.col("complete") | _goes_on().shift(-1).fill_null(value=False),
        )
    )
    heads = pieces.filter(pl.col("text").str.contains("^" + fmt.head))
    if fmt.not_steps:
        heads = heads.filter(~pl.col("text").str.contains(f"^{fmt.head}(?:{fmt.not_steps})"))
    heads = heads.with_row_index("row")
    body = pl.col("text").str.replace("^" + fmt.head, "")
    if fmt.foreign:
        body = body.str.replace(rf"(?:{fmt.foreign}).*$", "")
    # The last value of a truncated line may have lost digits.
    sure = pl.col("text") if fmt.pair else sure_text(lines)
    # What a collector put before a line is the clock of its first head.
    collected_at = pl.when(_goes_on().fill_null(value=False).not_()).then("clock")
    read = heads.with_columns(
        sure.str.extract_groups("^" + fmt.head).alias("head"),
        pl.coalesce(clock(pl.col("before")), collected_at).alias("timestamp"),
        pl.when("complete").then(body).otherwise(body.str.extract(rf"^(.*(?:{fmt.separator}))")).alias("body"),
    )
    return collected(read.unnest("head"))


def _goes_on() -> pl.Expr:
    """Whether a piece is of the same line as the one before it."""
    return pl.all_horizontal(pl.col(name) == pl.col(name).shift(1) for name in ("source", "line_number"))


def split_pairs(heads: pl.DataFrame, fmt: LogFormat) -> pl.DataFrame:
    """One row per pair: row, source, line_number, label, text of the value."""
    if not fmt.pair:
        return pl.DataFrame(schema=PAIRS)
    pairs = (
        heads.lazy()
        .select("row", "source", "line_number", pl.col("body").str.extract_all(fmt.pair))
        .explode("body")
        .drop_nulls("body")
    )
    label, value = label_and_value(fmt.pair)
    spaced = label.str.replace_all(r"\s+", " ").str.strip_chars()
    return collected(pairs.select("row", "source", "line_number", label=spaced, text=value))


def label_and_value(pattern: str) -> tuple[pl.Expr, pl.Expr]:
    """The label of a pair and the text of its value; the unit of a number without a label is its label."""
    groups = pl.col("body").str.extract_groups(pattern)
    if set(UNIT_GROUPS) <= set(group_names(pattern)):
        label, value, number, unit = (groups.struct.field(name) for name in UNIT_GROUPS)
        return pl.coalesce(label, unit), pl.coalesce(value, number)
    return groups.struct[0], pl.coalesce(groups.struct[i] for i in range(1, regex.compile(pattern).groups))


def find_tails(heads: pl.DataFrame, fmt: LogFormat) -> pl.DataFrame:
    """Numbers at the end of a line without the bar that ends a pair; the columns of ``split_pairs``."""
    if not fmt.pair.endswith(r"\|"):
        return pl.DataFrame(schema=PAIRS)
    body = pl.col("body")
    ended = heads.lazy().filter(pl.col("complete") & ~body.str.strip_chars_end().str.ends_with("|"))
    last = body.str.extract(rf"([^|]*{NUMBER}(?:/[0-9.]+)?%?)\s*$") + "|"
    label, value = label_and_value(fmt.pair)
    tails = ended.with_columns(last).drop_nulls("body")
    named = tails.select("row", "source", "line_number", label=label.str.strip_chars(), text=value)
    return collected(named.filter(pl.col("label").is_in(list(fmt.labels))))


def read_values(pairs: pl.DataFrame, fmt: LogFormat) -> pl.DataFrame:
    """``pairs`` with ``column``, ``number`` and ``malformed``; values that are read the same way are read at once."""
    if pairs.is_empty():
        return pl.DataFrame(schema={**pairs.schema, **READ})
    readings = {label: fmt.labels[label] for label in pairs["label"].unique() if label in fmt.labels}
    first: dict[object, str] = {}
    ways = {label: first.setdefault(reading_key(reading), label) for label, reading in readings.items()}
    columns = {label: reading.column for label, reading in readings.items()}
    label = pl.col("label")
    placed = pairs.with_row_index("place").with_columns(
        column=label.replace_strict(columns, default=None, return_dtype=pl.String),
        way=label.replace_strict(ways, default=None, return_dtype=pl.String),
    )
    read = pl.concat(_read(part.lazy(), readings.get(part["way"][0])) for part in placed.partition_by("way"))
    return collected(read.sort("place").drop("place", "way"))


def _read(pairs: pl.LazyFrame, reading: Reading | None) -> pl.LazyFrame:
    """The ``pairs``, whose labels are all read by ``reading``."""
    if reading is None:
        return pairs.with_columns(pl.lit(None, pl.Float64).alias("number"), malformed=pl.lit(value=False))
    text, value = pl.col("text"), pl.col("number")
    # In two steps, since an expression that is used twice in another one is evaluated twice.
    read = pairs.with_columns(written(text, reading).alias("number"))
    read = read.with_columns(possible(reading.column, value).alias("number"))
    return read.with_columns(malformed=value.is_null() & ~is_absent(text, reading))


def spread(heads: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Spread read pairs over columns, one row per head; the first of a repeated label counts."""
    groups = [c for c in heads.columns if c in DTYPE and c not in ("source", "line_number", "timestamp")]
    rows = heads.select("source", "line_number", "timestamp", *map(group, groups))
    if pairs.is_empty():
        return rows
    return with_others(rows, widen(pairs), "pair")


def widen(pairs: pl.DataFrame) -> pl.DataFrame:
    """One row per head, ``row``, with a column for each that ``pairs`` fill; the first of a repeated label counts."""
    known = pairs.filter(pairs["column"].is_not_null())
    return known.pivot("column", index="row", values="number", aggregate_function="first")
