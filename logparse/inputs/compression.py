"""Compressed bytes to bytes: the kind is known by its magic bytes, whatever the file is called."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from typing import Protocol

# Beginnings of compressed files.
GZIP, BZIP2, XZ, ZSTD = PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd")
DAMAGE = (OSError, EOFError, lzma.LZMAError, zlib.error)


class Stream(Protocol):
    """Bytes that come in the portions they are decompressed in."""

    def read1(self, size: int = ..., /) -> bytes:
        """The next bytes, at most ``size``."""
        ...


def decompressed(buffered: io.BufferedReader) -> Stream:
    """The bytes in ``buffered``, decompressed where they are compressed."""
    magic = buffered.peek(6)[:6]
    if magic.startswith(GZIP):
        return gzip.GzipFile(fileobj=buffered)
    if magic.startswith(BZIP2):
        return bz2.BZ2File(buffered)
    if magic == XZ:
        return lzma.LZMAFile(buffered)
    if magic.startswith(ZSTD):
        import pyarrow as pa

        return io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(buffered, "r"), "zstd"))
    return buffered
