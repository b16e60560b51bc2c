"""The history keeps every run once, whole, and readable by any reader of Parquet."""

import gzip
import json
import multiprocessing
import os
import signal
import time

import polars as pl
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from helpers import ROOT, run_logparse
from releases import fill, record, write_run

from analysis.history import store as history_store
from analysis.history.folder import DEAD_SECONDS, UNFINISHED, Folder
from analysis.history.migrations import migrate_runs
from analysis.history.record_run import Marks, parse_pairs, record_logs
from analysis.history.run_records import IDENTITY, RUN_COLUMNS, STORE_VERSION, content_hash, row_hash
from analysis.history.selection import select_runs
from analysis.history.selector import parse_selector
from analysis.history.storage import open_storage
from analysis.history.store import History, _key
from analysis.history.summary_files import parquet_of
from analysis.run.options import RunOptions
from logparse.errors import InputError, UsageError
from logparse.schema import SCHEMA_VERSION

pytestmark = pytest.mark.usefixtures("analysed_once")

FILLED = {"CANN 8.0/RC1": (1000.0, 2, {}), "8": (1040.0, 1, {})}
PINNED = "93c0f79d448ea654291c49f3478c0b06"


@pytest.fixture
def history(tmp_path):
    return fill(tmp_path, FILLED)


@pytest.fixture(params=["folder", "bucket"])
def store(request, tmp_path):
    if request.param == "folder":
        return History(open_storage(str(tmp_path / "store")))
    pytest.importorskip("obstore")
    (tmp_path / "bucket").mkdir()
    return History(open_storage(f"file://{tmp_path}/bucket"))


def test_a_run_is_its_content_whatever_its_file_is_called(tmp_path):
    log = write_run(tmp_path / "a.log", 1)
    (tmp_path / "other.log.gz").write_bytes(gzip.compress(log.read_bytes()))
    again = record(tmp_path / "other.log.gz")
    assert again.run_id == record(log).run_id
    assert again.run_id != record(write_run(tmp_path / "b.log", 2)).run_id


def test_a_logparse_that_reads_more_settings_gives_the_same_run(tmp_path):
    """Half of the settings, as from the file of another node."""
    whole = write_run(tmp_path / "a.log", 1)
    fewer = tmp_path / "fewer.log"
    fewer.write_text("".join(line for line in whole.read_text().splitlines(keepends=True) if "_size " not in line))
    assert record(fewer).run_id == record(whole).run_id
    assert len(record(fewer).summary["settings"][0]) < len(record(whole).summary["settings"][0])


def test_the_run_id_is_pinned():
    """Another id for the same log is a second run in every history there is: this may only change on purpose."""
    known = {
        "source": ["a", "a"],
        "step": [1, 2],
        "elapsed_time_per_iteration_ms": [900.5, 1000.0],
        "loss": [2.5, None],
    }
    unknown = {name: [None, None] for name in IDENTITY if name not in known}
    assert content_hash(pl.DataFrame(known | unknown)) == PINNED


def test_identity_of_a_run_does_not_depend_on_the_order_of_its_files():
    first, last = (pl.DataFrame(dict.fromkeys(IDENTITY, steps)) for steps in ([1, 2], [3, 4]))
    first, last = first.with_columns(source=pl.lit("rank-0.log")), last.with_columns(source=pl.lit("rank-7.log"))
    assert content_hash(pl.concat([first, last])) == content_hash(pl.concat([last, first])) != content_hash(first)


def test_recording_twice_is_one_run(store, tmp_path):
    kept = record(write_run(tmp_path / "a.log", 1))
    assert [store.add(kept), store.add(kept)] == ["recorded", "known"]
    assert store.runs()["run_id"].to_list() == [kept.run_id]
    assert store.steps(kept.run_id)["step"].to_list() == list(range(1, 21))


def test_a_run_has_one_release(store, tmp_path):
    log = write_run(tmp_path / "a.log", 1)
    store.add(record(log, "r1"))
    with pytest.raises(UsageError, match="already recorded under 'r1'"):
        store.add(record(log, "r2"))


def test_a_run_recorded_again_is_what_was_said_last(store, tmp_path):
    """Neither the old row in a bundle counts, nor one that another process puts into one meanwhile."""
    log = write_run(tmp_path / "a.log", 1)
    wrong, right = record(log, "r1", team="wrong"), record(log, "r1", team="right")
    store.add(wrong)
    store.add(record(write_run(tmp_path / "b.log", 2)))
    store.compact()
    (bundle,) = store.storage.keys("bundles")
    stale = store.storage.get(bundle)
    store.remove([wrong.run_id])
    store.add(right)
    assert select_runs(store.runs(), "team=right")["run_id"].to_list() == [wrong.run_id]
    store.compact()
    store.storage.put(bundle.replace(".v3.", "f.v3."), stale)
    assert select_runs(store.runs(heavy=True), "team=right")["run_id"].to_list() == [wrong.run_id]
    assert len(store.runs()) == 2


def test_a_bundled_run_is_read_from_the_bundle(history, tmp_path):
    """A summary that is spoilt in place is not looked at."""
    history.compact()
    for path in (tmp_path / "h/summary").rglob("*.parquet"):
        path.write_bytes(b"")
    careful, told = _warned(tmp_path)
    assert (len(careful.runs()), told) == (3, [])


def test_two_that_record_a_run_at_once_under_other_labels_are_one_run(store, tmp_path):
    log = write_run(tmp_path / "a.log", 1)
    kept = [record(log, "r1", team=team) for team in ("x", "y")]
    for one in kept:
        store.storage.put(_key("summary", "r1", f"{one.run_id}.{one.row_hash}"), parquet_of(one.summary))
    before = store.runs()
    assert len(before) == 1
    store.compact()
    assert store.runs().equals(before)
    assert store.remove([kept[0].run_id]) == 1
    assert store.storage.keys("summary") == []
    assert store.runs().is_empty()


def test_the_name_of_a_file_says_nothing_of_when(tmp_path):
    """Two processes that record one log with one command write one file."""
    log = write_run(tmp_path / "a.log", 1)
    first, again = (record_logs([str(log)], RunOptions(), Marks("r1")).row_hash for _ in range(2))
    assert first == again
    assert first != record(log, team="x").row_hash


def test_what_differs_from_the_kept_run_is_named(store, tmp_path):
    log = write_run(tmp_path / "a.log", 1)
    store.add(record(log, team="x"))
    told = Marks("r1", {"team": "z"}, {"CANN": "9"})
    other = record_logs([str(log)], RunOptions(hw="910b3"), told, "another name")
    said = store.differences(other)
    assert {"label team", "version cann", "device", "peak_tflops_per_second"} <= set(said)
    assert not {"name", "recorded_at", "steady_step_time_ms"} & set(said)
    assert store.differences(record(log, team="x")) == []
    assert store.differences(record(log)) == []


@pytest.mark.parametrize("damaged", [False, True], ids=["lost", "damaged"])
def test_lost_steps_are_kept_again(store, tmp_path, damaged):
    kept = record(write_run(tmp_path / "a.log", 1))
    store.add(kept)
    (key,) = store.storage.keys("steps")
    store.storage.put(key, b"PAR1") if damaged else store.storage.remove(key)
    assert [store.add(kept), store.add(kept)] == ["completed", "known"]
    assert len(store.steps(kept.run_id)) == 20


@pytest.mark.filterwarnings("ignore:file_left_out")
@pytest.mark.parametrize("team", ["x", "y"])
def test_a_damaged_summary_is_written_again(store, tmp_path, team):
    """Under its own name it takes the place of the damaged one; other labels give another name."""
    log = write_run(tmp_path / "a.log", 1)
    store.add(record(log, team="x"))
    (key,) = store.storage.keys("summary")
    store.storage.put(key, b"PAR1")
    assert store.runs().is_empty()
    again = record(log, team=team)
    assert [store.add(again), store.add(again)] == ["recorded", "known"]
    assert select_runs(store.runs(), f"team={team}")["run_id"].to_list() == [again.run_id]
    assert len(store.storage.keys("summary")) == (1 if team == "x" else 2)


@pytest.mark.parametrize("release", ["", "  ", "x" * 300, "a\nb", "r\udcff"])
def test_a_release_must_name_a_folder(tmp_path, release):
    with pytest.raises(UsageError, match="release"):
        History(Folder(tmp_path / "h")).add(record(write_run(tmp_path / "a.log", 1), release))


def test_other_readers_see_the_release(history, tmp_path):
    table = ds.dataset(tmp_path / "h/summary", partitioning="hive").to_table(columns=["run_id", "release"])
    assert sorted(str(r) for r in table["release"].to_pylist()) == ["8", "CANN 8.0/RC1", "CANN 8.0/RC1"]
    how = {"hive_schema": {"release": pl.String}, "missing_columns": "insert", "extra_columns": "ignore"}
    scanned = pl.scan_parquet(tmp_path / "h/summary", **how).collect()
    assert sorted(scanned["release"]) == ["8", "CANN 8.0/RC1", "CANN 8.0/RC1"]
    steps = pl.scan_parquet(tmp_path / "h/steps", hive_schema={"release": pl.String}).collect()
    assert len(steps) == 60


def test_every_file_tells_the_versions_it_is_of(history, tmp_path):
    history.compact()
    files = list((tmp_path / "h").rglob("*.parquet"))
    assert len(files) == 7
    for path in files:
        metadata = pq.read_metadata(path).metadata
        assert metadata[b"logparse.schema_version"] == str(SCHEMA_VERSION).encode()
        assert metadata[b"logparse.store_version"] == str(STORE_VERSION).encode()


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
    assert len(store.runs()) == 3


def test_compacting_clears_what_the_dead_left(history, tmp_path):
    orphan = tmp_path / "h/steps/release=8/00.v3.parquet"
    orphan.write_bytes(b"")
    (tmp_path / "h" / UNFINISHED / "torn").write_bytes(b"")
    assert history.compact().removed == 0
    for path in (orphan, tmp_path / "h" / UNFINISHED / "torn"):
        os.utime(path, (time.time() - 2 * DEAD_SECONDS,) * 2)
    assert history.compact().removed == 2
    assert len(history.runs()) == 3


DAMAGE = {
    "empty": b"",
    "short": b"garbage",
    "no Parquet": b"PAR1" + b"x" * 100 + b"PAR1",
}


def _warned(tmp_path):
    told = []
    return History(Folder(tmp_path / "h"), warn=told.append), told


@pytest.mark.parametrize("data", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_summary_is_left_out_and_named(history, tmp_path, data):
    before = history.runs()
    (tmp_path / "h/summary/release=8/bbbb.v3.parquet").write_bytes(data)
    careful, told = _warned(tmp_path)
    assert careful.runs().equals(before)
    assert len(told) == 1
    assert "summary/release=8/bbbb.v3.parquet" in told[0].fields["path"]
    with pytest.warns(UserWarning, match="bbbb"):
        history.runs()


def test_a_summary_that_is_not_one_row_is_damaged(history, tmp_path):
    before = history.runs()
    path = next((tmp_path / "h/summary/release=8").glob("*.parquet"))
    row = pl.read_parquet(path)
    for name, rows in {"aa": row.clear(), "bb": pl.concat([row, row])}.items():
        rows.write_parquet(path.with_name(f"{name}.v3.parquet"))
    (path.parent / "cc.v3.parquet").mkdir()
    careful, told = _warned(tmp_path)
    assert careful.runs().equals(before)
    assert sorted(note.fields["path"].partition(".v3")[0][-2:] for note in told) == ["aa", "bb", "cc"]


def test_a_damaged_bundle_costs_nothing_while_its_files_are_there(history, tmp_path):
    before = history.runs(heavy=True)
    history.compact()
    (bundle,) = (tmp_path / "h/bundles").glob("*")
    bundle.write_bytes(b"")
    careful, told = _warned(tmp_path)
    assert careful.runs(heavy=True).equals(before)
    assert bundle.name in told[0].fields["path"]
    careful.compact()
    assert careful.runs(heavy=True).equals(before)


def test_damaged_steps_are_an_error(store, tmp_path):
    kept = record(write_run(tmp_path / "a.log", 1))
    store.add(kept)
    (key,) = store.storage.keys("steps")
    store.storage.put(key, b"")
    with pytest.raises(InputError, match=key):
        store.steps(kept.run_id)


def _rewrite(path, row):
    """As another logparse would have written it, whose files have no seal: the name has the hash of the row."""
    path.unlink()
    run_id = path.name.partition(".")[0]
    row.write_parquet(path.with_name(f"{run_id}.{row_hash(row)}.v3.parquet"))


def test_a_summary_of_other_types_is_read(history, tmp_path):
    path = next((tmp_path / "h/summary/release=8").glob("*.parquet"))
    row = pl.read_parquet(path, hive_partitioning=False)
    before = history.runs()
    _rewrite(path, row.with_columns(pl.col("world_size").cast(pl.Int32), mfu=pl.lit(None, pl.Float32)))
    assert history.runs().equals(before)


def test_copies_of_older_versions_are_not_read(history, tmp_path):
    """They had ``compacted/``, where bundles are now."""
    before = history.runs(heavy=True)
    folder = tmp_path / "h/compacted"
    folder.mkdir()
    before.with_columns(name=pl.lit("old")).write_parquet(folder / "bb.00000000.v3.parquet")
    assert history.runs(heavy=True).equals(before)
    history.compact()
    assert list(folder.iterdir()) == []


def test_columns_of_a_newer_logparse_survive_in_bundles(history, tmp_path):
    """It may record into the same history, while an older one writes bundles and frees files."""
    path = next((tmp_path / "h/summary/release=8").glob("*.parquet"))
    row = pl.read_parquet(path, hive_partitioning=False).with_columns(extra=pl.lit(1.5))
    path.write_bytes(parquet_of(row))
    before = history.runs(heavy=True)
    for _ in range(3):
        for file in (tmp_path / "h").rglob("*.parquet"):
            os.utime(file, (time.time() - 2 * DEAD_SECONDS,) * 2)
        history.compact()
    assert history.runs(heavy=True).equals(before)
    assert list((tmp_path / "h/summary").rglob("*.parquet")) == []
    assert pl.read_parquet(tmp_path / "h/bundles", missing_columns="insert")["extra"].drop_nulls().to_list() == [1.5]


def test_unknown_columns_that_exclude_each_other_stay_in_their_files(history, tmp_path):
    paths = sorted((tmp_path / "h/summary").rglob("*.parquet"))
    for path, extra in zip(paths, ([[1]], [{"a": 1}], [2.5]), strict=True):
        row = pl.read_parquet(path, hive_partitioning=False)
        path.write_bytes(parquet_of(row.with_columns(extra=pl.Series(extra))))
    before = history.runs(heavy=True)
    assert history.compact().runs == 3
    assert history.storage.keys("bundles") == []
    assert history.runs(heavy=True).equals(before)


def test_what_is_no_folder_is_an_error_with_its_path(history, tmp_path):
    (tmp_path / "h/summary/release=9").symlink_to("release=9")
    with pytest.raises(InputError, match=r"cannot read .*release=9: Too many levels"):
        history.runs()
    (tmp_path / "h/summary/release=9").unlink()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot (read|write) .*/file"):
        History(Folder(tmp_path / "file")).add(record(write_run(tmp_path / "a.log", 1)))


@pytest.mark.parametrize("target", ["aa.v3.parquet", "nowhere"])
def test_a_link_that_leads_nowhere_is_left_out_and_named(history, tmp_path, target):
    before = history.runs()
    (tmp_path / "h/summary/release=8/aa.v3.parquet").symlink_to(target)
    careful, told = _warned(tmp_path)
    assert careful.runs().equals(before)
    assert [(note.code, note.fields["path"]) for note in told] == [("file_left_out", "summary/release=8/aa.v3.parquet")]


@pytest.mark.parametrize("refused", ["os.scandir", "pathlib.Path.unlink"])
def test_what_the_system_refuses_is_an_error_with_its_path(history, tmp_path, monkeypatch, refused):
    def refuse(path, **_):
        raise PermissionError(13, "Permission denied", str(path))

    ids = history.runs()["run_id"].to_list()
    monkeypatch.setattr(refused, refuse)
    with pytest.raises(InputError, match=r"/h/summary.*: Permission denied"):
        history.remove(ids)


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
    assert [old[name] for name in ("begins", "counted_rows", "recorded_at")] == [None] * 3
    history.compact()
    assert history.runs().equals(runs)


def test_a_store_of_the_future_is_refused():
    with pytest.raises(InputError, match="newer logparse"):
        migrate_runs(pl.DataFrame(), STORE_VERSION + 1)


def test_columns_that_a_file_lacks_are_null(history, tmp_path):
    """As in a store to which an older logparse of the same version recorded."""
    path = next((tmp_path / "h/summary/release=8").glob("*.parquet"))
    _rewrite(path, pl.read_parquet(path, hive_partitioning=False).drop("goodput").with_columns(extra=1))
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
    'release="CANN 8.0/RC1"': 2,
    "Release='CANN 8.0/RC1',World_Size=8": 2,
    "CANN=8.0": 1,
    "release=CANN 8.0/RC1,cann=8.0": 0,
    "device=910b3": 1,
    "device=910B3": 1,
    "device=Ascend 910B3": 1,
    "device=H100": 0,
    "team=x=1, y": 1,
    'team="p, q=2",cann=8.0': 1,
}


@pytest.fixture(scope="module")
def marked(tmp_path_factory):
    """As ``history``, and two runs of release r, the second on a device that is known."""
    folder = tmp_path_factory.mktemp("marked")
    history = fill(folder, FILLED)
    told = Marks("r", {"team": "x=1, y"}), Marks("r", {"Team": "p, q=2"}, {"cann": "8.0"})
    for number, (marks, hw) in enumerate(zip(told, (None, "910b3"), strict=True)):
        log = write_run(folder / f"{number}.log", 50 + number, swiglu=False)
        history.add(record_logs([str(log)], RunOptions(hw=hw), marks))
    return history.runs()


@pytest.mark.parametrize("selector", SELECTORS)
def test_selectors(marked, selector):
    assert len(select_runs(marked, selector)) == SELECTORS[selector]


def test_a_value_may_hold_commas():
    assert parse_selector("release=a, b,device=910b3").equalities == {"release": "a, b", "device": "910b3"}
    assert parse_selector("release='CANN 8, torch=2',k=\"v\"").equalities == {"release": "CANN 8, torch=2", "k": "v"}
    assert parse_selector('release="a" b, c').equalities == {"release": '"a" b, c'}


@pytest.mark.parametrize(
    "selector",
    ["", "release", "=x", "nobody=knows", "world_size=many", "release=8,Release=9", "device=910", "device=none"],
)
def test_wrong_selectors(marked, selector):
    with pytest.raises(UsageError):
        select_runs(marked, selector)


def test_labels_and_versions_select(tmp_path):
    history = History(Folder(tmp_path / "h"))
    history.add(record(write_run(tmp_path / "a.log", 1), nightly="yes"))
    history.add(record(write_run(tmp_path / "b.log", 2)))
    assert select_runs(history.runs(), "nightly=yes")["name"].to_list() == ["a"]


def test_a_label_that_only_other_runs_have_is_no_unknown_key(tmp_path):
    history = History(Folder(tmp_path / "h"))
    history.add(record(write_run(tmp_path / "a.log", 1), "r1", nightly="yes"))
    history.add(record(write_run(tmp_path / "b.log", 2), "r2"))
    assert len(select_runs(history.runs(), "release=r2,nightly=yes")) == 0


@pytest.mark.parametrize("text", ["device=x", "Release=y", "a b=c", "k=\udcff", "k=a\nb", "k", "=v", "k="])
def test_labels_that_no_selector_can_name_are_refused(text):
    with pytest.raises(UsageError):
        parse_pairs([text], "--label", ("device", "release"))


def test_keys_are_given_once_in_any_case():
    assert parse_pairs(["a.b-c=1", "d=x=y"], "--label") == {"a.b-c": "1", "d": "x=y"}
    with pytest.raises(UsageError, match="given twice"):
        parse_pairs(["k=1", "K=2"], "--label")


def _record_all(folder, base, worker):
    history_store.MOST_LOOSE = 3
    history = History(Folder(folder / "h"))
    for number in range(15):
        run_id = f"{worker:016x}{number:016x}"
        one = type(base)(f"r{worker % 3}", base.summary.with_columns(run_id=pl.lit(run_id)), base.steps)
        history.add(one)
        with (folder / f"acknowledged-{worker}").open("a") as file:
            file.write(run_id + "\n")
        history.bundle_if_many()


@pytest.mark.slow
def test_killed_recorders_leave_nothing_torn(tmp_path):
    """Four at once, which write bundles too, two of them killed at random moments, and a reader all the while."""
    write_run(tmp_path / "base.log", 1)
    base = record(tmp_path / "base.log")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_record_all, args=(tmp_path, base, number)) for number in range(4)]
    for worker in workers:
        worker.start()
    history, killed = History(Folder(tmp_path / "h")), 0
    while any(worker.is_alive() for worker in workers):
        known = len(history.runs())
        if known > 10 * (killed + 1) and killed < 2:
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
    assert history.storage.keys("bundles")


class TestCommands:
    def test_record_list_show_remove(self, tmp_path):
        write_run(tmp_path / "a.log", 1)
        told = ["--history", "h"]
        arguments = ["record", "a.log", *told, "--release", "CANN 8", "--label", "k=v", "--version-of", "cann=8.0"]
        done = run_logparse(*arguments, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert "a: recorded as run" in done.stdout
        assert "is already recorded" in run_logparse(*arguments, cwd=tmp_path).stdout
        assert "CANN 8" in run_logparse("history", "list", *told, cwd=tmp_path).stdout
        shown = run_logparse("history", "show", record(tmp_path / "a.log").run_id[:6], *told, cwd=tmp_path).stdout
        assert '"cann": {\n   "value": "8.0",\n   "origin": "--version-of"' in shown
        run_logparse("history", "remove", record(tmp_path / "a.log").run_id[:6], *told, cwd=tmp_path)
        assert "0 runs" in run_logparse("history", "list", *told, cwd=tmp_path).stdout

    def test_several_logs_without_each_are_one_run_and_that_is_said(self, tmp_path):
        for number in range(2):
            write_run(tmp_path / f"{number}.log", number)
        told = ["--history", "h", "--release", " r "]
        done = run_logparse("record", "0.log", "1.log", *told, cwd=tmp_path)
        assert "2 logs, one run" in done.stdout
        assert done.stdout.endswith("of r\n")
        assert done.stderr == "! 1.log starts the training again at step 1; for another run, analyze it alone\n"
        each = run_logparse("record", "--each", "0.log", "1.log", *told, cwd=tmp_path)
        assert (each.stdout.count("recorded as run"), "--each" in each.stderr) == (2, False)

    def test_a_log_that_cannot_be_recorded_does_not_stop_the_others(self, tmp_path):
        for number in range(2):
            write_run(tmp_path / f"{number}.log", number)
        (tmp_path / "none.log").write_text("nothing\n")
        run_logparse("record", "1.log", "--history", "h", "--release", "other", cwd=tmp_path)
        arguments = ["record", "--each", "none.log", "1.log", "0.log", "--history", "h", "--release", "r", "--json"]
        done = run_logparse(*arguments, cwd=tmp_path)
        document = json.loads(done.stdout)
        assert document["schema_version"] == SCHEMA_VERSION
        assert [(run["name"], run["state"], run["differs"]) for run in document["runs"]] == [("0", "recorded", [])]
        assert done.returncode == 3
        assert "none.log" in done.stderr
        assert "already recorded under 'other'" in done.stderr

    def test_what_differs_is_said_and_how_to_change_it(self, tmp_path):
        write_run(tmp_path / "a.log", 1)
        told = ["record", "a.log", "--history", "h", "--release", "r"]
        run_logparse(*told, cwd=tmp_path)
        done = run_logparse(*told, "--label", "team=z", cwd=tmp_path)
        assert done.returncode == 0
        assert "nothing changed" in done.stdout
        assert "differs from its record in label team\n" in done.stderr
        assert f"logparse history remove {record(tmp_path / 'a.log').run_id[:12]}" in done.stderr

    def test_a_damaged_file_is_told_once(self, history, tmp_path):
        (tmp_path / "h/summary/release=8/bbbb.v3.parquet").write_bytes(b"garbage")
        done = run_logparse("history", "list", "--json", "--history", "h", cwd=tmp_path)
        document = json.loads(done.stdout)
        assert (done.returncode, document["schema_version"], len(document["runs"])) == (0, SCHEMA_VERSION, 3)
        assert done.stderr.count("bbbb.v3.parquet") == 1
        shown = run_logparse(
            "gate", "--baseline", "release=CANN 8.0/RC1", "--candidate", "release=8", "--history", "h", cwd=tmp_path
        )
        assert (shown.returncode, shown.stderr.count("bbbb.v3.parquet")) == (1, 1)

    def test_an_old_run_is_listed_with_dashes(self, tmp_path):
        folder = tmp_path / "h/summary/release=old"
        folder.mkdir(parents=True)
        pl.DataFrame([{"run_id": "abc", "step_time_ms": 900.0, "labels": ""}]).write_parquet(folder / "abc.v0.parquet")
        done = run_logparse("history", "list", "--history", "h", cwd=tmp_path)
        dashes = ["-"] * 6
        assert (done.returncode, done.stdout.split()[-10:]) == (0, ["abc", "old", *dashes, "900.0", "-"])

    @pytest.mark.parametrize("name", ["runs.csv", "runs.parquet", "runs.json"])
    def test_export(self, history, tmp_path, name):
        assert run_logparse("history", "export", name, "--history", "h", cwd=tmp_path).returncode == 0
        assert (tmp_path / name).stat().st_size > 100
        if name.endswith("parquet"):
            assert pq.read_schema(tmp_path / name).metadata[b"logparse.schema_version"] == str(SCHEMA_VERSION).encode()
        again = run_logparse("history", "export", name, "--history", "h", cwd=tmp_path)
        assert (again.returncode, "--force" in again.stderr) == (2, True)

    @pytest.mark.parametrize(
        "arguments",
        [
            ["record", "a.log", "--release", "x"],
            ["record", "a.log", "--release", " ", "--history", "h"],
            ["record", "a.log", "--release", "x", "--history", "h", "--label", "novalue"],
            ["record", "a.log", "--release", "x", "--history", ""],
            ["record", "a.log", "--release", "x", "--history", "h", "--label", "device=x"],
            ["record", "a.log", "--release", "x", "--history", "a.log"],
            ["history", "remove", "", "--history", "h"],
            ["history", "list", "--history", "a.log"],
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


def test_a_run_keeps_how_far_it_came_and_whether_it_crashed(tmp_path):
    log = write_run(tmp_path / "a.log", 1)
    whole = record(log).summary
    log.write_text(log.read_text() + "Traceback (most recent call last):\ntorch.OutOfMemoryError: out of memory\n")
    crashed = record(log).summary
    columns = ["last_step", "planned_steps", "crashed_at"]
    assert (whole.select(columns).row(0), crashed.select(columns).row(0)) == ((20, 500, None), (20, 500, 20))


def test_a_run_takes_at_most_twenty_kilobytes(tmp_path):
    """As the logs of docs/releases.md: 20 step lines; columns without a value take no room."""
    for log in sorted((ROOT / "fixtures/releases").glob("8.0.RC1-[12].log")):
        History(Folder(tmp_path / "h")).add(record(log))
    files = list((tmp_path / "h").rglob("*.parquet"))
    assert sum(path.stat().st_size for path in files) / 2 < 20_000
    empty = [pq.read_table(path).column(name).null_count for path in files for name in pq.read_schema(path).names]
    assert all(count < 20 for count in empty)
