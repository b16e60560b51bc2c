"""Files of a history in a folder.

A file is first written below ``unfinished/``, outside what any reader of Parquet looks at, and then renamed: no lock,
so NFS is safe.
"""

from __future__ import annotations

import errno
import os
import stat
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from analysis.history.seal import DamagedError
from logparse.errors import InputError, reason_of
from logparse.language import msg, tr
from logparse.light_dataclass import dataclass

UNFINISHED = "unfinished"
# Files that a killed process left there are removed after this long.
DEAD_SECONDS = 24 * 3600
SUFFIX = ".parquet"
# A link that leads to itself, a folder called like a file, a bad sector: the other files may be read all the same.
OF_ONE_FILE = (errno.ELOOP, errno.EISDIR, errno.EIO)


@dataclass(frozen=True)
class Folder:
    """A folder of this machine or of a network file system.

    Every method raises InputError where the system refuses; a FileNotFoundError is the caller's.
    """

    root: Path

    def exists(self) -> bool:
        """Whether the folder is there; an empty one is an empty history."""
        return self.root.is_dir()

    def keys(self, prefix: str) -> list[str]:
        """Walked with scandir: of 20,000 files no other property is asked for."""
        with _refusals(msg("cannot read {path}: {reason}"), self.root):
            return sorted(_walk(self.root / prefix, prefix))

    def get(self, key: str) -> bytes:
        """Raises DamagedError where one file is refused for what it is."""
        with _refusals(msg("cannot read {path}: {reason}"), self.root / key):
            try:
                with open(self.root / key, "rb", opener=_without_waiting) as file:
                    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                        raise DamagedError(tr("it is not a regular file"))
                    return file.read()
            except OSError as error:
                if error.errno not in OF_ONE_FILE:
                    raise
                raise DamagedError(reason_of(error)) from error

    def put(self, key: str, data: bytes) -> None:
        """Flushed to the disk before it is renamed."""
        path, temporary = self.root / key, self.root / UNFINISHED / uuid.uuid4().hex
        try:
            temporary.parent.mkdir(parents=True, exist_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink()
            problem = tr("cannot write {path}: {reason}", path=path, reason=reason_of(error))
            raise InputError(problem, remedy=tr("check the folder's permissions and space")) from error

    def put_first(self, key: str, data: bytes) -> bytes:
        """Of two who put at once the one whose link is first."""
        path, own = self.root / key, f"{UNFINISHED}/{uuid.uuid4().hex}"
        if not path.exists():
            self.put(own, data)
            with _refusals(msg("cannot write {path}: {reason}"), path), suppress(FileExistsError):
                path.hardlink_to(self.root / own)
            self.remove(own)
        with _refusals(msg("cannot read {path}: {reason}"), path):
            return path.read_bytes()

    def remove(self, key: str) -> None:
        """The release's folder stays, empty: another process may be about to write into it."""
        with _refusals(msg("cannot remove {path}: {reason}"), self.root / key):
            (self.root / key).unlink(missing_ok=True)

    def age_seconds(self, key: str) -> float:
        """By the file system's clock of its last change. Raises FileNotFoundError where it is gone."""
        with _refusals(msg("cannot read {path}: {reason}"), self.root / key):
            return time.time() - (self.root / key).stat().st_mtime

    def sweep(self) -> int:
        """Only files older than DEAD_SECONDS: others may still be in the writing."""
        dead = 0
        for path in (self.root / UNFINISHED).glob("*"):
            # Whoever wrote it may finish meanwhile, and another may clear too.
            with suppress(FileNotFoundError), _refusals(msg("cannot remove {path}: {reason}"), path):
                if time.time() - path.stat().st_mtime > DEAD_SECONDS:
                    path.unlink()
                    dead += 1
        return dead


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a pipe without a writer would wait for ever."""
    return os.open(path, flags | os.O_NONBLOCK)


@contextmanager
def _refusals(problem: str, path: Path) -> Iterator[None]:
    """Raise InputError with the reason and the file if the system refuses. A FileNotFoundError passes."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        text = tr(problem, path=error.filename or path, reason=reason_of(error))
        raise InputError(text, remedy=tr("check the path and its permissions")) from error


def _walk(folder: Path, prefix: str) -> Iterable[str]:
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.name.endswith(SUFFIX) and not entry.name.startswith("."):
            yield f"{prefix}/{entry.name}"
        elif entry.is_dir():
            yield from _walk(folder / entry.name, f"{prefix}/{entry.name}")
