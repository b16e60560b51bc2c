"""The history: every recorded run, in plain Parquet that any reader understands.

    DIR/summary/release=CANN%208.0.RC2/<run id>.v1.parquet    one row: what the run is and what it achieved
    DIR/steps/release=CANN%208.0.RC2/<run id>.v1.parquet      its step lines
    DIR/compacted/<hash>.v1.parquet                           copies of summary rows, for speed; may be deleted

A run is recorded when its summary is there; the steps are written before it. Files are never changed, so nothing is
locked, and recording a run again changes nothing. A row of ``compacted`` counts only while its summary file is there.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar
from urllib.parse import quote, unquote

import polars as pl
import regex

from analysis.releases.migrations import migrate
from analysis.releases.records import HEAVY, RUN_COLUMNS, STORE_VERSION, RunRecord, conform_runs
from analysis.releases.shelf import DEAD_SECONDS, SUFFIX, Shelf
from logparse.errors import InputError, UsageError, unknown_name
from logparse.language import msg, tr
from logparse.schema import STEP_COLUMNS, conform

# A name of a folder may have 255 bytes.
LONGEST_RELEASE = 240
KEY = regex.compile(r"(?:summary|steps)/release=(?P<release>[^/]*)/(?P<run>[0-9a-f]+)\.v(?P<version>\d+)\.parquet")
COMPACTED = regex.compile(r"compacted/[0-9a-f]+\.v(?P<version>\d+)\.parquet")
# Files that vanish between listing and reading were compacted or removed meanwhile; then it is listed anew.
ATTEMPTS = 5

T = TypeVar("T")


@dataclass(frozen=True)
class Kept:
    """A file of the history."""

    key: str
    release: str
    run_id: str
    version: int


@dataclass(frozen=True)
class Swept:
    """What ``compact`` did."""

    runs: int
    removed: int


@dataclass(frozen=True)
class History:
    """The runs on a shelf."""

    shelf: Shelf

    def add(self, record: RunRecord) -> Literal["recorded", "known"]:
        """Keep ``record``; "known" where it is there already.

        Raises UsageError where the run is kept under another release, or the release cannot be a folder's name.
        """
        check_release(record.release)
        for kept in self._kept("summary"):
            if kept.run_id == record.run_id and kept.release == record.release:
                return "known"
            if kept.run_id == record.run_id:
                raise _recorded_elsewhere(kept, record)
        for table, frame in (("steps", record.steps), ("summary", record.summary)):
            self.shelf.put(_key(table, record.release, record.run_id), _parquet(frame))
        return "recorded"

    def runs(self, heavy: bool = False) -> pl.DataFrame:
        """All runs, RUN_COLUMNS and ``release``, in the order of ``recorded_at``; without HEAVY unless asked for."""
        frame = self._again(lambda: self._runs(heavy))
        return frame.unique("run_id", keep="first", maintain_order=True).sort("recorded_at", "run_id")

    def settings(self, run_ids: Sequence[str]) -> pl.DataFrame:
        """The whole rows of ``run_ids``, HEAVY columns too."""
        return self._again(lambda: self._read(k for k in self._kept("summary") if k.run_id in set(run_ids)))

    def steps(self, run_id: str) -> pl.DataFrame:
        """The steps of one run. Raises InputError where its file is gone."""
        found = [k for k in self._kept("steps") if k.run_id == run_id]
        if not found:
            problem = tr("the history has no steps of run {id}", id=run_id)
            raise InputError(problem, remedy=tr("remove the run and record its log again"))
        return conform(self.shelf.read([found[0].key]), STEP_COLUMNS)

    def find(self, prefix: str) -> str:
        """The id of the run that begins with ``prefix``. Raises UsageError for none or several."""
        ids = [k.run_id for k in self._kept("summary")]
        found = sorted({i for i in ids if i.startswith(prefix)})
        if len(found) > 1:
            raise UsageError(
                tr("{n} runs begin with {prefix}", n=len(found), prefix=prefix),
                remedy=tr("give more of it: {names}", names=", ".join(found[:4])),
            )
        if not found:
            raise unknown_name(msg("run"), prefix, ids, tr("`logparse history list` shows the runs"))
        return found[0]

    def remove(self, run_ids: Iterable[str]) -> int:
        """Remove runs, the summary first: without it a run is not there. Returns how many were."""
        asked = set(run_ids)
        gone = {k.run_id for k in self._kept("summary") if k.run_id in asked}
        for table in ("summary", "steps"):
            for kept in self._kept(table):
                if kept.run_id in asked:
                    self.shelf.remove(kept.key)
        return len(gone)

    def compact(self) -> Swept:
        """Copy all summary rows into one file, so that reading them is one access, and clear what the dead left."""
        runs = self.runs(heavy=True)
        data = _parquet(runs)
        name = hashlib.sha256(data).hexdigest()[:32]
        key = f"compacted/{name}.v{STORE_VERSION}{SUFFIX}"
        older = [old for old in self.shelf.keys("compacted") if old != key]
        self.shelf.put(key, data)
        for old in older:
            self.shelf.remove(old)
        return Swept(len(runs), self._sweep())

    def _sweep(self) -> int:
        """Steps whose summary was never written belong to a run whose recording was killed."""
        known = {k.run_id for k in self._kept("summary")}
        orphans = [k.key for k in self._kept("steps") if k.run_id not in known]
        dead = [key for key in orphans if self.shelf.age_seconds(key) > DEAD_SECONDS]
        for key in dead:
            self.shelf.remove(key)
        return len(dead) + self.shelf.sweep()

    def _kept(self, table: str) -> list[Kept]:
        found = (KEY.fullmatch(key) for key in self.shelf.keys(table))
        return [Kept(m[0], unquote(m["release"]), m["run"], int(m["version"])) for m in found if m]

    def _runs(self, heavy: bool) -> pl.DataFrame:
        kept = self._kept("summary")
        copied = self._copied(heavy).filter(pl.col("run_id").is_in([k.run_id for k in kept]))
        known = set(copied["run_id"])
        return pl.concat([copied, self._read((k for k in kept if k.run_id not in known), heavy)])

    def _copied(self, heavy: bool) -> pl.DataFrame:
        files = (COMPACTED.fullmatch(key) for key in self.shelf.keys("compacted"))
        frames = [self._present([m[0]], int(m["version"]), heavy, {}) for m in files if m]
        return pl.concat([_no_runs(heavy), *frames]).unique("run_id", keep="last", maintain_order=True)

    def _read(self, kept: Iterable[Kept], heavy: bool = True) -> pl.DataFrame:
        """The summary rows of some files, whatever version each is of."""
        frames = [_no_runs(heavy)]
        versions: dict[int, dict[str, str]] = {}
        for one in kept:
            versions.setdefault(one.version, {})[one.key] = one.release
        frames += [self._present(list(keys), version, heavy, keys) for version, keys in versions.items()]
        return pl.concat(frames)

    def _present(self, keys: list[str], version: int, heavy: bool, releases: dict[str, str]) -> pl.DataFrame:
        """Rows in the present version; ``releases`` by key, where the rows do not tell."""
        schema = _no_runs(heavy, release=not releases).schema if version == STORE_VERSION else None
        rows = migrate(self.shelf.read(keys, schema), version)
        if releases:
            named = pl.DataFrame({"key": list(releases), "release": list(releases.values())})
            rows = rows.join(named, on="key", maintain_order="left")
        return conform_runs(rows).select(_no_runs(heavy).columns)

    def _again(self, read: Callable[[], T]) -> T:
        for _ in range(ATTEMPTS - 1):
            try:
                return read()
            except FileNotFoundError:
                continue
        return read()


def check_release(release: str) -> None:
    """Raise UsageError for a release that cannot name a folder."""
    if not release.strip():
        remedy = tr('name what was changed: --release "CANN 8.0.RC2"')
        raise UsageError(tr("the release is empty"), remedy=remedy)
    if len(_quoted(release)) > LONGEST_RELEASE:
        remedy = tr("give a shorter one, and the rest as --label")
        raise UsageError(tr("the name of the release is too long"), remedy=remedy)


def _quoted(release: str) -> str:
    return quote(release, safe="")


def _key(table: str, release: str, run_id: str) -> str:
    return f"{table}/release={_quoted(release)}/{run_id}.v{STORE_VERSION}{SUFFIX}"


def _parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd", metadata={"logparse.store_version": str(STORE_VERSION)})
    return buffer.getvalue()


def _no_runs(heavy: bool, release: bool = True) -> pl.DataFrame:
    schema = {c.name: c.dtype for c in RUN_COLUMNS if heavy or c.name not in HEAVY}
    return pl.DataFrame(schema=schema | ({"release": pl.String()} if release else {}))


def _recorded_elsewhere(kept: Kept, record: RunRecord) -> UsageError:
    return UsageError(
        tr("this run is recorded already, as a run of {release!r}", release=kept.release),
        where=tr("run {id}", id=kept.run_id),
        remedy=tr(
            "if {release!r} is right, remove it first: logparse history remove {id}",
            release=record.release,
            id=kept.run_id[:12],
        ),
    )
