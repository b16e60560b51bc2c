"""Settings of a run, as the framework printed them: blocks (argument dumps, configs) and sentences.

Comes in: lines. Goes out: a frame of name, value, kind, source, line number. What a setting means is not decided here.
Settings are read only inside a block of the format or a sentence of it, because libraries print names like
``world_size`` of their own.

So that a line of any length costs little, settings are read from its first 8 KiB, and a value that does not end there
is cut at its last space; blocks are nested 50 deep at most.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cache, partial
from itertools import islice
from typing import NamedTuple

import polars as pl
import regex

from logparse.decode.slow_patterns import SECONDS, stopped_by_name
from logparse.decode.values import collected, holds, there
from logparse.formats._base import Block, LogFormat, SettingSentence
from logparse.inputs.blocks import TextBlock
from logparse.inputs.unwrap import LONGEST_LABEL, shape_of
from logparse.lazy_regex import lazy_regex
from logparse.masked_frames import mask_settings
from logparse.schema import SETTING_COLUMNS

SCHEMA = {c.name: c.dtype for c in SETTING_COLUMNS}
# Characters of a line in which settings are looked for, and how deep a nested block may go.
LONGEST, DEEPEST = 8192, 50
# A dictionary on one line, such as GPT-NeoX's {'enabled': True}; of larger ones the parts are not wanted.
FLAT = lazy_regex(r"\{[^{}]{2,300}\}")
# The rest of an argument whose line is torn within its dots: "0: ..... 8192" after "0:   ffn_hidden_size .....".
_REST = lazy_regex(r"(?:\S+:)?\s?(\.+ .*)", regex.DOTALL)
# ``opened`` is the line number on which the block of a line begins.
INSIDE = {"source": pl.String(), "opened": pl.Int64(), "line_number": pl.Int64(), "text": pl.String()}
_NOTHING = pl.DataFrame(schema=INSIDE)


class Setting(NamedTuple):
    """One row of the settings frame."""

    name: str
    value: str
    kind: str
    source: str
    line_number: int


class BlockReader:
    """Collects the lines inside each block of settings of one file (see INSIDE); the file comes in frame after frame.

    A line is in one block of a kind at most: a start ends the block before it. So a log of nothing but starts costs no
    more than any other.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._found: dict[Block, list[pl.DataFrame]] = {block: [] for block in blocks}
        self._running: dict[Block, int | None] = dict.fromkeys(blocks)
        self._labels = dict.fromkeys(blocks, "")

    def read(self, text: TextBlock, marked: pl.DataFrame) -> None:
        """Take the next lines of the file; those that hold a marker are ``marked``."""
        present = there(marked["text"], {block.marker for block in self._found})
        for block, frames in self._found.items():
            starts = _starts(marked, block) if block.marker in present else marked["line_number"].clear()
            if self._running[block] is not None or len(starts):
                lines = text.bare(text.lines)
                if len(starts):
                    self._labels[block] = _labels(lines["text"].gather(starts - text.first), block)
                if self._labels[block]:
                    lines = lines.with_columns(pl.col("text").str.replace(self._labels[block], ""))
                inside, self._running[block] = _inside(lines, block, starts, self._running[block])
                frames.append(inside)

    @property
    def is_open(self) -> bool:
        """Whether a block goes on after the lines read so far."""
        return any(begun is not None for begun in self._running.values())

    @property
    def inside(self) -> dict[Block, list[pl.DataFrame]]:
        """The lines that were inside each block, in parts."""
        return self._found

    def copy(self) -> BlockReader:
        """The same, which may read on without changing this."""
        other = copy(self)
        other._found = {block: [*frames] for block, frames in self._found.items()}
        other._running, other._labels = {**self._running}, {**self._labels}
        return other


def inside_of(files: Sequence[BlockReader]) -> dict[Block, pl.DataFrame]:
    """The lines that were inside each block, of all ``files``."""
    blocks = files[0].inside if files else ()
    return {block: pl.concat([_NOTHING, *(part for file in files for part in file.inside[block])]) for block in blocks}


def _starts(marked: pl.DataFrame, block: Block) -> pl.Series:
    """The numbers of the lines on which ``block`` starts."""
    text = pl.col("text")
    return marked.filter(holds(text, block.marker) & text.str.contains(block.start))["line_number"]


def _labels(starts: pl.Series, block: Block) -> str:
    """A pattern of what is before the first lines of a ``block``: it is before the others too, with any digits."""
    starting = regex.compile(block.start)
    before = (text[: match.start()] for text in starts if (match := starting.search(text[:LONGEST])))
    shapes = dict.fromkeys(shape_of(label) for label in before if label.strip() and len(label) <= LONGEST_LABEL)
    return f"^(?:{'|'.join(shapes)})" if shapes else ""


def _inside(
    lines: pl.DataFrame, block: Block, starts: pl.Series, running: int | None
) -> tuple[pl.DataFrame, int | None]:
    """Those of ``lines`` inside a ``block``, and where the block begins that is open at their end.

    ``running`` is where the block begins that was open before.
    """
    opened = pl.when(pl.col("line_number").is_in(starts.implode())).then("line_number").forward_fill()
    reach = pl.col("line_number") - pl.col("opened") <= block.max_lines
    near = lines.lazy().with_columns(opened=opened.fill_null(pl.lit(running, pl.Int64))).filter(reach)
    ends = pl.col("text").str.contains(block.end) & (pl.col("line_number") > pl.col("opened"))
    inside = collected(near.filter(~ends.cum_max().over("opened")))
    still_open = not inside.is_empty() and inside["line_number"][-1] == lines["line_number"][-1]
    # The last value of a file that was cut off may have lost digits.
    return inside.filter("complete")[list(INSIDE)], inside["opened"][-1] if still_open else None


def _beginning(text: str) -> str:
    """As much of a line as is read; what is cut off begins at a space, so that no number loses digits."""
    return text if len(text) <= LONGEST else text[: LONGEST + 1].rpartition(" ")[0]


def _joined(lines: Iterable[tuple[str, int, int, str]]) -> Iterator[tuple[str, int, int, str]]:
    """``lines`` with the dots and the value of an argument that a launcher put on a line of their own."""
    held: tuple[str, int, int, str] | None = None
    for line in lines:
        torn = held is not None and line[2] == held[2] + 1 and held[3].endswith("..")
        rest = _REST.fullmatch(line[3]) if torn else None
        if held is not None:
            yield (*held[:3], held[3] + rest[1]) if rest else held
        held = line if not rest else None
    if held is not None:
        yield held


def settings_of_block(block: Block, lines: Iterable[tuple[str, int, int, str]]) -> Iterator[Setting]:
    """The settings on ``lines`` (source, opened, line number, text), names joined by dots where the block is nested."""
    path: list[tuple[int, str]] = []
    # A run that starts a hundred times prints its settings a hundred times.
    entries = cache(partial(_entries, regex.compile(block.entry)))
    for source, opened, number, text in lines if block.nested else _joined(lines):
        if number == opened:
            path = []
        for column, key, printed_value in entries(_beginning(text)):
            name, value = key, printed_value
            if block.nested:
                path = [part for part in path if part[0] < column]
                if value.startswith("{") and len(path) < DEEPEST:
                    path.append((column, name))
                name, value = ".".join((*(part for _, part in path), name)), value.rstrip("}")
            if value and (not value.startswith("{") or (not block.nested and FLAT.fullmatch(value))):
                yield Setting(name, value.strip("'\""), block.kind, source, number)


def _entries(entry: regex.Pattern[str], text: str) -> list[tuple[int, str, str]]:
    """The column, the name and the value of each setting on a line."""
    return [
        (match.start(1), match[1], match[2].replace("\r", " ").strip().rstrip(",").strip())
        for match in entry.finditer(text, timeout=SECONDS)
    ]


def matches(
    lines: Iterable[tuple[str, int, str]], sentence: SettingSentence
) -> Iterator[tuple[str, int, regex.Match[str]]]:
    """Source, line number and match of each of ``lines`` (source, line number, text) that has the sentence."""
    search = regex.compile(sentence.pattern).search
    for source, number, text in lines:
        if match := search(_beginning(text), timeout=SECONDS):
            yield source, number, match


def settings_frames(
    lines: pl.DataFrame, inside: Mapping[Block, pl.DataFrame], formats: Sequence[LogFormat]
) -> Iterator[pl.DataFrame]:
    """For each format every setting in sentences on ``lines`` or ``inside`` its blocks, in order of appearance.

    Secrets are masked.
    """
    marked = _by_marker(lines, {sentence.marker for fmt in formats for sentence in fmt.sentences})
    for fmt in formats:
        with stopped_by_name(fmt.name):
            rows = [row for b in dict.fromkeys(fmt.blocks) for row in settings_of_block(b, inside[b].iter_rows())]
            rows += _of_sentences(marked, fmt.sentences)
        rows.sort(key=lambda setting: setting.line_number)
        settings = pl.DataFrame(rows, schema=SCHEMA, orient="row")
        # Most formats find none in a log of another trainer; to mask an empty frame takes a millisecond.
        yield mask_settings(settings) if rows else settings


def _by_marker(lines: pl.DataFrame, markers: Collection[str]) -> dict[str, pl.DataFrame]:
    """Source, number and text of the whole ``lines`` on which each of ``markers`` is."""
    if not markers:
        return {}
    marker = pl.col("text").str.extract_many(list(markers), overlapping=True).list.unique()
    whole = lines.lazy().filter("complete").select("source", "line_number", "text", marker=marker)
    marked = collected(whole.explode("marker").drop_nulls("marker"))
    parts = marked.partition_by("marker", include_key=False, as_dict=True)
    return {marker: part for (marker,), part in parts.items()}


def _of_sentences(marked: Mapping[str, pl.DataFrame], sentences: Iterable[SettingSentence]) -> Iterator[Setting]:
    """The settings that are printed in prose on lines that are ``marked`` by a sentence's marker."""
    for sentence in (sentence for sentence in sentences if sentence.marker in marked):
        every = matches(marked[sentence.marker].iter_rows(), sentence)
        counting = deque(every, maxlen=1) if sentence.last else islice(every, 1) if sentence.first else every
        for source, number, match in counting:
            for name, value in match.groupdict().items():
                yield Setting(name, value, sentence.kind, source, number)
