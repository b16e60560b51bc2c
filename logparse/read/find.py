"""Which lines matter? Candidates by the literal markers of the formats; all else is dropped as it is read.

Comes in: a block of bytes. Goes out: what its lines say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl

from logparse.formats._base import LogFormat
from logparse.read.beside import may_complete
from logparse.read.contents import BlockContents, Wanted, any_of, find_in, is_worth_a_regex
from logparse.read.fragments import Sieve
from logparse.read.layouts import Layouts
from logparse.read.lines import TextBlock
from logparse.read.records import Found
from logparse.read.stencil_layout import LinesRead
from logparse.read.stencils import Stencils
from logparse.read.steps import StepBlock, merge, no_steps


@dataclass(frozen=True)
class LineSearch(Wanted):
    """What is looked for, and the ``stencils`` of lines that hold it."""

    stencils: Stencils

    @cached_property
    def sieve(self) -> Sieve:
        """What tells lines that may hold a marker from those that hold none."""
        return Sieve(self.markers)

    def narrowed(self, shown: Iterable[LogFormat]) -> LineSearch:
        """The same search for no more than the step lines of formats other than those ``shown``.

        What lies beneath all of these cannot be richer, but may complete them.
        """
        found = tuple(shown)
        deepest = max(fmt.beneath for fmt in found)
        below = [fmt for fmt in self.formats if fmt.beneath > deepest]
        useless = [fmt for fmt in below if not all(may_complete(fmt, rich) for rich in found)]
        whole = (*found, *(fmt for fmt in below if fmt not in useless))
        formats = tuple(fmt for fmt in self.formats if fmt not in useless)
        return replace(self, whole=whole, formats=formats, stencils=self.stencils.forgotten())


def search_all(formats: tuple[LogFormat, ...]) -> LineSearch:
    """The search for everything that ``formats`` know."""
    return LineSearch(formats, formats, {fmt.name: Layouts(fmt, formats) for fmt in formats}, Stencils())


def find(block: TextBlock, search: LineSearch, few: int = 0) -> BlockContents:
    """Read one block. Blocks do not depend on each other, so that threads may each read one.

    Marked lines of less than ``few`` bytes wait to be read together with those of other blocks.
    """
    fitted, rest = search.stencils.read(block, search)
    marked = _marked(rest, search)
    if not fitted and 0 < size_of(marked) < few:
        # In memory of their own, or they would keep that of the whole block.
        marked = marked.with_columns(text=pl.Series(marked["text"].to_list(), dtype=pl.String))
        return BlockContents(marked, {}, {}, marked.clear(), waits=True)
    search.stencils.judge(block, len(marked) + block.count - rest.count)
    found = find_in(marked, search, len(rest.text))
    return replace(found, steps=_steps(fitted, found, search), records=_records(fitted, found))


def _steps(fitted: Sequence[LinesRead], found: BlockContents, search: LineSearch) -> dict[str, StepBlock]:
    """The step lines of each format that has some, those that stencils ``fitted`` too."""
    formats = {fmt.name: fmt for fmt in search.formats}
    names = dict.fromkeys(name for steps in (found.steps, *(read.steps for read in fitted)) for name in steps)
    return {
        name: merge(
            [read.steps[name] for read in fitted if name in read.steps],
            found.steps.get(name) or no_steps(formats[name]),
        )
        for name in names
    }


def _records(fitted: Sequence[LinesRead], found: BlockContents) -> Found:
    """The records, those on lines that stencils ``fitted`` too."""
    every = [*(read.records for read in fitted), found.records]
    keys = dict.fromkeys(key for records in every for key in records)
    return {key: pl.concat(records[key] for records in every if key in records) for key in keys}


def _marked(block: TextBlock, search: LineSearch) -> pl.DataFrame:
    """The lines of ``block`` that hold a marker."""
    size = len(block.text)
    # To choose the parts pays where more blocks follow.
    if is_worth_a_regex(size) and block.first > 1:
        lines = block.matching(search.sieve.pattern(block.text))
        size = size_of(lines)
    else:
        lines = block.lines
    return lines.filter(any_of(search.markers, pl.col("text"), size)) if size else lines


def size_of(lines: pl.DataFrame) -> int:
    """How many bytes of text ``lines`` hold."""
    return int(lines["text"].str.len_bytes().sum())
