"""The history: every recorded run, in plain Parquet that any reader understands.

    DIR/summary/release=CANN%208.0.RC2/<run id>.<hash>.v2.parquet    one row: what the run is and what it achieved
    DIR/steps/release=CANN%208.0.RC2/<run id>.v2.parquet             its step lines
    DIR/bundles/2026-03.<hash>.v3.parquet                            summaries of a month, whose own files are deleted
    DIR/compacted/<hash>.<columns>.v2.parquet                        copies of the others, for speed; may be deleted

``bundles`` explains the third. A run is recorded when its summary is there; the steps are written before it. Files are
never changed, so nothing is locked, and recording a run again changes nothing. A row of ``compacted`` counts only while
its summary file is there. The name of that file holds the row's hash: a run that was removed and recorded with other
labels has another, so that no copy of the old row can pass for the new one, whoever compacts meanwhile.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Literal, TypeVar
from urllib.parse import unquote

import polars as pl
import regex

from analysis.history import seal
from analysis.history.annotations import with_annotations
from analysis.history.events import KEY as EVENT_KEY
from analysis.history.events import Acceptance, Event, read_events, standing
from analysis.history.folder import DEAD_SECONDS, SUFFIX
from analysis.history.migrations import columns_of, migrate_runs, migrate_steps, refuse_newer
from analysis.history.release_names import check_release, folder_name
from analysis.history.run_records import RUN_COLUMNS, STORE_VERSION, RunRecord, conform_runs, mask_secrets
from analysis.history.storage import Storage, first_line, left_out_newer, read_whole
from analysis.history.summary_files import (
    BUNDLE,
    FILE,
    bundle_key,
    hash_of,
    month_of,
    no_rows,
    parquet_of,
    removal,
    removed_hashes,
    schema_of,
)
from analysis.run.tables import STEP_COLUMNS
from logparse.errors import InputError, UsageError, unknown_name
from logparse.findings import Note, warn_caller, warning
from logparse.language import msg, tr
from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass, field, replace
from logparse.schema import conform

KEY = lazy_regex(
    r"(?:summary|steps)/release=(?P<release>[^/]*)/(?P<run>[0-9a-f]+)(?:\.[0-9a-f]+)?\.v(?P<version>\d+)\.parquet"
)
COMPACTED = lazy_regex(r"compacted/[0-9a-f]+(?:\.(?P<columns>[0-9a-f]+))?\.v(?P<version>\d+)\.parquet")
# What a logparse compacted that knows other columns hides those that it did not know.
COLUMNS = hashlib.sha256(" ".join(column.name for column in RUN_COLUMNS).encode()).hexdigest()[:8]
# Files that vanish between listing and reading were compacted or removed meanwhile; then it is listed anew.
ATTEMPTS = 5

T = TypeVar("T")
# "completed": the run was known, and its steps, which were lost or damaged, are kept again.
State = Literal["recorded", "known", "completed"]


@dataclass(frozen=True)
class HistoryFile:
    """A file of the history, or the row of a bundle that was one."""

    key: str
    release: str
    run_id: str
    version: int
    bundled: bool = False


@dataclass(frozen=True)
class Swept:
    """What ``compact`` did."""

    runs: int
    removed: int


class RecordedElsewhereError(UsageError):
    """The run is kept as one of another release."""


@dataclass(frozen=True)
class History:
    """The runs in a storage. ``warn`` gets a note on every file that is left out, since it cannot be read."""

    storage: Storage
    warn: Callable[[Note], object] = field(default=warn_caller, compare=False)

    def add(self, record: RunRecord) -> State:
        """Keep ``record``, unless the run is there already, whole: what of it cannot be read is written again.

        Raises RecordedElsewhereError where the run is kept under another release, UsageError where the release cannot
        be a folder's name.
        """
        check_release(record.release)
        known = self._again(lambda: self._is_known(record))
        if known and self._has_steps(record.run_id):
            return "known"
        self.storage.put(_key("steps", record.release, record.run_id), parquet_of(record.steps))
        if known:
            return "completed"
        self.storage.put(self._new_key(record), parquet_of(record.summary))
        return "recorded"

    def _new_key(self, record: RunRecord) -> str:
        """The key of its summary; another one where a file of that name was removed, which may be in a bundle."""
        key = _key("summary", record.release, f"{record.run_id}.{record.row_hash}")
        if hash_of(key) not in removed_hashes(self.storage.keys("removed")):
            return key
        return _key("summary", record.release, f"{record.run_id}.{record.row_hash}{uuid.uuid4().hex[:8]}")

    def _is_known(self, record: RunRecord) -> bool:
        """Whether a summary of the run is there and can be read. Its name alone is no proof that the run is kept."""
        summaries = [kept for kept in self._summaries() if kept.run_id == record.run_id]
        for kept in summaries:
            if kept.release != unquote(folder_name(record.release)):
                raise _recorded_elsewhere(kept, record)
            refuse_newer(kept.version)
        # A damaged one stays unless the new one has its name: another process may have put it anew meanwhile.
        quiet = replace(self, warn=lambda _: None)
        return any(k.bundled for k in summaries) or not quiet._read(summaries).is_empty()

    def _has_steps(self, run_id: str) -> bool:
        try:
            self.steps(run_id)
        except InputError:
            return False
        return True

    def differences(self, record: RunRecord) -> list[str]:
        """In what ``record`` differs from what is kept of its run; empty where nothing is."""
        kept = self._recorded([record.run_id])
        return [] if kept.is_empty() else record.differences(kept)

    def runs(self, heavy: bool = False) -> pl.DataFrame:
        """All runs with RUN_COLUMNS, ``release`` and ANNOTATION_COLUMNS, in the order of ``recorded_at``.

        HEAVY columns are left out unless ``heavy``. Labels that were given later are added to the recorded ones.
        """
        return with_annotations(self.recorded_rows(heavy), standing(self.events()))

    def recorded_rows(self, heavy: bool = False) -> pl.DataFrame:
        """All runs as they were recorded, without what was noted of them later; columns and order as in ``runs``."""
        return _one_each(self._again(lambda: self._rows(heavy))).sort("recorded_at", "run_id")

    def settings(self, run_ids: Sequence[str]) -> pl.DataFrame:
        """The whole rows of ``run_ids`` as ``runs`` has them, HEAVY columns too."""
        return with_annotations(self._recorded(run_ids), standing(self.events()))

    def _recorded(self, run_ids: Sequence[str]) -> pl.DataFrame:
        """The whole rows as they were recorded."""
        asked = set(run_ids)

        def rows() -> pl.DataFrame:
            kept = self._kept("summary")
            own = self._read([k for k in kept if k.run_id in asked])
            return pl.concat([own, self._bundled(kept, heavy=True).filter(pl.col("run_id").is_in(list(asked)))])

        return _one_each(self._again(rows))

    def say(self, events: Sequence[Event]) -> None:
        """Keep events about runs; of each kind the newest applies."""
        for event in events:
            self.storage.put(event.key, parquet_of(event.row))

    def events(self) -> list[Event]:
        """All events about runs after they were recorded, the oldest first."""
        return self._again(lambda: read_events(self.storage, self.warn))

    def acceptances(self) -> Mapping[str, tuple[Acceptance, ...]]:
        """What is accepted, by run id; the newest of each metric of a run."""
        return standing(self.events()).acceptances

    def row(self, run_id: str) -> pl.DataFrame:
        """The whole row of one run. Raises InputError where its file cannot be read."""
        row = self.settings([run_id])
        if row.is_empty():
            problem = tr("the summary of run {id} cannot be read", id=run_id)
            raise InputError(problem, remedy=tr("record its log again"))
        return row

    def steps(self, run_id: str) -> pl.DataFrame:
        """The steps of one run. Raises InputError where its file is gone or damaged."""
        return self._again(lambda: self._steps(run_id))

    def _steps(self, run_id: str) -> pl.DataFrame:
        files = [k for k in self._kept("steps") if k.run_id == run_id]
        remedy = tr("record its log again")
        if not files:
            raise InputError(tr("the history has no steps of run {id}", id=run_id), remedy=remedy)
        # Steps that were lost in an old store are kept again in the present version, next to what is left of them.
        newest = max(files, key=lambda k: k.version)
        try:
            return conform(migrate_steps(self.storage.read([newest.key]), newest.version), STEP_COLUMNS)
        except seal.UNREADABLE as error:
            problem = tr("{path} is damaged: {reason}", path=newest.key, reason=first_line(error))
            raise InputError(problem, remedy=remedy) from error

    def find(self, prefix: str) -> str:
        """The id of the run that begins with ``prefix``. Raises UsageError for none or several, or an empty one."""
        if not prefix.strip():
            raise UsageError(tr("the run's id is empty"), remedy=tr("`logparse history list` shows the runs"))
        ids = [k.run_id for k in self._again(self._summaries)]
        matches = sorted({i for i in ids if i.startswith(prefix)})
        if len(matches) > 1:
            raise UsageError(
                tr("{n} runs begin with {prefix}", n=len(matches), prefix=prefix),
                remedy=tr("give more characters: {names}", names=", ".join(matches[:4])),
            )
        if not matches:
            raise unknown_name(msg("run"), prefix, ids, tr("`logparse history list` shows the runs"))
        return matches[0]

    def remove(self, run_ids: Iterable[str]) -> int:
        """Remove runs and the events about them, the summary first: without it a run does not exist.

        A note that it was removed comes before that, as somebody may put it into a bundle at this moment. Returns the
        number of runs that existed.
        """
        asked = set(run_ids)
        gone = [kept for kept in self._again(self._summaries) if kept.run_id in asked]
        for kept in gone:
            self.storage.put(removal(kept.key), parquet_of(pl.DataFrame({FILE: [kept.key]})))
        for kept in (*(k for k in gone if not k.bundled), *(k for k in self._kept("steps") if k.run_id in asked)):
            self.storage.remove(kept.key)
        for key, run_id in self._event_files():
            if run_id in asked:
                self.storage.remove(key)
        return len({kept.run_id for kept in gone})

    def compact(self) -> Swept:
        """Put summaries into one file a month in the place of their own files, and copy those of the last day.

        A day later nobody is recording these runs any more. What a newer logparse wrote is left alone, and files of
        older versions stay as they are.
        """
        bundles = self._bundles()
        kept = self._kept("summary")
        rows = mask_secrets(self._again(lambda: self._rows(heavy=True)).sort(FILE))
        freed = self._bundle(rows, kept, bundles)
        self._copy(rows.filter(pl.col(FILE).is_in([k.key for k in kept if k.key not in freed])))
        return Swept(rows["run_id"].n_unique(), self._sweep())

    def _copy(self, rows: pl.DataFrame) -> None:
        """Put ``rows`` into one more file, so that reading them is one access."""
        data = parquet_of(rows, repeated=True)
        key = f"compacted/{hashlib.sha256(data).hexdigest()[:32]}.{COLUMNS}.v{STORE_VERSION}{SUFFIX}"
        older = [file[0] for file in self._compacted() if int(file["version"]) <= STORE_VERSION and file[0] != key]
        if len(rows):
            self.storage.put(key, data)
        for old in older:
            self.storage.remove(old)

    def _bundle(self, rows: pl.DataFrame, kept: Sequence[HistoryFile], bundles: Sequence[regex.Match[str]]) -> set[str]:
        """Write a bundle for each month that changed, and delete what it replaces. Returns the files that are gone.

        ``bundles`` were listed before ``rows`` were read: later ones hold rows that are not known here.
        """
        notes = self.storage.keys("removed")
        old = datetime.now(UTC).replace(tzinfo=None) - timedelta(seconds=DEAD_SECONDS)
        present = [k.key for k in kept if k.version == STORE_VERSION]
        aged = rows.filter(pl.col(FILE).is_in(present) & (pl.col("recorded_at") < old))
        bundled = rows.filter(~pl.col(FILE).is_in([k.key for k in kept]))
        content = pl.concat([aged, bundled])
        months = content.with_columns(month=month_of(content)).partition_by("month", as_dict=True, include_key=False)
        by_month = {str(month): part for (month,), part in months.items()}
        whole = [(match, part) for match in bundles if (part := self._read_bundle(match, heavy=False)) is not None]
        for month in sorted({*by_month, *(match["month"] for match, _ in whole)}):
            replaced = [(match[0], part) for match, part in whole if match["month"] == month]
            self._write_bundle(by_month.get(month, no_rows(heavy=True)), month, replaced)
        if len(whole) == len(bundles):
            # No bundle has the rows any more that these notes are about.
            self._remove(note for note in notes if self._is_dead(note))
        freed = {key for key in aged[FILE] if self._is_dead(key)}
        self._remove(freed)
        return freed

    def _remove(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.storage.remove(key)

    def _write_bundle(self, rows: pl.DataFrame, month: str, replaced: Sequence[tuple[str, pl.DataFrame]]) -> None:
        """Put ``rows`` of a month into one file; delete the files that it replaces. The same rows are written once."""
        if len(replaced) == 1 and set(replaced[0][1][FILE]) == set(rows[FILE]):
            return
        data = parquet_of(rows.sort(FILE), repeated=True)
        key = bundle_key(month, data, STORE_VERSION)
        if len(rows):
            self.storage.put(key, data)
        for old, _ in replaced:
            if old != key:
                self.storage.remove(old)

    def _sweep(self) -> int:
        """Steps whose summary was never written belong to a run whose recording was killed.

        Events about a run that does not exist were written while it was removed. Where a bundle cannot be read, nobody
        knows which runs exist.
        """
        if any(self._read_bundle(match, heavy=False) is None for match in self._bundles()):
            return self.storage.sweep()
        known = {k.run_id for k in self._again(self._summaries)}
        about = [*((k.key, k.run_id) for k in self._kept("steps")), *self._event_files()]
        orphans = [key for key, run_id in about if run_id not in known]
        dead = [key for key in orphans if self._is_dead(key)]
        for key in dead:
            self.storage.remove(key)
        return len(dead) + self.storage.sweep()

    def _is_dead(self, key: str) -> bool:
        with suppress(FileNotFoundError):
            return self.storage.age_seconds(key) > DEAD_SECONDS
        return False

    def _event_files(self) -> list[tuple[str, str]]:
        """The keys of events, and the ids of their runs."""
        matches = (EVENT_KEY.fullmatch(key) for key in self.storage.keys("events"))
        return [(match[0], match["run"]) for match in matches if match]

    def _kept(self, table: str) -> list[HistoryFile]:
        matches = (KEY.fullmatch(key) for key in self.storage.keys(table) if self._is_named_in_utf8(key))
        return [HistoryFile(m[0], unquote(m["release"]), m["run"], int(m["version"])) for m in matches if m]

    def _is_named_in_utf8(self, key: str) -> bool:
        """Whether ``key`` can be in a table; another one is left out with a note."""
        try:
            key.encode()
        except UnicodeEncodeError:
            self.warn(warning("file_left_out", path=ascii(key), reason=tr("its name is not UTF-8")))
            return False
        return True

    def _compacted(self) -> list[regex.Match[str]]:
        matches = (COMPACTED.fullmatch(key) for key in self.storage.keys("compacted"))
        return [match for match in matches if match]

    def _summaries(self) -> list[HistoryFile]:
        """The summaries of all runs: files of their own, and rows of bundles under the names that their files had."""
        kept = self._kept("summary")
        matches = filter(None, map(KEY.fullmatch, self._bundled(kept, heavy=False)[FILE]))
        bundled = (HistoryFile(m[0], unquote(m["release"]), m["run"], int(m["version"]), bundled=True) for m in matches)
        return [*kept, *bundled]

    def _bundles(self) -> list[regex.Match[str]]:
        matches = (BUNDLE.fullmatch(key) for key in self.storage.keys("bundles"))
        return [match for match in matches if match]

    def _read_bundle(self, match: regex.Match[str], heavy: bool) -> pl.DataFrame | None:
        """The rows of a bundle; None, with a note, for one that is damaged or of a newer logparse.

        None also for one that another compaction replaced meanwhile.
        """
        with suppress(FileNotFoundError):
            return next(iter(self._read_bundles([match], heavy)), None)
        return None

    def _read_bundles(self, bundles: Sequence[regex.Match[str]], heavy: bool) -> list[pl.DataFrame]:
        """The rows of those that can be read, each of the present version."""
        left_out_newer([match[0] for match in bundles if int(match["version"]) > STORE_VERSION], self.warn)
        versions = sorted({int(match["version"]) for match in bundles} & set(range(STORE_VERSION + 1)))
        parts: list[pl.DataFrame] = []
        for version in versions:
            keys = [match[0] for match in bundles if int(match["version"]) == version]
            parts += self._whole(keys, partial(self._present_bundles, version=version, heavy=heavy))
        return parts

    def _present_bundles(self, keys: Sequence[str], version: int, heavy: bool) -> pl.DataFrame:
        schema = columns_of(version, no_rows(heavy).schema)
        rows = migrate_runs(self.storage.read(keys, schema), version)
        return conform_runs(rows).with_columns(rows[FILE]).select(no_rows(heavy).columns)

    def _bundled(self, kept: Sequence[HistoryFile], heavy: bool) -> pl.DataFrame:
        """The rows of bundles whose files are not ``kept`` and were not removed, with FILE.

        The files are listed before the bundles, as a bundle is written before its files are deleted.
        """
        parts = self._read_bundles(self._bundles(), heavy)
        if not parts:
            return no_rows(heavy)
        rows = pl.concat(parts).unique(FILE, keep="last", maintain_order=True)
        own, removed = {k.key for k in kept}, removed_hashes(self.storage.keys("removed"))
        counting = [key for key in rows[FILE] if key not in own and hash_of(key) not in removed]
        return rows.filter(pl.col(FILE).is_in(counting))

    def _rows(self, heavy: bool) -> pl.DataFrame:
        """Every summary row, with FILE: from a bundle, as it was compacted, else from its own file."""
        kept = self._kept("summary")
        bundled = self._bundled(kept, heavy)
        compacted = self._compacted_rows(heavy).filter(pl.col(FILE).is_in([k.key for k in kept]))
        known = set(compacted[FILE])
        return pl.concat([bundled, compacted, self._read([k for k in kept if k.key not in known], heavy)])

    def _compacted_rows(self, heavy: bool) -> pl.DataFrame:
        """The rows of all compacted files that have the present columns."""
        schema = no_rows(heavy).schema
        present = (str(STORE_VERSION), COLUMNS)
        files = [file[0] for file in self._compacted() if (file["version"], file["columns"]) == present]
        frames = self._whole(files, lambda keys: self.storage.read(keys, schema).select(schema.names()))
        return pl.concat([no_rows(heavy), *frames]).unique(FILE, keep="last", maintain_order=True)

    def _read(self, kept: Sequence[HistoryFile], heavy: bool = True) -> pl.DataFrame:
        """The summary rows of some files, whatever version each is of, with FILE."""
        schema = dict.fromkeys((FILE, "release", "run_id"), pl.String)
        named = pl.DataFrame([(k.key, k.release, k.run_id) for k in kept], schema=schema, orient="row")
        frames = [no_rows(heavy)]
        left_out_newer([k.key for k in kept if k.version > STORE_VERSION], self.warn)
        for version in sorted({k.version for k in kept if k.version <= STORE_VERSION}):
            keys = [k.key for k in kept if k.version == version]
            frames += self._whole(keys, partial(self._present, version=version, heavy=heavy, named=named))
        return pl.concat(frames)

    def _present(self, keys: Sequence[str], version: int, heavy: bool, named: pl.DataFrame) -> pl.DataFrame:
        """Rows in the present version, release and run id as the files are ``named``.

        A file by itself is read as it is, whatever types its columns have. Raises PolarsError for one that holds
        anything but one row that can be understood.
        """
        schema = schema_of(version, heavy, named.columns) if len(keys) > 1 else None
        rows = migrate_runs(self.storage.read(keys, schema), version).drop(named.columns, strict=False)
        if rows["key"].to_list() != list(keys):
            raise pl.exceptions.ShapeError(tr("it has {n} rows, expected 1", n=len(rows)))
        rows = rows.rename({"key": FILE}).join(named, on=FILE, maintain_order="left")
        whole = conform_runs(rows).with_columns(rows[FILE], release=pl.coalesce("long_release", "release"))
        return whole.select(no_rows(heavy).columns)

    def _whole(self, keys: Sequence[str], read: Callable[[Sequence[str]], pl.DataFrame]) -> list[pl.DataFrame]:
        return read_whole(self.storage, self.warn, keys, read)

    def _again(self, read: Callable[[], T]) -> T:
        for _ in range(ATTEMPTS):
            try:
                return read()
            except FileNotFoundError as error:
                gone = error
        problem = tr("a file of the history is missing: {reason}", reason=gone)
        raise InputError(problem, remedy=tr("remove the link, or restore its target")) from gone


def _key(table: str, release: str, run_id: str) -> str:
    return f"{table}/release={folder_name(release)}/{run_id}.v{STORE_VERSION}{SUFFIX}"


def _one_each(rows: pl.DataFrame) -> pl.DataFrame:
    """One row of each run: two may have recorded it at once, each with labels of its own."""
    return mask_secrets(rows.sort(FILE).unique("run_id", keep="first", maintain_order=True).drop(FILE))


def _recorded_elsewhere(kept: HistoryFile, record: RunRecord) -> RecordedElsewhereError:
    return RecordedElsewhereError(
        tr("this run is already recorded under {release!r}", release=kept.release),
        where=tr("run {id}", id=kept.run_id),
        remedy=tr(
            "if {release!r} is right, remove it first: logparse history remove {id}",
            release=record.release,
            id=kept.run_id[:12],
        ),
    )
