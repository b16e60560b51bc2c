"""Which lines matter? Candidates by the literal markers of the formats; all else is dropped as it is read.

Comes in: a block of bytes. Goes out: what its lines say.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import polars as pl

from logparse.decode.block_contents import BlockContents, Wanted, find_in
from logparse.decode.fast_path import Templates
from logparse.decode.marker_fragments import Sieve
from logparse.decode.merge_formats import may_complete
from logparse.failures.ranks.times import RANK_MARKS, find_rank_times
from logparse.failures.scan import find_hits
from logparse.formats._base import LogFormat
from logparse.inputs.blocks import TextBlock
from logparse.inputs.literals import any_of, is_worth_a_regex
from logparse.light_dataclass import dataclass, replace


@dataclass(frozen=True)
class LineSearch(Wanted):
    """What is looked for in each block."""

    @cached_property
    def sieve(self) -> Sieve:
        """The filter that keeps lines that may hold a marker, also one of times of ranks."""
        return Sieve((*self.markers, *RANK_MARKS))

    def narrowed(self, shown: Iterable[LogFormat]) -> LineSearch:
        """The same search for no more than the step lines of formats other than those ``shown``.

        What lies beneath all of these cannot be richer, but may complete them.
        """
        rich_formats = tuple(shown)
        deepest = max(fmt.beneath for fmt in rich_formats)
        below = [fmt for fmt in self.formats if fmt.beneath > deepest]
        useless = [fmt for fmt in below if not all(may_complete(fmt, rich) for rich in rich_formats)]
        whole = (*rich_formats, *(fmt for fmt in below if fmt not in useless))
        formats = tuple(fmt for fmt in self.formats if fmt not in useless)
        return replace(self, whole=whole, formats=formats)


def search_all(formats: tuple[LogFormat, ...]) -> LineSearch:
    """The search for everything that ``formats`` know."""
    return LineSearch(formats, formats, {fmt.name: Templates(fmt, formats) for fmt in formats})


def find(block: TextBlock, search: LineSearch, few: int = 0) -> BlockContents:
    """Read one block. Blocks do not depend on each other, so that threads may each read one.

    Marked lines of less than ``few`` bytes wait to be read together with those of other blocks.
    """
    lines = block.bare(_candidates(block, search))
    size = size_of(lines)
    marked = lines.filter(any_of(search.markers, lines["text"], size)) if size else lines
    hits = find_hits(block)
    of_ranks = lines.filter(lines["text"].str.contains_any(list(RANK_MARKS)))
    times = find_rank_times(block, of_ranks) if len(of_ranks) else None
    if 0 < size_of(marked) < few:
        # In memory of their own, or they would keep that of the whole block.
        marked = marked.with_columns(text=pl.Series(marked["text"].to_list(), dtype=pl.String))
        return BlockContents(marked, {}, {}, marked.clear(), waits=True, hits=hits, rank_times=times)
    return replace(find_in(marked, search, len(block.text)), hits=hits, rank_times=times)


def _candidates(block: TextBlock, search: LineSearch) -> pl.DataFrame:
    """Lines of ``block``, among them all that hold a marker."""
    # To choose the parts pays where more blocks follow.
    if is_worth_a_regex(len(block.text)) and block.first > 1:
        return block.matching(search.sieve.pattern(block.text))
    return block.lines


def size_of(lines: pl.DataFrame) -> int:
    """How many bytes of text ``lines`` hold."""
    return int(lines["text"].str.len_bytes().sum())
