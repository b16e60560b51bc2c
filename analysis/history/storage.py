"""Where the files of a history lie: a folder, or an object store by its URL.

A file is put whole or not at all and never changed; an object store puts whole objects by itself.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Protocol

import polars as pl

from analysis.history.folder import SUFFIX, Folder, scan
from analysis.history.seal import UNREADABLE, check, quiet_panics
from logparse.findings import Note, warning
from logparse.inputs.stores import Store, is_url, open_store
from logparse.language import tr
from logparse.light_dataclass import dataclass


class Storage(Protocol):
    """Files by key, a relative path with ``/``."""

    def exists(self) -> bool:
        """Whether anything was ever put there, as far as that is known."""
        ...

    def keys(self, prefix: str) -> list[str]:
        """Parquet files below ``prefix``, sorted."""
        ...

    def read(self, keys: Sequence[str], schema: pl.Schema | None = None) -> pl.DataFrame:
        """Those files one after the other, with a column ``key``: the columns of ``schema``, or all.

        Raises FileNotFoundError where one is gone, one of UNREADABLE where one is not as it was written.
        """
        ...

    def put(self, key: str, data: bytes) -> None:
        """Keep ``data`` under ``key``, whole or not at all."""
        ...

    def put_first(self, key: str, data: bytes) -> bytes:
        """What is under ``key``: what was put there first, or else ``data`` from now on."""
        ...

    def remove(self, key: str) -> None:
        """Remove a file; one that is gone already is no error."""
        ...

    def age_seconds(self, key: str) -> float:
        """Time since it was put."""
        ...

    def sweep(self) -> int:
        """Remove what killed processes left, and say how many files that were."""
        ...


def open_storage(place: str) -> Storage:
    """What lies at ``place``: a folder, or a URL such as s3://bucket/runs.

    Raises UsageError where a URL needs the extra ``cloud``, or cannot be used.
    """
    return Bucket(open_store(place)) if is_url(place) else Folder(Path(place))


@dataclass(frozen=True)
class Bucket:
    """An object store. Every method raises InputError where the store refuses, or does not answer."""

    store: Store

    def exists(self) -> bool:
        """A store has no empty folders: a place without objects is most likely mistyped."""
        return self.store.has_any()

    def keys(self, prefix: str) -> list[str]:
        """Listed in pages by obstore."""
        return sorted(meta["path"] for meta in self.store.list(prefix) if meta["path"].endswith(SUFFIX))

    def read(self, keys: Sequence[str], schema: pl.Schema | None = None) -> pl.DataFrame:
        """Several at once, because each takes its time on the way."""
        with ThreadPoolExecutor(32) as pool:
            frames = list(pool.map(lambda key: self._frame(key, schema), keys))
        return pl.concat(frames, how="diagonal_relaxed")

    def put(self, key: str, data: bytes) -> None:
        """Seen whole or not at all."""
        self.store.put(key, data)

    def put_first(self, key: str, data: bytes) -> bytes:
        """Of two who put at once the store refuses one."""
        self.store.put_first(key, data)
        return self.store.read(key)

    def remove(self, key: str) -> None:
        """One that is gone is no error."""
        self.store.remove(key)

    def age_seconds(self, key: str) -> float:
        """By the store's clock of the putting. Raises FileNotFoundError where it is gone."""
        return time.time() - self.store.put_at(key).timestamp()

    def sweep(self) -> int:
        """Nothing unfinished is ever seen in an object store."""
        return 0

    def _frame(self, key: str, schema: pl.Schema | None) -> pl.DataFrame:
        data = self.store.read(key)
        with nullcontext() if check(key, data) else quiet_panics():
            return scan(io.BytesIO(data), schema).with_columns(key=pl.lit(key)).collect()


Warn = Callable[[Note], object]


def read_whole(
    storage: Storage, warn: Warn, keys: Sequence[str], read: Callable[[Sequence[str]], pl.DataFrame]
) -> list[pl.DataFrame]:
    """The frames that ``read`` returns for ``keys``; if it fails, they are halved down to the file that cannot be read.

    Raises FileNotFoundError if a file is gone and the storage no longer lists it.
    """
    if not keys:
        return []
    try:
        return [read(keys)]
    except (FileNotFoundError, *UNREADABLE) as error:
        if isinstance(error, FileNotFoundError) and not _are_listed(storage, keys):
            raise
        if len(keys) == 1:
            warn(warning("file_left_out", path=keys[0], reason=first_line(error)))
            return []
    middle = len(keys) // 2
    return [part for half in (keys[:middle], keys[middle:]) for part in read_whole(storage, warn, half, read)]


def _are_listed(storage: Storage, keys: Sequence[str]) -> bool:
    """Whether all are: such as cannot be found are links that lead nowhere."""
    folder = keys[0].partition("/")[0]
    return set(keys) <= set(storage.keys(folder))


def left_out_newer(keys: Sequence[str], warn: Warn) -> None:
    """Report files that a newer logparse wrote."""
    if keys:
        warn(warning("newer_left_out", n=len(keys), path=keys[0]))


def first_line(error: Exception) -> str:
    """The reason why a file cannot be read, in one line."""
    if isinstance(error, FileNotFoundError):
        return tr("the link target does not exist")
    return str(error).partition("\n")[0]
