"""The history: every recorded run, in plain Parquet that any reader understands.

    DIR/summary/release=CANN%208.0.RC2/<run id>.<hash>.v3.parquet    one row: what the run is and what it achieved
    DIR/steps/release=CANN%208.0.RC2/<run id>.v3.parquet             its step lines
    DIR/bundles/2026-03.<hash>.v3.parquet                            the summaries of a month

A run is recorded when its summary is there; the steps are written before it. Files are never changed, so nothing is
locked, and recording a run again changes nothing. Recording copies summaries into bundles, see ``summaries``. The
name of a summary file has the row's hash: a run that was removed and recorded with other labels has another, so that
no copy of the old row can pass for the new one, whoever writes a bundle meanwhile.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Literal, TypeVar
from urllib.parse import unquote

import polars as pl

from analysis.history.annotations import with_annotations
from analysis.history.events import KEY as EVENT_KEY
from analysis.history.events import Acceptance, Event, read_events, standing
from analysis.history.folder import SUFFIX
from analysis.history.migrations import migrate_steps, refuse_newer
from analysis.history.release_names import check_release, folder_name
from analysis.history.run_records import STORE_VERSION, RunRecord, mask_secrets
from analysis.history.seal import UNREADABLE
from analysis.history.storage import Storage, Warn, first_line, read_file
from analysis.history.summaries import (
    KEY,
    Listing,
    RunFile,
    bundle_months,
    delete_replaced,
    is_dead,
    list_summaries,
    read_summaries,
)
from analysis.history.summary_files import FILE, hash_of, parquet_of, removal, removed_hashes
from analysis.run.tables import STEP_COLUMNS
from logparse.errors import InputError, UsageError, unknown_name
from logparse.findings import warn_caller
from logparse.language import msg, tr
from logparse.light_dataclass import dataclass, field
from logparse.schema import conform

T = TypeVar("T")
# How often files are listed and read, while others compact and remove.
ATTEMPTS = 5
# So many files of their own are read before recording copies them into bundles, or this share of what bundles have.
MOST_LOOSE, LOOSE_SHARE = 100, 0.1

# "completed": the run was known, and its steps, which were lost or damaged, are kept again.
State = Literal["recorded", "known", "completed"]


@dataclass(frozen=True)
class Swept:
    """What ``compact`` did."""

    runs: int
    removed: int


class RecordedElsewhereError(UsageError):
    """The run is kept as one of another release."""


@dataclass(frozen=True)
class History:
    """The runs in a storage. ``warn`` gets a note on every file that is left out, since it cannot be read.

    ``listings`` has the newest listing, for questions about runs that it has.
    """

    storage: Storage
    warn: Warn = field(default=warn_caller, compare=False)
    listings: list[Listing] = field(default_factory=list, compare=False, repr=False)

    def _reading(self, read: Callable[[Listing], T], run_ids: Iterable[str] | None = None) -> T:
        """What ``read`` returns of a new listing, or of the last one that has all ``run_ids``.

        A file that vanishes between listing and reading was compacted or removed meanwhile; then it is listed anew.
        """
        if run_ids is None or not self.listings or not self.listings[0].runs.keys() >= set(run_ids):
            self.listings.clear()
        for _ in range(ATTEMPTS):
            try:
                self.listings[:] = self.listings or [list_summaries(self.storage, self.warn)]
                return read(self.listings[0])
            except FileNotFoundError as error:
                self.listings.clear()
                gone = error
        problem = tr("a file of the history is missing: {reason}", reason=gone)
        raise InputError(problem, remedy=tr("remove the link, or restore its target")) from gone

    def add(self, record: RunRecord) -> State:
        """Keep ``record``, unless the run is there already, whole: what of it cannot be read is written again.

        Raises RecordedElsewhereError where the run is kept under another release, UsageError where the release cannot
        be a folder's name.
        """
        check_release(record.release)
        known = self._reading(lambda listing: self._is_known(record, listing))
        if known and self._has_steps(record.run_id):
            return "known"
        self.storage.put(_key("steps", record.release, record.run_id), parquet_of(record.steps))
        if known:
            return "completed"
        self.storage.put(self._new_key(record), parquet_of(record.summary))
        self.listings.clear()
        return "recorded"

    def _new_key(self, record: RunRecord) -> str:
        """The key of its summary; another one where a file of that name was removed, which may be in a bundle."""
        key = _key("summary", record.release, f"{record.run_id}.{record.row_hash}")
        if hash_of(key) not in removed_hashes(self.storage.keys("removed")):
            return key
        return _key("summary", record.release, f"{record.run_id}.{record.row_hash}{uuid.uuid4().hex[:8]}")

    def _is_known(self, record: RunRecord, listing: Listing) -> bool:
        """Whether a summary of the run is there and can be read. Its name alone is no proof that the run is kept."""
        for file in listing.runs.get(record.run_id, ()):
            if file.release != unquote(folder_name(record.release)):
                raise _recorded_elsewhere(file, record)
            refuse_newer(file.version)
        # A damaged one stays unless the new one has its name: another process may have put it anew meanwhile.
        return not read_summaries(self.storage, lambda _: None, listing, False, [record.run_id]).is_empty()

    def _has_steps(self, run_id: str) -> bool:
        try:
            self.steps(run_id)
        except InputError:
            return False
        return True

    def differences(self, record: RunRecord) -> list[str]:
        """In what ``record`` differs from what is kept of its run; empty where nothing is."""
        kept = self._recorded(True, [record.run_id])
        return [] if kept.is_empty() else record.differences(kept)

    def runs(self, heavy: bool = False) -> pl.DataFrame:
        """All runs with RUN_COLUMNS, ``release`` and ANNOTATION_COLUMNS, in the order of ``recorded_at``.

        HEAVY columns are left out unless ``heavy``. Labels that were given later are added to the recorded ones.
        """
        return with_annotations(self.recorded_rows(heavy), standing(self.events()))

    def recorded_rows(self, heavy: bool = False) -> pl.DataFrame:
        """All runs as they were recorded, without what was noted of them later; columns and order as in ``runs``."""
        return self._recorded(heavy).sort("recorded_at", "run_id")

    def settings(self, run_ids: Sequence[str]) -> pl.DataFrame:
        """The whole rows of ``run_ids`` as ``runs`` has them, HEAVY columns too."""
        return with_annotations(self._recorded(True, run_ids), standing(self.events()))

    def _recorded(self, heavy: bool, run_ids: Sequence[str] | None = None) -> pl.DataFrame:
        """One row of each run as it was recorded: two may have recorded it at once, each with labels of its own."""
        rows = self._reading(lambda some: read_summaries(self.storage, self.warn, some, heavy, run_ids), run_ids)
        return mask_secrets(rows.sort(FILE).unique("run_id", keep="first", maintain_order=True).drop(FILE))

    def row(self, run_id: str) -> pl.DataFrame:
        """The whole row of one run. Raises InputError where its file cannot be read."""
        row = self.settings([run_id])
        if row.is_empty():
            problem = tr("the summary of run {id} cannot be read", id=run_id)
            raise InputError(problem, remedy=tr("record its log again"))
        return row

    def steps(self, run_id: str) -> pl.DataFrame:
        """The steps of one run. Raises InputError where its file is gone or damaged."""
        return self._reading(lambda listing: self._steps(run_id, listing), [run_id])

    def _steps(self, run_id: str, listing: Listing) -> pl.DataFrame:
        """Steps that were lost in an old store are kept again in the present version, next to what is left of them."""
        remedy = tr("record its log again")
        folders = sorted({file.key.split("/")[1] for file in listing.runs.get(run_id, ())})
        for version, folder in product(range(STORE_VERSION, -1, -1), folders):
            key = f"steps/{folder}/{run_id}.v{version}{SUFFIX}"
            try:
                return conform(migrate_steps(read_file(self.storage, key).frame(), version), STEP_COLUMNS)
            except FileNotFoundError:
                continue
            except UNREADABLE as error:
                problem = tr("{path} is damaged: {reason}", path=key, reason=first_line(error))
                raise InputError(problem, remedy=remedy) from error
        raise InputError(tr("the history has no steps of run {id}", id=run_id), remedy=remedy)

    def find(self, prefix: str) -> str:
        """The id of the run that begins with ``prefix``. Raises UsageError for none or several, or an empty one."""
        if not prefix.strip():
            raise UsageError(tr("the run's id is empty"), remedy=tr("`logparse history list` shows the runs"))
        ids = list(self._reading(lambda listing: listing.runs))
        matches = sorted(run_id for run_id in ids if run_id.startswith(prefix))
        if len(matches) > 1:
            raise UsageError(
                tr("{n} runs begin with {prefix}", n=len(matches), prefix=prefix),
                remedy=tr("give more characters: {names}", names=", ".join(matches[:4])),
            )
        if not matches:
            raise unknown_name(msg("run"), prefix, ids, tr("`logparse history list` shows the runs"))
        return matches[0]

    def say(self, events: Sequence[Event]) -> None:
        """Keep events about runs; of each kind the newest applies."""
        for event in events:
            self.storage.put(event.key, parquet_of(event.row))

    def events(self) -> list[Event]:
        """All events about runs after they were recorded, the oldest first."""
        return self._reading(lambda _: read_events(self.storage, self.warn), ())

    def acceptances(self) -> Mapping[str, tuple[Acceptance, ...]]:
        """What is accepted, by run id; the newest of each metric of a run."""
        return standing(self.events()).acceptances

    def remove(self, run_ids: Iterable[str]) -> int:
        """Remove runs and the events about them, the summary first: without it a run does not exist.

        A note that it was removed comes before that, as its row may be in a bundle, now or in a moment. Returns the
        number of runs that existed.
        """
        asked = set(run_ids)
        listing = self._reading(lambda listing: listing)
        gone = [file.key for run_id in asked & listing.runs.keys() for file in listing.runs[run_id]]
        for key in gone:
            self.storage.put(removal(key), parquet_of(pl.DataFrame({FILE: [key]})))
        self._delete([*(listing.own.keys() & gone), *(key for key, run_id in self._about("steps") if run_id in asked)])
        self._delete(key for key, run_id in self._about("events") if run_id in asked)
        self.listings.clear()
        return len(asked & listing.runs.keys())

    def _delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.storage.remove(key)

    def _about(self, table: str) -> list[tuple[str, str]]:
        """The files of a table, ``steps`` or ``events``, and the ids of their runs."""
        pattern = EVENT_KEY if table == "events" else KEY
        return [(match[0], match["run"]) for match in map(pattern.fullmatch, self.storage.keys(table)) if match]

    def bundle_if_many(self) -> None:
        """Copy summaries into bundles where many are in files of their own; they stay there.

        It makes reading faster and nothing else, so that a storage that refuses it does no harm.
        """
        with suppress(InputError):
            listing = self._reading(lambda listing: listing)
            readable = [file for file in listing.loose if file.version <= STORE_VERSION]
            if len(readable) > max(MOST_LOOSE, LOOSE_SHARE * len(listing.bundled)):
                self._bundle(lambda _: None)

    def _bundle(self, warn: Warn) -> tuple[Listing, frozenset[str]]:
        """Write bundles, and delete those that they replaced a day ago. Returns what there was, and what may go."""

        def written(listing: Listing) -> Listing:
            bundle_months(self.storage, warn, listing)
            return listing

        listing = self._reading(written)
        self.listings.clear()
        return listing, delete_replaced(self.storage, listing)

    def compact(self) -> Swept:
        """Put summaries into one file a month, which a day later takes the place of their own files.

        What a newer logparse wrote is left alone. Steps whose summary was never written belong to a run whose recording
        was killed, events about a run that does not exist were written while it was removed.
        """
        # The steps of a run are written before its summary, so they are listed first.
        about = [*self._about("steps"), *self._about("events")]
        listing, safe = self._bundle(self.warn)
        self._delete(key for key, file in listing.own.items() if key in safe and file.version == STORE_VERSION)
        # Copies that versions before bundles wrote for speed.
        self._delete(self.storage.keys("compacted"))
        orphans = [key for key, run_id in about if run_id not in listing.runs] if listing.is_complete else []
        dead = [key for key in orphans if is_dead(self.storage, key)]
        self._delete(dead)
        return Swept(len(listing.runs), len(dead) + self.storage.sweep())


def _key(table: str, release: str, run_id: str) -> str:
    return f"{table}/release={folder_name(release)}/{run_id}.v{STORE_VERSION}{SUFFIX}"


def _recorded_elsewhere(kept: RunFile, record: RunRecord) -> RecordedElsewhereError:
    return RecordedElsewhereError(
        tr("this run is already recorded under {release!r}", release=kept.release),
        where=tr("run {id}", id=kept.run_id),
        remedy=tr(
            "if {release!r} is right, remove it first: logparse history remove {id}",
            release=record.release,
            id=kept.run_id[:12],
        ),
    )
