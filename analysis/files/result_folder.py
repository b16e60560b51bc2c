"""Where ``-o`` says that results go: a folder, or the URL of one on an object store.

Results are written into a temporary folder first. When all of them are there, they replace those of an earlier command.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from analysis.files.outputs import check_folder, prepare_folder, refused
from analysis.files.own_files import (
    LIST,
    LOCK,
    UNFINISHED,
    OwnFiles,
    already_there,
    in_the_way,
    is_bookkeeping,
    list_of,
    read_list,
    removed_by_signal,
    stale_of,
)
from logparse.errors import UsageError
from logparse.inputs.stores import Store, is_url, open_store, shown
from logparse.language import tr
from logparse.light_dataclass import dataclass, field

# Files that are put side by side, because each takes its time on the way.
AT_ONCE = 8


@dataclass(frozen=True)
class ResultFolder:
    """The folder at ``place``; as text it is its name, without what may be secret in a URL.

    ``published`` are the names of the files that were written through this object.
    """

    place: str
    published: list[str] = field(default_factory=list, compare=False)

    def __str__(self) -> str:
        return shown(self.place).rstrip("/") if is_url(self.place) else str(Path(self.place))

    def below(self, name: str) -> ResultFolder:
        """The folder ``name`` in it."""
        return ResultFolder(f"{self.place.rstrip('/')}/{name}" if is_url(self.place) else str(Path(self.place, name)))

    def names(self) -> list[str]:
        """The files in it and below, in order of their names; none where there is no folder."""
        if is_url(self.place):
            names = _names(open_store(self.place))
        else:
            files = (path for path in Path(self.place).rglob("*") if path.is_file())
            names = [path.relative_to(self.place).as_posix() for path in files]
        return sorted(name for name in names if not is_bookkeeping(name))

    def read(self, name: str) -> bytes | None:
        """What the file ``name`` in it holds; None where there is none."""
        try:
            return open_store(self.place).read(name) if is_url(self.place) else Path(self.place, name).read_bytes()
        except FileNotFoundError:
            return None

    def check_name(self) -> None:
        """Refuse a name that pages and tables cannot have in them. Raises UsageError."""
        try:
            self.place.encode()
        except UnicodeEncodeError as error:
            problem = tr("the name of the folder {path} is not UTF-8", path=ascii(str(self)))
            raise UsageError(problem, remedy=tr("give another folder with -o")) from error

    def check(self, force: bool, names: Iterable[str] = (), inputs: Iterable[str] = ()) -> None:
        """Refuse a folder that holds files, unless ``force``, before any work is done.

        With ``force`` refuse one where other files have the ``names`` of the results, or that has ``inputs`` among
        the files to be replaced. Raises UsageError, and InputError where a store cannot be used.
        """
        self.check_name()
        if is_url(self.place):
            self._check_store(open_store(self.place), force, names)
            return
        check_folder(Path(self.place), force)
        self.check_files(force, names, inputs)

    def check_files(self, force: bool, names: Iterable[str] = (), inputs: Iterable[str] = ()) -> None:
        """Refuse to replace the files ``names``, unless ``force`` and ours; the folder may hold others.

        Refuse ``inputs`` that an earlier command wrote there, too. Raises UsageError, and InputError as ``check``.
        """
        self.check_name()
        if is_url(self.place):
            self._check_free(set(_names(open_store(self.place))), read_list(self.read(LIST)), names, force)
            return
        files = OwnFiles.of(Path(self.place))
        files.check_inputs(Path(one) for one in inputs if not is_url(one))
        files.check_free(names, force)

    def _check_store(self, store: Store, force: bool, names: Iterable[str]) -> None:
        there = {name for name in _names(store) if not is_bookkeeping(name)}
        if there and not force:
            raise UsageError(
                tr("the folder {path} is not empty", path=self),
                remedy=tr("give another folder with -o, or overwrite with --force"),
            )
        if there:
            self._check_free(there, read_list(self.read(LIST)), names, force)

    def _check_free(self, there: set[str], listed: Mapping[str, str], names: Iterable[str], force: bool) -> None:
        for name in sorted(there.intersection(names)):
            if name not in listed:
                raise in_the_way(f"{self}/{name}")
            if not force:
                raise already_there(f"{self}/{name}")

    @contextmanager
    def opened(self, command: str, force: bool = False) -> Iterator[Path]:
        """A temporary folder to write into; where the block comes to its end, its files become those of this folder.

        With ``force`` they replace the files of earlier commands; what an earlier run of the same ``command`` wrote
        and this one does not is deleted. Raises UsageError where a file is in the way or another command is writing,
        InputError where nothing can be written.
        """
        if is_url(self.place):
            with _temporary("logparse-") as temporary:
                yield temporary
                self._put(temporary, command, force)
            return
        folder = Path(self.place)
        prepare_folder(folder)
        with _locked(folder) as alone:
            if alone:
                _clear_unfinished(folder)
            with _temporary(UNFINISHED, folder) as temporary_folder:
                yield temporary_folder
                self._publish(temporary_folder, command, force)

    def remove(self, name: str) -> None:
        """Delete a file that an earlier command wrote."""
        if is_url(self.place):
            if name in read_list(self.read(LIST)):
                open_store(self.place).remove(name)
            return
        OwnFiles.of(Path(self.place)).remove([name])

    def _publish(self, temporary: Path, command: str, force: bool) -> None:
        names = _files(temporary)
        files = OwnFiles.of(Path(self.place))
        files.check_free(names, force)
        stale = stale_of(files.listed, names, command) if force else set()
        listed = {**files.listed, **dict.fromkeys(names, command)}
        try:
            # Whatever ends this before its end, no file of ours is missing from the list.
            self._write_list(temporary, listed)
            for name in names:
                path = files.folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                (temporary / name).replace(path)
            files.remove(stale)
            self._write_list(temporary, {name: by for name, by in listed.items() if name not in stale})
        except OSError as error:
            raise refused(error, error.filename2 or error.filename or self.place) from error
        self.published.extend(names)

    def _write_list(self, temporary: Path, listed: Mapping[str, str]) -> None:
        (temporary / LIST).write_bytes(list_of(listed))
        (temporary / LIST).replace(Path(self.place, LIST))

    def _put(self, temporary: Path, command: str, force: bool) -> None:
        store, names = open_store(self.place), _files(temporary)
        there, listed = set(_names(store)), read_list(self.read(LIST))
        self._check_free(there, listed, names, force)
        stale = stale_of(listed, names, command) if force else set()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(store.put, names, (temporary / name for name in names)))
        for name in stale & there:
            store.remove(name)
        kept = {name: by for name, by in listed.items() if name not in stale}
        (temporary / LIST).write_bytes(list_of(kept | dict.fromkeys(names, command)))
        store.put(LIST, temporary / LIST)
        self.published.extend(names)


def _names(store: Store) -> list[str]:
    # obstore refuses keys that would lead out of a folder.
    return [entry["path"] for entry in store.list("")]


def _files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@contextmanager
def _temporary(prefix: str, folder: Path | None = None) -> Iterator[Path]:
    """A folder that is removed at the end, also where a signal ends the command before all of it is removed."""
    try:
        temporary = TemporaryDirectory(prefix=prefix, dir=folder, ignore_cleanup_errors=True)
    except OSError as error:
        raise refused(error, folder or "TMPDIR") from error
    with removed_by_signal(Path(temporary.name)) as path, temporary:
        yield path


def _clear_unfinished(folder: Path) -> None:
    """Delete what a command that was killed had not finished."""
    for path in folder.glob(f"{UNFINISHED}*"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Keep other commands from writing into ``folder``; False where its file system has no locks.

    Raises UsageError where another command does, InputError where nothing can be written.
    """
    path = folder / LOCK
    while True:
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            raise refused(error, path) from error
        alone = _flock(lock, folder)
        # Whoever had the lock before may have removed its file meanwhile.
        if not alone or _is_of(lock, path):
            break
        os.close(lock)
    with removed_by_signal(path):
        try:
            yield alone
        finally:
            if alone:
                path.unlink(missing_ok=True)
            os.close(lock)


def _flock(lock: int, folder: Path) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise UsageError(
            tr("another logparse command is writing into {path}", path=folder),
            remedy=tr("wait until it ends, or give another folder with -o"),
        ) from error
    except OSError:
        return False
    return True


def _is_of(lock: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(lock), path.stat())
    except FileNotFoundError:
        return False
