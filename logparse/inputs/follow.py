"""What the user named, as it grows: at each look the files that are there, and how many bytes of each are to be read.

Files are polled by size and time, since a network file system reports no changes. The end of a line that is still
being written waits, until the file has grown no more for one look. A pipe is kept in a file of its own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import mkstemp
from threading import Thread
from typing import BinaryIO
from weakref import finalize

from logparse.errors import InputError, reason_of
from logparse.findings import Note, info
from logparse.inputs.compression import PACKED
from logparse.inputs.discovery import find_sources, printable
from logparse.inputs.remote import StoredObject
from logparse.inputs.sources import PORTION_BYTES, Source, open_source
from logparse.language import tr

# Bytes at the beginning, and before the end that was read last, by which a file is known again.
MARK_BYTES = 2**10
# Bytes before the end of a file in which the end of a line is looked for.
TAIL_BYTES = 2**16
# Seconds from which on to look for new files is slow, and how many times as long nobody looks again then.
SLOW_LOOK, REST = 0.1, 20


class Spool:
    """The bytes of a pipe, which a thread keeps in a file, so that they can be read again. It goes with the process.

    ``error`` is why the pipe cannot be read, ``unkept`` why its bytes cannot be kept.
    """

    def __init__(self, source: Source) -> None:
        self.size = 0
        self.ended = False
        self.error: InputError | None = None
        self.unkept: InputError | None = None
        handle, name = mkstemp(prefix="logparse-")
        os.close(handle)
        self.path = Path(name)
        finalize(self, self.path.unlink, missing_ok=True)
        Thread(target=self._keep, args=[source], daemon=True).start()

    def _keep(self, source: Source) -> None:
        # A pipe that breaks has ended.
        with suppress(OSError):
            try:
                with open_source(source) as raw:
                    while (chunk := raw.read1(PORTION_BYTES)) and self._add(chunk):
                        pass
            except InputError as error:
                self.error = error
        self.ended = True

    def _add(self, chunk: bytes) -> bool:
        """Whether the file took all of ``chunk``."""
        try:
            with self.path.open("ab") as kept:
                kept.write(chunk)
        except OSError as error:
            problem = tr("cannot write {path}: {reason}", path=self.path, reason=reason_of(error))
            remedy = tr("free some disk space, or check the permissions; TMPDIR sets the temporary folder")
            self.unkept = InputError(problem, remedy=remedy)
            return False
        self.size += len(chunk)
        return True


@dataclass
class Followed:
    """One file that is followed. ``size`` is that of the last look, ``end`` how far it is to be read.

    ``begin`` and ``before`` are bytes at its beginning and before its size. ``renewals`` counts how often it had other
    bytes than before. ``grown_at`` is when it last grew.
    """

    name: str
    grown_at: float
    size: int = 0
    end: int = 0
    begin: bytes = b""
    before: bytes = b""
    renewals: int = 0
    state: object = None
    inode: object = None

    @property
    def version(self) -> tuple[object, ...]:
        """Equal values mean equal bytes."""
        return self.renewals, self.end, self.state if self.is_packed else None

    @property
    def is_packed(self) -> bool:
        """Whether it is compressed: such a file is read from its beginning each time."""
        return self.begin.startswith(PACKED)


@dataclass(frozen=True)
class Look:
    """What is there at one time: the ``sources`` to read, the ``files`` that these are, names ``waiting`` for a file.

    ``renewed`` are the names of files that have other bytes than before; ``notes`` report it. ``refusal`` is why the
    names cannot be read. ``ended``: none of it can grow any more.
    """

    sources: Sequence[Source]
    files: Sequence[Followed]
    waiting: Sequence[str] = ()
    renewed: Sequence[str] = ()
    notes: Sequence[Note] = ()
    refusal: InputError | None = None
    ended: bool = False


@dataclass
class Follow:
    """Follows what ``arguments`` name, as ``find_sources`` finds it.

    With ``whole_lines`` the end of a line that is still being written waits until the input has ended.
    """

    arguments: Sequence[str] = ()
    whole_lines: bool = False
    _files: dict[str, Followed] = field(default_factory=dict)
    _spools: dict[str, Spool] = field(default_factory=dict)
    _named: list[Source] = field(default_factory=list)
    _waiting: list[str] = field(default_factory=list)
    _ended: set[str] = field(default_factory=set)
    _refusal: InputError | None = None
    _rests_until: float = 0.0

    def look(self, at: float) -> Look:
        """What is there ``at`` a time.

        Raises UsageError for a URL that cannot be used, InputError for a pipe that cannot be kept.
        """
        begin = time.perf_counter()
        if begin >= self._rests_until:
            self._find()
            taken = time.perf_counter() - begin
            self._rests_until = begin + REST * taken if taken > SLOW_LOOK else 0.0
        # What has ended before its size is asked for has no other size later.
        self._ended = {name for name, spool in self._spools.items() if spool.ended}
        for spool in self._spools.values():
            if spool.unkept is not None:
                raise spool.unkept
        before, self._files = self._files, {}
        sources = []
        for named in self._named:
            source = replace(named, notes=[])
            # A file may go between two looks.
            with suppress(OSError):
                self._files[source.name] = self._poll(source, before.get(source.name), at)
                sources.append(source)
        renewed = [
            name for name, file in self._files.items() if name in before and file.renewals > before[name].renewals
        ]
        return Look(
            sources,
            list(self._files.values()),
            self._waiting,
            [*renewed, *(name for name in before if name not in self._files)],
            list(self._renewals(renewed, before)),
            next((spool.error for spool in self._spools.values() if spool.error is not None), self._refusal),
            bool(sources) and all(source.name in self._ended for source in sources),
        )

    def _find(self) -> None:
        self._named, self._waiting, self._refusal = [], [], None
        try:
            self._named = find_sources(self.arguments)
        except InputError as error:
            self._refusal = error
            self._waiting = [argument for argument in self.arguments if not _leads_somewhere(argument)]
            there = [argument for argument in self.arguments if argument not in self._waiting]
            if there and self._waiting:
                self._named, self._refusal = find_sources(there), None
            self._waiting = [printable(argument) for argument in self._waiting]
        for source in self._named:
            if source.path is None or (isinstance(source.path, Path) and source.path.is_fifo()):
                spool = self._spools.get(source.name) or self._spools.setdefault(source.name, Spool(replace(source)))
                source.spool = spool.path

    def _poll(self, source: Source, before: Followed | None, at: float) -> Followed:
        """The file of ``source`` now; sets how far it is to be read. Raises OSError for one that is gone."""
        if isinstance(source.path, StoredObject):
            size = source.path.size
            file = replace(before, size=size, end=size) if before else Followed(source.name, at, size, size)
            file.grown_at = at if before is None or before.size != size else before.grown_at
        else:
            file = self._poll_file(source, before, at)
            source.end = None if file.is_packed else file.end
        source.version = file.version
        return file

    def _poll_file(self, source: Source, before: Followed | None, at: float) -> Followed:
        path = source.spool or source.path
        assert isinstance(path, Path)
        status = path.stat()
        # What a thread has written since is for the next look.
        size = status.st_size if source.spool is None else self._spools[source.name].size
        state = (status.st_ino, size, status.st_mtime_ns if source.spool is None else 0)
        if before is not None and before.state == state:
            return before if self.whole_lines and source.name not in self._ended else replace(before, end=size)
        with path.open("rb") as raw:
            is_new = before is None or not _goes_on(before, size, raw.read(MARK_BYTES), _bytes_at(raw, before.size))
            raw.seek(0)
            begin = raw.read(min(MARK_BYTES, size))
            last = 0 if before is None or is_new else before.end
            end = _end_of_lines(_bytes_at(raw, size, TAIL_BYTES), size, last)
            mark = _bytes_at(raw, size)
        renewals = 0 if before is None else before.renewals + is_new
        grown_at = min(at, status.st_mtime) if before is None else at if size != before.size else before.grown_at
        end = size if source.name in self._ended else end
        return Followed(source.name, grown_at, size, end, begin, mark, renewals, state, status.st_ino)

    def _renewals(self, renewed: Sequence[str], before: dict[str, Followed]) -> Iterator[Note]:
        """A note on each file that was begun anew or is gone, unless its bytes are in another one that is followed."""
        inodes = {file.inode for file in self._files.values()}
        for name in renewed:
            if before[name].inode == self._files[name].inode or before[name].inode not in inodes:
                yield info("file_begun_anew", path=name)
        for name, file in before.items():
            if name not in self._files and file.inode not in inodes:
                yield info("file_gone", path=name)


def _leads_somewhere(argument: str) -> bool:
    try:
        return bool(find_sources([argument]))
    except InputError:
        return False


def _bytes_at(raw: BinaryIO, end: int, size: int = MARK_BYTES) -> bytes:
    """At most ``size`` bytes before ``end``."""
    raw.seek(max(end - size, 0))
    return raw.read(min(end, size))


def _goes_on(before: Followed, size: int, begin: bytes, there: bytes) -> bool:
    """Whether a file of ``size`` bytes has those that were read before, as far as they are compared."""
    return size >= before.size and begin.startswith(before.begin) and there == before.before


def _end_of_lines(tail: bytes, size: int, last: int) -> int:
    """Where the last whole line ends, or the last part of one that a carriage return ends; ``last`` without a new one.

    ``tail`` are the bytes before the ``size`` of the file.
    """
    end = max(tail.rfind(b"\n"), tail.rfind(b"\r")) + 1
    return max(size - len(tail) + end, last) if end else last
