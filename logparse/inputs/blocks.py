"""Bytes to lines: blocks cut after newlines, each a frame of numbered lines. What they say is not read here.

Text may be UTF-8, GBK or damaged; NUL bytes are dropped. Line numbers count newlines, as ``grep -n`` does. At most
LONGEST_TEXT bytes of a line, or of each part of it between carriage returns, are read; a line of more than LONGEST_LINE
bytes is refused.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cached_property, reduce
from itertools import chain, islice, repeat
from operator import or_

import polars as pl

from logparse.errors import InputError
from logparse.findings import warning
from logparse.inputs.literals import any_of
from logparse.inputs.sources import GIVE_TEXT, Source, ends_with_returns, text_chunks
from logparse.inputs.unwrap import MOST_PASTED, PLAIN, Wrapping, bare, learn_wrapping, opened, unescaped
from logparse.language import tr
from logparse.light_dataclass import dataclass, replace
from logparse.schema import NO_DAY, NO_YEAR

BLOCK_BYTES, FIRST_BYTES = 12 * 2**20, 2**18
LINE_COLUMNS = {
    "source": pl.String(),
    "line_number": pl.Int64(),
    "text": pl.String(),
    "complete": pl.Boolean(),
    "clock": pl.Datetime("us"),
}
# What closes a last line without a newline: no number before it can have lost digits.
_CLOSED = r"[\])}|]\s*$"
LONGEST_LINE, LONGEST_TEXT = 256 * 2**20, 2**20
# Bytes before the end of a text that is cut, in which a blank is looked for.
LONGEST_WORD = 2**12
# What a terminal obeys instead of showing it: sequences for colours, cursor and title, other control characters, and
# signs that turn the direction of writing. Tab stays, and so does the carriage return, which parts progress bars.
TERMINAL = (
    r"(?:\x1b\[|\x{9b})[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x{9f}"
    r"\x{feff}\x{61c}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}]"
)
_CONTROL = bytes(range(32))
# Bytes from which on counting by numpy is faster even where it has to be imported first.
_WORTH_NUMPY = 2**20
# Bytes from which on polars cuts lines sooner than Python: its reader of files takes half a millisecond to set up.
_WORTH_POLARS = 2**18


@dataclass(frozen=True)
class BlockPlace:
    """Where a block of a file begins: bytes, blocks and lines before it, and what these have shown of the file.

    ``wrapping`` is what a tool put before the lines, ``returns``: they end with carriage returns. ``cut`` are the
    numbers of lines that were cut.
    """

    at: int = 0
    blocks: int = 0
    lines: int = 0
    wrapping: Wrapping = PLAIN
    returns: bool = False
    cut: tuple[int, ...] = ()


BEGIN = BlockPlace()


@dataclass(frozen=True)
class TextBlock:
    """Some whole lines of one file: the number of the first, how many, and whether the last ended with a newline.

    ``wrapping`` is what a tool put before the lines of the file. ``following`` is where the next block begins; None
    where there is none yet.
    """

    source: str
    first: int
    count: int
    complete: bool
    text: bytes
    wrapping: Wrapping = PLAIN
    following: BlockPlace | None = None

    def after(self, before: TextBlock, size: int) -> TextBlock:
        """Its last lines, of at most ``size`` bytes, with the last ones of the block ``before`` where it has fewer."""
        if len(self.text) >= size:
            return self.tail(size)
        end = before.tail(size - len(self.text))
        return replace(self, first=end.first, count=end.count + self.count, text=end.text + self.text)

    def head(self, size: int) -> TextBlock:
        """Its first lines, of at most ``size`` bytes."""
        if len(self.text) <= size:
            return self
        text = self.text[: self.text.rfind(b"\n", 0, size) + 1]
        return replace(self, count=text.count(b"\n"), complete=True, text=text)

    def tail(self, size: int) -> TextBlock:
        """Its last lines, of at most ``size`` bytes."""
        if len(self.text) <= size:
            return self
        text = self.text[self.text.find(b"\n", len(self.text) - size - 1) + 1 :]
        count = text.count(b"\n") + (not self.complete)
        return replace(self, first=self.first + self.count - count, count=count, text=text)

    @cached_property
    def lines(self) -> pl.DataFrame:
        """The lines: ``source``, ``line_number`` (from 1), ``text``, ``complete``, and the ``clock`` of a collector."""
        if not self.count:
            return pl.DataFrame(schema=LINE_COLUMNS)
        return self._rows(self.texts, pl.int_range(self.count, dtype=pl.Int64, eager=True))

    def matching(self, *patterns: str, literals: tuple[str, ...] = ()) -> pl.DataFrame:
        """Those of the ``lines`` in which one of ``patterns`` or of ``literals`` is found.

        A series is searched by the calling thread. A frame would be searched by threads of polars, which take cores
        from the threads that read other blocks.
        """
        found = [any_of(literals, self.texts, len(self.text))] if literals else []
        matches = reduce(or_, (self.texts.str.contains(pattern) for pattern in patterns), *found)
        return self._rows(self.texts.filter(matches), matches.arg_true().cast(pl.Int64))

    def _rows(self, texts: pl.Series, places: pl.Series) -> pl.DataFrame:
        """The lines with these ``texts`` at these ``places`` of the block, from 0."""
        clocks = pl.lit(None, pl.Datetime("us")) if self.clocks is None else self.clocks.gather(places)
        return texts.to_frame("text").select(
            pl.lit(self.source).alias("source"),
            (places + self.first).alias("line_number"),
            "text",
            complete=(places < self.count - 1) | (self.complete or texts.str.contains(_CLOSED)),
            clock=clocks,
        )

    def bare(self, lines: pl.DataFrame) -> pl.DataFrame:
        """Some of its ``lines``, without the stamps and the writers before them."""
        return lines if self.wrapping == PLAIN else lines.with_columns(bare(pl.col("text"), self.wrapping))

    @property
    def is_pasted(self) -> bool:
        """Whether it is a whole short log, which a person may have pasted."""
        return self.first == 1 and 1 < self.count <= MOST_PASTED

    @property
    def texts(self) -> pl.Series:
        """The lines, without terminal codes and what tools put around them."""
        return self._opened[0]

    @property
    def clocks(self) -> pl.Series | None:
        """The time that a tool put before each line; None where it put none."""
        return self._opened[1]

    def stamped(self, begin: int, end: int) -> list[str]:
        """The texts at these places, after their clocks where they show none; a stamp without a year has any."""
        texts = self.texts[begin:end]
        if self.clocks is None or self.wrapping.shows_stamps:
            return texts.to_list()
        clocks = (
            self.clocks[begin:end].dt.strftime("%Y-%m-%d %H:%M:%S%.3f ").str.replace(f"^(?:{NO_YEAR}|{NO_DAY})", "2000")
        )
        return (clocks.fill_null("") + texts).to_list()

    @cached_property
    def _opened(self) -> tuple[pl.Series, pl.Series | None]:
        texts = _split(self.text)
        clean = texts.str.replace_all(TERMINAL, "") if self._has_controls() else texts
        return opened(clean, self.wrapping)

    def _has_controls(self) -> bool:
        """Whether the text may hold a terminal code. Nearly every block has none, and looking is cheap."""
        newlines = self.count - (not self.complete)
        if not self.text.isascii() or b"\x7f" in self.text:
            return True
        others = _count_controls(self.text) - newlines
        return others > 0 and others > self.text.count(b"\t") + self.text.count(b"\r")


def _count_controls(text: bytes) -> int:
    if len(text) < _WORTH_NUMPY:
        return len(text) - len(text.translate(None, _CONTROL))
    import numpy as np

    return int(np.count_nonzero(np.frombuffer(text, np.uint8) < len(_CONTROL)))


def _count_newlines(text: bytes) -> int:
    if len(text) < _WORTH_NUMPY:
        return text.count(b"\n")
    import numpy as np

    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == ord("\n")))


def read_blocks(source: Source, block_bytes: int = BLOCK_BYTES, begin: BlockPlace = BEGIN) -> Iterator[TextBlock]:
    """Yield the lines of ``source`` in blocks, from where one begins. Where they end depends on what is before alone.

    Raises InputError for a file that cannot be opened or is not text. A compressed file that ends early or is
    damaged gives what could be read, and a note; so does a file with lines that are cut.
    """
    blocks = _blocks(source, block_bytes, begin)
    place, read = begin, next(blocks, None)
    while read is not None:
        (text, end), read = read, next(blocks, None)
        complete = text.endswith(b"\n")
        count = _count_newlines(text) + (not complete)
        text, lines = _without_long_texts(text)
        text = unescaped(text)
        wrapping = place.wrapping if place.blocks else learn_wrapping(text, is_whole=read is None)
        cut = (*place.cut, *(place.lines + 1 + line for line in lines))
        following = replace(end, lines=place.lines + count, wrapping=wrapping, cut=cut)
        yield TextBlock(
            source.name, place.lines + 1, count, complete, text, wrapping, None if read is None else following
        )
        place = following
    if place.cut:
        size = LONGEST_TEXT >> 20
        source.notes.append(warning("lines_cut", n=len(place.cut), size=size, source=source.name, line=place.cut[0]))


def _without_long_texts(block: bytes) -> tuple[bytes, list[int]]:
    """``block`` with the beginning of each long text, and on which of its lines, counted from 0, those are."""
    parts, cut, begin = [], [], 0
    while len(block) - begin > LONGEST_TEXT:
        end = block.rfind(b"\n", begin, begin + LONGEST_TEXT + 1) + 1
        if not end:
            end = block.find(b"\n", begin) + 1 or len(block)
            newline = block[begin:end].endswith(b"\n")
            texts = block[begin : end - newline].split(b"\r")
            if any(len(text) > LONGEST_TEXT for text in texts):
                cut.append(_count_newlines(block[:begin]))
                parts.append(b"\r".join(map(_beginning, texts)) + b"\n" * newline)
                begin = end
                continue
        parts.append(block[begin:end])
        begin = end
    return (b"".join((*parts, block[begin:])), cut) if cut else (block, cut)


def _beginning(text: bytes) -> bytes:
    """The first LONGEST_TEXT bytes, up to the last blank, since the last number may have lost digits."""
    if len(text) <= LONGEST_TEXT:
        return text
    blank = text.rfind(b" ", LONGEST_TEXT - LONGEST_WORD, LONGEST_TEXT) + 1
    return text[: blank or LONGEST_TEXT - LONGEST_WORD]


def _sizes(block_bytes: int) -> Iterator[int]:
    """How many bytes the blocks of a file have, before the rest of a line.

    The beginning comes alone, which shows how to read the rest, and so do the lines after it, for a log that begins
    with long settings.
    """
    return chain((min(size, block_bytes) for size in (FIRST_BYTES, 4 * FIRST_BYTES)), repeat(block_bytes))


def _blocks(source: Source, block_bytes: int, begin: BlockPlace) -> Iterator[tuple[bytes, BlockPlace]]:
    """Cut the bytes, NUL left out, after the first newline with which a block has its size; with where each ends.

    In a text whose lines end with carriage returns alone these are newlines.
    """
    sizes, of_chunks = (islice(_sizes(block_bytes), begin.blocks, None) for _ in range(2))
    place, size, held = begin, next(sizes), 0
    parts: list[bytes] = []
    for number, chunk in enumerate(text_chunks(source, of_chunks, begin.at)):
        if begin.at == number == 0:
            place = replace(place, returns=ends_with_returns(chunk))
        rest = chunk.replace(b"\r", b"\n") if place.returns else chunk
        if sum(map(len, parts)) > LONGEST_LINE and b"\n" not in rest:
            problem = tr("{path} has a line longer than {size} MiB", size=LONGEST_LINE >> 20, path=source.name)
            raise InputError(problem, remedy=tr(GIVE_TEXT))
        while cut := rest.find(b"\n", max(size - held - 1, 0)) + 1:
            place = replace(place, at=place.at + held + cut, blocks=place.blocks + 1)
            # At once, because a log that was rotated while it was written begins with gigabytes of NUL.
            yield b"".join((*parts, rest[:cut].replace(b"\0", b""))), place
            parts, held, rest, size = [], 0, rest[cut:], next(sizes)
        parts.append(rest.replace(b"\0", b""))
        held += len(rest)
    if last := b"".join(parts):
        yield last, replace(place, at=place.at + held, blocks=place.blocks + 1)


def _split(block: bytes) -> pl.Series:
    if len(block) < _WORTH_POLARS:
        return _few_lines(block)
    try:
        return _utf8_lines(block)
    except pl.exceptions.ComputeError:
        return _utf8_lines(b"\n".join(_line_as_utf8(line) for line in block.split(b"\n")))


def _utf8_lines(block: bytes) -> pl.Series:
    """The lines of a block. A newline is put first, since polars takes a text such as ``x^`` for compressed."""
    return pl.read_lines(io.BytesIO(b"\n" + block), name="text")["text"].slice(1)


def _few_lines(block: bytes) -> pl.Series:
    """What ``_split`` makes of a small block."""
    lines = block.split(b"\n")
    whole = lines[:-1] if block.endswith(b"\n") or not block else lines
    try:
        texts = [line.decode() for line in whole]
    except UnicodeDecodeError:
        texts = [_line_as_utf8(line).decode() for line in whole]
    return pl.Series("text", [text.removesuffix("\r") for text in texts], pl.String)


def _line_as_utf8(line: bytes) -> bytes:
    """Keep UTF-8, turn GBK into it, and put the replacement sign where neither fits."""
    for encoding in ("utf-8", "gb18030"):
        try:
            return line.decode(encoding).encode()
        except UnicodeDecodeError:
            continue
    return line.decode("utf-8", "replace").encode()
