"""Where the files of a history lie: a folder, or an object store by its URL.

A file is put whole or not at all and never changed; an object store puts whole objects by itself.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Protocol

import polars as pl

from analysis.history.folder import SUFFIX, Folder
from analysis.history.seal import NAMED_BY_ROW, UNREADABLE, check, quiet_panics
from logparse.findings import Note, warning
from logparse.inputs.stores import Store, is_url, open_store
from logparse.language import tr
from logparse.light_dataclass import dataclass

Warn = Callable[[Note], object]
# Files that are in memory at once, and that are read at once: over a network each takes its time on the way.
BATCH, AT_ONCE = 100, 32


class Storage(Protocol):
    """Files by key, a relative path with ``/``."""

    def exists(self) -> bool:
        """Whether anything was ever put there, as far as that is known."""

    def keys(self, prefix: str) -> list[str]:
        """Parquet files below ``prefix``, sorted."""

    def get(self, key: str) -> bytes:
        """The bytes of a file. Raises FileNotFoundError if it is gone, DamagedError if it cannot be read."""

    def put(self, key: str, data: bytes) -> None:
        """Keep ``data`` under ``key``, whole or not at all."""

    def put_first(self, key: str, data: bytes) -> bytes:
        """What is under ``key``: what was put there first, or else ``data`` from now on."""
        ...

    def remove(self, key: str) -> None:
        """Remove a file; one that is gone already is no error."""

    def age_seconds(self, key: str) -> float:
        """Time since it was put."""

    def sweep(self) -> int:
        """Remove what killed processes left, and say how many files that were."""


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

    def get(self, key: str) -> bytes:
        """Raises FileNotFoundError where it is gone."""
        return self.store.read(key)

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


@dataclass(frozen=True)
class StoredFile:
    """A file that is as it was written, as far as its seal or its name shows that."""

    key: str
    data: bytes
    is_sealed: bool

    def frame(self, columns: list[str] | None = None) -> pl.DataFrame:
        """All that it has, or these columns. Raises one of UNREADABLE."""
        with nullcontext() if self.is_sealed else quiet_panics():
            return pl.read_parquet(io.BytesIO(self.data), columns=columns, hive_partitioning=False)


def read_file(storage: Storage, key: str) -> StoredFile:
    """Raises FileNotFoundError if it is gone, one of UNREADABLE if it is not as it was written."""
    data = storage.get(key)
    return StoredFile(key, data, check(key, data))


def read_files(storage: Storage, warn: Warn, keys: Sequence[str]) -> list[StoredFile]:
    """Those of ``keys`` that are as they were written; each other one is left out, with a note to ``warn``.

    Raises FileNotFoundError if a file is gone and the storage no longer lists it.
    """

    def attempt(key: str) -> StoredFile | BaseException:
        try:
            return read_file(storage, key)
        except (FileNotFoundError, *UNREADABLE) as error:
            return error

    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(attempt, keys))
    whole: list[StoredFile] = []
    for key, result in zip(keys, results, strict=True):
        if isinstance(result, StoredFile):
            whole.append(result)
        elif isinstance(result, FileNotFoundError) and key not in storage.keys(key.partition("/")[0]):
            raise result
        else:
            leave_out(key, result, warn)
    return whole


def read_rows(
    storage: Storage, warn: Warn, keys: Sequence[str], schema: pl.Schema | None, unknown: bool = False
) -> list[pl.DataFrame]:
    """The rows of files of one row each, with a column ``key``: the columns of ``schema``, with ``unknown`` all.

    A file that does not fit the schema is read by itself, with all its columns. Raises as ``read_files``.
    """
    frames: list[pl.DataFrame] = []
    for begin in range(0, len(keys), BATCH):
        files = read_files(storage, warn, keys[begin : begin + BATCH])
        frames += _in_one_scan(files, schema, unknown) or [row for file in files for row in _by_itself(file, warn)]
    return frames


def _in_one_scan(files: Sequence[StoredFile], schema: pl.Schema | None, unknown: bool) -> list[pl.DataFrame]:
    """One frame of all rows; none if that is impossible."""
    sealed = all(file.is_sealed for file in files)
    # A file of an old version has no seal, but its name may prove that it has one row.
    if not files or schema is None or not (sealed or all(NAMED_BY_ROW.fullmatch(file.key) for file in files)):
        return []
    with suppress(*UNREADABLE), nullcontext() if sealed else quiet_panics():
        if unknown:
            more = (pl.read_parquet_schema(io.BytesIO(file.data)) for file in files)
            schema = pl.Schema(dict(column for one in (*more, schema) for column in one.items()))
        rows = scan([file.data for file in files], schema).collect()
        return [rows.with_columns(key=pl.Series([file.key for file in files]))] if len(rows) == len(files) else []
    return []


def _by_itself(file: StoredFile, warn: Warn) -> list[pl.DataFrame]:
    try:
        row = file.frame()
        if len(row) == 1:
            return [row.with_columns(key=pl.lit(file.key))]
        raise pl.exceptions.ShapeError(tr("it has {n} rows, expected 1", n=len(row)))
    except UNREADABLE as error:
        leave_out(file.key, error, warn)
        return []


def scan(files: list[bytes], schema: pl.Schema) -> pl.LazyFrame:
    """Lazily the rows of ``files``: exactly the columns of ``schema``, null where a file has no such column."""
    return pl.scan_parquet(
        files, hive_partitioning=False, schema=schema, missing_columns="insert", extra_columns="ignore"
    )


def leave_out(key: str, error: BaseException, warn: Warn) -> None:
    """Report a file that cannot be read."""
    warn(warning("file_left_out", path=key, reason=first_line(error)))


def left_out_newer(keys: Sequence[str], warn: Warn) -> None:
    """Report files that a newer logparse wrote."""
    if keys:
        warn(warning("newer_left_out", n=len(keys), path=keys[0]))


def first_line(error: BaseException) -> str:
    """The reason why a file cannot be read, in one line."""
    if isinstance(error, FileNotFoundError):
        return tr("the link target does not exist")
    return str(error).partition("\n")[0]
