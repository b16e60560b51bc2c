"""A run beside the recorded ones of its job."""

import json
import shutil

import pytest
from helpers import run_logparse
from releases import write_run

pytestmark = pytest.mark.usefixtures("analysed_once")

# A shape of which nobody published a rate.
UNPUBLISHED = {"num_layers": 7}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A history of twelve runs of 1,000 to 1,110 ms, and a log of 1,055 ms."""
    folder = tmp_path_factory.mktemp("recorded")
    logs = [str(write_run(folder / f"run{n}.log", n, 1000.0 + 10 * n, **UNPUBLISHED)) for n in range(12)]
    run_logparse("record", "--each", *logs, "--history", "h", "--release", "2026.11", cwd=folder)
    write_run(folder / "now.log", 99, 1055.0, **UNPUBLISHED)
    return folder


def analyzed(place, *options, log="now.log", history="h"):
    return run_logparse("analyze", log, *options, cwd=place, LOGPARSE_HISTORY=history)


def gaps(done):
    (run,) = json.loads(done.stdout)["runs"]
    return [loss for loss in run["overheads"] if loss["cause"] == "published"]


def test_the_fastest_recorded_run_is_what_it_is_set_beside(place):
    shown = analyzed(place).stdout
    assert "recorded for 2026.11" in shown
    (loss,) = gaps(analyzed(place, "--json"))
    # 32 samples of 4,096 tokens in 1,000 ms on 8 devices, to the spread of runs.
    assert loss["rate_without"] == pytest.approx(32 * 4096 / 8, rel=0.02)
    assert loss["advice"]["code"] == "best_recorded"


def test_among_ten_and_more_it_has_a_place(place):
    assert analyzed(place, "-o", "out", "--force").returncode == 0
    page = (place / "out/report.html").read_text(encoding="utf-8")
    assert "50th percentile of 12 comparable rates" in page


def test_a_run_is_not_set_beside_its_own_record(place):
    assert len(gaps(analyzed(place, "--json", log="run11.log"))) == 1
    assert gaps(analyzed(place, "--json", log="run0.log")) == []


def test_a_requirement_goes_by_what_is_published(place):
    judged = json.loads(analyzed(place, "--require", "baseline>=0.5", "--json").stdout)["runs"][0]["requirements"]
    assert judged[0]["outcome"] == "unknown"


def test_a_recorded_run_can_be_chosen(place):
    listed = json.loads(run_logparse("history", "list", "--history", "h", "--json", cwd=place).stdout)["runs"]
    name = listed[0]["run_id"][:12]
    done = analyzed(place, "--baseline", name, "--require", "baseline>=0.5")
    assert done.returncode == 0
    assert "pass: baseline>=0.5" in done.stdout


def test_its_own_record_can_be_chosen_too(place):
    runs = json.loads(run_logparse("history", "list", "--history", "h", "--json", cwd=place).stdout)["runs"]
    (own,) = [run["run_id"][:12] for run in runs if run["name"] == "run0"]
    assert "100 % of the" in analyzed(place, "--baseline", own, log="run0.log").stdout


def test_a_history_that_is_not_there_yet_is_none(place):
    there, not_there = analyzed(place, history="h").stdout, analyzed(place, history="later")
    assert not_there.returncode == 0
    assert (not_there.stderr, "recorded for" in not_there.stdout, "recorded for" in there) == ("", False, True)


def test_a_history_that_cannot_be_read_is_told_and_the_run_all_the_same(place):
    shutil.copytree(place / "h", place / "damaged")
    for file in (place / "damaged/summary").rglob("*.parquet"):
        file.write_bytes(b"rubbish")
    done = analyzed(place, history="damaged")
    assert (done.returncode, "step time" in done.stdout, "recorded for" in done.stdout) == (0, True, False)
    assert ".parquet cannot be read and was ignored" in done.stderr
