"""Records of several lines: pairs that stand one on a line behind the step line they belong to.

Comes in: lines of a block, then the step lines of the whole log. Goes out: pairs as those of ``pairs``. A record may
reach over the end of a block, so that pairs find their step line when all blocks are known.
"""

from __future__ import annotations

import polars as pl

from logparse.formats._base import LogFormat
from logparse.read.pairs import read_values
from logparse.read.values import holds

NO_PAIRS = pl.DataFrame(
    schema={
        "source": pl.String(),
        "line_number": pl.Int64(),
        "label": pl.String(),
        "text": pl.String(),
        "column": pl.String(),
        "number": pl.Float64(),
        "malformed": pl.Boolean(),
    }
)


def find_pair_lines(lines: pl.DataFrame, fmt: LogFormat) -> pl.DataFrame:
    """The read pairs on those of ``lines`` that hold one; a last line that was cut off may have lost digits."""
    if fmt.pair_lines is None:
        return NO_PAIRS
    marked = lines.filter(holds(pl.col("text"), *fmt.pair_lines.marker) & pl.col("complete"))
    if marked.is_empty():
        return NO_PAIRS
    groups = pl.col("text").str.extract_groups(fmt.pair_lines.pair)
    pairs = marked.select("source", "line_number", label=groups.struct[0], text=groups.struct[1])
    read = read_values(pairs.drop_nulls("label"), fmt).select(NO_PAIRS.columns)
    # Nothing else is told of a text that was read.
    return read.with_columns(pl.when("malformed").then("text"))


def of_rows(pairs: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """``pairs`` with the ``row`` of the step line before them; those before the first belong to none."""
    numbered = rows.select("source", pl.col("line_number").cast(pl.Int64)).with_row_index("row")
    heads = numbered.sort("line_number")
    found = pairs.sort("line_number").join_asof(
        heads, on="line_number", by="source", strategy="backward", check_sortedness=False
    )
    return found.drop_nulls("row")
