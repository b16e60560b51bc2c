"""Where a compressed file is damaged: the first line that looks it.

A changed byte of a compressed file changes text, and text that is copied from it later. The checksum at the end shows
that something is wrong, and not where. Damaged lines mix the words of lines that repeat, so that a line of such words
in a rare order is taken for damage.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from logparse.inputs.blocks import read_blocks
from logparse.inputs.sources import Source

# Larger files are not searched.
MOST_BYTES = 2**28
# A kind of lines repeats if it has this share of the lines of the most common kind, and is rare if it has less. A rare
# one looks damaged if this share of its words is of kinds that repeat.
REPEATS, SHARED = 0.02, 0.5


def stop_at_damage(sources: Sequence[Source]) -> bool:
    """Set ``until`` of damaged sources, so that they are read up to the damage; whether there is any to read again."""
    found = False
    for source in sources:
        searched = source.damage is not None and source.until is None and (source.size or MOST_BYTES + 1) <= MOST_BYTES
        line = first_damaged_line(Source(source.name, source.path)) if searched else None
        if line is not None:
            source.until = line - 1
            found = True
    return found


def first_damaged_line(source: Source) -> int | None:
    """The number of the first line that looks damaged; None where none does."""
    kinds = _kinds(source)
    if kinds.is_empty():
        return None
    often = pl.col("n") > pl.max_horizontal(1, pl.col("n").max() * REPEATS)
    repeated = kinds.filter(often)
    words = set(" ".join(repeated["kind"].to_list()).split())
    begins = repeated["line"].min()
    rare = kinds.filter(~often & (pl.col("line") > begins)).sort("line")
    return next((line for kind, line in rare.select("kind", "line").iter_rows() if _is_mixed(kind, words)), None)


def _is_mixed(kind: str, words: set[str]) -> bool:
    """Whether a line consists of the ``words`` of other lines."""
    own = kind.split()
    return len(own) > 1 and sum(word in words for word in own) >= SHARED * len(own)


def _kinds(source: Source) -> pl.DataFrame:
    """The words of each kind of line, without digits and blanks, how many lines have them and the first of these."""
    text = pl.col("text").str.replace_all(r"[-+]?[0-9]+(?:\.[0-9]+)?", "0").str.replace_all(r"\s+", " ")
    blocks = (_counted(block.lines.select("line_number", kind=text)) for block in read_blocks(source))
    every = pl.concat([_counted(pl.DataFrame(schema={"line_number": pl.Int64, "kind": pl.String})), *blocks])
    return every.group_by("kind").agg(pl.col("n").sum(), pl.col("line").min())


def _counted(lines: pl.DataFrame) -> pl.DataFrame:
    return lines.group_by("kind").agg(n=pl.len(), line=pl.col("line_number").min())
