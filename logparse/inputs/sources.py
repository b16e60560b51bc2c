"""A file of a run to bytes of text, wherever it lies.

Compression is known by its magic bytes; a device, which never ends, is refused.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

from logparse.errors import InputError, reason_of
from logparse.findings import Note, warning
from logparse.inputs.compression import DAMAGE, decompressed
from logparse.inputs.remote import StoredObject
from logparse.language import msg, tr

SNIFF_BYTES = 2**16
PORTION_BYTES = 2**16
# How many bytes more than asked for a chunk of a file may have, so that it ends with a line.
SLACK_BYTES = 2**16
# Beginnings of files that people keep next to their logs: PNG, zip and torch, ELF, pickle, JPEG.
MAGIC = (b"\x89PNG", b"PK\x03\x04", b"\x7fELF", b"\x80\x02", b"\x80\x04", b"\xff\xd8\xff")
# How long a pipe waits for its writer.
PIPE_SECONDS = 10.0
# Carriage returns without a newline from which on they end lines.
FEWEST_RETURNS = 3
GIVE_TEXT = msg("pass the text log that the training job printed")
# Control bytes that text has no use for; NUL is left out, because crashed file systems fill logs with it.
_CONTROL = bytes(b for b in range(1, 32) if b not in b"\a\b\t\n\v\f\r\x1b")


@dataclass
class Source:
    """One file of a run, or object on a store; ``path`` None is standard input.

    ``notes`` collects what went wrong while reading.

    ``bytes_read`` counts bytes as they lie in the file; ``watch`` is called whenever it has grown. ``part`` is how many
    bytes from its beginning are to be read; None is all.

    ``is_wrong`` says that the text of a compressed file is wrong somewhere before the end of what can be read.

    Of what grows, ``end`` is how many of its bytes are to be read now, and two equal values of ``version`` mean equal
    bytes; ``spool`` is the file in which standard input is kept.
    """

    name: str
    path: Path | StoredObject | None
    notes: list[Note] = field(default_factory=list)
    bytes_read: int = 0
    watch: Callable[[], None] | None = None
    part: int | None = None
    is_wrong: bool = False
    end: int | None = None
    version: object = None
    spool: Path | None = None

    @property
    def size(self) -> int | None:
        """Bytes in the file; None of what is not a regular file."""
        if self.end is not None and self.path is not None:
            return self.end
        if isinstance(self.path, StoredObject):
            return self.path.size
        return self.path.stat().st_size if self.path is not None and self.path.is_file() else None


def looks_binary(head: bytes) -> bool:
    """Whether it begins like a known binary, or more than one byte in twenty is a control byte (NUL aside)."""
    if head.startswith(MAGIC):
        return True
    visible = head.replace(b"\0", b"")
    return len(visible) - len(visible.translate(None, _CONTROL)) > len(visible) / 20


def ends_with_returns(head: bytes) -> bool:
    """Whether a text that begins with ``head`` has carriage returns for line ends, and is not a bar drawn again."""
    texts = [] if b"\n" in head[:SNIFF_BYTES] else head[:SNIFF_BYTES].split(b"\r")
    bars = sum(b"%|" in text for text in texts)
    return len(texts) > FEWEST_RETURNS and bars < len(texts) / 2 < len(set(texts))


def is_binary(source: Source) -> bool:
    """Whether ``source`` begins like no text."""
    try:
        with open_source(source) as raw:
            return looks_binary(decompressed(raw).read1(SNIFF_BYTES))
    except (*DAMAGE, InputError):
        # Not silently left out: reading it says what is wrong.
        return False


def is_plain(source: Source) -> bool:
    """Whether ``source`` is a file of this machine that is not compressed, so that any part of it can be read."""
    path = source.spool or source.path
    if not isinstance(path, Path) or not path.is_file():
        return False
    with open_source(source) as raw:
        return decompressed(raw) is raw


def text_chunks(source: Source, sizes: Iterator[int], begin: int = 0) -> Iterator[bytes]:
    """The bytes of ``source`` from ``begin`` on, decompressed, in chunks of ``sizes``. Raises InputError.

    Only what is not compressed may be read from a ``begin``. A chunk of a file may go on to the end of its line.
    """
    for number, chunk in enumerate(_chunks(source, sizes, begin)):
        if number == 0 and begin == 0 and looks_binary(chunk[:SNIFF_BYTES]):
            raise InputError(tr("not a text file: {path}", path=source.name), remedy=tr(GIVE_TEXT))
        yield chunk


def open_source(source: Source) -> io.BufferedReader:
    """The bytes of ``source`` as they lie in the file.

    Raises InputError for what cannot be opened, for a device that is no terminal, and for a pipe without a writer.
    """
    if isinstance(source.path, StoredObject):
        return source.path.open()
    try:
        if source.spool is not None:
            return source.spool.open("rb")
        if _never_ends(source.path):
            problem = tr("not a file: {path} is a device file", path=source.name)
            raise InputError(problem, remedy=tr("pass the log file, or pipe the log to stdin"))
        if source.path is None:
            return open(0, "rb", closefd=False)
        return _open_pipe(source.path) if source.path.is_fifo() else source.path.open("rb")
    except OSError as error:
        raise InputError(
            tr("cannot read {path}: {reason}", path=source.name, reason=reason_of(error)),
            remedy=tr("check the path and its permissions"),
        ) from error


def _open_pipe(path: Path) -> io.BufferedReader:
    """The pipe at ``path``, which opens when a writer does. Raises InputError where none comes in PIPE_SECONDS."""
    opened: list[io.BufferedReader | OSError] = []

    def wait() -> None:
        try:
            opened.append(path.open("rb"))
        except OSError as error:
            opened.append(error)

    waiting = Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(PIPE_SECONDS)
    if not opened:
        problem = tr("nothing writes to the pipe {path}", path=path)
        raise InputError(problem, remedy=tr("start its writer first, or pass the log file"))
    if isinstance(opened[0], OSError):
        raise opened[0]
    return opened[0]


def _never_ends(path: Path | None) -> bool:
    """Whether it is a device, other than /dev/null, which is empty, and the terminal, where the user ends the text."""
    status = os.fstat(0) if path is None else path.stat()
    if stat.S_ISBLK(status.st_mode):
        return True
    terminal = path is None and os.isatty(0)
    return stat.S_ISCHR(status.st_mode) and not terminal and not os.path.samestat(status, Path(os.devnull).stat())


def _up_to_newline(raw: io.BufferedReader, size: int) -> int:
    """``size`` bytes of a file, and how many more until a line ends; no more where that would be far more."""
    if size <= SLACK_BYTES or not raw.seekable():
        return size
    here = raw.tell()
    raw.seek(here + size - 1)
    newline = raw.read(SLACK_BYTES).find(b"\n")
    raw.seek(here)
    return size + max(newline, 0)


def _chunks(source: Source, sizes: Iterator[int], begin: int) -> Iterator[bytes]:
    with open_source(source) as raw:
        try:
            if begin:
                raw.seek(begin)
            stream = raw if begin else decompressed(raw)
            ends = [end for end in (source.part, source.end) if end is not None]
            left = min(ends) - begin if ends else None
            # Whole lines need not be put together; of an object every look would be a request.
            looks = stream is raw and isinstance(source.path, Path)
            for size in sizes:
                # A damaged stream loses the portion in which the damage is, so its portions are small.
                portion = size if stream is raw else min(size, PORTION_BYTES)
                wanted = _up_to_newline(raw, portion) if looks else portion
                chunk = stream.read1(wanted if left is None else min(wanted, left))
                if not chunk:
                    return
                left = None if left is None else left - len(chunk)
                source.bytes_read = raw.tell() if raw.seekable() else source.bytes_read + len(chunk)
                if source.watch is not None:
                    source.watch()
                yield chunk
        except DAMAGE as error:
            source.notes.append(warning("file_damaged", path=source.name, reason=str(error)))
            # What ends early is right as far as it goes, and so is what the system cannot read any further.
            source.is_wrong |= not isinstance(error, EOFError) and not getattr(error, "errno", None)
