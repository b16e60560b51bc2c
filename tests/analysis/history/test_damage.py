"""What is not as it was written is left out and named, whatever became of it; nothing of it is believed."""

import os
import random
import shutil
from pathlib import Path

import polars as pl
import pytest
from helpers import run_logparse
from releases import record, write_run

from analysis.history.folder import Folder
from analysis.history.release_names import folder_name
from analysis.history.selection import select_runs
from analysis.history.store import History
from analysis.history.summary_files import parquet_of
from logparse.errors import InputError

pytestmark = pytest.mark.usefixtures("analysed_once")

OLD = Path(__file__).parent / "stores/v1-en"
FLIPS = 60


@pytest.fixture
def told():
    return []


@pytest.fixture
def history(tmp_path, told):
    made = History(Folder(tmp_path / "h"), warn=told.append)
    made.add(record(write_run(tmp_path / "a.log", 1)))
    made.add(record(write_run(tmp_path / "b.log", 2)))
    return made


def _flips(path):
    """Leave ``path`` with one bit of it turned, FLIPS times."""
    data, draw = path.read_bytes(), random.Random(1)
    for _ in range(FLIPS):
        bit = draw.randrange(8 * len(data))
        spoilt = bytearray(data)
        spoilt[bit // 8] ^= 1 << bit % 8
        path.write_bytes(spoilt)
        yield
    path.write_bytes(data)


@pytest.mark.parametrize("part", ["summary", "bundles"])
def test_every_flipped_bit_is_found(history, tmp_path, told, part):
    before = history.runs(heavy=True)
    if part == "bundles":
        history.compact()
    path = next((tmp_path / "h" / part).rglob("*.parquet"))
    for _ in _flips(path):
        found = history.runs(heavy=True)
        assert [note.fields["path"].rpartition("/")[2] for note in told] == [path.name]
        assert found.equals(before if part == "bundles" else before.filter(pl.col("run_id").is_in(found["run_id"])))
        assert len(found) == (2 if part == "bundles" else 1)
        told.clear()
    assert history.runs(heavy=True).equals(before)


def test_every_flipped_bit_of_steps_is_found(history, tmp_path):
    run_id = history.runs()["run_id"][0]
    for _ in _flips(next((tmp_path / "h/steps").rglob(f"{run_id}*"))):
        with pytest.raises(InputError, match="is damaged: its content differs from what was written"):
            history.steps(run_id)


def test_no_flipped_bit_changes_an_old_summary_unseen(tmp_path, told, capfd):
    """Its file has no seal, so what is not read, such as statistics, may be spoilt."""
    shutil.copytree(OLD, tmp_path / "h")
    history = History(Folder(tmp_path / "h"), warn=told.append)
    before = history.runs(heavy=True)
    told.clear()
    for _ in _flips(next((tmp_path / "h/summary/release=nodes").glob("*.parquet"))):
        assert history.runs(heavy=True).equals(before) != bool(told)
        told.clear()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("cut", [slice(0, 3), slice(0, -9), slice(100, None)])
def test_a_torn_file_is_told_in_a_line(history, tmp_path, cut):
    path = next((tmp_path / "h/summary").rglob("*.parquet"))
    path.write_bytes(path.read_bytes()[cut])
    done = run_logparse("history", "list", "--history", "h", cwd=tmp_path)
    assert (done.returncode, "1 run\n" in done.stdout) == (0, True)
    assert (done.stderr.count("\n"), path.name in done.stderr, "delete" in done.stderr) == (1, True, False)
    shown = run_logparse("history", "show", path.name[:8], "--history", "h", cwd=tmp_path)
    assert (shown.returncode, "try:" in shown.stderr, "Traceback" in shown.stderr) == (2, True, False)


@pytest.mark.parametrize("cut", [slice(0, 0), slice(0, 3), slice(0, -9), slice(100, None)])
def test_a_torn_bundle_is_told_in_a_line_and_may_be_restored(history, tmp_path, cut):
    before = history.runs(heavy=True)
    for _ in range(2):
        history.compact()
        for file in (tmp_path / "h").rglob("*.parquet"):
            os.utime(file, (0, 0))
    assert history.storage.keys("summary") == []
    (bundle,) = (tmp_path / "h/bundles").iterdir()
    whole = bundle.read_bytes()
    bundle.write_bytes(whole[cut])
    done = run_logparse("history", "list", "--history", "h", cwd=tmp_path)
    assert (done.returncode, "0 runs" in done.stdout) == (0, True)
    assert (done.stderr.count("\n"), bundle.name in done.stderr, "delete" in done.stderr) == (1, True, False)
    history.compact()
    bundle.write_bytes(whole)
    assert history.runs(heavy=True).equals(before)
    assert len(history.steps(before["run_id"][0])) == 20


@pytest.mark.parametrize("bit", [103459, 267460])
def test_an_old_file_at_which_polars_panics_is_told_in_a_line(tmp_path, bit):
    """Rust tells of a panic on stderr by itself, with a backtrace where one is asked for."""
    shutil.copytree(OLD, tmp_path / "h")
    path = next((tmp_path / "h/summary/release=nodes").glob("*.parquet"))
    spoilt = bytearray(path.read_bytes())
    spoilt[bit // 8] ^= 1 << bit % 8
    path.write_bytes(spoilt)
    done = run_logparse("history", "list", "--history", "h", cwd=tmp_path)
    assert (done.returncode, "2 runs" in done.stdout) == (0, True)
    assert (done.stderr.count("\n"), path.name in done.stderr) == (1, True)


def test_a_file_of_a_newer_logparse_is_left_out_and_named(history, tmp_path, told):
    before = history.runs()
    path = tmp_path / "h/summary/release=r1" / f"{'ab' * 16}.12345678.v4.parquet"
    path.write_bytes(parquet_of(pl.DataFrame({"new": [1]})))
    assert history.runs().equals(before)
    assert [(note.code, note.fields["n"], path.name in note.fields["path"]) for note in told] == [
        ("newer_left_out", 1, True)
    ]
    shown = run_logparse("history", "show", "abab", "--history", "h", cwd=tmp_path)
    assert (shown.returncode, "upgrade logparse" in shown.stderr, "Traceback" in shown.stderr) == (2, True, False)


def test_a_run_of_a_newer_logparse_is_not_recorded_beside_it(history, tmp_path):
    kept = record(write_run(tmp_path / "a.log", 1))
    path = next((tmp_path / "h/summary").rglob(f"{kept.run_id}*"))
    path.rename(path.with_name(path.name.replace(".v3.", ".v4.")))
    with pytest.raises(InputError, match="newer logparse"):
        history.add(kept)


@pytest.mark.parametrize("release", ["智" * 80, "𠀀" * 80, "CANN 8.0 " + "智能" * 60, "%" * 240])
def test_long_names_of_releases_are_kept(tmp_path, release):
    history = History(Folder(tmp_path / "h"))
    kept = record(write_run(tmp_path / "a.log", 1), release)
    assert [history.add(kept), history.add(kept)] == ["recorded", "known"]
    assert history.add(record(write_run(tmp_path / "b.log", 2), release + "b"[: 240 - len(release)])) == "recorded"
    history.compact()
    for runs in (history.runs(), History(Folder(tmp_path / "h")).runs()):
        assert select_runs(runs, f'release="{release}"')["run_id"].to_list()[0] == kept.run_id
    scanned = pl.scan_parquet(tmp_path / "h/summary", hive_schema={"release": pl.String}).collect()
    assert len(scanned) == 2
    assert release in scanned["long_release"]
    assert len(history.steps(kept.run_id)) == 20


def test_folders_are_called_as_ever_where_the_name_fits():
    assert folder_name("CANN 8.0/RC1") == "CANN%208.0%2FRC1"
    assert folder_name("智" * 26) == "%E6%99%BA" * 26
    assert folder_name("智" * 27) != folder_name("智" * 27 + "能")
