"""Logs on object stores: what a URL names, and its bytes as they come, gone on with where a connection was cut."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import takewhile
from typing import Any

from logparse.inputs.stores import HTTP, Store, open_page, open_store, refusal, split_url
from logparse.language import tr
from logparse.light_dataclass import dataclass

BUFFER_BYTES = 2**18
# Connections cut one after the other without a byte between them, and the wait before the next, which doubles.
TRIES = 4
WAIT_SECONDS = 0.1


@dataclass(frozen=True)
class StoredObject:
    """An object under ``key`` of a store, ``size`` bytes when it was found."""

    store: Store
    key: str
    size: int

    @property
    def name(self) -> str:
        """Its URL, as it may be printed."""
        return self.store.name(self.key)

    def open(self) -> io.BufferedReader:
        """Its bytes, streamed; they can be sought in. Reading raises InputError where the store fails for good."""
        return io.BufferedReader(_Bytes(self), BUFFER_BYTES)


class _Bytes(io.RawIOBase):
    """The bytes of an object from where they were sought; a cut connection is gone on with from the byte reached."""

    def __init__(self, place: StoredObject) -> None:
        self._place = place
        self._size, self._e_tag = place.size, None
        self._at = 0
        self._chunks: Iterator[Any] | None = None
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence] + offset
        if begin != self._at:
            self._at, self._chunks, self._rest = begin, None, memoryview(b"")
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        if not self._rest:
            self._rest = memoryview(self._next())
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        self._at += count
        return count

    def _next(self) -> Any:
        """The next chunk, empty at the end. Raises InputError for a connection that is cut again and again."""
        for again in range(TRIES):
            if self._at >= self._size:
                return b""
            chunks = self._chunks or self._begin()
            try:
                return next(chunks, b"")
            except Exception as error:
                self._chunks, cut = None, error
                time.sleep(WAIT_SECONDS * 2**again)
        where = tr("byte {at} of {size}", at=self._at, size=self._size)
        raise refusal("read", self._place.name, cut, where) from cut

    def _begin(self) -> Iterator[Any]:
        answer = self._place.store.get(self._place.key, self._at, self._e_tag)
        # An object that has been replaced since it was found has another size; from now on it must stay the same.
        self._size, self._e_tag = answer.meta["size"], answer.meta["e_tag"]
        # As they come: what is held back for a larger chunk is lost where the connection is cut.
        self._chunks = iter(answer.stream(min_chunk_size=1))
        return self._chunks


def find_objects(url: str) -> list[StoredObject]:
    """The objects that ``url`` names, in no order: one, those below a folder, those that a glob over keys fits.

    Raises InputError where the store refuses, UsageError for a URL that cannot be used.
    """
    if url.startswith(HTTP):
        return [_one(open_page(url), "")]
    place, key = split_url(url)
    store = open_store(place)
    if _is_pattern(key):
        return _matching(store, key)
    if key and not key.endswith("/"):
        # A folder may be named without its slash; listing reports a missing bucket.
        with suppress(FileNotFoundError):
            return [_one(store, key, gone=True)]
    return _below(store, key.rstrip("/"))


def names_folder(url: str, objects: Sequence[StoredObject]) -> bool:
    """Whether ``url``, which has led to ``objects``, names a folder, and neither one object nor a pattern."""
    key = split_url(url)[1]
    return not (url.startswith(HTTP) or _is_pattern(key) or [one.key for one in objects] == [key])


def entries(url: str) -> list[str]:
    """The URLs of what lies in the folder ``url``, sorted; ``url`` itself where it names an object or is a pattern.

    Raises as ``find_objects``.
    """
    objects = find_objects(url)
    if not names_folder(url, objects):
        return [url]
    skip = len(split_url(url)[1].rstrip("/"))
    inside = (one.key[skip:].lstrip("/").partition("/") for one in objects)
    return sorted({f"{url.rstrip('/')}/{name}{slash}" for name, slash, _ in inside})


def listed(url: str) -> list[str]:
    """The URLs of what lies in a folder that is named with its slash, or fits a pattern; else ``url``, and no request.

    Raises as ``find_objects``.
    """
    if url.startswith(HTTP):
        return [url]
    place, key = split_url(url)
    if _is_pattern(key):
        return sorted(f"{place}/{one.key}" for one in find_objects(url))
    return entries(url) if url.endswith("/") else [url]


def _one(store: Store, key: str, gone: bool = False) -> StoredObject:
    # Its bytes are not read. HEAD would do, but says no reason where it is refused, and few signed URLs allow it.
    return StoredObject(store, key, store.get(key, gone=gone).meta["size"])


def _below(store: Store, folder: str) -> list[StoredObject]:
    """All objects below ``folder``, but for those that are hidden there."""
    objects = [StoredObject(store, meta["path"], meta["size"]) for meta in store.list(folder)]
    skip = len(folder) + 1 if folder else 0
    # Some tools put an empty object in the place of a folder.
    parts = ((one, one.key[skip:].split("/")) for one in objects if one.key != folder)
    return [one for one, names in parts if not any(name.startswith(".") for name in names)]


def _is_pattern(key: str) -> bool:
    return any(sign in key for sign in "*?[")


def _matching(store: Store, pattern: str) -> list[StoredObject]:
    parts = pattern.split("/")
    plain = list(takewhile(lambda part: not _is_pattern(part), parts))
    objects = (StoredObject(store, meta["path"], meta["size"]) for meta in store.list("/".join(plain)))
    return [one for one in objects if one.key == pattern or _fits(one.key.split("/"), parts)]


def _fits(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """As a shell does: a wildcard matches no slash and no dot at the beginning, ``**`` matches any folders."""
    if not pattern:
        return not names
    first, *rest = pattern
    if first == "**":
        visible = takewhile(lambda n: not any(name.startswith(".") for name in names[:n]), range(len(names) + 1))
        return any(_fits(names[n:], rest) for n in visible)
    if not names or (names[0].startswith(".") and not first.startswith(".")):
        return False
    return fnmatchcase(names[0], first) and _fits(names[1:], rest)
