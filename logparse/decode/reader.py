"""All files of a run, block by block: blocks side by side on the cores there are, what they say in order.

Comes in: sources. Goes out: the step lines of every format, and what else was found. Text is dropped block by block.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import chain

import polars as pl

from logparse.decode.block_contents import BlockContents, find_in
from logparse.decode.detect_format import richest
from logparse.decode.file_contents import FileContents, KnownFile, Memory
from logparse.decode.first_timestamps import stamps_of_files
from logparse.decode.marker_filter import LineSearch, find, search_all, size_of
from logparse.decode.records import Found
from logparse.decode.sample_files import probe
from logparse.decode.settings import BlockReader, inside_of
from logparse.decode.step_lines import StepLines, join_blocks
from logparse.failures.ranks.times import RANK_TIMES
from logparse.failures.scan import Hit
from logparse.failures.trainers import FileEnds
from logparse.formats._base import Block, LogFormat
from logparse.inputs.blocks import BLOCK_BYTES, LINE_COLUMNS, TextBlock, read_blocks
from logparse.inputs.sources import Source, is_plain
from logparse.light_dataclass import dataclass

Submit = Callable[[TextBlock, LineSearch, int], Callable[[], BlockContents]]
# How many blocks are read at once where nobody says otherwise.
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
# Bytes of text that are kept of the beginning and of the end of a file, and of all files together.
END_BYTES, MOST_END_BYTES = 2**17, 2**25
# Bytes of marked lines below which to read them costs much the same however few they are, so that those of several
# blocks are read together, and how many bytes they may come to.
FEW, ENOUGH = 2**19, 2**21


@dataclass(frozen=True)
class Contents:
    """What the files of a run hold: how many ``lines``; the step lines of each format; rows of other lines.

    ``sentences`` are the lines with such of settings or versions, ``inside`` those in blocks of settings; ``stamps``
    are the first ones of files, ``ends`` their first and last lines. ``hits`` are lines that show how the run ended,
    ``rank_times`` times that it prints of single ranks.
    """

    lines: int
    steps: list[tuple[LogFormat, StepLines]]
    records: list[Found]
    sentences: pl.DataFrame
    inside: dict[Block, pl.DataFrame]
    stamps: pl.DataFrame
    ends: FileEnds
    hits: list[Hit]
    rank_times: pl.DataFrame


def read_sources(
    sources: Sequence[Source],
    formats: tuple[LogFormat, ...],
    block_bytes: int = BLOCK_BYTES,
    jobs: int = CORES,
    all_files: bool = False,
    memory: Memory | None = None,
) -> Contents:
    """Read ``sources`` with all ``formats``, ``jobs`` blocks at once. Raises InputError for a file that cannot be read.

    Files that show nothing where they are probed are left out, unless ``all_files`` says otherwise or nothing else
    holds a step line; ``part`` of a source says how much of it was read.
    With a ``memory`` of an earlier reading, blocks that ended then are not read again; it learns what is new.
    """
    how = _How(formats, block_bytes, jobs, memory)
    left_out = [] if all_files else probe(sources, how.search(formats), jobs, None if memory is None else memory.parts)
    contents = _read(sources, how)
    if left_out and not any(len(lines.steps) for _, lines in contents.steps):
        for source in left_out:
            source.part = None
        contents = _read(sources, how)
    if memory is not None:
        memory.keep_used()
    return contents


@dataclass(frozen=True)
class _How:
    """How files are read: with which ``formats``, ``jobs`` blocks at once, and what is known of them already."""

    formats: tuple[LogFormat, ...]
    block_bytes: int
    jobs: int
    memory: Memory | None

    def search(self, formats: tuple[LogFormat, ...]) -> LineSearch:
        return self.same(search_all(formats))

    def same(self, search: LineSearch) -> LineSearch:
        """``search``, with what an earlier one for the same has learnt."""
        return search if self.memory is None else self.memory.same(search)


def _read(sources: Sequence[Source], how: _How) -> Contents:
    """Read ``sources`` as far as they are to be read.

    Formats that read other lines of a trainer's log come last, where its own format finds too few: bars are many.
    """
    first = tuple(fmt for fmt in how.formats if not fmt.log_of)
    if first and len(first) < len(how.formats) and _can_be_read_again(sources):
        contents = _read_with(sources, first, how)
        fmt, lines = min(contents.steps, key=richest)
        if len(lines.steps) >= fmt.fewest:
            return contents
    return _read_with(sources, how.formats, how)


def _read_with(sources: Sequence[Source], formats: tuple[LogFormat, ...], how: _How) -> Contents:
    """Read ``sources`` with ``formats``.

    Once one format has shown step lines, only the step lines of the others are looked for. Where one of them turns out
    to be richer, the files are read again for its sake.
    """
    reader = _Reader(sources, how.search(formats), _can_be_read_again(sources), how)
    reader.read()
    contents = reader.contents()
    stepped = [decoded for decoded in contents.steps if len(decoded[1].steps)]
    most = min(stepped or contents.steps, key=richest)[0]
    if most in reader.search.whole:
        return contents
    again = _Reader(sources, how.same(how.search(formats).narrowed([most])), narrows=False, how=how)
    again.read()
    return again.contents()


def _can_be_read_again(sources: Sequence[Source]) -> bool:
    return all(source.size is not None for source in sources)


class _Reader:
    """Reads the blocks of ``sources`` and keeps what they say, file by file."""

    def __init__(self, sources: Sequence[Source], search: LineSearch, narrows: bool, how: _How) -> None:
        self.search = search
        self._sources, self._narrows, self._how = sources, narrows, how
        self._files: list[FileContents] = []
        self._ahead: deque[tuple[FileContents, TextBlock, Callable[[], BlockContents]]] = deque()
        # Marked lines of blocks of one file that are still to be read.
        self._waiting: list[tuple[FileContents, pl.DataFrame]] = []
        self._waiting_bytes = 0
        self._has_begun = False
        self._end_bytes = min(END_BYTES, MOST_END_BYTES // max(len(sources), 1))

    def read(self) -> None:
        """Read all blocks, as many ahead of the one whose findings are kept next as keep every core busy."""
        for source in self._sources:
            # Of a reading before this one.
            source.notes.clear()
            source.bytes_read = 0
        with _workers(self._sources, self._how.block_bytes, self._how.jobs) as submit:
            # Of a thousand files of which nothing is to be read, opening each would take as long as reading one.
            some = (source for source in self._sources if source.part != 0)
            for file, block in (pair for source in some for pair in self._blocks_of(source)):
                # What the first block of a file says, and which format it shows, is wanted at once.
                few = 0 if block.first == 1 or self._narrows else FEW
                self._ahead.append((file, block, submit(block, self.search, few)))
                # The very first block decides how the others are read.
                while len(self._ahead) > (self._how.jobs + 1 if self._has_begun else 0):
                    self._keep(*self._ahead.popleft())
            self._finish()

    def _blocks_of(self, source: Source) -> Iterator[tuple[FileContents, TextBlock]]:
        """The blocks of ``source`` that are to be read, each with the contents of its file before it."""
        memory = self._how.memory
        if memory is None:
            file = self._opened(FileContents(BlockReader(self.search.blocks)))
            yield from ((file, block) for block in read_blocks(source, self._how.block_bytes))
            return
        # How a file is read depends on the files before it.
        self._finish()
        known = memory.known((self.search, self._narrows), source)
        if known.is_current(source):
            known.report_to(source)
            self._opened(known.whole)
        else:
            yield from self._new_blocks(source, known, memory)
            self._finish()
            known.was_read(source, self._files[-1], (self.search, self._narrows))
        memory.lines[source.name] = self._files[-1].lines
        self.search, self._narrows = known.left

    def _new_blocks(self, source: Source, known: KnownFile, memory: Memory) -> Iterator[tuple[FileContents, TextBlock]]:
        """The blocks of ``source`` that had not ended when it was read last. All but its last one are remembered."""
        if not is_plain(source):
            known.forget()
        file = self._opened(known.ended.copy())
        self.search, self._narrows = known.then
        place = known.place
        for block in read_blocks(source, self._how.block_bytes, place):
            if block.following is None:
                self._finish()
                known.ends_here(place, file, (self.search, self._narrows))
            else:
                place = block.following
                memory.count(source, place.blocks)
            yield file, block

    def _opened(self, file: FileContents) -> FileContents:
        self._files.append(file)
        return file

    def _finish(self) -> None:
        """Keep what the blocks say that were begun."""
        while self._ahead:
            self._keep(*self._ahead.popleft())
        self._read_waiting()

    def _keep(self, file: FileContents, block: TextBlock, findings: Callable[[], BlockContents]) -> None:
        contents = findings()
        self._has_begun = True
        if block.first == 1:
            self._read_waiting()
        file.add_block(block, contents, self._end_bytes)
        if contents.waits:
            self._waiting.append((file, contents.marked))
            self._waiting_bytes += size_of(contents.marked)
            if self._waiting_bytes >= ENOUGH:
                self._read_waiting()
        elif contents.steps or len(contents.marked):
            self._read_waiting()
            self._add(file, block.source, contents)

    def _read_waiting(self) -> None:
        if self._waiting:
            marked = pl.concat(lines for _, lines in self._waiting)
            contents = find_in(marked, self.search, self._waiting_bytes)
            self._add(self._waiting[0][0], marked["source"][0], contents)
            self._waiting, self._waiting_bytes = [], 0

    def _add(self, file: FileContents, source: str, contents: BlockContents) -> None:
        file.add_lines(source, contents)
        with_rows = {name for name, steps in contents.steps.items() if len(steps.rows)}
        stepped = [fmt for fmt in self.search.formats if fmt.name in with_rows]
        # Over what a library prints a trainer's own lines may follow.
        if self._narrows and any(not fmt.beneath for fmt in stepped):
            self.search, self._narrows = self._how.same(self.search.narrowed(stepped)), False

    def contents(self) -> Contents:
        """All that was kept, joined; afterwards it is kept no longer."""
        files = [file for file in self._files if file.lines]
        # What is remembered is joined of copies.
        steps = [file.steps if self._how.memory is None else {**file.steps} for file in files]
        size = self._end_bytes
        return Contents(
            lines=sum(file.lines for file in files),
            steps=[
                (fmt, join_blocks([block for blocks in steps for block in blocks.pop(fmt.name, ())], fmt))
                for fmt in self.search.formats
            ],
            records=[found for file in files for found in file.records],
            sentences=pl.concat([pl.DataFrame(schema=LINE_COLUMNS), *chain.from_iterable(f.sentences for f in files)]),
            stamps=stamps_of_files([file.timed for file in files]),
            ends=FileEnds(
                [file.head.head(size) for file in files if file.head],
                [file.tail.tail(size) for file in files if file.tail],
            ),
            hits=[hit for file in files for hit in file.hits],
            rank_times=pl.concat([pl.DataFrame(schema=RANK_TIMES), *chain.from_iterable(f.rank_times for f in files)]),
            inside=inside_of([file.settings for file in files]),
        )


@contextmanager
def _workers(sources: Sequence[Source], block_bytes: int, jobs: int) -> Iterator[Submit]:
    """How a block is read: by a thread where there is more than one block, later where there is only one."""
    sizes = [source.size for source in sources]
    if None not in sizes and sum(size or 0 for size in sizes) <= block_bytes:
        yield lambda block, search, few: partial(find, block, search, few)
        return
    with ThreadPoolExecutor(jobs) as pool:
        yield lambda block, search, few: pool.submit(find, block, search, few).result
