"""A log that was cut into several files, by rotation or a limit of size, is read as one text.

Comes in: the files of a run. Goes out: those that go on one after the other as one source. Files of ranks, and those
that begin with a new start, stay apart. ``file_parts`` puts what was read back into its files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import repeat
from pathlib import PurePath
from typing import Any

import polars as pl
import regex

from logparse.decode.block_contents import BlockContents
from logparse.decode.first_timestamps import BACK, first_stamps
from logparse.decode.marker_filter import LineSearch, find, search_all
from logparse.decode.sample_files import SPOT_BYTES, Spots, spots_of
from logparse.decode.settings import BlockReader, inside_of
from logparse.errors import InputError
from logparse.file_parts import FilePart
from logparse.formats._base import LogFormat
from logparse.inputs.blocks import TextBlock
from logparse.inputs.discovery import natural
from logparse.inputs.ranks import place_of
from logparse.inputs.sources import Source, ends_with_returns, text_chunks
from logparse.lazy_regex import lazy_regex
from logparse.schema import BEGINNINGS

# What numbers the files of a log that was cut: 1, -2, .3, _2026-08-18; of split(1) two letters at the end.
_NUMBER, _LETTERS = lazy_regex(r"[-._]?\d+"), lazy_regex(r"(?<=[-._])[a-z]{2}$|(?<=^x)[a-z]{2}$")
_PACKED = lazy_regex(r"\.(?:gz|bz2|xz|zst)$")
# So many files are of processes rather than parts; to look at each takes 30 ms.
MOST_PARTS = 100
# A file of no more is looked at as a whole.
WHOLE_BYTES = 4 * SPOT_BYTES
# The first lines of a log show a start where at least this share of so many begins another file.
OPENING, MOST_OF_IT = 10, 0.5
# What grows over a training, as far as its lines print it, and within each epoch of it.
COUNTERS = ("timestamp", "step", "epoch", "epochs_done", "consumed_samples", "consumed_tokens")
IN_EPOCH = ("step_in_epoch", "samples_in_epoch")


def join_parts(sources: Sequence[Source], formats: tuple[LogFormat, ...]) -> list[Source]:
    """The ``sources``, those as one that are parts in order of one log by their names and what they begin with."""
    groups: dict[object, list[Source]] = defaultdict(list)
    for source in sources:
        groups[_name_without_number(source)].append(source)
    if all(len(group) == 1 for group in groups.values()):
        return list(sources)
    search = search_all(formats)
    chains = [chain for group in groups.values() for chain in _chains(group, search)]
    joined = {id(chain[0]): _joined(chain) for chain in chains}
    of_chain = {id(part): chain[0] for chain in chains for part in chain}
    firsts = {id(of_chain[id(source)]): of_chain[id(source)] for source in sources}
    return [joined[first] for first in firsts]


def _name_without_number(source: Source) -> object:
    """What the names of parts of one log have in common; what is no file has a name of its own."""
    if source.size is None:
        return source.name
    path, place = PurePath(source.name), place_of(source.name)
    name = _NUMBER.sub("", _LETTERS.sub("", _PACKED.sub("", path.name)))
    return path.parent, name, (place and (place.node, place.rank, place.attempt))


def _chains(group: Sequence[Source], search: LineSearch) -> list[list[Source]]:
    """The files of ``group`` that go on one after the other, in their order or in that of a rotation."""
    if len(group) == 1 or len(group) > MOST_PARTS:
        return [[source] for source in group]
    ends = [_Ends(source, search) for source in group]
    first, second = (_PACKED.sub("", source.name) for source in group[:2])
    # Rotation numbers what it puts aside: run.log goes on where run.log.1 ends.
    given = ends[::-1] if second.startswith(first) else ends
    # A shell names run.log.10 before run.log.2.
    counted = sorted(ends, key=lambda one: natural(one.source.name))
    orders = (given, given[::-1], counted, counted[::-1])
    return min((_in_chains(order) for order in orders), key=len)


def _in_chains(ends: Sequence[_Ends]) -> list[list[Source]]:
    chains: list[list[_Ends]] = []
    for one in ends:
        if chains and one.goes_on(chains[-1]):
            chains[-1].append(one)
        else:
            chains.append([one])
    return [[one.source for one in chain] for chain in chains]


def _joined(chain: Sequence[Source]) -> Source:
    first = chain[0]
    return first if len(chain) == 1 else Source(first.name, first.path, parts=tuple(chain))


class _Ends:
    """What the first and the last lines of a file say, read when they are asked for."""

    def __init__(self, source: Source, search: LineSearch) -> None:
        self.source, self._search = source, search

    def goes_on(self, chain: Sequence[_Ends]) -> bool:
        """Whether this file goes on where the files of ``chain`` end, as steps, stamps or open settings show."""
        before = chain[-1]
        if before._ends_in_settings and not any(map(len, inside_of([self._settings]).values())):
            return True
        if self._begins_like(chain[0]):
            return False
        if self.steps and before.steps:
            return not self._starts and any(self._follows(before, name) for name in before.steps if name in self.steps)
        if self._starts and any(end.steps for end in chain):
            return False
        return None not in (before.last_stamp, self.stamp) and bool(before.last_stamp <= self.stamp)

    def _begins_like(self, other: _Ends) -> bool:
        """Whether it begins with the first lines of ``other``, of those that both print once, before their steps."""
        once = (shape for shape in other._before if shape not in other._after and shape not in self._after)
        opening = [shape for shape, _ in zip(once, range(OPENING), strict=False)]
        return bool(opening) and sum(shape in self._before for shape in opening) >= MOST_OF_IT * len(opening)

    def _follows(self, before: _Ends, name: str) -> bool:
        """Whether the steps that the format ``name`` reads go on after those of ``before``."""
        mine, theirs = _of_one_plan(self.steps[name], before.steps[name])
        first, earlier = _first_values(mine), _first_values(theirs)
        common = first.keys() & earlier.keys()
        # Lines of one epoch that print no more of their place.
        sure = [c for c in common if c != "epoch" or None not in (*first[c], *earlier[c])]
        grows = any(first[c] > earlier[c] for c in sure) or not sure
        last = before.last_stamp_of_step
        in_order = None in (last, self.stamp) or last - BACK <= self.stamp
        return grows and in_order and all(first[c][0] >= earlier[c][0] for c in common)

    @cached_property
    def _before(self) -> dict[str, None]:
        """The lines before the first step, with any numbers."""
        return _shapes(self._block.texts[: self._first_step - 1])

    @cached_property
    def _after(self) -> dict[str, None]:
        return _shapes(self._block.texts[self._first_step - 1 :])

    @property
    def _first_step(self) -> int:
        return self._head.first_step or self._block.count + 1

    @property
    def steps(self) -> dict[str, pl.DataFrame]:
        """The rows of each format among the first lines."""
        return _rows(self._head)

    @cached_property
    def stamp(self) -> Any:
        """The first stamp of any line."""
        block = self._block
        return first_stamps(block.bare(block.lines), None)["first"].min()

    @cached_property
    def last_stamp(self) -> Any:
        """The last stamp of any line."""
        block = self._tail
        return first_stamps(block.bare(block.lines), None)["last"].max()

    @cached_property
    def last_stamp_of_step(self) -> Any:
        """The last stamp of a step line."""
        rows = _rows(find(self._tail, self._search)) or self.steps
        stamps = [frame["timestamp"].drop_nulls()[-1:] for frame in rows.values()]
        return pl.concat(stamps).max() if stamps else None

    @cached_property
    def _tail(self) -> TextBlock:
        """The last lines; the first where these are all, or where no others can be found."""
        tail = next(self._spots.others)
        return tail if tail.count else self._block

    @property
    def _ends_in_settings(self) -> bool:
        """Whether it ends within the block of settings of a start."""
        return self._tail is self._block and self._settings.is_open

    @property
    def _starts(self) -> bool:
        """Whether a process begins before the first step: it prints its settings, or that it starts."""
        opened = [frame["opened"] for frame in inside_of([self._settings]).values()]
        kinds = [frame for frame in self._head.records.values() if "kind" in frame.columns]
        opened += [frame.filter(pl.col("kind").is_in(BEGINNINGS))["line_number"] for frame in kinds]
        return any((lines < self._first_step).any() for lines in opened)

    @cached_property
    def _settings(self) -> BlockReader:
        """The blocks of settings that a start prints among the first lines."""
        reader = BlockReader([block for block in self._search.blocks if block.at_start])
        reader.read(self._block, self._head.marked)
        return reader

    @cached_property
    def _block(self) -> TextBlock:
        """The first lines."""
        return self._spots.head

    @cached_property
    def _head(self) -> BlockContents:
        return find(self._block, self._search)

    @cached_property
    def _spots(self) -> Spots:
        try:
            size = self.source.size or 0
            if size > WHOLE_BYTES and (spots := spots_of(self.source, size)) is not None:
                return spots
            one = Source(self.source.name, self.source.path, end=self.source.end, spool=self.source.spool)
            text = next(text_chunks(one, repeat(WHOLE_BYTES)), b"").replace(b"\0", b"")
            text = text.replace(b"\r", b"\n") if ends_with_returns(text) else text
        except InputError:
            # Reading it says what is wrong.
            text = b""
        return Spots(self.source, (text if text.endswith(b"\n") else text + b"\n", b"", b""))


def _rows(contents: BlockContents) -> dict[str, pl.DataFrame]:
    return {name: block.rows for name, block in contents.steps.items() if len(block.rows)}


def _shapes(lines: Iterable[str]) -> dict[str, None]:
    return dict.fromkeys(filter(None, (regex.sub(r"[\d.]+", "0", line).strip() for line in lines)))


def _of_one_plan(*rows: pl.DataFrame) -> list[pl.DataFrame]:
    """The ``rows`` of two files with the longest plan that both print: a bar of an evaluation counts anew."""
    plans = [set(frame["train_steps"].drop_nulls()) if "train_steps" in frame.columns else set() for frame in rows]
    longest = max(set.intersection(*plans), default=None)
    return [frame if longest is None else frame.filter(pl.col("train_steps") == longest) for frame in rows]


def _first_values(rows: pl.DataFrame) -> dict[str, tuple[Any, Any]]:
    """The first value of each counter that ``rows`` print, and with that of an epoch the place in it."""
    within = pl.coalesce(*(name for name in IN_EPOCH if name in rows.columns), pl.lit(None))
    printed = [name for name in COUNTERS if name in rows.columns and rows[name].count()]
    first = rows.select(*(pl.col(name).drop_nulls().first() for name in printed), within=within.first())
    values = first.row(0, named=True) if printed else {}
    return {name: (values[name], values["within"] if name == "epoch" else 0) for name in printed}


def files_of(sources: Iterable[Source]) -> tuple[str, ...]:
    """The names of all files."""
    return tuple(part.name for source in sources for part in source.parts or (source,))


def file_parts(sources: Iterable[Source]) -> tuple[FilePart, ...]:
    """Which lines of each text are of which file, once it was read."""
    return tuple(
        FilePart(source.name, lines + 1 + within, lines, part.name)
        for source in sources
        for part, (lines, within) in zip(source.parts, source.begins, strict=False)
    )
