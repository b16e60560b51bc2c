"""The history keeps every run once, whole, and readable by any reader of Parquet."""

import gzip
import multiprocessing
import os
import signal
import time

import polars as pl
import pyarrow.dataset as ds
import pytest
from helpers import run_logparse
from releases import fill, record, write_run

from analysis.releases.history import History
from analysis.releases.migrations import migrate
from analysis.releases.records import RUN_COLUMNS, STORE_VERSION
from analysis.releases.selection import drop_beginnings, parse_selector, select_runs
from analysis.releases.shelf import DEAD_SECONDS, UNFINISHED, Folder, open_shelf
from logparse.errors import InputError, UsageError


@pytest.fixture
def history(tmp_path):
    return fill(tmp_path, {"CANN 8.0/RC1": (1000.0, 2, {}), "8": (1040.0, 1, {})})


@pytest.fixture(params=["folder", "bucket"])
def store(request, tmp_path):
    if request.param == "folder":
        return History(open_shelf(str(tmp_path / "store")))
    pytest.importorskip("obstore")
    (tmp_path / "bucket").mkdir()
    return History(open_shelf(f"file://{tmp_path}/bucket"))


def test_a_run_is_its_content_whatever_its_file_is_called(tmp_path):
    log = write_run(tmp_path / "a.log", 1)
    (tmp_path / "other.log.gz").write_bytes(gzip.compress(log.read_bytes()))
    again = record(tmp_path / "other.log.gz")
    assert again.run_id == record(log).run_id
    assert again.run_id != record(write_run(tmp_path / "b.log", 2)).run_id


def test_recording_twice_is_one_run(store, tmp_path):
    kept = record(write_run(tmp_path / "a.log", 1))
    assert [store.add(kept), store.add(kept)] == ["recorded", "known"]
    assert store.runs()["run_id"].to_list() == [kept.run_id]
    assert store.steps(kept.run_id)["step"].to_list() == list(range(1, 21))


def test_a_run_has_one_release(store, tmp_path):
    log = write_run(tmp_path / "a.log", 1)
    store.add(record(log, "r1"))
    with pytest.raises(UsageError, match="recorded already, as a run of 'r1'"):
        store.add(record(log, "r2"))


@pytest.mark.parametrize("release", ["", "  ", "x" * 300])
def test_a_release_must_name_a_folder(tmp_path, release):
    with pytest.raises(UsageError, match="release"):
        History(Folder(tmp_path / "h")).add(record(write_run(tmp_path / "a.log", 1), release))


def test_other_readers_see_the_release(history, tmp_path):
    table = ds.dataset(tmp_path / "h/summary", partitioning="hive").to_table(columns=["run_id", "release"])
    assert sorted(str(r) for r in table["release"].to_pylist()) == ["8", "CANN 8.0/RC1", "CANN 8.0/RC1"]
    scanned = pl.scan_parquet(tmp_path / "h/summary", hive_schema={"release": pl.String}).collect()
    assert sorted(scanned["release"]) == ["8", "CANN 8.0/RC1", "CANN 8.0/RC1"]
    steps = pl.scan_parquet(tmp_path / "h/steps", hive_schema={"release": pl.String}).collect()
    assert len(steps) == 60


def test_nothing_unfinished_lies_where_readers_look(history, tmp_path):
    (tmp_path / "h" / UNFINISHED / "torn").write_bytes(b"PAR1")
    assert pl.scan_parquet(tmp_path / "h/summary").collect().height == 3
    assert len(history.runs()) == 3


def test_compacted_runs_are_the_same(store, tmp_path):
    for seed in range(3):
        store.add(record(write_run(tmp_path / f"{seed}.log", seed)))
    before = store.runs(heavy=True)
    assert store.compact().runs == 3
    assert store.runs(heavy=True).equals(before)
    store.add(record(write_run(tmp_path / "later.log", 9)))
    assert len(store.runs()) == 4
    store.remove([before["run_id"][0]])
    assert len(store.runs()) == 3
    store.compact()
    assert len(store.shelf.keys("compacted")) == 1


def test_compacting_clears_what_the_dead_left(history, tmp_path):
    orphan = tmp_path / "h/steps/release=8/00.v1.parquet"
    orphan.write_bytes(b"")
    (tmp_path / "h" / UNFINISHED / "torn").write_bytes(b"")
    assert history.compact().removed == 0
    for path in (orphan, tmp_path / "h" / UNFINISHED / "torn"):
        os.utime(path, (time.time() - 2 * DEAD_SECONDS,) * 2)
    assert history.compact().removed == 2
    assert len(history.runs()) == 3


def test_an_old_store_stays_readable(history, tmp_path):
    """Version 0 as it was: another name, labels as text, no versions."""
    folder = tmp_path / "h/summary/release=old"
    folder.mkdir()
    row = {"run_id": "abc", "name": "first", "step_time_ms": 900.0, "labels": "a=1;b=x", "schema_version": 0}
    pl.DataFrame([row]).write_parquet(folder / "abc.v0.parquet")
    runs = history.runs()
    old = runs.row(by_predicate=pl.col("run_id") == "abc", named=True)
    assert (old["steady_step_time_ms"], old["release"], old["device"]) == (900.0, "old", None)
    assert old["labels"] == [{"name": "a", "value": "1"}, {"name": "b", "value": "x"}]
    history.compact()
    assert history.runs().equals(runs)


def test_a_store_of_the_future_is_refused():
    with pytest.raises(InputError, match="newer logparse"):
        migrate(pl.DataFrame(), STORE_VERSION + 1)


def test_columns_that_a_file_lacks_are_null(history, tmp_path):
    """As in a store to which an older logparse of the same version recorded."""
    path = next((tmp_path / "h/summary/release=8").glob("*.parquet"))
    pl.read_parquet(path).drop("goodput").with_columns(extra=1).write_parquet(path)
    assert history.runs().filter(pl.col("release") == "8")["goodput"].to_list() == [None]


def test_the_summary_is_what_analyze_says(tmp_path):
    summary = record(write_run(tmp_path / "a.log", 1), nightly="yes").summary
    assert summary.columns == [column.name for column in RUN_COLUMNS]
    row = summary.row(0, named=True)
    assert row["world_size"] == 8
    assert row["counted_rows"] == 19
    assert row["final_loss"] == pytest.approx(3.05)
    assert {"name": "nightly", "value": "yes"} in row["labels"]
    assert {"name": "swiglu", "value": "True"} in row["settings"]


SELECTORS = {
    "release=CANN 8.0/RC1": 2,
    "release=CANN 8.0/RC1,world_size=8": 2,
    "world_size=16": 0,
    "name=8-0": 1,
    "gated_linear_unit=true": 3,
    "release=nothing": 0,
}


@pytest.mark.parametrize("selector", SELECTORS)
def test_selectors(history, selector):
    assert len(select_runs(history.runs(), selector)) == SELECTORS[selector]


def test_a_value_may_hold_commas():
    assert parse_selector("release=a, b,device=910b3") == {"release": "a, b", "device": "910b3"}


@pytest.mark.parametrize("selector", ["", "release", "=x", "nobody=knows", "world_size=many"])
def test_wrong_selectors(history, selector):
    with pytest.raises(UsageError):
        select_runs(history.runs(), selector)


def test_labels_and_versions_select(tmp_path):
    history = History(Folder(tmp_path / "h"))
    history.add(record(write_run(tmp_path / "a.log", 1), nightly="yes"))
    history.add(record(write_run(tmp_path / "b.log", 2)))
    assert select_runs(history.runs(), "nightly=yes")["name"].to_list() == ["a"]


def test_a_part_of_a_job_is_no_second_run(tmp_path):
    whole = write_run(tmp_path / "whole.log", 1)
    part = tmp_path / "part.log"
    part.write_text("".join(whole.read_text().splitlines(keepends=True)[:-5]))
    runs = pl.concat(record(path).summary for path in (part, whole))
    kept, left = drop_beginnings(runs)
    assert kept["name"].to_list() == ["whole"]
    assert left[0].startswith("part")


def _record_all(folder, worker):
    history = History(Folder(folder / "h"))
    base = record(folder / "base.log")
    for number in range(25):
        run_id = f"{worker:016x}{number:016x}"
        one = type(base)(f"r{worker % 3}", base.summary.with_columns(run_id=pl.lit(run_id)), base.steps)
        history.add(one)
        with (folder / f"acknowledged-{worker}").open("a") as file:
            file.write(run_id + "\n")


def test_killed_recorders_leave_nothing_torn(tmp_path):
    """Eight at once, two of them killed at random moments, and a reader all the while."""
    write_run(tmp_path / "base.log", 1)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_record_all, args=(tmp_path, number)) for number in range(8)]
    for worker in workers:
        worker.start()
    history, killed = History(Folder(tmp_path / "h")), 0
    while any(worker.is_alive() for worker in workers):
        known = len(history.runs())
        if known > 20 * (killed + 1) and killed < 2:
            os.kill(workers[killed].pid, signal.SIGKILL)
            killed += 1
    for worker in workers:
        worker.join()
    found = history.runs()["run_id"].to_list()
    told = [line for path in tmp_path.glob("acknowledged-*") for line in path.read_text().split()]
    assert killed == 2
    assert len(found) == len(set(found))
    assert set(told) <= set(found)
    assert len(found) - len(told) <= killed
    assert all(len(history.steps(run_id)) == 20 for run_id in found[::20])


class TestCommands:
    def test_record_list_show_remove(self, tmp_path):
        write_run(tmp_path / "a.log", 1)
        told = ["--history", "h"]
        arguments = ["record", "a.log", *told, "--release", "CANN 8", "--label", "k=v", "--version-of", "cann=8.0"]
        done = run_logparse(*arguments, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert "a: recorded as run" in done.stdout
        assert "was recorded before" in run_logparse(*arguments, cwd=tmp_path).stdout
        assert "CANN 8" in run_logparse("history", "list", *told, cwd=tmp_path).stdout
        shown = run_logparse("history", "show", record(tmp_path / "a.log").run_id[:6], *told, cwd=tmp_path).stdout
        assert '"cann": {\n   "value": "8.0",\n   "origin": "--version-of"' in shown
        run_logparse("history", "remove", record(tmp_path / "a.log").run_id[:6], *told, cwd=tmp_path)
        assert "0 runs" in run_logparse("history", "list", *told, cwd=tmp_path).stdout

    @pytest.mark.parametrize("name", ["runs.csv", "runs.parquet", "runs.json"])
    def test_export(self, history, tmp_path, name):
        assert run_logparse("history", "export", name, "--history", "h", cwd=tmp_path).returncode == 0
        assert (tmp_path / name).stat().st_size > 100
        again = run_logparse("history", "export", name, "--history", "h", cwd=tmp_path)
        assert (again.returncode, "--force" in again.stderr) == (2, True)

    @pytest.mark.parametrize(
        "arguments",
        [
            ["record", "a.log", "--release", "x"],
            ["record", "a.log", "--release", " ", "--history", "h"],
            ["record", "a.log", "--release", "x", "--history", "h", "--label", "novalue"],
            ["history", "list", "--history", "gone"],
            ["history", "show", "zz", "--history", "h"],
            ["history", "export", "a.txt", "--history", "h"],
        ],
    )
    def test_wrong_usage(self, history, tmp_path, arguments):
        write_run(tmp_path / "a.log", 1)
        done = run_logparse(*arguments, cwd=tmp_path)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False)
        assert "try:" in done.stderr
