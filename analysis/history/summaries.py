"""The summaries of a history: where their rows are, and the rows.

Comes in: a Storage. Goes out: rows of RUN_COLUMNS with FILE, the summary file that each was written to.

The row of a run is in a file of its own, in bundles, or in both. A bundle has the rows of a month, so that reading
thousands of runs is reading a few files. It counts for each file that was not removed, even if that is gone. Rows that
are in several bundles, as two processes may write them at once, count once. Nothing is deleted before a bundle that has
its rows is a day old. So a process may be killed at any moment, and a listing may be old, as on NFS.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from urllib.parse import unquote

import polars as pl
import regex

from analysis.history.folder import DEAD_SECONDS
from analysis.history.migrations import columns_of, migrate_runs
from analysis.history.run_records import STORE_VERSION, conform_runs, mask_secrets
from analysis.history.seal import UNREADABLE
from analysis.history.storage import Storage, StoredFile, Warn, leave_out, left_out_newer, read_files, read_rows, scan
from analysis.history.summary_files import (
    BUNDLE,
    FILE,
    bundle_key,
    hash_of,
    month_of,
    no_rows,
    parquet_of,
    removed_hashes,
    schema_of,
)
from logparse.findings import warning
from logparse.language import tr
from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass

KEY = lazy_regex(
    r"(?:summary|steps)/release=(?P<release>[^/]*)/(?P<run>[0-9a-f]+)(?:\.[0-9a-f]+)?\.v(?P<version>\d+)\.parquet"
)


@dataclass(frozen=True)
class RunFile:
    """A file of a run, by its name: a summary, or steps."""

    key: str
    release: str
    run_id: str
    version: int


@dataclass(frozen=True)
class Bundle:
    """A bundle that can be read. ``files`` are the summary files whose rows count, ``removed`` how many do not."""

    stored: StoredFile
    month: str
    version: int
    files: frozenset[str]
    removed: int


@dataclass(frozen=True)
class Listing:
    """The summary files at a moment, by their keys, and the bundles.

    ``is_complete`` says that no bundle is damaged or of a newer logparse: else some runs are unknown.
    """

    own: Mapping[str, RunFile]
    bundles: tuple[Bundle, ...]
    is_complete: bool

    @cached_property
    def needed(self) -> tuple[Bundle, ...]:
        """The bundles that together have all rows, the largest first; others have no row that these have not."""
        needed, files = [], set[str]()
        for bundle in sorted(self.bundles, key=lambda one: (-len(one.files), one.removed, one.stored.key)):
            if not bundle.files <= files:
                needed.append(bundle)
                files |= bundle.files
        return tuple(needed)

    @cached_property
    def bundled(self) -> frozenset[str]:
        """The files whose rows are in bundles."""
        return frozenset[str]().union(*(bundle.files for bundle in self.needed))

    @property
    def loose(self) -> list[RunFile]:
        """The files whose rows are in no bundle."""
        return [file for key, file in self.own.items() if key not in self.bundled]

    @cached_property
    def runs(self) -> Mapping[str, list[RunFile]]:
        """The summary files of all runs by run id, those too of which only the row in a bundle is left."""
        runs: dict[str, list[RunFile]] = {}
        gone = filter(None, map(run_file, sorted(self.bundled - self.own.keys())))
        for file in (*self.own.values(), *gone):
            runs.setdefault(file.run_id, []).append(file)
        return runs


def run_file(key: str) -> RunFile | None:
    """What a name of a file says; None for a file of no run."""
    match = KEY.fullmatch(key)
    return RunFile(key, unquote(match["release"]), match["run"], int(match["version"])) if match else None


def list_summaries(storage: Storage, warn: Warn) -> Listing:
    """What there is now. Bundles are listed last: another process may move rows into one meanwhile."""
    keys = storage.keys("summary")
    spoilt = {key for key in keys if key != key.encode(errors="replace").decode()}
    for key in spoilt:
        warn(warning("file_left_out", path=ascii(key), reason=tr("its name is not UTF-8")))
    own = {file.key: file for file in map(run_file, keys) if file and file.key not in spoilt}
    matches = {match[0]: match for match in map(BUNDLE.fullmatch, storage.keys("bundles")) if match}
    removed = removed_hashes(storage.keys("removed"))
    newer = [key for key, match in matches.items() if int(match["version"]) > STORE_VERSION]
    left_out_newer(newer, warn)
    stored = read_files(storage, warn, [key for key in matches if key not in newer])
    bundles = [_bundle(file, matches[file.key], removed, warn) for file in stored]
    whole = tuple(bundle for bundle in bundles if bundle)
    return Listing(own, whole, len(whole) == len(matches))


def _bundle(stored: StoredFile, match: regex.Match[str], removed: Collection[str], warn: Warn) -> Bundle | None:
    try:
        files = stored.frame([FILE])[FILE].to_list()
    except UNREADABLE as error:
        leave_out(stored.key, error, warn)
        return None
    counting = frozenset(key for key in files if not removed or hash_of(key) not in removed)
    return Bundle(stored, match["month"], int(match["version"]), counting, len(set(files) - counting))


def read_summaries(
    storage: Storage, warn: Warn, listing: Listing, heavy: bool, run_ids: Collection[str] | None = None
) -> pl.DataFrame:
    """All rows of ``listing``, or those of some runs. HEAVY columns are left out unless ``heavy``."""
    asked = listing.runs if run_ids is None else run_ids
    files = {file.key for run_id in asked for file in listing.runs.get(run_id, ())}
    wanted = [(bundle, files & bundle.files) for bundle in listing.needed]
    bundled = [_rows_of_bundle(bundle, heavy, some) for bundle, some in wanted if some]
    loose = read_loose(storage, warn, [file for file in listing.loose if file.key in files], heavy)
    return pl.concat([no_rows(heavy), *bundled, *loose]).unique(FILE, keep="first", maintain_order=True)


def _rows_of_bundle(bundle: Bundle, heavy: bool, files: Collection[str]) -> pl.DataFrame:
    columns = no_rows(heavy).schema
    rows = scan([bundle.stored.data], columns_of(bundle.version, columns) or columns)
    if bundle.removed or len(files) < len(bundle.files):
        rows = rows.filter(pl.col(FILE).is_in(list(files)))
    return present(rows.collect(), bundle.version, heavy)


def read_loose(
    storage: Storage, warn: Warn, files: Sequence[RunFile], heavy: bool, unknown: bool = False
) -> list[pl.DataFrame]:
    """The rows of files of their own, whatever version each is of, with FILE.

    With ``unknown`` they have the columns too that this logparse does not know, as a newer one may write them.
    """
    left_out_newer([file.key for file in files if file.version > STORE_VERSION], warn)
    names = pl.DataFrame([(f.key, f.release, f.run_id) for f in files], NAMES, orient="row")
    frames = []
    for version in sorted({file.version for file in files if file.version <= STORE_VERSION}):
        schema, keys = schema_of(version, heavy, names.columns), [f.key for f in files if f.version == version]
        for rows in read_rows(storage, warn, keys, schema, unknown):
            named = (
                rows.drop(names.columns, strict=False).rename({"key": FILE}).join(names, FILE, maintain_order="left")
            )
            frames.append(present(named, version, heavy, unknown))
    return frames


# What the name of a file says of its row.
NAMES = {FILE: pl.String(), "release": pl.String(), "run_id": pl.String()}


def present(rows: pl.DataFrame, version: int, heavy: bool, unknown: bool = False) -> pl.DataFrame:
    """Rows of ``version`` with the columns of the present one, FILE, and the whole name of the release."""
    whole = conform_runs(migrate_runs(rows, version)).with_columns(rows[FILE])
    known = whole.with_columns(release=pl.coalesce("long_release", "release")).select(no_rows(heavy).columns)
    more = [name for name in rows.columns if name not in whole.columns]
    return known.with_columns(rows.select(more)) if unknown and version == STORE_VERSION else known


def bundle_months(storage: Storage, warn: Warn, listing: Listing) -> None:
    """Write a bundle of each month that has loose files, several bundles, or rows that were removed."""
    parts = {bundle.month: list[pl.DataFrame]() for bundle in listing.needed}
    for rows in read_loose(storage, warn, listing.loose, heavy=True, unknown=True):
        by_month = rows.with_columns(month=month_of(rows)).partition_by("month", as_dict=True, include_key=False)
        for (month,), part in by_month.items():
            parts.setdefault(str(month), []).append(part)
    for month, loose in parts.items():
        bundles = [bundle for bundle in listing.needed if bundle.month == month]
        if loose or len(bundles) > 1 or bundles[0].removed:
            # Files stay as they are if columns that this logparse does not know have types that exclude each other.
            with suppress(pl.exceptions.PolarsError):
                _write_bundle(storage, month, [*map(_rows_of, bundles), *loose])


def _rows_of(bundle: Bundle) -> pl.DataFrame:
    rows = bundle.stored.frame()
    return present(rows.filter(pl.col(FILE).is_in(list(bundle.files))), bundle.version, heavy=True, unknown=True)


def _write_bundle(storage: Storage, month: str, parts: Sequence[pl.DataFrame]) -> None:
    rows = pl.concat(parts, how="diagonal_relaxed").unique(FILE, keep="first", maintain_order=True).sort(FILE)
    data = parquet_of(mask_secrets(rows), repeated=True)
    storage.put(bundle_key(month, data, STORE_VERSION), data)


def delete_replaced(storage: Storage, listing: Listing) -> frozenset[str]:
    """Delete bundles whose rows others have. Returns the names of the files whose rows a bundle has for a day."""
    aged = [bundle.files for bundle in listing.needed if is_dead(storage, bundle.stored.key)]
    safe = frozenset[str]().union(*aged)
    for bundle in listing.bundles:
        if bundle not in listing.needed and bundle.files <= safe:
            storage.remove(bundle.stored.key)
    return safe


def is_dead(storage: Storage, key: str) -> bool:
    """Whether a file is older than any process that may still work on it."""
    with suppress(FileNotFoundError):
        return storage.age_seconds(key) > DEAD_SECONDS
    return False
