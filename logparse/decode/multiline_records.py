"""Records of several lines: pairs, one on each line after the step line they belong to.

Comes in: lines of a block, then the step lines of the whole log. Goes out: pairs as those of ``pairs``. A record may
cross the end of a block, so pairs are joined to their step line once all blocks are read.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from logparse.decode.regex_rule import read_values
from logparse.decode.values import holds, sure_text
from logparse.formats._base import LogFormat
from logparse.schema import DECODED_COLUMNS

# A record has a dozen pairs, the words of which would be most of what is kept.
NO_PAIRS = pl.DataFrame(
    schema={
        "source": pl.Categorical(),
        "line_number": pl.Int64(),
        "label": pl.Categorical(),
        "text": pl.String(),
        "column": pl.Enum([column.name for column in DECODED_COLUMNS]),
        "number": pl.Float64(),
        "malformed": pl.Boolean(),
    }
)


def find_pair_lines(lines: pl.DataFrame, fmt: LogFormat) -> pl.DataFrame:
    """The pairs on ``lines``, as numbers, but for one at the end of an incomplete line: it may have lost digits."""
    if fmt.pair_lines is None:
        return NO_PAIRS
    marked = lines.filter(holds(pl.col("text"), *fmt.pair_lines.marker))
    if marked.is_empty():
        return NO_PAIRS
    groups = sure_text(marked).str.extract_groups(fmt.pair_lines.pair)
    pairs = marked.select("source", "line_number", label=groups.struct[0], text=groups.struct[1])
    read = read_values(pairs.drop_nulls("label"), fmt).select(NO_PAIRS.columns)
    # The text is kept only where it could not be read.
    return read.with_columns(pl.when("malformed").then("text")).cast(NO_PAIRS.schema)


def of_rows(blocks: Iterable[pl.DataFrame], rows: pl.DataFrame) -> pl.DataFrame:
    """The pairs of all ``blocks``, each of one file, with the ``row`` of the step line before them.

    Those before the first belong to none.
    """
    numbered = rows.select("source", pl.col("line_number").cast(pl.Int64)).with_row_index("row")
    heads = {lines["source"][0]: lines.sort("line_number") for lines in numbered.partition_by("source")}
    filled = (pairs for pairs in blocks if len(pairs))
    of_heads = [_of_heads(heads[pairs["source"][0]], pairs) for pairs in filled if pairs["source"][0] in heads]
    return pl.concat([NO_PAIRS.with_columns(row=pl.lit(None, pl.UInt32)), *of_heads])


def _of_heads(heads: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    import numpy as np

    # A join takes twice as long.
    before = np.searchsorted(heads["line_number"].to_numpy(), pairs["line_number"].to_numpy(), side="right") - 1
    row = heads["row"].gather(np.maximum(before, 0))
    return pairs.with_columns(row.alias("row")).filter(pl.Series(before >= 0))


def with_pair_lines(rows: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """``rows`` with the values of their ``pairs``; a value that a row already has is kept."""
    known = pairs["row", "line_number", "column", "number"].drop_nulls("column")
    columns = {part["column"][0]: _in_rows(part, len(rows)) for part in known.partition_by("column")}
    own = set(rows.columns)
    return rows.with_columns(
        (pl.coalesce(name, numbers) if name in own else numbers).alias(name) for name, numbers in columns.items()
    )


def _in_rows(pairs: pl.DataFrame, count: int) -> pl.Series:
    """The number of each of ``count`` rows that ``pairs`` of one column give; the first of a repeated label counts."""
    import numpy as np

    places, at = np.arange(len(pairs)), np.full(count, -1)
    rows = pairs["row"].to_numpy()
    at[rows] = places
    if (at[rows] != places).any():
        once = pairs.sort("line_number", maintain_order=True).unique("row", keep="first", maintain_order=True)
        return _in_rows(once, count)
    return pairs["number"].gather(pl.Series(at).replace(-1, None))
