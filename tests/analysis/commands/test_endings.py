"""How runs ended, wherever many runs are shown: the same object, the same words, and device-hours by family."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
from helpers import run_logparse
from releases import write_run
from rich.cells import cell_len

pytestmark = pytest.mark.usefixtures("analysed_once")

SECRET = "hf_abcdefghijklmnopqrstuvwxyz0123456789"
CASCADE = f"""\
[rank0]: torch.distributed.DistBackendError: NCCL error, remote process exited or there was a network error
[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB <b>token={SECRET}</b>
srun: error: node7: task 3: Exited with exit code 1
"""
NIGHTS = 7
UNKNOWN_DEVICES = {"world_size": "None", "data_parallel_size": "None"}


# The clock of write_run goes on by a minute a step.
MINUTE = 60_000.0


def failing(path: Path, seed: int, text: str, **settings: object) -> Path:
    write_run(path, seed, ms=MINUTE, steps=30, **settings)
    path.write_text(path.read_text() + text)
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Nights of one job, the last one crashed, in ``logs`` and recorded in ``h``; runs of all kinds in ``mixed``."""
    folder = tmp_path_factory.mktemp("endings")
    (folder / "logs").mkdir()
    (folder / "mixed").mkdir()
    for night in range(NIGHTS - 1):
        write_run(folder / f"logs/n{night}.log", night, ms=MINUTE, steps=30)
    failing(folder / f"logs/n{NIGHTS - 1}.log", NIGHTS - 1, CASCADE)
    write_run(folder / "mixed/ends.log", 11, ms=MINUTE, steps=30)
    write_run(folder / "mixed/whole.log", 12, ms=MINUTE, steps=500)
    failing(folder / "mixed/memory.log", 13, CASCADE)
    failing(
        folder / "mixed/killed.log", 14, "srun: error: node7: task 3: Exited with exit code 137\n", **UNKNOWN_DEVICES
    )
    done = run_logparse("record", "--each", "logs", "--history", "h", "--release", "r1", cwd=folder)
    assert done.returncode == 0
    return folder


def output(place, *arguments, code=0, **env):
    done = run_logparse(*arguments, cwd=place, **env)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    return done.stdout


def document(place, *arguments, code=0):
    return json.loads(output(place, *arguments, "--json", code=code))


def diagnosed(place, log):
    return document(place, "diagnose", log)["ending"]


def named_alike(ending):
    """``ending`` with the names of files only, as history keeps it."""
    text = re.sub(r'"source": "[^"]*/', '"source": "', json.dumps(ending))
    return json.loads(text)


def row_of(text, name):
    return next(line for line in text.splitlines() if line.startswith(name))


def one_line(text):
    """``text`` as it is where no terminal folds it."""
    return " ".join(text.split())


def test_each_names_what_failed_and_totals_device_hours(place):
    text = output(place, "analyze", "--each", "mixed", COLUMNS="120")
    assert "failed: device memory" in row_of(text, "memory")
    assert ("killed" in row_of(text, "killed"), "completed" in row_of(text, "whole")) == (True, True)
    assert "cut off" in row_of(text, "ends")
    (total,) = re.findall(r"device-hours by ending \(runs\): .*", text)
    assert re.search(r"completed 6\d\.\d \(1\), .*device memory 4\.0 \(1\), .*killed - \(1\)", total)
    assert "devices or time unknown: 1" in one_line(text)


def test_each_of_healthy_runs_has_no_column_of_endings(place, tmp_path):
    for seed in (1, 2):
        write_run(tmp_path / f"{seed}.log", seed, steps=20 + seed)
    text = output(tmp_path, "analyze", "--each", "1.log", "2.log")
    assert "cut off" not in text
    assert "by ending" not in text


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_table_fits_a_narrow_terminal(place, lang):
    text = output(place, "analyze", "--each", "logs", "--lang", lang, COLUMNS="80")
    assert max(map(cell_len, text.splitlines())) <= 80


def test_each_in_json(place):
    whole = document(place, "analyze", "--each", "mixed")
    endings = {run["name"]: run["ending"] for run in whole["runs"]}
    assert endings["memory"] == diagnosed(place, "mixed/memory.log")
    assert (endings["memory"]["family"], endings["memory"]["rank"]) == ("device_memory", 3)
    groups = {group["family"]: group for group in whole["device_hours_by_ending"]}
    assert groups["killed"] == {
        "state": "killed",
        "family": "killed",
        "runs": 1,
        "device_hours": 0.0,
        "runs_without_device_hours": 1,
    }
    assert groups["device_memory"]["device_hours"] > 0


def test_the_tables_have_state_and_family(place, tmp_path):
    output(place, "analyze", "--each", "mixed", "-o", str(tmp_path / "out"), "--no-charts")
    runs = pl.read_parquet(tmp_path / "out/runs.parquet").select("run", "ending_state", "ending_family").sort("run")
    assert runs.rows() == [
        ("ends", "cut_off", "unknown"),
        ("killed", "killed", "killed"),
        ("memory", "failed", "device_memory"),
        ("whole", "completed", "completed"),
    ]


def test_a_failed_run_is_recorded_with_a_word_on_it(place, tmp_path):
    log = str(place / "mixed/memory.log")
    text = output(tmp_path, "record", log, "--history", "h", "--release", "r1")
    assert one_line(text).endswith("of r1; ending: failed at step 30 of 500: rank 3, out of device memory")
    (again,) = document(tmp_path, "record", log, "--history", "h", "--release", "r1")["runs"]
    assert (again["state"], again["ending"]["family"]) == ("known", "device_memory")
    healthy = output(tmp_path, "record", str(place / "mixed/ends.log"), "--history", "h", "--release", "r1")
    assert ("failed" in healthy, "the run" in healthy) == (False, False)


def test_history_lists_endings_and_device_hours(place):
    text = output(place, "history", "list", "--history", "h")
    assert max(map(cell_len, text.splitlines())) <= 100
    assert "failed:" in text
    assert "device memory" in one_line(text)
    assert re.search(
        r"device-hours by ending \(runs\): cut off [\d.]+ \(6\), device memory [\d.]+ \(1\)", one_line(text)
    )
    whole = document(place, "history", "list", "--history", "h")
    endings = {run["name"]: run["ending"] for run in whole["runs"]}
    for name in ("n0", f"n{NIGHTS - 1}"):
        assert endings[name] == named_alike(diagnosed(place, f"logs/{name}.log"))
    assert [group["family"] for group in whole["device_hours_by_ending"]] == ["unknown", "device_memory"]


def test_runs_are_selected_by_what_failed(place):
    runs = document(place, "history", "list", "ending_family=device_memory", "--history", "h")["runs"]
    assert [run["name"] for run in runs] == [f"n{NIGHTS - 1}"]


def test_compare_says_which_side_did_not_complete(place):
    text = one_line(output(place, "compare", "logs/n0.log", "mixed/memory.log"))
    assert (
        "candidate: memory did not complete: failed at step 30 of 500: rank 3, out of device memory; memory.log" in text
    )
    assert "baseline: n0 did not" not in text
    failed = document(place, "compare", "mixed/memory.log", "logs/n0.log")["failed"]
    assert [run["name"] for run in failed["baseline"]] == ["memory"]
    assert failed["baseline"][0]["ending"] == named_alike(diagnosed(place, "mixed/memory.log"))
    assert failed["candidate"] == []


def test_compare_counts_many_failed_runs(place, tmp_path):
    (tmp_path / "side").mkdir()
    for seed in range(5):
        failing(tmp_path / f"side/s{seed}.log", 30 + seed, CASCADE)
    text = one_line(output(tmp_path, "compare", str(place / "logs/n0.log"), "side"))
    assert (text.count("did not complete: failed"), "candidate: 2 more runs did not complete" in text) == (3, True)


def test_the_gate_of_a_night_says_what_failed(place, tmp_path):
    whole = document(place, "gate", "--history", "h", "-o", str(tmp_path / "g"), code=1)
    (job,) = whole["jobs"]
    assert (whole["verdict"], job["verdict"]) == ("crashed", "crashed")
    expected = named_alike(diagnosed(place, f"logs/n{NIGHTS - 1}.log"))
    assert job["failed"]["ending"] == expected
    cases = ElementTree.parse(tmp_path / "g/junit.xml").iter("failure")
    (message,) = [case.get("message") for case in cases]
    line = f"n{NIGHTS - 1}.log, line {expected['line']}: [rank3]: torch.OutOfMemoryError"
    assert ("out of device memory" in message, line in message) == (True, True)
    assert "out of device memory" in (tmp_path / "g/summary.md").read_text()


def test_the_gate_of_two_sides_has_a_case_for_a_failed_run(place, tmp_path):
    arguments = ("--baseline", "logs/n0.log", "--candidate", "mixed/memory.log", "-o", str(tmp_path / "g"))
    whole = document(place, "gate", *arguments, code=1)
    assert whole["verdict"] == "crashed"
    assert whole["failed"]["candidate"][0]["ending"]["family"] == "device_memory"
    cases = {case.get("name"): case for case in ElementTree.parse(tmp_path / "g/junit.xml").iter("testcase")}
    assert "memory did not complete" in (cases["ending"].find("failure").get("message") or "")


def test_a_failed_baseline_or_a_failure_after_the_last_step_does_not_fail_the_gate(place, tmp_path):
    whole = document(place, "gate", "--baseline", "mixed/memory.log", "--candidate", "logs/n0.log")
    assert whole["verdict"] != "crashed"
    failing(tmp_path / "late.log", 31, CASCADE)
    text = (tmp_path / "late.log").read_text()
    (tmp_path / "late.log").write_text(re.sub(r"(iteration +\d+/ +)500", r"\g<1> 30", text))
    whole = document(place, "gate", "--baseline", "logs/n0.log", "--candidate", str(tmp_path / "late.log"))
    assert whole["verdict"] != "crashed"


def test_the_gate_of_two_sides_names_the_crash_first(place):
    text = output(place, "gate", "--baseline", "logs/n0.log", "--candidate", "mixed/memory.log", code=1)
    assert text.startswith("verdict: crashed")


@pytest.fixture(scope="module")
def pages(place, tmp_path_factory):
    out = tmp_path_factory.mktemp("pages") / "out"
    output(place, "analyze", "--each", "mixed", "-o", str(out))
    return out


def test_the_index_has_a_column_and_the_totals(pages):
    text = (pages / "index.html").read_text()
    assert '<th scope="col" data-column="ending_state" class="words">ending</th>' in text
    assert ">failed: device memory</td>" in text
    assert '<p class="endings">device-hours by ending (runs): completed' in text


def test_the_page_of_a_failed_run_begins_with_its_cause(pages):
    text = (pages / "runs/memory/report.html").read_text()
    block = text[text.index('<div class="ending"') :]
    block = block[: block.index("</div>")]
    assert "failed at step 30 of 500: rank 3, out of device memory (certain)" in block
    assert re.search(r"memory\.log, line \d+: \[rank3\]: torch\.OutOfMemoryError", block)
    for label in ("before it", "after it", "try"):
        assert f">  {label}</th>" in block
    assert text.index('<div class="ending"') < text.index('<div class="cards"')
    assert "<b>token" not in text


def test_the_page_of_a_healthy_run_has_a_word(pages):
    text = (pages / "runs/whole/report.html").read_text()
    assert '<p class="ended">completed: 500 of 500 steps</p>' in text
    assert 'class="ending"' not in text


def test_no_secret_is_shown_or_kept(place, pages):
    shown = (
        output(place, "history", "list", "--history", "h", "--json"),
        output(place, "compare", "logs/n0.log", "mixed/memory.log", "--json"),
        *(page.read_text() for page in pages.rglob("*.html")),
    )
    assert not any(SECRET in text for text in shown)
    kept = pl.read_parquet(place / "h/summary/**/*.parquet", columns=["ending"])["ending"]
    assert (len(kept), SECRET in str(kept.to_list())) == (NIGHTS, False)


def test_chinese(place):
    assert "失败：显存不足" in output(place, "analyze", "--each", "mixed", "--lang", "zh", COLUMNS="120")
    assert "各类结束的卡时（任务数）：" in output(place, "analyze", "--each", "mixed", "--lang", "zh", COLUMNS="120")
    assert "未完成：" in output(place, "compare", "logs/n0.log", "mixed/memory.log", "--lang", "zh")
