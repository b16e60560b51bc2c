"""Two releases of many jobs: one verdict for each, as without sides."""

import json
from xml.etree import ElementTree

import pytest
from helpers import run_logparse
from releases import record, write_run

from analysis.history.folder import Folder
from analysis.history.store import History

pytestmark = pytest.mark.usefixtures("analysed_once")

# By the number of layers, the step time of each release; the third job has no run of the second release.
JOBS = {32: (1000.0, 1050.0), 24: (800.0, 800.0), 16: (600.0, None)}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jobs")
    history = History(Folder(folder / "h"))
    for layers, times in JOBS.items():
        for release, ms in enumerate(times):
            for number in range(5) if ms else ():
                seed = 1000 * release + 10 * layers + number
                log = write_run(folder / f"{seed}.log", seed, ms, num_layers=layers)
                history.add(record(log, f"r{release}", **({"job": "small"} if layers == 24 else {})))
    return folder


def gate(place, *arguments):
    sides = ("--history", "h", "--baseline", "release=r0", "--candidate", "release=r1")
    return run_logparse("gate", *sides, *arguments, cwd=place, COLUMNS="100")


def test_each_job_has_its_verdict(place):
    done = gate(place)
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    assert lines[:2] == ["verdict: regression", "jobs: 2 (1 regression, 1 no regression)"]
    assert "16 layers of 4096" in lines[2] + lines[3]
    text = " ".join(done.stdout.split())
    assert (
        "! llama-7b or llama2-7b, 8 devices, tp2 dp4, batch 32 sequence 4096: regression: step time, steady +" in text
    )
    assert "comparability: " not in text
    assert "comparability: " in gate(place, "-v").stdout
    told = json.loads(gate(place, "--json").stdout)
    assert [(one["job"] == "small", one["verdict"]) for one in told["comparisons"]] == [
        (True, "no regression"),
        (False, "regression"),
    ]
    assert (len(told["without_candidate"]), told["without_baseline"]) == (1, [])


def test_the_files_have_all_jobs(place, tmp_path):
    gate(place, "-o", str(tmp_path / "out"))
    names = {case.get("classname") for case in ElementTree.parse(tmp_path / "out/junit.xml").iter("testcase")}
    assert len(names) == 2
    text = (tmp_path / "out/openmetrics.txt").read_text()
    assert text.count("# TYPE logparse_verdict") == 1
    assert 'training_job="small"' in text
    assert len(json.loads((tmp_path / "out/benchmark-smaller-is-better.json").read_text())) >= 4
    assert not (tmp_path / "out/otava.csv").exists()


def test_a_job_without_a_candidate_is_strictly_no_evidence(place):
    done = gate(place, "--strict", "--threshold", "20%")
    assert (done.returncode, "16 layers" in done.stderr) == (4, True)
    assert gate(place, "--threshold", "20%").returncode == 0


def test_jobs_of_too_few_runs_for_a_test_are_counted(tmp_path):
    history = History(Folder(tmp_path / "h"))
    for seed in range(4):
        log = write_run(tmp_path / f"{seed}.log", seed, num_layers=(24, 32)[seed % 2])
        history.add(record(log, f"r{seed // 2}"))
    assert "! jobs with too few runs for a test, where only the threshold decides: 2" in gate(tmp_path).stdout


def test_one_job_is_compared_as_before(place):
    done = run_logparse(
        *("gate", "--history", "h", "--baseline", "release=r0,num_layers=32"),
        *("--candidate", "release=r1,num_layers=32", "--json"),
        cwd=place,
    )
    assert json.loads(done.stdout)["job"].startswith("llama")


def test_what_became_worse_is_posted_to_a_chat(place, monkeypatch):
    """With the run's link; nothing is sent where nothing is wrong."""
    got = []
    monkeypatch.setattr("analysis.commands.gate.post", lambda url, message, form, _: got.append((url, message, form)))
    (place / "logparse.toml").write_text('[gate]\nrun_url = "https://ci.example.com/{run_id}"\n')
    try:
        assert gate(place, "--webhook", "http://127.0.0.1:9/x").returncode == 1
        assert gate(place, "--webhook", "http://127.0.0.1:9/x", "--threshold", "20%").returncode == 0
    finally:
        (place / "logparse.toml").unlink()
    ((url, message, form),) = got
    assert (url, form, message["verdict"], len(message["news"])) == ("http://127.0.0.1:9/x", None, "regression", 1)
    (news,) = message["news"]
    assert news["metrics"]["steady_step_time_ms"] == pytest.approx(0.05, abs=0.01)
    lines = message["text"].splitlines()
    assert lines[:2] == ["verdict: regression", "release=r1 compared with release=r0"]
    assert lines[2].startswith("llama-7b or llama2-7b, 8 devices")
    assert lines[2].endswith(news["candidate_url"])
    assert news["candidate_url"].startswith("https://ci.example.com/")
    assert len(lines) <= 10


def test_one_job_of_two_sides_that_cannot_be_compared_is_posted_too(place, monkeypatch):
    got = []
    monkeypatch.setattr("analysis.commands.gate.post", lambda url, message, form, _: got.append(message))
    sides = ("--baseline", "release=r0,num_layers=32", "--candidate", "release=r1,num_layers=24")
    done = run_logparse("gate", "--history", "h", *sides, "--webhook", "http://127.0.0.1:9/x", cwd=place)
    assert done.returncode == 2
    assert "num_layers" in got[0]["news"][0]["refused"]
    assert "not comparable" in got[0]["text"]
