"""The files that earlier commands wrote into a folder: ``--force`` replaces these and no others.

Each folder of results has a list of them, a small file of JSON: the name of each file and the command that wrote it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from logparse.errors import UsageError
from logparse.language import tr
from logparse.light_dataclass import dataclass

LIST, LOCK, UNFINISHED = ".logparse-files.json", ".logparse.lock", ".logparse-unfinished-"


# Files and folders to be removed where a signal ends the command.
_TEMPORARY: set[Path] = set()


@contextmanager
def removed_by_signal(path: Path) -> Iterator[Path]:
    """Have ``path`` removed where a signal ends the command inside the block."""
    _TEMPORARY.add(path)
    try:
        yield path
    finally:
        _TEMPORARY.discard(path)


def remove_temporary() -> None:
    """Remove what is temporary now."""
    for path in list(_TEMPORARY):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()


def is_bookkeeping(name: str) -> bool:
    """Whether ``name``, relative to a folder of results, is a file that no user reads."""
    first, *_ = PurePosixPath(name).parts or ("",)
    return PurePosixPath(name).name == LIST or first == LOCK or first.startswith(UNFINISHED)


def read_list(data: bytes | None) -> dict[str, str]:
    """The command by the name of each file in a list; nothing where it is missing or damaged.

    A name that leads out of the folder is left out.
    """
    try:
        files = json.loads(data or b"{}")["files"]
        return {name: str(command) for name, command in files.items() if _is_inside(name)}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def list_of(files: Mapping[str, str]) -> bytes:
    """``files``, a command by the name of each file, as a list."""
    return (json.dumps({"files": dict(sorted(files.items()))}, indent=1, ensure_ascii=False) + "\n").encode()


def stale_of(listed: Mapping[str, str], names: Collection[str], command: str) -> set[str]:
    """The files that an earlier run of ``command`` wrote and that are not among the ``names`` it writes now."""
    return {name for name, by in listed.items() if by == command and name not in names}


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\0" not in name


@dataclass(frozen=True)
class OwnFiles:
    """The files of ``folder`` that earlier commands ``listed``."""

    folder: Path
    listed: Mapping[str, str]

    @classmethod
    def of(cls, folder: Path) -> OwnFiles:
        """Those of a folder, which may be missing."""
        try:
            return cls(folder, read_list((folder / LIST).read_bytes()))
        except OSError:
            return cls(folder, {})

    def check_free(self, names: Iterable[str], force: bool) -> None:
        """Refuse to replace a file that is not ours, or is and ``force`` was not given. Raises UsageError."""
        for name in names:
            path = self._blocked(name)
            if path is not None:
                raise in_the_way(path)
            if (self.folder / name).exists() and not force:
                raise already_there(self.folder / name)

    def check_inputs(self, inputs: Iterable[Path]) -> None:
        """Refuse inputs that an earlier command wrote: they would be replaced. Raises UsageError."""
        listed_files = {_identity(self.folder / name): name for name in (LIST, LOCK, *self.listed)}
        listed_files.pop(None, None)
        for path in inputs:
            if (name := listed_files.get(_identity(path))) is not None:
                raise input_overwritten(path, self.folder / name)

    def remove(self, names: Iterable[str]) -> None:
        """Delete those of ``names`` that are ours, and the folders that are then empty. Links are not followed."""
        for name in names:
            path = self.folder / name
            if name not in self.listed or self._blocked(name) is not None or not path.is_file():
                continue
            path.unlink(missing_ok=True)
            for parent in PurePosixPath(name).parents[:-1]:
                try:
                    (self.folder / parent).rmdir()
                except OSError:
                    break

    def _blocked(self, name: str) -> Path | None:
        """What is at the place of ``name``, or of a folder on the way to it, and is not ours."""
        for parent in reversed(PurePosixPath(name).parents[:-1]):
            place = self.folder / parent
            if place.is_symlink() or (place.exists() and not place.is_dir()):
                return place
        place = self.folder / name
        if place.is_symlink() or (place.exists() and not (place.is_file() and name in self.listed)):
            return place
        return None


def _identity(path: Path) -> tuple[int, int] | None:
    """What shows that two names are of one file; None where there is no file."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def in_the_way(path: object) -> UsageError:
    """The error for a file that logparse did not write."""
    return UsageError(
        tr("{path} is in the way: logparse did not write it", path=path),
        remedy=tr("move it, or give another folder with -o"),
    )


def already_there(path: object) -> UsageError:
    """The error for a file of an earlier result."""
    return UsageError(
        tr("{path} exists", path=path), remedy=tr("give another folder with -o, or overwrite with --force")
    )


def input_overwritten(path: object, output: object) -> UsageError:
    """The error for an input that is also an output."""
    return UsageError(
        tr("the input {path} would be overwritten", path=path),
        where=str(output),
        remedy=tr("give another folder with -o, or copy the input elsewhere"),
    )
