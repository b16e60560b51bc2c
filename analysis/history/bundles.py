"""Summaries of many runs in one file a month, which ``history compact`` puts in the place of their own files.

    DIR/bundles/2026-03.<hash>.v3.parquet     the rows of runs recorded in that month, whose own files are deleted
    DIR/removed/<hash>.<id>.v1.parquet        the summary file whose row no longer counts, in whatever bundle it is

A row of a bundle counts unless its summary file was removed. Bundles are written before the own files are deleted, and
a removal is noted before anything is deleted: whoever is killed, no run is lost, and none comes back. A run that is
recorded again gets a file of another name. Notes stay for a day, which no compaction takes.

Comes in: keys of files. Goes out: what they are.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable

import polars as pl

from analysis.history.folder import SUFFIX
from logparse.lazy_regex import lazy_regex

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
