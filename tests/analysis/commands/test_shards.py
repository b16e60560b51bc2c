"""Shards: parts of one call, made by themselves and again, put together to what the call itself gives."""

import json
import re
import shutil
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest
from helpers import ROOT, megatron_log, run_logparse, sweep_after
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from s3 import keys, put, s3

from analysis.batch.shards import Account, Failure, Shard, Whole, account_from, parse_shard
from analysis.files.own_files import LIST
from logparse.errors import InputError, UsageError

pytestmark = pytest.mark.usefixtures("analysed_once")

__all__ = ["s3"]
FIXTURES = (
    "megatron/core-v0.12-llama2-7b/run.log",
    "megatron/rampup-resumed/run.log",
    "mindformers/family-b-1.5/run.log",
    "mindspore/lossmonitor/run.log",
)
# Beside the tables, whose bytes tell when they were written.
ALIKE = ("runs.csv", "index.html")
LOGS = ["0-core.log", "1-rubbish.log", "2-ramp-up.log", "3-mindformers.log", "4-mindspore.log", "5-empty.log"]


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Runs with events, with starts, with little, and two files that are no logs."""
    folder = tmp_path_factory.mktemp("logs")
    readable = [name for name in LOGS if "rubbish" not in name and "empty" not in name]
    for name, fixture in zip(readable, FIXTURES, strict=True):
        shutil.copy(ROOT / "fixtures" / fixture, folder / name)
    (folder / "1-rubbish.log").write_text("rubbish\n")
    (folder / "5-empty.log").write_text("")
    return folder


def analyze(folder, *options, logs=LOGS, charts=False):
    drawn = ["--chart-format", "json"] if charts else ["--no-charts"]
    return run_logparse("analyze", "--each", *logs, "--hw", "910b3", *drawn, *options, cwd=folder)


def shards(folder, out, n, logs=LOGS, charts=False):
    """Make all ``n`` shards, the last one first."""
    for number in range(n, 0, -1):
        analyze(folder, "-o", str(out), "--shard", f"{number}/{n}", "-q", logs=logs, charts=charts)
    return out


@pytest.fixture(scope="module")
def local(logs, tmp_path_factory):
    """What one call gives, and its folder."""
    out = tmp_path_factory.mktemp("local") / "out"
    return analyze(logs, "-o", str(out), "--json"), out


@pytest.fixture(scope="module")
def two(logs, tmp_path_factory):
    """Two shards, made once."""
    return shards(logs, tmp_path_factory.mktemp("two") / "out", 2)


@pytest.fixture
def out(two, tmp_path):
    """A copy of them, in the folder ``out``."""
    return Path(shutil.copytree(two, tmp_path / "out"))


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_tables_equal(one: Path, other: Path) -> None:
    names = sorted(path.name for path in one.glob("*.parquet"))
    assert names == sorted(path.name for path in other.glob("*.parquet"))
    for name in names:
        assert pq.read_schema(one / name).equals(pq.read_schema(other / name), check_metadata=True)
        assert_frame_equal(pl.read_parquet(one / name), pl.read_parquet(other / name))


# Which part of the runs a shard is.


@given(st.integers(0, 50), st.integers(1, 60))
def test_all_parts_in_order_are_all_runs_and_none_is_much_longer(runs, of):
    parts = [Shard(number, of).part(range(runs)) for number in range(1, of + 1)]
    assert [run for part in parts for run in part] == list(range(runs))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("text", ["0/4", "5/4", "x", "/", "1/", "/4", "-1/4", "1/4/4", "1 /4", "01/4", "1.0/4", ""])
def test_rubbish_is_no_shard(text):
    with pytest.raises(UsageError, match="--shard is") as caught:
        parse_shard(text)
    assert "i from 1 to n" in caught.value.remedy


def test_a_shard_reads_as_it_is_written():
    assert parse_shard("2/4") == Shard(2, 4)
    assert str(Shard(2, 4)) == "2/4"


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"shard": 1}', b"\xff"])
def test_a_damaged_account_is_an_input_error(data):
    with pytest.raises(InputError, match="cannot read here"):
        account_from(data, "here")


def test_an_account_is_what_was_written():
    whole = Whole(4, 9, "ab", "1.0", {"hw": "910b3"})
    account = Account(Shard(2, 4), whole, ["a"], ["steps"], (Failure(3, "no step line"),))
    assert account_from(account.to_json(), "here") == account


# Merged, they are what one call gives.


@pytest.mark.parametrize("n", sweep_after(2, [2, 9, 1, 4]))
def test_merged_shards_are_what_one_call_gives(logs, local, tmp_path, n):
    done, there = local
    out = shards(logs, tmp_path / "out", n)
    merged = run_logparse("merge", str(out), "--json", cwd=tmp_path)
    assert merged.stdout == done.stdout
    assert (merged.returncode, merged.stderr) == (done.returncode, done.stderr)
    assert done.returncode == 3
    assert_tables_equal(out, there)
    assert {name: (out / name).read_bytes() for name in ALIKE} == {name: (there / name).read_bytes() for name in ALIKE}


def test_charts_lie_where_one_call_puts_them(logs, tmp_path):
    out = shards(logs, tmp_path / "out", 2, logs=LOGS[:3], charts=True)
    analyze(logs, "-o", str(tmp_path / "local"), logs=LOGS[:3], charts=True)
    merged = run_logparse("merge", str(out), "-o", "all", cwd=tmp_path)
    assert merged.stderr.startswith("wrote all/\n")
    charts, there = content(tmp_path / "all/charts"), content(tmp_path / "local/charts")
    assert charts.keys() == there.keys()
    assert {len(Path(name).parts) for name in charts} == {2}
    assert all(json.loads(charts[name]) == json.loads(there[name]) for name in charts)
    assert not (tmp_path / "all/report.html").exists()
    assert (out / "shards/1-of-2/report.html").is_file()
    pages, own = content(tmp_path / "all/runs"), content(tmp_path / "local/runs")
    # Only one call writes a page of all runs to link to.
    overlay = re.compile(rb'<a href="[./]*report.html">all runs in the same charts</a>')
    assert pages == {name: overlay.sub(b"", page) for name, page in own.items()}
    assert sorted(pages) == ["0-core/report.html", "2-ramp-up/report.html"]
    index = (tmp_path / "local/index.html").read_bytes()
    assert overlay.search(index)
    assert (tmp_path / "all/index.html").read_bytes() == overlay.sub(b"", index)


def test_charts_of_the_only_run_have_no_folder(logs, tmp_path):
    one = LOGS[:2]
    out = shards(logs, tmp_path / "out", 2, logs=one, charts=True)
    analyze(logs, "-o", str(tmp_path / "local"), logs=one, charts=True)
    assert run_logparse("merge", "out", cwd=tmp_path).returncode == 3
    there = content(tmp_path / "local/charts").keys()
    assert content(out / "charts").keys() == there
    assert {len(Path(name).parts) for name in there} == {1}


@pytest.mark.parametrize("options", [[], ["--sort", "-mfu", "--where", "goodput>45%"]], ids=["all", "some"])
def test_people_are_shown_what_one_call_shows(logs, out, tmp_path, options):
    merged = run_logparse("merge", "out", *options, cwd=tmp_path)
    assert merged.stdout == analyze(logs, *options).stdout
    assert f"{'3 of 4' if options else '4'} runs\n! could not be read: 2 (1-rubbish, 5-empty)\n" in merged.stdout
    for name in ("runs.csv", "index.html"):
        assert (out / name).is_file()


def test_shards_without_one_readable_run(logs, tmp_path):
    """Each says so as one call would, and leaves its account; merged they are as that call."""
    bad = ["1-rubbish.log", "5-empty.log"]
    for number in (1, 2):
        done = analyze(logs, "-o", str(tmp_path / "out"), "--shard", f"{number}/2", logs=bad)
        assert (done.returncode, done.stdout) == (3, "")
        assert (tmp_path / f"out/shards/{number}-of-2/shard.json").is_file()
    local = analyze(logs, "--json", logs=bad)
    merged = run_logparse("merge", "out", "--json", cwd=tmp_path)
    assert (merged.returncode, merged.stdout, merged.stderr) == (local.returncode, local.stdout, local.stderr)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["shards"]


def test_an_empty_shard_is_done_at_once(logs, tmp_path):
    done = analyze(logs, "-o", str(tmp_path / "out"), "--shard", "1/9", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["runs"] == []
    assert sorted(content(tmp_path / "out/shards/1-of-9")) == [LIST, "runs.json", "shard.json"]


# Made again.


def test_a_shard_made_again_changes_nothing(logs, tmp_path):
    first, again = (
        content(shards(logs, tmp_path / "out", 1, logs=["3-mindformers.log"], charts=True)) for _ in range(2)
    )
    assert first == again
    assert any(name.startswith("shards/1-of-1/charts/") for name in first)


def test_a_shard_that_was_broken_off_is_made_anew(logs, out):
    whole = content(out)
    (out / "shards/1-of-2/shard.json").unlink()
    (out / "shards/1-of-2/steps.parquet").write_bytes(b"half")
    (out / "shards/1-of-2/memory.parquet").write_bytes(b"of other logs")
    assert content(shards(logs, out, 2)) == whole


def test_while_a_shard_is_made_again_it_is_not_finished(logs, out, tmp_path):
    """What is left of one that is broken off passes for finished work with nobody."""
    (out / "shards/2-of-2/runs.json").unlink()
    (out / "shards/2-of-2/runs.json").mkdir()
    assert analyze(logs, "-o", str(out), "--shard", "2/2").returncode == 2
    done = run_logparse("merge", "out", cwd=tmp_path)
    assert "missing or unfinished shards: 2/2" in done.stderr


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--seq-length", "8192"], "seq_length"),
        (["--warmup", "0"], "warm_up"),
        (["--formula", "palm"], "formula"),
        (["--chart-format", "json", "--charts"], "chart_format, theme, lang"),
    ],
)
def test_a_shard_made_otherwise_is_refused(logs, out, tmp_path, options, named):
    before = content(out)
    done = analyze(logs, "-o", str(out), "--shard", "1/2", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"logparse: {out}/shards/1-of-2 already contains a shard with different {named}\n"
        "  try:   give another folder with -o, or overwrite with --force\n"
    )
    assert content(out) == before
    assert analyze(logs, "-o", str(out), "--shard", "1/2", *options, "--force").returncode == 3
    done = run_logparse("merge", "out", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"shards 1/2 and 2/2 differ in {named}" in done.stderr


def test_a_shard_of_other_logs_is_refused(logs, out):
    done = analyze(logs, "-o", str(out), "--shard", "1/2", logs=LOGS[1:])
    assert "already contains a shard with different runs, logs\n" in done.stderr


def test_how_many_blocks_are_read_at_once_does_not_matter(logs, out):
    before = content(out)
    assert analyze(logs, "-o", str(out), "--shard", "1/2", "--jobs", "2").returncode == 3
    assert content(out) == before


# What merge refuses.


def test_missing_shards_are_named_with_a_command(logs, tmp_path):
    for number in (1, 3):
        analyze(logs, "-o", str(tmp_path / "out"), "--shard", f"{number}/4")
    done = run_logparse("merge", "out", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "logparse: missing or unfinished shards: 2/4, 4/4\n"
        "  where: out/shards\n"
        "  try:   run `logparse analyze --each LOG... -o out --shard 2/4` "
        "with the logs and options of the other shards\n"
    )


def test_shards_of_two_splits_are_refused(logs, out, tmp_path):
    analyze(logs, "-o", str(out), "--shard", "1/9")
    done = run_logparse("merge", "out", cwd=tmp_path)
    assert "shards 1/2 and 1/9 differ in of\n" in done.stderr
    assert "delete the folders of outdated shards" in done.stderr


def test_a_file_that_was_lost_is_named(out, tmp_path):
    (out / "shards/1-of-2/steps.parquet").unlink()
    done = run_logparse("merge", "out", cwd=tmp_path)
    assert "no such file: out/shards/1-of-2/steps.parquet\n  try:   run the shard again" in done.stderr


def test_without_shards_there_is_nothing_to_merge(tmp_path):
    done = run_logparse("merge", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert "no finished shard in out\n  try:   run every shard first, such as `logparse analyze --each" in done.stderr


def test_results_are_not_overwritten_without_force(out, tmp_path):
    assert run_logparse("merge", "out", cwd=tmp_path).returncode == 3
    merged = content(tmp_path / "out")
    done = run_logparse("merge", "out", cwd=tmp_path)
    assert (
        "folder out contains results other than shards\n  try:   give another folder with -o, or overwrite"
        in done.stderr
    )
    (tmp_path / "out/ranks.parquet").write_bytes(b"of an earlier run")
    listed = json.loads((tmp_path / "out" / LIST).read_text())
    listed["files"]["ranks.parquet"] = "analyze"
    (tmp_path / "out" / LIST).write_text(json.dumps(listed))
    assert run_logparse("merge", "out", "--force", cwd=tmp_path).returncode == 3
    assert content(tmp_path / "out") == merged
    (tmp_path / "other").mkdir()
    (tmp_path / "other/mine.txt").write_text("mine")
    assert "the folder other is not empty" in run_logparse("merge", "out", "-o", "other", cwd=tmp_path).stderr


# Options that do not go together.


@pytest.mark.parametrize("command", [["analyze"], ["record", "--release", "RC1", "--history", "history"]])
@pytest.mark.parametrize(("flag", "value"), [("--shard", "1/2"), ("--engine", "ray")])
def test_one_run_is_not_shared_out(logs, command, flag, value):
    done = run_logparse(*command, LOGS[0], flag, value, cwd=logs)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{flag} requires --each\n  try:   add --each" in done.stderr


def test_a_shard_needs_a_folder(logs):
    done = analyze(logs, "--shard", "1/2")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--shard requires -o\n  try:   add -o DIR, with the same folder for all shards" in done.stderr


# On an object store, and for a history.


def test_shards_on_an_object_store(s3, logs, local, tmp_path):
    put({f"logs/{name}": (logs / name).read_bytes() for name in LOGS})
    shards(logs, "s3://bucket/out", 2)
    assert "out/shards/2-of-2/shard.json" in keys("out")
    merged = run_logparse("merge", "s3://bucket/out/", "-o", "all", "--json", cwd=tmp_path)
    assert merged.stdout == local[0].stdout
    assert_tables_equal(tmp_path / "all", local[1])
    assert run_logparse("merge", "s3://bucket/out", cwd=tmp_path).returncode == 3
    assert {"out/steps.parquet", "out/shards/1-of-2/steps.parquet"} <= set(keys("out"))


def test_recorded_shards_are_the_history_of_one_call(tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.log").write_text(megatron_log(20 + number))
    names = sorted(path.name for path in tmp_path.glob("*.log"))
    command = ["record", "--each", *names, "--release", "RC1"]
    assert run_logparse(*command, "--history", "one", cwd=tmp_path).returncode == 0
    told = [run_logparse(*command, "--history", "many", "--shard", f"{i}/4", cwd=tmp_path) for i in (1, 2, 3, 4)]
    assert [(done.returncode, len(done.stdout.splitlines()), done.stderr) for done in told] == [
        (0, 0, ""),
        (0, 1, ""),
        (0, 1, ""),
        (0, 1, ""),
    ]
    assert content(tmp_path / "one").keys() == content(tmp_path / "many").keys()
    again = run_logparse(*command, "--history", "many", "--shard", "4/4", cwd=tmp_path)
    assert "is already recorded; nothing changed" in again.stdout
