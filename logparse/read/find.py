"""Which lines matter? Candidates by the literal markers of the formats; all else is dropped as it is read.

Comes in: a source. Goes out: the lines that any format may want, and the lines inside blocks of settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from logparse.formats._base import Block, LogFormat
from logparse.read.settings import read_blocks
from logparse.read.sources import TERMINAL, Source, read_lines
from logparse.read.versions import MARKERS as VERSION_MARKERS

EMPTY = pl.DataFrame(schema={"line_number": pl.Int64, "text": pl.String, "complete": pl.Boolean})


@dataclass(frozen=True)
class Scan:
    """Of one file: how many lines it has, those that matter, and the lines inside each block of settings."""

    total: int
    lines: pl.DataFrame
    inside: dict[Block, pl.DataFrame]


def find_lines(source: Source, formats: tuple[LogFormat, ...]) -> Scan:
    """Keep the lines that any format may want, and the blocks of settings; drop the rest as it is read."""
    markers = list(dict.fromkeys((*(m for f in formats for m in f.markers), *VERSION_MARKERS)))
    blocks = tuple(dict.fromkeys(b for f in formats for b in f.blocks))
    kept: list[pl.DataFrame] = [EMPTY]
    total = 0

    def frames() -> Iterator[pl.DataFrame]:
        nonlocal total
        for frame in read_lines(source):
            clean = frame.with_columns(pl.col("text").str.replace_all(TERMINAL, ""))
            total += len(frame)
            kept.append(clean.filter(pl.col("text").str.contains_any(markers)))
            yield clean

    named = pl.lit(source.name).alias("source")
    inside = {block: found.with_columns(named) for block, found in read_blocks(frames(), blocks).items()}
    return Scan(total, pl.concat(kept).with_columns(named), inside)
