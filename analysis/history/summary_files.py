"""Parquet as the history writes it, and the columns of its summaries.

Comes in: a frame. Goes out: the bytes of a sealed file.
"""

from __future__ import annotations

import hashlib
import io
import uuid
from collections.abc import Iterable, Sequence
from functools import cache

import polars as pl

from analysis.history import seal
from analysis.history.folder import SUFFIX
from analysis.history.migrations import columns_of
from analysis.history.run_records import HEAVY, RUN_COLUMNS, STORE_VERSION
from logparse.lazy_regex import lazy_regex
from logparse.schema import SCHEMA_VERSION

# The column with the summary file that a row is from.
FILE = "summary_file"
# Rows of a bundle that are read at once: whoever asks for the settings of one run has those of so many in memory.
ROWS = 500


def parquet_of(frame: pl.DataFrame, repeated: bool = False) -> bytes:
    """``frame`` as a sealed file without columns that are null everywhere; ``repeated`` is for the rows of a bundle.

    Most columns of a run hold one value or few, so what describes a column outweighs it: statistics, dictionaries and
    a second schema would triple the file. Those of FILE show where the row of a run is.
    """
    import pyarrow.parquet

    filled = [column.name for column in frame if column.null_count() < len(column)] or frame.columns
    table = frame.select(filled).to_arrow()
    metadata = {"logparse.schema_version": str(SCHEMA_VERSION), "logparse.store_version": str(STORE_VERSION)}
    buffer = io.BytesIO()
    statistics = [FILE] if repeated else False
    how = {"compression": "zstd", "use_dictionary": repeated, "write_statistics": statistics, "store_schema": False}
    with pyarrow.parquet.ParquetWriter(buffer, table.schema, **how) as writer:
        writer.write_table(table, ROWS if repeated else None)
        writer.add_key_value_metadata({**metadata, seal.NAME: seal.EMPTY})
    return seal.seal(buffer.getvalue())


@cache
def no_rows(heavy: bool) -> pl.DataFrame:
    """A frame of summaries without rows, with FILE; the HEAVY columns only if asked for."""
    schema = {c.name: c.dtype for c in RUN_COLUMNS if heavy or c.name not in HEAVY}
    return pl.DataFrame(schema={**schema, "release": pl.String(), FILE: pl.String()})


def schema_of(version: int, heavy: bool, without: Sequence[str]) -> pl.Schema | None:
    """What a summary of ``version`` holds, for one scan of many files; None where each has to be read by itself."""
    return columns_of(version, {n: t for n, t in no_rows(heavy).schema.items() if n not in without})


BUNDLE = lazy_regex(r"bundles/(?P<month>\d{4}-\d\d)\.[0-9a-f]+\.v(?P<version>\d+)\.parquet")
REMOVED = lazy_regex(r"removed/(?P<hash>[0-9a-f]{32})\.[0-9a-f]+\.v\d+\.parquet")
REMOVED_VERSION = 1
# The month of runs of old stores without a time.
NO_MONTH = "0000-00"


def hash_of(key: str) -> str:
    """The hash by which the removal of the summary file ``key`` is known, 32 hexadecimal digits."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def removal(key: str) -> str:
    """A new key of a note that the summary file ``key`` was removed: each removal has one of its own."""
    return f"removed/{hash_of(key)}.{uuid.uuid4().hex[:8]}.v{REMOVED_VERSION}{SUFFIX}"


def removed_hashes(keys: Iterable[str]) -> set[str]:
    """The hashes of the files that were removed, by the keys of the notes."""
    return {match["hash"] for match in map(REMOVED.fullmatch, keys) if match}


def month_of(rows: pl.DataFrame) -> pl.Series:
    """The month in which each run was recorded."""
    return rows["recorded_at"].dt.to_string("%Y-%m").fill_null(NO_MONTH)


def bundle_key(month: str, data: bytes, version: int) -> str:
    """The key of a bundle of ``data``."""
    return f"bundles/{month}.{hashlib.sha256(data).hexdigest()[:32]}.v{version}{SUFFIX}"
