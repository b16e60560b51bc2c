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

import polars as pl

from logparse.decode.block_contents import BlockContents, find_in
from logparse.decode.detect_format import richest
from logparse.decode.first_timestamps import NO_STAMPS, first_stamps
from logparse.decode.marker_filter import LineSearch, find, search_all, size_of
from logparse.decode.records import Found
from logparse.decode.sample_files import probe
from logparse.decode.settings import BlockReader
from logparse.decode.step_lines import StepBlock, StepLines, join_blocks
from logparse.failures.ranks.times import RANK_TIMES
from logparse.failures.scan import Hit
from logparse.failures.trainers import FileEnds
from logparse.formats._base import Block, LogFormat
from logparse.inputs.blocks import BLOCK_BYTES, LINE_COLUMNS, TextBlock, read_blocks
from logparse.inputs.sources import Source
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
) -> Contents:
    """Read ``sources`` with all ``formats``, ``jobs`` blocks at once. Raises InputError for a file that cannot be read.

    Files that show nothing where they are probed are left out, unless ``all_files`` says otherwise or nothing else
    holds a step line; ``part`` of a source says how much of it was read.
    """
    left_out = [] if all_files else probe(sources, search_all(formats), jobs)
    contents = _read(sources, formats, block_bytes, jobs)
    if left_out and not any(len(lines.steps) for _, lines in contents.steps):
        for source in left_out:
            source.part = None
        contents = _read(sources, formats, block_bytes, jobs)
    return contents


def _read(sources: Sequence[Source], formats: tuple[LogFormat, ...], block_bytes: int, jobs: int) -> Contents:
    """Read ``sources`` as far as they are to be read.

    Formats that read other lines of a trainer's log come last, where its own format finds too few: bars are many.
    """
    first = tuple(fmt for fmt in formats if not fmt.log_of)
    if first and len(first) < len(formats) and _can_be_read_again(sources):
        contents = _read_with(sources, first, block_bytes, jobs)
        fmt, lines = min(contents.steps, key=richest)
        if len(lines.steps) >= fmt.fewest:
            return contents
    return _read_with(sources, formats, block_bytes, jobs)


def _read_with(sources: Sequence[Source], formats: tuple[LogFormat, ...], block_bytes: int, jobs: int) -> Contents:
    """Read ``sources`` with ``formats``.

    Once one format has shown step lines, only the step lines of the others are looked for. Where one of them turns out
    to be richer, the files are read again for its sake.
    """
    reader = _Reader(sources, search_all(formats), narrows=_can_be_read_again(sources))
    reader.read(block_bytes, jobs)
    contents = reader.contents()
    stepped = [decoded for decoded in contents.steps if len(decoded[1].steps)]
    most = min(stepped or contents.steps, key=richest)[0]
    if most in reader.search.whole:
        return contents
    again = _Reader(sources, search_all(formats).narrowed([most]), narrows=False)
    again.read(block_bytes, jobs)
    return again.contents()


def _can_be_read_again(sources: Sequence[Source]) -> bool:
    return all(source.size is not None for source in sources)


class _Reader:
    """Reads the blocks of ``sources`` and keeps what they say."""

    def __init__(self, sources: Sequence[Source], search: LineSearch, narrows: bool) -> None:
        self.search = search
        self._sources, self._narrows = sources, narrows
        self._lines = 0
        self._steps: dict[str, list[StepBlock]] = {fmt.name: [] for fmt in search.formats}
        self._records: list[Found] = []
        self._sentences = [pl.DataFrame(schema=LINE_COLUMNS)]
        self._settings: list[BlockReader] = []
        self._stamps = [NO_STAMPS]
        # Marked lines of blocks of one file that are still to be read.
        self._waiting: list[pl.DataFrame] = []
        self._waiting_bytes = 0
        self._heads: list[TextBlock] = []
        self._tails: list[TextBlock] = []
        self._hits: list[Hit] = []
        self._rank_times = [pl.DataFrame(schema=RANK_TIMES)]

    def read(self, block_bytes: int, jobs: int) -> None:
        """Read all blocks, as many ahead of the one whose findings are kept next as keep every core busy."""
        for source in self._sources:
            # Of a reading before this one.
            source.notes.clear()
            source.bytes_read = 0
        waiting: deque[tuple[TextBlock, Callable[[], BlockContents]]] = deque()
        with _workers(self._sources, block_bytes, jobs) as submit:
            # Of a thousand files of which nothing is to be read, opening each would take as long as reading one.
            some = (source for source in self._sources if source.part != 0)
            for block in (block for source in some for block in self._remembered(read_blocks(source, block_bytes))):
                # What the first block of a file says, and which format it shows, is wanted at once.
                few = 0 if block.first == 1 or self._narrows else FEW
                waiting.append((block, submit(block, self.search, few)))
                # The very first block decides how the others are read.
                while len(waiting) > (jobs + 1 if self._lines else 0):
                    self._keep(*waiting.popleft())
            while waiting:
                self._keep(*waiting.popleft())
        self._read_waiting()

    def _remembered(self, blocks: Iterator[TextBlock]) -> Iterator[TextBlock]:
        """The ``blocks`` of one source, of which the first and the last lines are kept."""
        size = min(END_BYTES, MOST_END_BYTES // len(self._sources))
        tail = None
        for block in blocks:
            if tail is None:
                self._heads.append(block.head(size))
            tail = block.tail(size) if tail is None else block.after(tail, size)
            yield block
        if tail is not None:
            self._tails.append(tail)

    def _keep(self, block: TextBlock, findings: Callable[[], BlockContents]) -> None:
        contents = findings()
        if block.first == 1:
            self._read_waiting()
            self._settings.append(BlockReader(self.search.blocks))
            self._stamps.append(first_stamps(block.bare(block.lines), contents.first_step))
        self._settings[-1].read(block, contents.marked)
        self._lines += block.count
        self._hits.extend(contents.hits)
        if contents.rank_times is not None and len(contents.rank_times):
            self._rank_times.append(contents.rank_times)
        if contents.waits:
            self._waiting.append(contents.marked)
            self._waiting_bytes += size_of(contents.marked)
            if self._waiting_bytes >= ENOUGH:
                self._read_waiting()
        elif contents.steps or len(contents.marked):
            self._read_waiting()
            self._add(block.source, contents)

    def _read_waiting(self) -> None:
        if self._waiting:
            marked = pl.concat(self._waiting)
            self._add(marked["source"][0], find_in(marked, self.search, self._waiting_bytes))
            self._waiting, self._waiting_bytes = [], 0

    def _add(self, source: str, contents: BlockContents) -> None:
        self._records.append(contents.records)
        self._sentences.append(contents.sentences)
        # Of most formats a block holds nothing.
        for name, steps in contents.steps.items():
            if steps.holds_any:
                self._steps[name].append(steps.compact(source))
        with_rows = {name for name, steps in contents.steps.items() if len(steps.rows)}
        stepped = [fmt for fmt in self.search.formats if fmt.name in with_rows]
        # Over what a library prints a trainer's own lines may follow.
        if self._narrows and any(not fmt.beneath for fmt in stepped):
            self.search, self._narrows = self.search.narrowed(stepped), False

    def contents(self) -> Contents:
        """All that was kept, joined; afterwards it is kept no longer."""
        inside = [settings.inside() for settings in self._settings]
        return Contents(
            lines=self._lines,
            steps=[(fmt, join_blocks(self._steps.pop(fmt.name), fmt)) for fmt in self.search.formats],
            records=self._records,
            sentences=pl.concat(self._sentences),
            stamps=pl.concat(self._stamps),
            ends=FileEnds(self._heads, self._tails),
            hits=self._hits,
            rank_times=pl.concat(self._rank_times),
            inside={block: pl.concat(frames[block] for frames in inside) for block in (inside[0] if inside else ())},
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
