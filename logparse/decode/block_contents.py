"""What lines say, whatever format they are of: steps and what completes them, other records, sentences of settings.

Comes in: lines of one file. Goes out: what each format reads of them, and the few that are read when all are known.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import cached_property
from itertools import islice

import polars as pl

from logparse.decode.fast_path import Templates
from logparse.decode.records import Found, find_records
from logparse.decode.settings import matches
from logparse.decode.slow_patterns import stopped_by_name
from logparse.decode.step_lines import StepBlock, decode_block
from logparse.decode.values import holds, there
from logparse.decode.versions import DEVICE_SPELLINGS, MARKERS
from logparse.failures.scan import Hit
from logparse.formats._base import Block, LogFormat
from logparse.inputs.literals import any_of
from logparse.light_dataclass import dataclass

# Of software and devices, in the log of every format.
VERSION_MARKERS = (*MARKERS, *(spelling.marker for spelling in DEVICE_SPELLINGS))


@dataclass(frozen=True)
class Wanted:
    """What is looked for: the step lines of all ``formats``, and whatever else the formats ``whole`` want.

    ``templates`` are those of formats, by their names; the lines of the others are read by their patterns alone.
    """

    formats: tuple[LogFormat, ...]
    whole: tuple[LogFormat, ...]
    templates: Mapping[str, Templates]

    @cached_property
    def markers(self) -> tuple[str, ...]:
        """Every literal of interest, once."""
        literals = [m for fmt in self.formats for m in fmt.marker] + [m for fmt in self.whole for m in fmt.markers]
        return tuple(dict.fromkeys((*literals, *VERSION_MARKERS)))

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The literals of what is read when all lines are known: sentences of settings, and versions."""
        every = (s.marker for fmt in self.whole for s in fmt.sentences if not s.first)
        return tuple(dict.fromkeys((*every, *VERSION_MARKERS)))

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks of settings of all formats."""
        return tuple(dict.fromkeys(block for known in self.templates.values() for block in known.fmt.blocks))


@dataclass(frozen=True)
class BlockContents:
    """Of one block: the lines that are ``marked`` by other words than a plain step line, and what all of them say.

    ``steps`` are by the name of their format, without those that were left nothing; ``sentences`` are lines with such
    of settings or versions. ``waits``: what the marked lines say is still to be read.
    ``hits`` are the lines that show how a run ended, ``rank_times`` times of single ranks.
    """

    marked: pl.DataFrame
    steps: dict[str, StepBlock]
    records: Found
    sentences: pl.DataFrame
    waits: bool = False
    hits: Sequence[Hit] = ()
    rank_times: pl.DataFrame | None = None

    @property
    def first_step(self) -> int | None:
        """The line of the first step line of any format; None where there is none."""
        heads: list[int] = [block.rows["line_number"][0] for block in self.steps.values() if len(block.rows)]
        return min(heads, default=None)


def find_in(marked: pl.DataFrame, wanted: Wanted, size: int) -> BlockContents:
    """Read the lines of one file that are ``marked`` among so many bytes."""
    if marked.is_empty():
        return BlockContents(marked, {}, {}, marked)
    steps = {}
    firsts = {s.marker for fmt in wanted.whole for s in fmt.sentences if s.first}
    words = there(marked["text"], firsts.union(*(fmt.step_markers for fmt in wanted.formats)))
    # Of most formats a log holds nothing.
    for fmt in (fmt for fmt in wanted.formats if not words.isdisjoint(fmt.step_markers)):
        steps[fmt.name], marked = decode_block(marked, fmt, wanted.templates.get(fmt.name))
        if marked.is_empty():
            return BlockContents(marked, steps, {}, marked)
    return BlockContents(
        marked, steps, find_records(marked, wanted.whole), _with_sentences(marked, wanted, size, words)
    )


def _with_sentences(marked: pl.DataFrame, wanted: Wanted, size: int, words: Container[str]) -> pl.DataFrame:
    """The lines that hold a sentence of settings or a version; of sentences on every step line the first line."""
    sentences = {s: fmt.name for fmt in wanted.whole for s in fmt.sentences if s.first and s.marker in words}
    firsts = []
    for sentence, name in sentences.items():
        lines = marked.filter(pl.col("complete") & holds(pl.col("text"), sentence.marker))
        with stopped_by_name(name):
            found = matches(lines["source", "line_number", "text"].iter_rows(), sentence)
            firsts += [number for _, number, _ in islice(found, 1)]
    with_sentence = pl.lit(any_of(wanted.sentences, marked["text"], size))
    return marked.filter(with_sentence | pl.col("line_number").is_in(firsts))
