"""What the blocks of each file say, and a memory of it: of a file that grows each block is read once.

Comes in: what was read of blocks, in their order. Goes out: the same, file by file. A block that another one follows
never changes; the last one may still grow.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import polars as pl

from logparse.decode.block_contents import BlockContents
from logparse.decode.first_timestamps import TimedLines
from logparse.decode.marker_filter import LineSearch
from logparse.decode.records import Found
from logparse.decode.settings import BlockReader
from logparse.decode.step_lines import StepBlock
from logparse.failures.scan import Hit
from logparse.findings import Note
from logparse.inputs.blocks import BEGIN, BlockPlace, TextBlock
from logparse.inputs.sources import Source

# How the next block is searched: what for, and whether that becomes less once a format has shown step lines.
Searching = tuple[LineSearch, bool]


class FileContents:
    """What was read of the blocks of one file so far.

    ``lines`` are counted; ``head`` and ``tail`` are the first and last ones, ``timed`` those with the first stamps.
    ``steps`` are by the names of formats, ``settings`` the lines in blocks of settings. ``sentences`` are lines with
    settings or versions. ``hits`` are lines that show how the run ended, ``rank_times`` times of single ranks.
    """

    def __init__(self, settings: BlockReader) -> None:
        self.lines = 0
        self.head: TextBlock | None = None
        self.tail: TextBlock | None = None
        self.timed = TimedLines()
        self.settings = settings
        self.steps: dict[str, list[StepBlock]] = {}
        self.records: list[Found] = []
        self.sentences: list[pl.DataFrame] = []
        self.hits: list[Hit] = []
        self.rank_times: list[pl.DataFrame] = []

    def add_block(self, block: TextBlock, contents: BlockContents, end_bytes: int) -> None:
        """Add the next block, but for what its marked lines say; ``end_bytes`` of the ends of the file are kept."""
        if self.head is None or self.tail is None:
            self.head, self.tail = block.head(end_bytes), block.tail(end_bytes)
            self.timed = TimedLines.of(block.bare(block.lines), contents.first_step)
        else:
            self.tail = block.after(self.tail, end_bytes)
        self.settings.read(block, contents.marked)
        self.lines += block.count
        self.hits.extend(contents.hits)
        if contents.rank_times is not None and len(contents.rank_times):
            self.rank_times.append(contents.rank_times)

    def add_lines(self, source: str, contents: BlockContents) -> None:
        """Add what marked lines of the file, which is called ``source``, say."""
        self.records.append(contents.records)
        self.sentences.append(contents.sentences)
        # Of most formats a block holds nothing.
        for name, steps in contents.steps.items():
            if steps.holds_any:
                self.steps.setdefault(name, []).append(steps.compact(source))

    def copy(self) -> FileContents:
        """The same, to which may be added without changing this."""
        other = copy(self)
        other.settings = self.settings.copy()
        other.steps = {name: [*blocks] for name, blocks in self.steps.items()}
        other.records, other.sentences = [*self.records], [*self.sentences]
        other.hits, other.rank_times = [*self.hits], [*self.rank_times]
        return other


class KnownFile:
    """What is known of one file that is read in one way.

    ``ended`` is the contents of its blocks before ``place``, and ``then`` how the next one is searched. ``whole`` is
    the contents of all of it as it was read last, ``left`` how the file after it is searched.
    """

    def __init__(self, begin: Searching) -> None:
        self.begin = self.then = self.left = begin
        self.place = BEGIN
        self.ended = self._nothing()
        self.whole = self._nothing()
        self._version: object = None
        self.notes: tuple[Note, ...] = ()
        self._is_wrong = False

    def _nothing(self) -> FileContents:
        return FileContents(BlockReader(self.begin[0].blocks))

    def is_current(self, source: Source) -> bool:
        """Whether ``source`` is as it was when it was read last."""
        return self._version is not None and self._version == source.version

    def forget(self) -> None:
        """Begin at the beginning of the file again."""
        self.place, self.ended, self.then, self._version = BEGIN, self._nothing(), self.begin, None

    def ends_here(self, place: BlockPlace, contents: FileContents, then: Searching) -> None:
        """All blocks before ``place`` have ended."""
        self.place, self.ended, self.then = place, contents.copy(), then

    def was_read(self, source: Source, contents: FileContents, left: Searching) -> None:
        """All of ``source`` was read."""
        self.whole, self.left, self._version = contents, left, source.version
        self.notes, self._is_wrong = tuple(source.notes), source.is_wrong

    def report_to(self, source: Source) -> None:
        """What reading showed of the file itself."""
        source.notes.extend(self.notes)
        source.is_wrong = self._is_wrong


class Memory:
    """The contents of the files of a run whose blocks have ended, by how they were searched.

    ``read_again`` counts blocks that were read more than once, since they had to be searched in another way.
    """

    def __init__(self) -> None:
        self.read_again = 0
        # Of each file, what its samples showed; None where it is read to its end.
        self.parts: dict[str, int | None] = {}
        # Of each file, how many lines were read.
        self.lines: dict[str, int] = {}
        self._known: dict[tuple[object, ...], KnownFile] = {}
        self._used: set[tuple[object, ...]] = set()
        self._searches: dict[object, LineSearch] = {}
        self._furthest: dict[str, int] = {}

    def same(self, search: LineSearch) -> LineSearch:
        """The search for the same, with the templates that it has learnt."""
        return self._searches.setdefault(_what(search), search)

    def known(self, searching: Searching, source: Source) -> KnownFile:
        """What is known of ``source``, if it is searched in this way; the search is one of ``same``."""
        key = (id(searching[0]), searching[1], source.name, source.part)
        self._used.add(key)
        if key not in self._known:
            self._known[key] = KnownFile(searching)
        return self._known[key]

    def count(self, source: Source, blocks: int) -> None:
        """Count the block of ``source`` that has ended, and is the last of so many."""
        self.read_again += blocks <= self._furthest.get(source.name, 0)
        self._furthest[source.name] = max(blocks, self._furthest.get(source.name, 0))

    def forget(self, name: str) -> None:
        """Forget the file with this ``name``, which has other bytes now."""
        self.parts.pop(name, None)
        self.lines.pop(name, None)
        self._furthest.pop(name, None)
        self._known = {key: known for key, known in self._known.items() if key[2] != name}

    def keep_used(self) -> None:
        """Forget what was not asked for since this was called last."""
        self._known = {key: known for key, known in self._known.items() if key in self._used}
        self._used.clear()


def _what(search: LineSearch) -> tuple[Sequence[str], Sequence[str]]:
    return tuple(fmt.name for fmt in search.formats), tuple(fmt.name for fmt in search.whole)
