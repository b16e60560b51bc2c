"""Where the files of a history lie: a folder, or an object store by its URL.

A file is put whole or not at all and never changed. In a folder it is first written below ``unfinished/``, outside what
any reader of Parquet looks at, and then renamed: no lock, so NFS is safe. An object store puts whole objects by itself.
"""

from __future__ import annotations

import io
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import polars as pl
import regex

from logparse.errors import InputError, UsageError, reason_of
from logparse.language import msg, tr

UNFINISHED = "unfinished"
# Files of one scan: polars holds them all open, and 20,000 at once take more memory than a machine has.
BATCH = 500
# What a killed process left there is dead after this long.
DEAD_SECONDS = 24 * 3600
SUFFIX = ".parquet"
# A store that fails or cannot be reached is asked again for so long; obstore's own three minutes are long to wait for.
RETRY_TIMEOUT = timedelta(seconds=20)
# polars says it so: "Permission denied (os error 13): /path", and shortens the path.
NUMBER_OF_POLARS = regex.compile(r"\(os error (\d+)\)")


class Storage(Protocol):
    """Files by key, a relative path with ``/``."""

    def keys(self, prefix: str) -> list[str]:
        """Parquet files below ``prefix``, sorted."""
        ...

    def read(self, keys: Sequence[str], schema: pl.Schema | None = None) -> pl.DataFrame:
        """Those files one after the other, with a column ``key``: the columns of ``schema``, or all.

        Raises FileNotFoundError where one is gone.
        """
        ...

    def put(self, key: str, data: bytes) -> None:
        """Keep ``data`` under ``key``, whole or not at all."""
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
    if "://" not in place:
        return Folder(Path(place))
    try:
        import obstore.store
    except ImportError as error:
        problem = tr("{place} is on an object store, for which obstore is needed", place=place)
        raise UsageError(problem, remedy=tr("pip install 'logparse[cloud]'")) from error
    try:
        return Bucket(obstore.store.from_url(place, retry_config={"retry_timeout": RETRY_TIMEOUT}), place)
    except Exception as error:
        problem = tr("cannot use {place}: {reason}", place=place, reason=_said(error))
        raise UsageError(problem, remedy=tr("give a URL such as s3://bucket/runs")) from error


@dataclass(frozen=True)
class Folder:
    """A folder of this machine or of a network file system.

    Every method raises InputError where the system refuses; a FileNotFoundError is the caller's.
    """

    root: Path

    def keys(self, prefix: str) -> list[str]:
        """Walked with scandir: of 20,000 files no other property is asked for."""
        with _refusals(msg("cannot read {path}: {reason}"), self.root):
            return sorted(_walk(self.root / prefix, prefix))

    def read(self, keys: Sequence[str], schema: pl.Schema | None = None) -> pl.DataFrame:
        """Where all files have one schema, a batch of them is one scan."""
        paths = {str(self.root / key): key for key in keys}
        with _refusals(msg("cannot read {path}: {reason}"), *paths):
            if schema is None:
                frames = (_scan(path, None).with_columns(key=pl.lit(key)).collect() for path, key in paths.items())
                return pl.concat(frames, how="diagonal_relaxed")
            found = pl.concat(_scan(batch, schema, "key").collect() for batch in _batches(list(paths)))
            return found.with_columns(pl.col("key").str.strip_prefix(f"{self.root}/"))

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


def _batches(paths: list[str]) -> Iterator[list[str]]:
    return (paths[begin : begin + BATCH] for begin in range(0, len(paths), BATCH))


@contextmanager
def _refusals(problem: str, *paths: str | Path) -> Iterator[None]:
    """Tell what the system refuses, and of which file. A FileNotFoundError passes."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        number = NUMBER_OF_POLARS.search(str(error))
        reason = tr(os.strerror(int(number[1]))) if number else reason_of(error)
        refused = error.filename or next((p for p in paths if not os.access(p, os.R_OK)), paths[0])
        said = tr(problem, path=refused, reason=reason)
        raise InputError(said, remedy=tr("check the path and its permissions")) from error


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


def _scan(source: Any, schema: pl.Schema | None, path: str | None = None) -> pl.LazyFrame:
    """Lazily ``source``; with ``schema`` exactly its columns, those that a file lacks null."""
    if schema is None:
        return pl.scan_parquet(source, glob=False, hive_partitioning=False)
    return pl.scan_parquet(
        source,
        glob=False,
        hive_partitioning=False,
        schema=schema,
        missing_columns="insert",
        extra_columns="ignore",
        include_file_paths=path,
    )


@dataclass(frozen=True)
class Bucket:
    """An object store, through obstore; ``place`` is its URL.

    Every method raises InputError where the store refuses, or does not answer.
    """

    store: Any
    place: str

    def keys(self, prefix: str) -> list[str]:
        """Listed in pages by obstore."""
        import obstore

        def listed() -> list[str]:
            return [meta["path"] for page in obstore.list(self.store, prefix) for meta in page]

        found = self._try(listed, msg("cannot read {path}: {reason}"), prefix)
        return sorted(key for key in found if key.endswith(SUFFIX))

    def read(self, keys: Sequence[str], schema: pl.Schema | None = None) -> pl.DataFrame:
        """Several at once, because each takes its time on the way."""
        with ThreadPoolExecutor(32) as pool:
            frames = list(pool.map(lambda key: self._frame(key, schema), keys))
        return pl.concat(frames, how="diagonal_relaxed")

    def put(self, key: str, data: bytes) -> None:
        """Seen whole or not at all, also where obstore sends it in parts."""
        import obstore

        self._try(lambda: obstore.put(self.store, key, data), msg("cannot write {path}: {reason}"), key)

    def remove(self, key: str) -> None:
        """S3 itself says nothing of a key that is not there, other stores do."""
        import obstore

        with suppress(FileNotFoundError):
            self._try(lambda: obstore.delete(self.store, key), msg("cannot remove {path}: {reason}"), key, gone=True)

    def age_seconds(self, key: str) -> float:
        """By the store's clock of the putting. Raises FileNotFoundError where it is gone."""
        import obstore

        told = self._try(lambda: obstore.head(self.store, key), msg("cannot read {path}: {reason}"), key, gone=True)
        return time.time() - float(told["last_modified"].timestamp())

    def sweep(self) -> int:
        """Nothing unfinished is ever seen in an object store."""
        return 0

    def _frame(self, key: str, schema: pl.Schema | None) -> pl.DataFrame:
        import obstore

        def taken() -> bytes:
            return bytes(obstore.get(self.store, key).bytes())

        data = self._try(taken, msg("cannot read {path}: {reason}"), key, gone=True)
        return _scan(io.BytesIO(data), schema).with_columns(key=pl.lit(key)).collect()

    def _try(self, act: Callable[[], Any], problem: str, key: str, gone: bool = False) -> Any:
        """What ``act`` returns. With ``gone`` a FileNotFoundError is the caller's; else it tells of the bucket."""
        try:
            return act()
        except Exception as error:
            if gone and isinstance(error, FileNotFoundError):
                raise
            told = tr(problem, path=f"{self.place.rstrip('/')}/{key}", reason=_said(error))
            remedy = tr("check the URL and the credentials, and that the store can be reached")
            raise InputError(told, remedy=remedy) from error


def _said(error: Exception) -> str:
    """What a store said of a failure, without obstore's dump of it, and without the query, which may hold a secret."""
    told = str(error).partition("\n\nDebug source")[0]
    message = regex.search(r"<Message>([^<\n]+)", told)
    first = told.partition("\n")[0].rpartition("Error performing ")[2]
    return message[1] if message else regex.sub(r"\?\S+", "", first)
