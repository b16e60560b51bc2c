"""The files that a server may read: those below one folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from logparse.errors import InputError, UsageError, reason_of
from logparse.inputs.discovery import printable
from logparse.inputs.stores import is_url
from logparse.language import tr
from logparse.light_dataclass import dataclass


@dataclass(frozen=True)
class ReadableRoot:
    """A ``folder``, without links in its path: what is below it may be read, and nothing else."""

    folder: Path

    @classmethod
    def of(cls, folder: Path) -> ReadableRoot:
        """Raises UsageError for what is no folder."""
        if not folder.is_dir():
            problem = tr("{path} is not a folder", path=folder)
            raise UsageError(problem, where="--root", remedy=tr("give an existing folder"))
        return cls(_without_links(folder))

    def checked(self, names: Sequence[str]) -> list[str]:
        """The files and folders ``names``, relative to the folder, without links in their paths.

        Raises UsageError for one outside, also by a link in a folder, and for what is no file; InputError for none.
        """
        if not names:
            raise UsageError(tr("no log is given"), remedy=tr("give a log or a folder of logs"))
        return [self._relative(self._checked(name)) for name in names]

    def _checked(self, name: str) -> Path:
        if is_url(name) or name == "-" or "\0" in name:
            raise UsageError(tr("{path} is not a file", path=printable(name)), remedy=self._remedy)
        path = _without_links(Path(self.folder, name))
        self._check_inside(path, name)
        try:
            path.stat()
        except OSError as error:
            problem = tr("cannot read {path}: {reason}", path=printable(name), reason=reason_of(error))
            raise InputError(problem, remedy=self._remedy) from error
        for inner in [path, *_below(path)]:
            self._check_inside(_without_links(inner), self._relative(inner))
            if inner.exists() and not (inner.is_file() or inner.is_dir()):
                raise UsageError(tr("{path} is not a file", path=self._relative(inner)), remedy=self._remedy)
        return path

    def _check_inside(self, path: Path, name: str) -> None:
        if not path.is_relative_to(self.folder):
            problem = tr("{path} is outside the folder that may be read", path=printable(name))
            raise UsageError(problem, where=str(self.folder), remedy=self._remedy)

    def _relative(self, path: Path) -> str:
        return os.path.relpath(path, self.folder)

    @property
    def _remedy(self) -> str:
        return tr("name files below {folder}", folder=self.folder)


def _without_links(path: Path) -> Path:
    """Where ``path`` leads; unlike that of pathlib, this reads a circle of links too."""
    return Path(os.path.realpath(path))


def _below(path: Path) -> Iterator[Path]:
    """All entries below a folder, links too, which are not followed."""
    for folder, folders, files in os.walk(path):
        yield from (Path(folder, name) for name in (*folders, *files))
