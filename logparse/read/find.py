"""Which lines matter? Candidates by the literal markers of the formats; all else is dropped as it is read.

Comes in: a block of bytes. Goes out: what each format reads of it, and the few lines that are read when all are known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TypeVar

import polars as pl
import regex

from logparse.formats._base import Block, LogFormat
from logparse.read.beside import may_complete
from logparse.read.fragments import Sieve
from logparse.read.layouts import Layouts
from logparse.read.lines import TextBlock
from logparse.read.records import Found, find_records
from logparse.read.stencils import Stencils
from logparse.read.steps import StepBlock, decode_block, merge, no_steps
from logparse.read.values import there
from logparse.read.versions import MARKERS as VERSION_MARKERS

Text = TypeVar("Text", pl.Expr, pl.Series)
# Bytes from which on a regex of many literals is worth its building.
WORTH_A_REGEX = 2**20


@dataclass(frozen=True)
class LineSearch:
    """What is looked for: the step lines of all ``formats``, and whatever else the formats ``whole`` want.

    ``layouts`` are those of each format, by its name; ``stencils`` those of lines like theirs.
    """

    formats: tuple[LogFormat, ...]
    whole: tuple[LogFormat, ...]
    layouts: dict[str, Layouts]
    stencils: Stencils

    @cached_property
    def markers(self) -> tuple[str, ...]:
        """Every literal of interest, once."""
        literals = [m for fmt in self.formats for m in fmt.marker] + [m for fmt in self.whole for m in fmt.markers]
        return tuple(dict.fromkeys((*literals, *VERSION_MARKERS)))

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The literals of what is read when all lines are known: sentences of settings, and versions."""
        return tuple(dict.fromkeys((*(s.marker for fmt in self.whole for s in fmt.sentences), *VERSION_MARKERS)))

    @cached_property
    def sieve(self) -> Sieve:
        """What tells lines that may hold a marker from those that hold none."""
        return Sieve(self.markers)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks of settings of all formats."""
        return tuple(dict.fromkeys(block for known in self.layouts.values() for block in known.fmt.blocks))

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
        return replace(self, whole=whole, formats=formats, stencils=self.stencils.narrowed(formats))


def any_of(literals: tuple[str, ...], text: Text, size: int) -> Text:
    """Whether each text holds any of ``literals``; all of them together have ``size`` bytes.

    The regex engine of polars looks at memory speed, but a regex of all formats takes longer to build than a small log
    to read.
    """
    if size < WORTH_A_REGEX:
        return text.str.contains_any(list(literals))
    return text.str.contains(_regex_of(literals))


@cache
def _regex_of(literals: tuple[str, ...]) -> str:
    return "|".join(regex.escape(literal, special_only=True) for literal in literals)


def search_all(formats: tuple[LogFormat, ...]) -> LineSearch:
    """The search for everything that ``formats`` know."""
    layouts = {fmt.name: Layouts(fmt, formats) for fmt in formats}
    return LineSearch(formats, formats, layouts, Stencils(layouts))


@dataclass(frozen=True)
class BlockContents:
    """Of one block: the lines that are ``marked`` by other words than a plain step line, and what all of them say.

    ``steps`` are by the name of their format, without those that were left nothing; ``sentences`` are lines with such
    of settings or versions. ``waits``: what the marked lines say is still to be read.
    """

    marked: pl.DataFrame
    steps: dict[str, StepBlock]
    records: Found
    sentences: pl.DataFrame
    waits: bool = False

    @property
    def first_step(self) -> int | None:
        """The line of the first step line of any format; None where there is none."""
        heads: list[int] = [block.rows["line_number"][0] for block in self.steps.values() if len(block.rows)]
        return min(heads, default=None)


def find(block: TextBlock, search: LineSearch, few: int = 0) -> BlockContents:
    """Read one block. Blocks do not depend on each other, so that threads may each read one.

    Marked lines of less than ``few`` bytes wait to be read together with those of other blocks.
    """
    fitted, rest = search.stencils.read(block)
    marked = _marked(rest, search)
    if not fitted and 0 < size_of(marked) < few:
        # In memory of their own, or they would keep that of the whole block.
        marked = marked.with_columns(text=pl.Series(marked["text"].to_list(), dtype=pl.String))
        return BlockContents(marked, {}, {}, marked.clear(), waits=True)
    found = find_in(marked, search, len(rest.text))
    for layout, rows in fitted:
        name = layout.fmt.name
        found.steps[name] = merge(rows, layout.labels_of(rows), found.steps.get(name) or no_steps(layout.fmt))
    search.stencils.judge(block, found.steps.values())
    return found


def _marked(block: TextBlock, search: LineSearch) -> pl.DataFrame:
    """The lines of ``block`` that hold a marker."""
    size = len(block.text)
    # To choose the parts pays where more blocks follow.
    if size >= WORTH_A_REGEX and block.first > 1:
        lines = block.matching(search.sieve.pattern(block.text))
        size = size_of(lines)
    else:
        lines = block.lines
    return lines.filter(any_of(search.markers, pl.col("text"), size)) if size else lines


def size_of(lines: pl.DataFrame) -> int:
    """How many bytes of text ``lines`` hold."""
    return int(lines["text"].str.len_bytes().sum())


def find_in(marked: pl.DataFrame, search: LineSearch, size: int) -> BlockContents:
    """Read the lines of one file that are ``marked`` among so many bytes."""
    if marked.is_empty():
        return BlockContents(marked, {}, {}, marked)
    steps = {}
    words = there(marked["text"], {word for fmt in search.formats for word in fmt.step_markers})
    # Of most formats a log holds nothing.
    for fmt in (fmt for fmt in search.formats if not words.isdisjoint(fmt.step_markers)):
        steps[fmt.name], marked = decode_block(marked, fmt, search.layouts[fmt.name])
        if marked.is_empty():
            return BlockContents(marked, steps, {}, marked)
    sentences = marked.filter(any_of(search.sentences, pl.col("text"), size))
    return BlockContents(marked, steps, find_records(marked, search.whole), sentences)
