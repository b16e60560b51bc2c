"""Bundles replace files after a day: no run is lost, and no removed one comes back, whoever is killed or interferes."""

import os
import shutil
import time
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from helpers import sweep_after
from releases import record, write_run

from analysis.history.folder import DEAD_SECONDS, Folder
from analysis.history.storage import open_storage
from analysis.history.store import History
from logparse.errors import InputError
from logparse.light_dataclass import dataclass, field, replace

pytestmark = pytest.mark.usefixtures("analysed_once")

OLD = datetime(2026, 1, 20)


def aged(rec, days=0):
    """A record of January 2026, or so many days later."""
    return replace(rec, summary=rec.summary.with_columns(recorded_at=pl.lit(OLD + timedelta(days=days))))


def age_files(place):
    for path in Path(place).rglob("*.parquet"):
        os.utime(path, (time.time() - 2 * DEAD_SECONDS,) * 2)


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Six records; the first four are of two months."""
    folder = tmp_path_factory.mktemp("records")
    made = [record(write_run(folder / f"{n}.log", n), f"r {n % 2}") for n in range(6)]
    return [*(aged(one, 20 * (n % 2)) for n, one in enumerate(made[:4])), *made[4:]]


@pytest.fixture(scope="module", params=["folder", "bucket"])
def recorded(request, records, tmp_path_factory):
    """A folder ``h`` with a history, and whether it was written as a bucket; tests change copies of it."""
    if request.param == "bucket":
        pytest.importorskip("obstore")
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "h").mkdir()
    made = History(open_storage(place_of(folder, request.param)))
    for one in records[:4]:
        made.add(one)
    age_files(folder / "h")
    made.add(records[4])
    return folder / "h", request.param


def place_of(folder, kind):
    return f"file://{folder}/h" if kind == "bucket" else str(folder / "h")


@pytest.fixture
def history(recorded, tmp_path):
    shutil.copytree(recorded[0], tmp_path / "h")
    return History(open_storage(place_of(tmp_path, recorded[1])))


def size(place):
    return sum(path.stat().st_size for path in Path(place).rglob("*.parquet"))


def test_compacting_frees_a_day_later_what_it_replaces(history, records, tmp_path):
    before, bytes_before = history.runs(heavy=True), size(tmp_path / "h")
    history.compact()
    assert history.runs(heavy=True).equals(before)
    assert [len(history.storage.keys(table)) for table in ("summary", "bundles")] == [5, 3]
    history.compact()
    assert [len(history.storage.keys(table)) for table in ("summary", "bundles")] == [5, 3]
    age_files(tmp_path / "h")
    history.compact()
    assert history.runs(heavy=True).equals(before)
    assert size(tmp_path / "h") < bytes_before
    assert [len(history.storage.keys(table)) for table in ("summary", "bundles")] == [0, 3]
    files = sorted(path for path in (tmp_path / "h").rglob("*") if path.is_file())
    history.compact()
    assert sorted(path for path in (tmp_path / "h").rglob("*") if path.is_file()) == files
    assert history.settings([records[0].run_id])["settings"].list.len().item() > 10
    assert history.find(records[0].run_id[:8]) == records[0].run_id
    assert len(history.steps(records[0].run_id)) == 20
    assert history.add(records[0]) == "known"
    assert history.differences(records[1]) == []


def test_recording_bundles_summaries_where_there_are_many(history, records, tmp_path, monkeypatch):
    """Their files stay, and are read no more."""
    before = history.runs(heavy=True)
    history.bundle_if_many()
    assert history.storage.keys("bundles") == []
    monkeypatch.setattr("analysis.history.store.MOST_LOOSE", 4)
    history.bundle_if_many()
    assert [len(history.storage.keys(table)) for table in ("summary", "bundles")] == [5, 3]
    read = []
    watched = History(Watched(tmp_path / "h", read=read))
    assert watched.runs(heavy=True).equals(before)
    assert {key.partition("/")[0] for key in read} == {"bundles"}
    history.bundle_if_many()
    assert len(history.storage.keys("bundles")) == 3


def test_a_bundle_goes_a_day_after_another_has_its_rows(history, records, tmp_path):
    """Who listed the history before may still read it."""
    history.compact()
    late = aged(records[5])
    history.add(late)
    first = history.storage.keys("bundles")
    history.compact()
    assert set(first) < set(history.storage.keys("bundles"))
    age_files(tmp_path / "h")
    before = history.runs(heavy=True)
    history.compact()
    assert len(history.storage.keys("bundles")) == 3
    assert len(set(first) - set(history.storage.keys("bundles"))) == 1
    assert history.runs(heavy=True).equals(before)


def test_a_history_that_cannot_be_bundled_is_recorded_into(history, monkeypatch):
    """Such as one on a full disk, or of another user: bundles are for speed."""
    monkeypatch.setattr("analysis.history.store.MOST_LOOSE", 4)

    def refuse(*_):
        raise InputError("cannot write")

    monkeypatch.setattr(type(history.storage), "put", refuse)
    history.bundle_if_many()
    assert len(history.runs()) == 5


def test_a_bundled_run_is_removed_and_recorded_again(history, records, tmp_path):
    history.compact()
    assert history.remove([records[0].run_id]) == 1
    assert len(history.runs()) == 4
    history.compact()
    assert len(history.runs()) == 4
    assert history.add(records[0]) == "recorded"
    assert len(history.runs()) == 5
    for _ in range(3):
        age_files(tmp_path / "h")
        history.compact()
        assert len(history.runs()) == 5
    assert [len(history.storage.keys(table)) for table in ("summary", "bundles")] == [0, 3]


def test_a_removed_run_leaves_the_bundles(history, records, tmp_path):
    history.compact()
    history.remove([records[0].run_id])
    for _ in range(2):
        history.compact()
        age_files(tmp_path / "h")
    bundled = pl.concat(pl.read_parquet(path, columns=["run_id"]) for path in (tmp_path / "h/bundles").iterdir())
    assert set(bundled["run_id"]) == {one.run_id for one in records[1:5]}


def test_a_damaged_bundle_is_named_and_costs_no_steps(history, tmp_path):
    history.compact()
    age_files(tmp_path / "h")
    history.compact()
    key = history.storage.keys("bundles")[0]
    (tmp_path / "h" / key).write_bytes(b"PAR1")
    age_files(tmp_path / "h")
    told = []
    careful = replace(history, warn=told.append)
    steps = history.storage.keys("steps")
    assert len(careful.runs()) < 5
    assert [(note.code, note.fields["path"]) for note in told] == [("file_left_out", key)]
    careful.compact()
    assert history.storage.keys("steps") == steps
    assert key in history.storage.keys("bundles")


def test_a_bundle_of_a_newer_logparse_is_left_alone(history, tmp_path):
    history.compact()
    (tmp_path / "h/bundles/2030-01.aa.v9.parquet").write_bytes(b"")
    age_files(tmp_path / "h")
    told = []
    careful = replace(history, warn=told.append)
    steps = history.storage.keys("steps")
    assert len(careful.runs()) == 5
    assert {note.code for note in told} == {"newer_left_out"}
    careful.compact()
    assert history.storage.keys("steps") == steps


class KilledError(Exception):
    """The process is gone."""


@dataclass(frozen=True)
class Interrupted(Folder):
    """A folder in which something happens before the ``place``-th change."""

    place: int = 0
    act: object = None
    done: list = field(default_factory=list)

    def _next(self):
        self.done.append(1)
        if len(self.done) == self.place + 1:
            self.act()

    def put(self, key, data):
        self._next()
        super().put(key, data)

    def remove(self, key):
        self._next()
        super().remove(key)


def kill():
    raise KilledError


@dataclass(frozen=True)
class Watched(Folder):
    """A folder that notes which files are read."""

    read: list = field(default_factory=list)

    def get(self, key):
        self.read.append(key)
        return super().get(key)


@pytest.fixture(scope="module")
def bundled(records, tmp_path_factory):
    """A folder with bundles, and with files that are to be bundled; one of the bundled runs was removed."""
    folder = tmp_path_factory.mktemp("bundled")
    made = History(Folder(folder / "h"))
    for one in records[:2]:
        made.add(one)
    compact_for_two_days(made, folder)
    for one in records[2:4]:
        made.add(one)
    made.remove([records[1].run_id])
    age_files(folder / "h")
    return folder / "h"


@pytest.fixture
def two_days(bundled, tmp_path):
    shutil.copytree(bundled, tmp_path / "h")
    return History(Folder(tmp_path / "h"))


def compact_for_two_days(history, tmp_path):
    """Bundles are written on the first, and what they replace is deleted on the second."""
    for _ in range(2):
        history.compact()
        age_files(tmp_path / "h")


# Before which change of these two compactions something happens: the kinds of change first.
PLACES = [0, 2, 3, 5, 1, 4, 6]
CHANGES = 6


@pytest.mark.parametrize("place", sweep_after(4, PLACES))
def test_a_compaction_that_is_killed_loses_nothing(two_days, tmp_path, place):
    before = two_days.runs(heavy=True)
    try:
        compact_for_two_days(History(Interrupted(tmp_path / "h", place, kill)), tmp_path)
        assert place == CHANGES
    except KilledError:
        assert place < CHANGES
    assert two_days.runs(heavy=True).equals(before)
    compact_for_two_days(two_days, tmp_path)
    assert two_days.runs(heavy=True).equals(before)
    assert two_days.storage.keys("summary") == []


@pytest.mark.parametrize("place", sweep_after(4, PLACES))
def test_what_is_removed_while_another_compacts_stays_removed(two_days, records, tmp_path, place):
    ran = []

    def remove():
        ran.append(two_days.remove([records[2].run_id, records[0].run_id]))

    compact_for_two_days(History(Interrupted(tmp_path / "h", place, remove)), tmp_path)
    expected = {records[3].run_id, *([] if ran else [records[0].run_id, records[2].run_id])}
    assert bool(ran) == (place < CHANGES)
    assert set(two_days.runs()["run_id"]) == expected
    compact_for_two_days(two_days, tmp_path)
    assert set(two_days.runs()["run_id"]) == expected


@pytest.mark.parametrize("place", sweep_after(4, PLACES))
def test_what_is_recorded_again_while_another_compacts_stays(two_days, records, tmp_path, place):
    before = set(two_days.runs()["run_id"])

    def again():
        two_days.remove([records[2].run_id])
        two_days.add(records[2])

    compact_for_two_days(History(Interrupted(tmp_path / "h", place, again)), tmp_path)
    assert set(two_days.runs()["run_id"]) == before
    compact_for_two_days(two_days, tmp_path)
    assert set(two_days.runs()["run_id"]) == before


@pytest.mark.parametrize("place", sweep_after(4, PLACES))
def test_two_that_compact_at_once_lose_nothing(two_days, records, tmp_path, place):
    before = two_days.runs(heavy=True)
    compact_for_two_days(History(Interrupted(tmp_path / "h", place, two_days.compact)), tmp_path)
    assert two_days.runs(heavy=True).equals(before)
    compact_for_two_days(two_days, tmp_path)
    assert two_days.runs(heavy=True).equals(before)


@dataclass(frozen=True)
class Disturbed(Interrupted):
    """A folder in which something happens before the ``place``-th reading."""

    def put(self, key, data):
        Folder.put(self, key, data)

    def remove(self, key):
        Folder.remove(self, key)

    def get(self, key):
        self._next()
        return Folder.get(self, key)


@pytest.mark.parametrize("place", sweep_after(2, [2, 5, 0, 1, 3, 4, 6, 7]))
def test_two_that_read_and_compact_at_once_lose_nothing(two_days, records, tmp_path, place):
    before = two_days.runs(heavy=True)
    History(Disturbed(tmp_path / "h", place, two_days.compact)).compact()
    assert two_days.runs(heavy=True).equals(before)
    age_files(tmp_path / "h")
    assert len(two_days.storage.keys("steps")) == 3
    History(Disturbed(tmp_path / "h", place, two_days.compact)).runs()
    two_days.compact()
    assert two_days.runs(heavy=True).equals(before)
