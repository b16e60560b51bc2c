"""Files to lines. Comes in: what the user named. Goes out: frames of numbered lines. What they say is not read here.

Compression is known by its magic bytes. Text may be UTF-8, GBK or damaged; NUL bytes are dropped. Line numbers count
newlines, as ``grep -n`` does. What never ends is refused: a device, and a line of more than LONGEST_LINE bytes.
"""

from __future__ import annotations

import bz2
import glob
import gzip
import io
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Protocol

import polars as pl
import regex

from logparse.errors import InputError, reason_of
from logparse.findings import Note, warning
from logparse.language import msg, tr

BLOCK_BYTES = 64 * 2**20
SNIFF_BYTES = 2**16
PORTION_BYTES = 2**16
LONGEST_LINE = 256 * 2**20
# Beginnings of files that people have beside their logs: PNG, zip and torch, ELF, pickle, JPEG.
MAGIC = (b"\x89PNG", b"PK\x03\x04", b"\x7fELF", b"\x80\x02", b"\x80\x04", b"\xff\xd8\xff")
DAMAGE = (OSError, EOFError, lzma.LZMAError, zlib.error)
_GIVE_TEXT = msg("give the text log that the training printed")
# What a terminal obeys instead of showing it: sequences for colours, cursor and title, other control characters, and
# signs that turn the direction of writing. Tab stays, and so does the carriage return, which parts progress bars.
TERMINAL = (
    r"(?:\x1b\[|\x{9b})[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x{9f}"
    r"\x{61c}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}]"
)
# Control bytes that text has no use for; NUL is left out, because crashed file systems fill logs with it.
_CONTROL = bytes(b for b in range(1, 32) if b not in b"\a\b\t\n\v\f\r\x1b")


class Stream(Protocol):
    """Bytes that come in the portions they are decompressed in."""

    def read1(self, size: int = ..., /) -> bytes:
        """The next bytes, at most ``size``."""
        ...


@dataclass
class Source:
    """One file of a run. ``path`` None is standard input. ``notes`` collects what went wrong while reading.

    ``bytes_read`` counts bytes as they lie in the file; ``watch`` is called whenever it has grown.
    """

    name: str
    path: Path | None
    notes: list[Note] = field(default_factory=list)
    bytes_read: int = 0
    watch: Callable[[], None] | None = None

    @property
    def size(self) -> int | None:
        """Bytes in the file; None of what is not a regular file."""
        regular = self.path is not None and self.path.is_file()
        return self.path.stat().st_size if regular and self.path else None


def find_sources(arguments: Sequence[str]) -> list[Source]:
    """The files that ``arguments`` name: files, folders (all below), globs, ``-`` for standard input.

    Raises InputError for a name that leads to no file.
    """
    sources: dict[str, Source] = {}
    for argument in arguments:
        for path in _expand(argument):
            key = "-" if path is None else str(path.resolve())
            sources.setdefault(key, Source("-" if path is None else printable(path), path))
    return list(sources.values())


def printable(path: str | PurePath) -> str:
    """A path as text that can be printed, also where its bytes are no UTF-8; control characters are escaped."""
    text = str(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _expand(argument: str) -> list[Path | None]:
    if argument == "-":
        return [None]
    path = Path(argument)
    try:
        if path.is_dir():
            return list(_files_below(path))
        if path.exists():
            return [path]
    except OSError as error:
        problem = tr("cannot read {path}: {reason}", path=printable(argument), reason=reason_of(error))
        raise InputError(problem, remedy=tr("check the path")) from error
    found = sorted((Path(p) for p in glob.iglob(argument, recursive=True)), key=_natural)  # noqa: PTH207
    files: list[Path | None] = [p for p in found if p.is_file()]
    if not files:
        raise InputError(
            tr("no such file: {path}", path=printable(argument)),
            remedy=tr("check the path; quote a pattern so that the shell leaves it alone"),
        )
    return files


def _files_below(folder: Path) -> list[Path]:
    parts = (
        p for p in folder.rglob("*") if p.is_file() and not any(q.startswith(".") for q in p.relative_to(folder).parts)
    )
    files = [p for p in sorted(parts, key=_natural) if not _is_binary(p)]
    if not files:
        raise InputError(
            tr("no log in the folder {path}", path=printable(folder)),
            remedy=tr("name the log file itself, or the folder that holds it"),
        )
    return files


def _natural(path: Path) -> list[tuple[int, int | str]]:
    """Sort key under which worker_2 stands before worker_10."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in regex.split(r"(\d+)", str(path)) if part]


def _is_binary(path: Path) -> bool:
    try:
        with path.open("rb") as raw:
            return looks_binary(_decompressed(raw).read1(SNIFF_BYTES))
    except DAMAGE:
        # Not silently left out: reading it says what is wrong.
        return False


def looks_binary(head: bytes) -> bool:
    """Whether it begins like a known binary, or more than one byte in twenty is a control byte (NUL aside)."""
    if head.startswith(MAGIC):
        return True
    visible = head.replace(b"\0", b"")
    return len(visible) - len(visible.translate(None, _CONTROL)) > len(visible) / 20


def _decompressed(buffered: io.BufferedReader) -> Stream:
    magic = buffered.peek(6)[:6]
    if magic.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=buffered)
    if magic.startswith(b"BZh"):
        return bz2.BZ2File(buffered)
    if magic == b"\xfd7zXZ\0":
        return lzma.LZMAFile(buffered)
    if magic.startswith(b"\x28\xb5\x2f\xfd"):
        import pyarrow as pa

        return io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(buffered, "r"), "zstd"))
    return buffered


def read_lines(source: Source, block_bytes: int = BLOCK_BYTES) -> Iterator[pl.DataFrame]:
    """Yield the lines of ``source`` in blocks: ``line_number`` (from 1), ``text``, ``complete`` (ended by a newline).

    Raises InputError for a file that cannot be opened or is not text. A compressed file that ends early or is
    damaged gives what could be read, and a note.
    """
    first = 1
    for block, complete in _blocks(source, block_bytes):
        frame = _numbered(block, first, complete)
        first += len(frame)
        yield frame


def _blocks(source: Source, size: int) -> Iterator[tuple[bytes, bool]]:
    """Cut the bytes, NUL left out, after newlines; a line longer than ``size`` makes its block larger."""
    parts: list[bytes] = []
    held = 0
    for chunk in _text_chunks(source, size):
        if held > LONGEST_LINE and b"\n" not in chunk:
            problem = tr("a line of more than {size} MiB: {path}", size=LONGEST_LINE >> 20, path=source.name)
            raise InputError(problem, remedy=tr(_GIVE_TEXT))
        parts.append(chunk)
        held += len(chunk)
        if held >= size and b"\n" in chunk:
            cut = chunk.rfind(b"\n") + 1
            yield b"".join((*parts[:-1], chunk[:cut])), True
            parts, held = [chunk[cut:]], len(chunk) - cut
    last = b"".join(parts)
    cut = last.rfind(b"\n") + 1
    if cut:
        yield last[:cut], True
    if last[cut:]:
        yield last[cut:], False


def _text_chunks(source: Source, size: int) -> Iterator[bytes]:
    for number, chunk in enumerate(_chunks(source, size)):
        if number == 0 and looks_binary(chunk[:SNIFF_BYTES]):
            raise InputError(tr("not a text file: {path}", path=source.name), remedy=tr(_GIVE_TEXT))
        # At once, because a log that was rotated while it was written begins with gigabytes of NUL.
        yield chunk.replace(b"\0", b"")


def _open(source: Source) -> io.BufferedReader:
    """Raises InputError for what cannot be opened, and for a device that is no terminal."""
    try:
        if _never_ends(source.path):
            problem = tr("not a file: {path} is a device", path=source.name)
            raise InputError(problem, remedy=tr("name the log file, or pipe it in"))
        return open(0, "rb", closefd=False) if source.path is None else source.path.open("rb")
    except OSError as error:
        raise InputError(
            tr("cannot read {path}: {reason}", path=source.name, reason=reason_of(error)),
            remedy=tr("check the path and its permissions"),
        ) from error


def _never_ends(path: Path | None) -> bool:
    """Whether it is a device, other than /dev/null, which is empty, and the terminal, where the user ends the text."""
    found = os.fstat(0) if path is None else path.stat()
    if stat.S_ISBLK(found.st_mode):
        return True
    terminal = path is None and os.isatty(0)
    return stat.S_ISCHR(found.st_mode) and not terminal and not os.path.samestat(found, Path(os.devnull).stat())


def _chunks(source: Source, size: int) -> Iterator[bytes]:
    with _open(source) as raw:
        try:
            stream = _decompressed(raw)
            # A damaged stream loses the portion in which the damage is, so its portions are small.
            portion = size if stream is raw else min(size, PORTION_BYTES)
            while chunk := stream.read1(portion):
                source.bytes_read = raw.tell() if raw.seekable() else source.bytes_read + len(chunk)
                if source.watch is not None:
                    source.watch()
                yield chunk
        except DAMAGE as error:
            source.notes.append(warning("file_damaged", path=source.name, reason=str(error)))


def _numbered(block: bytes, first: int, complete: bool) -> pl.DataFrame:
    frame = pl.read_lines(io.BytesIO(_as_utf8(block)), name="text")
    return frame.select(
        (pl.int_range(pl.len(), dtype=pl.Int64) + first).alias("line_number"),
        "text",
        ((pl.int_range(pl.len()) < pl.len() - 1) | complete).alias("complete"),
    )


def _as_utf8(block: bytes) -> bytes:
    try:
        block.decode("utf-8")
    except UnicodeDecodeError:
        return b"\n".join(_line_as_utf8(line) for line in block.split(b"\n"))
    return block


def _line_as_utf8(line: bytes) -> bytes:
    """Keep UTF-8, turn GBK into it, and put the replacement sign where neither fits."""
    for encoding in ("utf-8", "gb18030"):
        try:
            return line.decode(encoding).encode()
        except UnicodeDecodeError:
            continue
    return line.decode("utf-8", "replace").encode()
