"""Where ``-o`` says that results go: a folder, or the URL of one on an object store.

For a store they are written into a temporary folder first and put when all of them are there, each whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from analysis.outputs import check_folder, prepare_folder
from logparse.errors import UsageError
from logparse.inputs.stores import Store, is_url, open_store, shown
from logparse.language import tr

# Files that are put side by side, because each takes its time on the way.
AT_ONCE = 8


@dataclass(frozen=True)
class ResultFolder:
    """The folder at ``place``; as text it is its name, without what may be secret in a URL."""

    place: str

    def __str__(self) -> str:
        return shown(self.place).rstrip("/") if is_url(self.place) else str(Path(self.place))

    def below(self, name: str) -> ResultFolder:
        """The folder ``name`` in it."""
        return ResultFolder(f"{self.place.rstrip('/')}/{name}" if is_url(self.place) else str(Path(self.place, name)))

    def names(self) -> list[str]:
        """The files in it and below, in order of their names; none where there is no folder."""
        if is_url(self.place):
            return sorted(_names(open_store(self.place)))
        files = (path for path in Path(self.place).rglob("*") if path.is_file())
        return sorted(path.relative_to(self.place).as_posix() for path in files)

    def read(self, name: str) -> bytes | None:
        """What the file ``name`` in it holds; None where there is none."""
        try:
            return open_store(self.place).read(name) if is_url(self.place) else Path(self.place, name).read_bytes()
        except FileNotFoundError:
            return None

    def check(self, force: bool) -> None:
        """Refuse a folder that holds files, unless ``force``, before any work is done.

        Raises UsageError, and InputError where a store cannot be used.
        """
        if not is_url(self.place):
            check_folder(Path(self.place), force)
        elif _names(open_store(self.place)) and not force:
            raise UsageError(
                tr("the folder {path} is not empty", path=self),
                remedy=tr("give another folder with -o, or overwrite with --force"),
            )

    @contextmanager
    def opened(self) -> Iterator[Path]:
        """The folder to write into, made where it is missing. Raises InputError where nothing can be written there.

        What is written into it or deleted from it is so on the store only where the block comes to its end.
        """
        if not is_url(self.place):
            prepare_folder(Path(self.place))
            yield Path(self.place)
            return
        store = open_store(self.place)
        with TemporaryDirectory(prefix="logparse-") as temporary:
            folder = Path(temporary)
            there = _names(store)
            _show(there, folder)
            yield folder
            left = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
            _put(store, {name: path for name, path in left.items() if path.stat().st_size})
            for name in set(there) - set(left):
                store.remove(name)


def _names(store: Store) -> list[str]:
    # obstore refuses keys that would lead out of a folder.
    return [entry["path"] for entry in store.list("")]


def _show(names: list[str], folder: Path) -> None:
    """Let what the store has be seen in the temporary folder, as empty files: no result is empty."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def _put(store: Store, files: dict[str, Path]) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(store.put, files.keys(), files.values()))
