"""Whether the save of a checkpoint had begun when a run stopped, and did not end: it is not to resume from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import polars as pl

from logparse.formats import all_formats
from logparse.formats._base import LogFormat
from logparse.inputs.blocks import TextBlock

# Lines before the stop in which a save is sought, and where no other one of the log ended.
FAR, NEAR = 200, 30


def unfinished_save(tail: TextBlock, after: int, before: int) -> tuple[int, str] | None:
    """Number and text of the line of ``tail`` on which the last save begins between two lines, if none ends later.

    A trainer of which no save ends may print no line for it: then only a save right before the stop counts.
    """
    lines = tail.lines.select("line_number", "text")
    for starts, ends in _saves():
        begun = _lines_of(starts, lines.filter(pl.col("line_number").is_between(max(after, before - FAR), before - 1)))
        ended = _lines_of(ends, lines)
        if begun.is_empty() or (len(ended) and ended["line_number"][-1] > begun["line_number"][-1]):
            continue
        number, text = begun.row(-1)
        if len(ended) or before - number <= NEAR:
            return number, text
    return None


def _lines_of(patterns: Sequence[tuple[str, str]], lines: pl.DataFrame) -> pl.DataFrame:
    """Those of ``lines`` with one of the markers, and its pattern."""
    some = lines.filter(pl.col("text").str.contains_any([marker for marker, _ in patterns]))
    return some.filter(pl.any_horizontal(pl.col("text").str.contains(pattern) for _, pattern in patterns))


@cache
def _saves() -> tuple[tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]], ...]:
    """Markers and patterns of what begins and of what ends a save, of each trainer that prints both."""
    pairs = ((_of_kind(fmt, "save starts"), _of_kind(fmt, "save ends")) for fmt in all_formats())
    return tuple(dict.fromkeys((starts, ends) for starts, ends in pairs if starts and ends))


def _of_kind(fmt: LogFormat, kind: str) -> tuple[tuple[str, str], ...]:
    return tuple((record.marker, record.pattern) for record in fmt.records if record.fixed.get("kind") == kind)
