"""Compacting frees what it replaces: no run is lost, and no removed one comes back, whoever is killed or interferes."""

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from helpers import sweep_after
from releases import record, write_run

from analysis.history.folder import DEAD_SECONDS, Folder
from analysis.history.storage import open_storage
from analysis.history.store import History
from logparse.light_dataclass import dataclass, field, replace

pytestmark = pytest.mark.usefixtures("analysed_once")

OLD = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=40)


def aged(rec, days=0):
    """A record as of more than a day ago."""
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


@pytest.fixture(params=["folder", "bucket"])
def history(request, records, tmp_path):
    if request.param == "bucket":
        pytest.importorskip("obstore")
        (tmp_path / "h").mkdir()
    place = f"file://{tmp_path}/h" if request.param == "bucket" else str(tmp_path / "h")
    made = History(open_storage(place))
    for one in records[:4]:
        made.add(one)
    age_files(tmp_path / "h")
    made.add(records[4])
    return made


def size(place):
    return sum(path.stat().st_size for path in Path(place).rglob("*.parquet"))


def test_compacting_frees_what_it_replaces(history, records, tmp_path):
    before, bytes_before = history.runs(heavy=True), size(tmp_path / "h")
    history.compact()
    assert history.runs(heavy=True).equals(before)
    assert size(tmp_path / "h") < bytes_before
    assert len(history.storage.keys("summary")) == 1
    assert len(history.storage.keys("bundles")) == 2
    files = sorted(path for path in (tmp_path / "h").rglob("*") if path.is_file())
    history.compact()
    assert sorted(path for path in (tmp_path / "h").rglob("*") if path.is_file()) == files
    assert history.settings([records[0].run_id])["settings"].list.len().item() > 10
    assert history.find(records[0].run_id[:8]) == records[0].run_id
    assert len(history.steps(records[0].run_id)) == 20
    assert history.add(records[0]) == "known"
    assert history.differences(records[1]) == []


def test_a_bundled_run_is_removed_and_recorded_again(history, records, tmp_path):
    history.compact()
    assert history.remove([records[0].run_id]) == 1
    assert len(history.runs()) == 4
    history.compact()
    assert len(history.runs()) == 4
    assert history.add(records[0]) == "recorded"
    assert len(history.runs()) == 5
    age_files(tmp_path / "h")
    history.compact()
    history.compact()
    assert len(history.runs()) == 5
    assert history.storage.keys("removed") == []
    assert len(history.storage.keys("summary")) == 1


def test_a_damaged_bundle_is_named_and_costs_no_steps(history, tmp_path):
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


@pytest.fixture
def two_days(records, tmp_path):
    """A folder with a bundle, and with files that are to be bundled; its changes when all is compacted."""
    made = History(Folder(tmp_path / "h"))
    for one in records[:2]:
        made.add(one)
    age_files(tmp_path / "h")
    made.compact()
    for one in records[2:4]:
        made.add(one)
    made.remove([records[1].run_id])
    age_files(tmp_path / "h")
    return made


# Before which change of a compaction something happens: the kinds of change first.
PLACES = [6, 7, 10, 3, 1, 5, 9, 0, 2, 4, 8, 11]


@pytest.mark.parametrize("place", sweep_after(6, PLACES))
def test_a_compaction_that_is_killed_loses_nothing(two_days, tmp_path, place):
    before = two_days.runs(heavy=True)
    try:
        History(Interrupted(tmp_path / "h", place, kill)).compact()
    except KilledError:
        assert place < 11
    assert two_days.runs(heavy=True).equals(before)
    two_days.compact()
    assert two_days.runs(heavy=True).equals(before)


@pytest.mark.parametrize("place", sweep_after(3, PLACES))
def test_what_is_removed_while_another_compacts_stays_removed(two_days, records, tmp_path, place):
    ran = []

    def remove():
        ran.append(two_days.remove([records[2].run_id, records[0].run_id]))

    History(Interrupted(tmp_path / "h", place, remove)).compact()
    expected = {records[3].run_id, *([] if ran else [records[0].run_id, records[2].run_id])}
    assert bool(ran) == (place < 7)
    assert set(two_days.runs()["run_id"]) == expected
    age_files(tmp_path / "h")
    two_days.compact()
    assert set(two_days.runs()["run_id"]) == expected


@pytest.mark.parametrize("place", sweep_after(3, PLACES))
def test_what_is_recorded_again_while_another_compacts_stays(two_days, records, tmp_path, place):
    before = set(two_days.runs()["run_id"])

    def again():
        two_days.remove([records[2].run_id])
        two_days.add(records[2])

    History(Interrupted(tmp_path / "h", place, again)).compact()
    assert set(two_days.runs()["run_id"]) == before
    two_days.compact()
    assert set(two_days.runs()["run_id"]) == before


@pytest.mark.parametrize("place", sweep_after(3, PLACES))
def test_two_that_compact_at_once_lose_nothing(two_days, records, tmp_path, place):
    before = two_days.runs(heavy=True)
    History(Interrupted(tmp_path / "h", place, two_days.compact)).compact()
    assert two_days.runs(heavy=True).equals(before)
    two_days.compact()
    assert two_days.runs(heavy=True).equals(before)


@dataclass(frozen=True)
class Disturbed(Interrupted):
    """A folder in which something happens before the ``place``-th reading."""

    def put(self, key, data):
        Folder.put(self, key, data)

    def remove(self, key):
        Folder.remove(self, key)

    def read(self, keys, schema=None):
        self._next()
        return super().read(keys, schema)


@pytest.mark.parametrize("place", sweep_after(2, [2, 5, 0, 1, 3, 4, 6, 7]))
def test_two_that_read_and_compact_at_once_lose_nothing(two_days, records, tmp_path, place):
    before = two_days.runs(heavy=True)
    History(Disturbed(tmp_path / "h", place, two_days.compact)).compact()
    assert two_days.runs(heavy=True).equals(before)
    assert len(two_days.storage.keys("steps")) == 3
    History(Disturbed(tmp_path / "h", place, two_days.compact)).runs()
    two_days.compact()
    assert two_days.runs(heavy=True).equals(before)
