"""``logparse gate`` as CI runs it: how it ends, what it says and writes."""

import csv
import json
import shlex
import shutil
from xml.etree import ElementTree

import pytest
from helpers import PROGRAM, run_logparse, run_process, sweep_after
from releases import fill, record, write_run

from analysis.compare.gate_exports import OUTPUTS
from analysis.compare.verdict import DEFAULT_METRIC
from analysis.history.folder import Folder
from analysis.history.store import History

pytestmark = pytest.mark.usefixtures("analysed_once")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gate")
    overlap = {"overlap_grad_reduce": True}
    fill(
        folder,
        {
            "good": (1000.0, 5, overlap),
            "same": (1000.0, 5, overlap),
            "slow": (1040.0, 5, {"overlap_grad_reduce": False}),
            "single": (1000.0, 1, overlap),
            "pair": (1000.0, 2, overlap),
            "long": (1000.0, 3, {"seq_length": 8192}),
        },
    )
    return folder


def gate(place, candidate, *more, **env):
    return run_logparse(
        "gate", "--history", "h", "--baseline", "release=good", "--candidate", candidate, *more, cwd=place, **env
    )


# What the job of these runs is called.
JOB = "llama-7b or llama2-7b, 8 devices, tp2 dp4, batch 32 sequence 4096"

# Of so few runs nothing is proven.
FEW = ("release=single", "--baseline", "release=pair")
EXITS = {
    "release=slow": (1, "verdict: regression"),
    "release=same": (0, "verdict: no regression"),
    "release=single": (0, "verdict: no regression"),
    "release=long": (2, "not comparable"),
}


@pytest.mark.parametrize("candidate", EXITS)
def test_exit_codes(place, candidate):
    code, said = EXITS[candidate]
    done = gate(place, candidate)
    assert (done.returncode, said in " ".join(done.stdout.split())) == (code, True)


def test_the_changed_setting_is_named(place):
    assert "setting overlap_grad_reduce True False" in " ".join(gate(place, "release=slow").stdout.split())


def test_strict_wants_evidence(place):
    done = gate(place, *FEW, "--strict")
    assert (done.returncode, "at least 3 runs per side" in done.stderr) == (4, True)


@pytest.fixture(scope="module")
def bad_night(tmp_path_factory):
    """Baselines of 3 and 5 runs, one of them 60 % slower, against candidates that are all 30 % slower."""
    folder = tmp_path_factory.mktemp("night")
    history = History(Folder(folder / "h"))
    for runs in (3, 5):
        for name, ms in ((f"old{runs}", 1000.0), (f"new{runs}", 1300.0)):
            for number in range(runs):
                bad = 1.6 if name.startswith("old") and number == 1 else 1.0
                log = write_run(folder / f"{name}-{number}.log", 10 * runs + number + int(ms), ms * bad)
                history.add(record(log, name))
    return folder


NIGHTS = {
    ("3",): (0, "suspicious"),
    ("3", "--strict"): (4, "suspicious"),
    ("3", "--fail-on", "suspicious"): (1, "suspicious"),
    ("5",): (1, "regression"),
    ("3", "--fail-on", "suspicious", "--strict"): (1, "suspicious"),
    ("5", "--strict"): (1, "regression"),
}


@pytest.mark.parametrize("arguments", sweep_after(4, [(night,) for night in NIGHTS]), ids=" ".join)
def test_one_bad_run_of_the_baseline(bad_night, tmp_path, arguments):
    """It is named, the verdict is told with and without it, and JUnit agrees with the exit code."""
    runs, *more = arguments
    sides = ("gate", "--history", "h", "--baseline", f"release=old{runs}", "--candidate", f"release=new{runs}")
    done = run_logparse(*sides, *more, "-o", str(tmp_path / "out"), cwd=bad_night)
    code, verdict = NIGHTS[arguments]
    assert (done.returncode, done.stdout.splitlines()[0]) == (code, f"verdict: {verdict}")
    said = " ".join(done.stdout.split())
    assert f"outliers: old{runs}-1 of the baseline (+" in said
    assert "with them: suspicious, without: regression, +" in said
    found = outcomes(tmp_path / "out")
    assert (found["failures"] > 0, found["errors"] > 0) == (code == 1, code == 4)
    told = json.loads(run_logparse(*sides, "--json", cwd=bad_night).stdout)["metrics"][DEFAULT_METRIC]
    assert [outlier["name"] for outlier in told["outliers"]] == [f"old{runs}-1"]
    assert (told["verdict_with_outliers"], told["without_outliers"]["verdict"]) == ("suspicious", "regression")


def test_only_known_verdicts_fail_it(place):
    done = gate(place, "release=same", "--fail-on", "luck")
    assert (done.returncode, "suspicious" in done.stderr) == (2, True)


def test_a_difference_can_be_allowed(place):
    refused = gate(place, "release=long")
    assert "--allow seq_length" in refused.stderr
    assert gate(place, "release=long", "--allow", "seq_length").returncode == 0


def test_what_is_written(place, tmp_path):
    summary = tmp_path / "page.md"
    summary.write_text("before")
    out = tmp_path / "out"
    metrics = ("--metric", DEFAULT_METRIC, "--metric", "tokens_per_second_per_device")
    done = gate(place, "release=slow", "-o", str(out), *metrics, GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 1
    assert summary.read_text().startswith("before\n### verdict: regression")
    suite = ElementTree.parse(out / "junit.xml").getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("2", "2")
    assert len(suite.findall("testcase/failure")) == 2
    (smaller,) = json.loads((out / "benchmark-smaller-is-better.json").read_text())
    (bigger,) = json.loads((out / "benchmark-bigger-is-better.json").read_text())
    named = (smaller["name"], smaller["unit"], bigger["unit"])
    assert named == (f"{DEFAULT_METRIC} ({JOB})", "ms", "tokens/s/p")
    rows = list(csv.DictReader((out / "otava.csv").read_text().splitlines()))
    assert len(rows) == 10
    assert [row["time"] for row in rows] == sorted(row["time"] for row in rows)
    lines = (out / "openmetrics.txt").read_text().splitlines()
    assert lines[-1] == "# EOF"
    labels = f'training_job="{JOB}",metric="{DEFAULT_METRIC}",logparse_verdict="regression"'
    assert f"logparse_verdict{{{labels}}} 1.0" in lines
    assert all(f'training_job="{JOB}"' in line for line in lines if not line.startswith("#"))
    assert suite.get("name") == f"logparse gate: {JOB}"
    assert {case.get("classname") for case in suite.findall("testcase")} == {f"logparse.gate.{JOB}"}
    assert f"job: {JOB}" in summary.read_text()


SLOWER = ("gate", "--history", "h", "--baseline", "release=good", "--candidate", "release=slow")


def test_a_reader_that_goes_away_changes_no_exit_code(place, tmp_path):
    done = run_logparse(*SLOWER, "-o", f"{tmp_path}/out", cwd=place, unread=True)
    assert done.returncode == 1
    assert (tmp_path / "out" / "junit.xml").exists()


def test_output_that_cannot_be_written_hides_no_regression(place, tmp_path):
    line = shlex.join((PROGRAM, *SLOWER, "-o", f"{tmp_path}/out"))
    assert run_process(cwd=place, command=("bash", "-c", f"{line} > /dev/full")).returncode == 1
    assert (tmp_path / "out" / "summary.md").exists()


def outcomes(out):
    suite = ElementTree.parse(out / "junit.xml").getroot().find("testsuite")
    return {name: int(suite.get(name)) for name in ("failures", "errors", "skipped")}


def test_junit_and_exit_code_agree(place, tmp_path):
    done = gate(place, "release=long", "-o", str(tmp_path / "refused"))
    assert (done.returncode, outcomes(tmp_path / "refused")) == (2, {"failures": 0, "errors": 1, "skipped": 0})
    assert sorted(p.name for p in (tmp_path / "refused").glob("[!.]*")) == ["junit.xml", "summary.md"]
    error = ElementTree.parse(tmp_path / "refused/junit.xml").find("testsuite/testcase/error")
    assert error.get("type") == "incomparable"
    strict = gate(place, *FEW, "--strict", "-o", str(tmp_path / "few"))
    assert (strict.returncode, outcomes(tmp_path / "few")["errors"]) == (4, 1)
    assert gate(place, *FEW, "-o", str(tmp_path / "few"), "--force").returncode == 0
    assert sum(outcomes(tmp_path / "few").values()) == 0


def test_what_an_earlier_verdict_left_is_cleared(place, tmp_path):
    gate(place, "release=same", "-o", str(tmp_path / "out"), "--metric", DEFAULT_METRIC)
    assert not (tmp_path / "out" / "benchmark-bigger-is-better.json").exists()
    gate(place, "release=long", "-o", str(tmp_path / "out"), "--force")
    assert not (tmp_path / "out" / "otava.csv").exists()


FAILING = {
    "no such release": (["--candidate", "release=none"], 2, "no recorded run matches release=none"),
    "no such metric": (["--candidate", "release=same", "--metric", "speed"], 2, "unknown metric 'speed'"),
    "no such device": (["--candidate", "same-0.log", "--hw", "abacus"], 2, "abacus"),
    "both sides": (["--candidate", "release=good"], 2, "5 runs are on both sides"),
    "no log": (["--candidate", "gone.log"], 2, "gone.log"),
    "incomparable": (["--candidate", "release=long"], 2, "not comparable"),
    "too little data": (["--candidate", *FEW, "--strict"], 4, "only the threshold decides"),
}


@pytest.fixture(scope="module")
def green(place, tmp_path_factory):
    """What a gate that passes writes."""
    out = tmp_path_factory.mktemp("green") / "out"
    assert gate(place, "release=same", "-o", str(out)).returncode == 0
    return out


@pytest.mark.parametrize("failure", FAILING)
def test_a_gate_that_fails_leaves_no_green_files(place, green, tmp_path, failure):
    arguments, code, said = FAILING[failure]
    out = shutil.copytree(green, tmp_path / "out")
    assert outcomes(out)["errors"] == 0
    (out / "mine.txt").write_text("kept")
    sides = ("gate", "--history", "h", "--baseline", "release=good", *arguments)
    assert run_logparse(*sides, "-o", str(out), "--force", cwd=place).returncode == code
    assert outcomes(out)["errors"] == 1
    assert said in " ".join((out / "junit.xml").read_text().split()).replace("&#10;", " ")
    assert (out / "mine.txt").exists()
    if code == 2:
        assert (out / "summary.md").read_text().splitlines()[0].partition(" ")[2].startswith("no verdict")
        assert {path.name for path in out.glob("[!.]*")} == {"junit.xml", "summary.md", "mine.txt"}


def test_a_folder_that_is_not_given_up_keeps_its_files(place, green, tmp_path):
    """Without --force nothing there is touched; the summary of the job says why."""
    out, page = shutil.copytree(green, tmp_path / "out"), tmp_path / "page.md"
    before = (out / "junit.xml").read_text()
    assert gate(place, "release=none", "-o", str(out), GITHUB_STEP_SUMMARY=str(page)).returncode == 2
    assert (out / "junit.xml").read_text() == before
    assert "is not empty" in page.read_text()


@pytest.mark.parametrize("failure", ["no such release", "incomparable", "too little data"])
def test_the_summary_of_the_job_has_one_answer(place, tmp_path, failure):
    """That of the error, or of the verdict from which it follows."""
    arguments, code, _ = FAILING[failure]
    page = tmp_path / "page.md"
    sides = ("gate", "--history", "h", "--baseline", "release=good", *arguments)
    assert run_logparse(*sides, cwd=place, GITHUB_STEP_SUMMARY=str(page)).returncode == code
    assert sum(line.startswith("### ") for line in page.read_text().splitlines()) == 1


def test_a_summary_that_cannot_be_written_hides_no_regression(place):
    done = gate(place, "release=slow", GITHUB_STEP_SUMMARY="/nonexistent/page.md")
    assert (done.returncode, "unset GITHUB_STEP_SUMMARY" in done.stderr) == (1, True)


def test_a_metric_that_no_log_has_is_no_column_of_otavas(place, tmp_path):
    metrics = ("--metric", DEFAULT_METRIC, "--metric", "max_memory_allocated_bytes")
    gate(place, "release=same", "-o", str(tmp_path / "out"), *metrics)
    head = (tmp_path / "out" / "otava.csv").read_text().splitlines()[0]
    assert head == f"time,run,release,{DEFAULT_METRIC}"


def test_another_metric_does_not_silence_strict(place):
    metrics = ("--metric", DEFAULT_METRIC, "--metric", "max_memory_allocated_bytes")
    assert gate(place, "release=same", "--strict", *metrics).returncode == 4


def test_output_is_not_overwritten(place, tmp_path):
    (tmp_path / "mine").write_text("")
    assert gate(place, "release=same", "-o", str(tmp_path)).returncode == 2


@pytest.mark.parametrize("command", ["gate", "compare", "trend"])
def test_a_folder_without_a_name_is_refused(place, command):
    """As of an unset variable of a shell; it would be the current folder."""
    sides = {
        "gate": ("--baseline", "release=good", "--candidate", "release=same"),
        "compare": ("release=good", "release=same"),
        "trend": (),
    }
    before = sorted(place.iterdir())
    done = run_logparse(command, *sides[command], "--history", "h", "-o", "", "--force", cwd=place)
    assert (done.returncode, "-o has an empty folder name" in done.stderr) == (2, True)
    assert sorted(place.iterdir()) == before


def test_help_names_every_output(place):
    for language in ("en", "zh"):
        told = "".join(run_logparse("gate", "--help", "--lang", language, cwd=place).stdout.split())
        assert [output.name for output in OUTPUTS if output.name not in told] == []


def test_json(place):
    told = json.loads(gate(place, "release=slow", "--json").stdout)
    assert told["job"] == JOB
    assert told["verdict"] == told["metrics"][DEFAULT_METRIC]["verdict"] == "regression"
    assert told["changes"][-1]["name"] == "overlap_grad_reduce"
    assert told["noise"]["releases"] >= 2


def test_logs_without_a_history(place):
    done = run_logparse("gate", "--baseline", "good-0.log", "--candidate", "slow-0.log", cwd=place)
    assert done.returncode == 1


def without_shape(path, seed):
    """A log that does not print how many layers the model has."""
    lines = write_run(path, seed).read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "num_layers " not in line))


def test_what_a_log_lacks_is_given_by_a_flag(tmp_path):
    for name, seed in (("a.log", 1), ("b.log", 2)):
        without_shape(tmp_path / name, seed)
    sides = ("--baseline", "a.log", "--candidate", "b.log")
    refused = run_logparse("gate", *sides, cwd=tmp_path)
    assert (refused.returncode, "unknown for one side or both: num_layers;" in refused.stderr) == (2, True)
    assert (
        "give what is missing in the log (--model, --seq-length ...); or accept it: --allow unknown" in refused.stderr
    )
    told = json.loads(run_logparse("gate", *sides, "--num-layers", "32", "--json", cwd=tmp_path).stdout)
    field = told["fields"]["num_layers"]
    assert (field["state"], field["baseline"]) == ("equal", [32])


def test_what_differs_and_what_is_unknown_have_remedies_of_their_own(tmp_path):
    """A recorded run cannot be given what its log lacks."""
    write_run(tmp_path / "a.log", 1, seq_length=8192)
    without_shape(tmp_path / "b.log", 2)
    recorded = run_logparse("record", "b.log", "--history", "h", "--release", "r1", cwd=tmp_path)
    assert recorded.returncode == 0
    refused = run_logparse(
        "gate", "--history", "h", "--baseline", "a.log", "--candidate", "release=r1", cwd=tmp_path
    ).stderr
    assert "the two sides differ in seq_length, so" in refused
    assert "unknown for one side or both: num_layers" in refused
    assert "remove the recorded runs and record them again" in refused
    assert "give what is missing in the log" not in refused
    assert refused.rstrip().endswith("or accept it: --allow seq_length,unknown")


WRONG = [
    ["--candidate", "release=none"],
    ["--candidate", "release=good"],
    ["--candidate", "release=same", "--threshold", "3"],
    ["--candidate", "release=same", "--threshold", "x%"],
    ["--candidate", "release=same", "--threshold", ""],
    ["--candidate", "release=same", "--metric", "speed"],
    ["--candidate", "release=same", "--allow", "luck"],
    ["--candidate", "gone.log"],
    ["--candidate", ""],
    ["--candidate", "x" * 300],
]


@pytest.mark.parametrize("arguments", WRONG, ids=lambda a: " ".join(a[1:]))
def test_wrong_usage(place, arguments):
    done = run_logparse("gate", "--history", "h", "--baseline", "release=good", *arguments, cwd=place)
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (2, "", False)
    assert "try:" in done.stderr


def test_control_characters_of_a_name_do_not_reach_xml(tmp_path):
    for number in range(2):
        write_run(tmp_path / f"bad\x08{number}.log", number)
    sides = ["--baseline", "bad\x080.log", "--candidate", "bad\x081.log"]
    done = run_logparse("gate", *sides, "-o", "out", cwd=tmp_path)
    assert done.returncode in (0, 1)
    assert r"\x080.log" in ElementTree.parse(tmp_path / "out/junit.xml").find("testsuite/system-out").text
