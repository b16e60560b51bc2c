"""Whether a file of the history is as it was written.

A file is sealed: its footer holds the hash of all its bytes, so that a flipped bit is found before a reader of Parquet
meets it. Files of older versions have no seal; of these a summary's name holds the hash of its row.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from threading import RLock

import polars as pl

from analysis.history.run_records import row_hash
from logparse.language import tr
from logparse.lazy_regex import lazy_regex

NAME = "logparse.sha256"
EMPTY = "0" * 64
# The name of the metadata as the footer has it, in Thrift's compact protocol: then come a text and its length.
MARK = NAME.encode() + b"\x18\x40"
HALVES = (MARK[:11], MARK[11:])
NAMED_BY_ROW = lazy_regex(r"summary/.*\.(?P<hash>[0-9a-f]{8})\.v\d+\.parquet")
_STDERR = RLock()


class DamagedError(Exception):
    """A file that is not as it was written."""


# The errors of a file that cannot be read; some files make polars panic.
UNREADABLE = (DamagedError, pl.exceptions.PolarsError, pl.exceptions.PanicException)


def seal(data: bytes) -> bytes:
    """``data``, a Parquet file with the metadata NAME of EMPTY, with its hash there."""
    at = data.rfind(MARK) + len(MARK)
    return data[:at] + _hash(data, at) + data[at + len(EMPTY) :]


def check(key: str, data: bytes) -> bool:
    """Whether the file is sealed. Raises one of UNREADABLE where it is not as it was written."""
    mark_at = data.rfind(MARK)
    if mark_at >= 0:
        at = mark_at + len(MARK)
        _hold(data[at : at + len(EMPTY)] == _hash(data, at))
        return True
    # A flipped bit in the mark leaves its other half.
    _hold(not any(half in _footer(data) for half in HALVES))
    if named := NAMED_BY_ROW.fullmatch(key):
        with quiet_panics():
            row = pl.read_parquet(io.BytesIO(data), hive_partitioning=False)
            _hold(len(row) == 1 and row_hash(row) == named["hash"])
    return False


def _footer(data: bytes) -> bytes:
    """The end of a Parquet file, whose length is before the magic."""
    return data[-8 - int.from_bytes(data[-8:-4], "little") :]


def _hash(data: bytes, at: int) -> bytes:
    """The hash of ``data`` with an empty seal, which is at ``at``."""
    view = memoryview(data)
    digest = hashlib.sha256(view[:at])
    digest.update(EMPTY.encode())
    digest.update(view[at + len(EMPTY) :])
    return digest.hexdigest().encode()


def _hold(is_whole: bool) -> None:
    if not is_whole:
        raise DamagedError(tr("its content differs from what was written"))


@contextmanager
def quiet_panics() -> Iterator[None]:
    """Discard what polars prints to stderr about a file that it cannot read; print other output afterwards."""
    with _STDERR, TemporaryFile() as printed:
        sys.stderr.flush()
        try:
            stderr = os.dup(2)
        except OSError:
            # It is closed.
            yield
            return
        os.dup2(printed.fileno(), 2)
        try:
            yield
        except UNREADABLE:
            printed.truncate(0)
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            printed.seek(0)
            os.write(2, printed.read())
