"""Which files of a run matter? Three spots of each are probed; a file with nothing there is read no further.

Comes in: sources. Goes out: those that are read in part only, with ``part`` set. In a large job one rank prints the
steps and another the arguments; a thousand others print warnings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import chain

import polars as pl

from logparse.decode.block_contents import BlockContents, any_of
from logparse.decode.marker_filter import LineSearch, find
from logparse.decode.settings import BlockReader, inside_of
from logparse.inputs.blocks import TextBlock
from logparse.inputs.compression import PACKED
from logparse.inputs.sources import Source, open_source
from logparse.inputs.unwrap import Wrapping, learn_wrapping, unescaped
from logparse.light_dataclass import dataclass

SPOT_BYTES = 2**16
# Fewer files, or fewer bytes, are read as fast as they are probed.
FEWEST_FILES, FEWEST_BYTES = 4, 2**23
# Files whose spots a thread holds in memory at once.
BATCH = 32


@dataclass(frozen=True)
class Spots:
    """Whole lines from the beginning, the middle and the end of one file."""

    source: Source
    texts: tuple[bytes, bytes, bytes]

    @property
    def head(self) -> TextBlock:
        """The lines at the beginning."""
        return self._block(self.texts[0])

    @property
    def others(self) -> Iterator[TextBlock]:
        """The lines at the end, where a log is most like what is looked for, and those in the middle."""
        return map(self._block, reversed(self.texts[1:]))

    @cached_property
    def _wrapping(self) -> Wrapping:
        return learn_wrapping(unescaped(self.texts[0]))

    def _block(self, text: bytes) -> TextBlock:
        return TextBlock(self.source.name, 1, text.count(b"\n"), True, unescaped(text), self._wrapping)


def probe(
    sources: Sequence[Source], search: LineSearch, jobs: int, known: dict[str, int | None] | None = None
) -> list[Source]:
    """Set ``part`` of those ``sources`` that need not be read to their end, and give them back; ``jobs`` at once.

    A file is read whole if a spot shows a step line, an event or the like, or settings after the first lines. So is a
    file that cannot be probed: it is short, compressed, a pipe, or has longer lines than a spot. If only the first
    lines hold settings, those lines are read. The first such file is read whole, because the rank that prints the
    arguments prints the saves too. Raises InputError for a file that cannot be opened.

    Of files that grow, it is ``known`` by their names what they showed before: one that is read whole stays so.
    """
    sizes = [source.size or 0 for source in sources]
    if len(sources) < FEWEST_FILES or sum(sizes) < FEWEST_BYTES:
        return []
    long = [source for source, size in zip(sources, sizes, strict=True) if size > 4 * SPOT_BYTES]
    parts = {} if known is None else known
    unknown = [source for source in long if parts.get(source.name, 0) is not None]
    batches = [unknown[i : i + BATCH] for i in range(0, len(unknown), BATCH)]
    with ThreadPoolExecutor(jobs) as pool:
        found = chain.from_iterable(pool.map(lambda batch: _parts(batch, search), batches))
        parts.update(zip((source.name for source in unknown), found, strict=True))
    settings_seen = False
    for source, part in ((source, parts[source.name]) for source in long):
        if part is not None and (settings_seen or part == 0):
            source.part = part
        settings_seen |= bool(part)
    return [source for source in long if source.part is not None]


def _parts(batch: Sequence[Source], search: LineSearch) -> list[int | None]:
    """How many bytes to read of each file of ``batch``; None where all."""
    spots = [_spots(source, source.size or 0) for source in batch]
    silent = iter(_silent([of_file for of_file in spots if of_file is not None], search))
    return [None if of_file is None else 0 if next(silent) else _part(of_file, search) for of_file in spots]


def _spots(source: Source, size: int) -> Spots | None:
    """What is probed of a file of ``size`` bytes; None where it has to be read whole."""
    with open_source(source) as raw:
        texts = []
        for at in (0, (size - SPOT_BYTES) // 2, size - SPOT_BYTES):
            raw.seek(at)
            text = raw.read(SPOT_BYTES)
            # The text before the first newline may be half a line.
            begin, end = text.find(b"\n") + 1 if at else 0, text.rfind(b"\n") + 1
            if begin >= end or b"\0" in text or text.startswith(PACKED):
                return None
            texts.append(text[begin:end])
    return Spots(source, (texts[0], texts[1], texts[2]))


def _silent(batch: Sequence[Spots], search: LineSearch) -> list[bool]:
    """For each file, whether no spot holds a marker, or a terminal code, which may hide one; one search for all."""
    texts = _as_text([text for spots in batch for text in spots.texts])
    size = sum(len(text) for spots in batch for text in spots.texts)
    spoken = (any_of(search.markers, texts, size) | texts.str.contains("\x1b", literal=True)).to_list()
    return [not any(spoken[i : i + 3]) for i in range(0, len(spoken), 3)]


def _as_text(texts: Sequence[bytes]) -> pl.Series:
    """The ``texts``; only where one is no UTF-8 they are decoded one by one, which takes longer."""
    try:
        return pl.Series(texts, dtype=pl.Binary).cast(pl.String)
    except pl.exceptions.ComputeError:
        return pl.Series([text.decode("utf-8", "replace") for text in texts], dtype=pl.String)


def _part(spots: Spots, search: LineSearch) -> int | None:
    """How many bytes of a file are to be read; None where all."""
    if any(
        _has_rows(contents) or len(contents.sentences) or _prints_settings(block, contents, search)
        for block, contents in ((block, find(block, search)) for block in spots.others)
    ):
        return None
    head = find(spots.head, search)
    settings = _prints_settings(spots.head, head, search)
    if _has_rows(head) or settings is None:
        return None
    return len(spots.texts[0]) if settings or len(head.sentences) else 0


def _has_rows(contents: BlockContents) -> bool:
    """Whether steps or rows of other frames are found, as the rank that counts prints them all along."""
    rows = [steps.rows for steps in contents.steps.values()] + list(contents.records.values())
    return any(map(len, rows))


def _prints_settings(block: TextBlock, contents: BlockContents, search: LineSearch) -> bool | None:
    """Whether a block of settings begins; None where it does not end."""
    reader = BlockReader(search.blocks)
    reader.read(block, contents.marked)
    return None if reader.is_open else any(map(len, inside_of([reader]).values()))
