"""``--tables``: the tables of -o in the forms that are asked for, and nothing left of those of an earlier call."""

import json
import math

import polars as pl
import pytest
from helpers import megatron_line, megatron_log, run_logparse
from polars.testing import assert_frame_equal

from analysis.files.outputs import TABLE_FORMATS

pytestmark = pytest.mark.usefixtures("analysed_once")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run.log").write_text(megatron_log() + megatron_line(7, pairs={"lm loss": "nan"}) + "\n")
    return tmp_path


def analyze(folder, *options):
    return run_logparse("analyze", "run.log", "-o", "out", "--no-charts", "--force", *options, cwd=folder)


def endings(folder):
    return {path.suffix for path in (folder / "out").glob("[!.]*")}


@pytest.mark.parametrize(
    ("asked", "there"),
    [
        ((), {".parquet"}),
        (("--tables", "csv"), {".csv"}),
        (("--tables", "parquet,csv,jsonl"), {".parquet", ".csv", ".jsonl"}),
        (("--tables", "jsonl,jsonl"), {".jsonl"}),
    ],
)
def test_forms_that_are_asked_for(folder, asked, there):
    assert analyze(folder, *asked).returncode == 0
    assert endings(folder) == there


def test_all_forms_hold_the_same(folder):
    analyze(folder, "--tables", "parquet,csv,jsonl")
    names = {path.stem for path in (folder / "out").glob("[!.]*")}
    assert {"steps", "summary", "rates", "time_breakdown", "segments"} <= names
    for name in names:
        whole = pl.read_parquet(folder / f"out/{name}.parquet")
        read = pl.read_csv(folder / f"out/{name}.csv", schema_overrides=whole.schema)
        assert_frame_equal(read, whole, check_exact=True)
        lines = [json.loads(line) for line in (folder / f"out/{name}.jsonl").read_text().splitlines()]
        assert [list(line) for line in lines] == [whole.columns] * len(whole)


def test_what_is_not_a_number_is_null_in_json_lines(folder):
    analyze(folder, "--tables", "parquet,jsonl")
    losses = pl.read_parquet(folder / "out/steps.parquet")["loss"].to_list()
    lines = [json.loads(line)["loss"] for line in (folder / "out/steps.jsonl").read_text().splitlines()]
    assert math.isnan(losses[-1])
    assert lines == [*losses[:-1], None]


def test_what_an_earlier_call_left_goes(folder):
    analyze(folder, "--tables", "parquet,csv")
    (folder / "out/mine.csv").write_text("mine")
    analyze(folder, "--tables", "jsonl")
    assert endings(folder) == {".jsonl", ".csv"}
    assert [path.name for path in (folder / "out").glob("*.csv")] == ["mine.csv"]


@pytest.mark.parametrize("asked", ["xlsx", "parquet,,csv", ""])
def test_other_forms_are_refused(folder, asked):
    done = run_logparse("analyze", "run.log", "-o", "out", "--tables", asked, cwd=folder)
    assert (done.returncode, (folder / "out").exists()) == (2, False)
    assert "unknown table format" in done.stderr
    assert "use one of parquet, csv, jsonl" in done.stderr


def test_shards_keep_parquet_and_merge_writes_what_it_is_asked_for(folder):
    logs = ("--each", "run.log", "run.log", "-o", "out", "--no-charts")
    for n in (1, 2):
        assert run_logparse("analyze", *logs, "--shard", f"{n}/2", "--tables", "csv", cwd=folder).returncode == 0
    assert (folder / "out/shards/1-of-2/steps.csv").exists()
    assert run_logparse("merge", "out", "--tables", "csv", cwd=folder).returncode == 0
    assert {path.suffix for path in (folder / "out").glob("[!.]*") if path.is_file()} == {".csv", ".html"}
    assert len(pl.read_csv(folder / "out/steps.csv")) == 14


def test_wrote_names_the_page_that_a_person_opens(folder):
    done = run_logparse("analyze", "run.log", "-o", "out", "--chart-format", "json", cwd=folder)
    assert done.stderr == "wrote out/report.html\n"
    assert (folder / "out/report.html").exists()
    assert analyze(folder).stderr == "wrote out/\n"


def test_a_new_format_is_one_entry(folder, monkeypatch):
    """What the entry writes is what is in the file."""

    class Counted:
        def __init__(self, file):
            self.file = file

        def add(self, frame):
            self.file.write(str(len(frame)).encode())

        def close(self):
            self.file.write(b" rows")

    monkeypatch.setitem(TABLE_FORMATS, "count", Counted)
    assert analyze(folder, "--tables", "count").returncode == 0
    assert (folder / "out/steps.count").read_text() == "7 rows"
