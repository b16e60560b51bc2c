"""Verdicts: what is called a regression, how often wrongly, and what the gate says and writes."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import numpy as np
import pytest
from helpers import ROOT, run_logparse
from releases import fill, write_run
from scipy.stats import mannwhitneyu

from analysis.compare.exports import OUTPUTS
from analysis.compare.verdict import DEFAULT_METRIC, Reason, _cut, _ways, doubt, estimate, judge, noise_floor, worst_of
from analysis.metrics import JUDGED

sys.path.insert(0, str(ROOT / "benchmarks"))
from gate_power import verdicts

METRIC = JUDGED[DEFAULT_METRIC]
# Spread 0.4 % or so, in ms.
BASE = [1000.0, 1003.0, 998.0, 1005.0, 1001.0]


def times(factor: float) -> list[float]:
    return [value * factor + 0.1 * index for index, value in enumerate(BASE)]


CASES = {
    "proven": (BASE, times(1.06), 0.03, "regression"),
    "excluded": (BASE, times(1.001), 0.03, "no regression"),
    "faster": (BASE, times(0.90), 0.03, "suspicious"),
    "not_proven": ([1000, 1100, 900], [1090, 1150, 980], 0.03, "suspicious"),
    "small_but_there": (BASE, [1029, 1033, 1026, 1035, 1027], 0.03, "suspicious"),
    "too_noisy": ([1000, 1100, 900], [1010, 1110, 890], 0.03, "insufficient data"),
    "declared_beyond": (BASE[:2], times(1.06), 0.03, "regression"),
    "declared_within": (BASE[:1], times(1.01)[:1], 0.03, "no regression"),
    "declared_faster": (BASE, times(0.9)[:2], 0.03, "suspicious"),
    "no_values": (BASE, [], 0.03, "insufficient data"),
    # Two of twelve runs 20 % slower than every run of the baseline: the ranks do not show it.
    "some_worse": (BASE, [*BASE, *BASE, 1206.0, 1206.0], 0.03, "suspicious"),
}
# What is known beside the numbers of the metric.
DOUBTS = {
    "no_rows": (judge(METRIC, BASE, [], 0.03), "insufficient data"),
    "loss_lost": (judge(METRIC, BASE, times(1.001), 0.03), "suspicious"),
}


@pytest.mark.parametrize("reason", CASES)
def test_each_reason(reason):
    old, new, threshold, verdict = CASES[reason]
    found = judge(METRIC, old, new, threshold)
    assert (found.verdict, found.reason) == (verdict, reason)


@pytest.mark.parametrize("reason", DOUBTS)
def test_each_doubt(reason):
    finding, verdict = DOUBTS[reason]
    found = doubt(finding, reason)
    assert (found.verdict, found.reason) == (verdict, reason)


def test_a_doubt_takes_nothing_from_a_regression():
    worse = judge(METRIC, BASE, times(1.06), 0.03)
    assert doubt(worse, "loss_lost") == worse
    assert doubt(worse, "no_rows") == worse


def test_there_is_a_case_of_every_reason():
    assert {*CASES, *DOUBTS} == set(get_args(Reason))


def test_runs_that_are_off_are_named_by_their_place():
    """The worst of the baseline is 1005: 3 % more is 1035.15."""
    assert judge(METRIC, BASE, [1000.0, 1036.0, 1001.0, 999.0, 1035.0], 0.03).odd == (1,)
    tokens = JUDGED["tokens_per_second_per_device"]
    assert judge(tokens, BASE, [1000.0, 900.0, 1001.0, 1002.0, 1100.0], 0.03).odd == (1,)
    assert judge(METRIC, BASE, times(1.06), 0.03).odd == ()


def test_one_run_that_is_off_is_no_suspicion():
    found = judge(METRIC, BASE, [*BASE, *BASE, 1206.0], 0.03)
    assert (found.verdict, found.odd) == ("no regression", (10,))


@pytest.mark.parametrize(
    ("runs", "tied", "method"), [(5, 0, "exact"), (5, 1, "exact"), (10, 1, "permutation"), (60, 0, "normal")]
)
def test_how_p_was_found_is_told(runs, tied, method):
    """Ten against ten have 184,756 orders, five against five 252."""
    values = [1000.0 + i for i in range(2 * runs)]
    old, new = values[::2], values[1::2]
    assert estimate(old, [old[0], *new[1:]] if tied else new).method == method


def test_less_is_worse_for_rates():
    tokens = JUDGED["tokens_per_second_per_device"]
    assert judge(tokens, BASE, times(0.9), 0.03).verdict == "regression"
    assert judge(tokens, BASE, times(1.1), 0.03).reason == "faster"


@pytest.mark.parametrize(("n", "m"), [(3, 3), (3, 7), (5, 5), (8, 4)])
def test_the_null_distribution_is_scipys(n, m):
    ways = _ways(n, m)
    sides = np.arange(m), np.arange(n) + 0.5
    u = mannwhitneyu(sides[1], sides[0], alternative="less", method="exact")
    assert sum(ways[: int(u.statistic) + 1]) / sum(ways) == pytest.approx(u.pvalue)


@pytest.mark.parametrize(("n", "confidence"), [(3, 0.90), (4, 0.943), (5, 0.905), (10, 0.911)])
def test_the_interval_holds_the_truth_as_often_as_it_says(n, confidence):
    rng = np.random.default_rng(n)
    inside = 0
    for _ in range(1000):
        effect = estimate(np.exp(rng.normal(0, 0.01, n)), np.exp(rng.normal(0.02, 0.01, n)))
        inside += effect.low <= np.expm1(0.02) <= effect.high
    assert _cut(n, n)[1] == pytest.approx(confidence, abs=0.001)
    assert inside / 1000 == pytest.approx(confidence, abs=0.03)


def test_interval_and_test_agree():
    rng = np.random.default_rng(0)
    for _ in range(200):
        effect = estimate(np.exp(rng.normal(0, 0.01, 5)), np.exp(rng.normal(0.01, 0.01, 5)))
        assert (effect.low > 0) == (effect.p_worse <= 0.05)


def test_ties_are_permuted():
    effect = estimate([1000, 1000, 1000, 1000], [1000, 1000, 1000, 1000])
    assert (effect.change, effect.p_worse) == (0.0, 1.0)


def test_ten_thousand_runs_a_side_are_judged_by_their_quantiles():
    rng = np.random.default_rng(0)
    effect = estimate(np.exp(rng.normal(0, 0.01, 10_000)), np.exp(rng.normal(0.02, 0.01, 10_000)))
    assert effect.change == pytest.approx(0.0202, abs=0.0005)
    assert effect.low == pytest.approx(0.0195, abs=0.001)


def test_noise_is_that_within_releases():
    rng = np.random.default_rng(0)
    groups = [np.exp(rng.normal(level, 0.005, 40)) for level in (0, 1, 2)]
    noise = noise_floor(groups)
    assert noise.spread == pytest.approx(0.005, rel=0.15)
    assert (noise.runs, noise.releases) == (120, 3)
    assert noise_floor([[1.0], [2.0]]) is None


def test_the_worst_verdict_wins():
    assert worst_of(["no regression", "suspicious"]) == "suspicious"
    assert worst_of(["insufficient data", "no regression"]) == "insufficient data"


@pytest.mark.parametrize("runs", [3, 5, 10])
@pytest.mark.parametrize("threshold", [0.01, 0.03])
def test_the_same_release_is_seldom_a_regression(runs, threshold):
    """benchmarks/gate_power.py, short: at most 5 %."""
    assert verdicts(runs, 0.005, 0.0, threshold, trials=200)["regression"] <= 10


@pytest.mark.parametrize(
    ("spread", "slow", "threshold", "least"), [(0.005, 0.03, 0.01, 80), (0.01, 0.03, 0.01, 80), (0.01, 0.06, 0.03, 90)]
)
def test_a_slower_release_is_found(spread, slow, threshold, least):
    assert verdicts(5, spread, slow, threshold, trials=100)["regression"] >= least


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gate")
    overlap = {"overlap_grad_reduce": True}
    fill(
        folder,
        {
            "good": (1000.0, 5, overlap),
            "slow": (1040.0, 5, {"overlap_grad_reduce": False}),
            "same": (1000.0, 5, overlap),
            "single": (1000.0, 1, overlap),
            "long": (1000.0, 3, {"seq_length": 8192}),
        },
    )
    return folder


def gate(place, candidate, *more, **env):
    return run_logparse(
        "gate", "--history", "h", "--baseline", "release=good", "--candidate", candidate, *more, cwd=place, **env
    )


EXITS = {
    "release=slow": (1, "verdict: regression"),
    "release=same": (0, "verdict: no regression"),
    "release=single": (0, "only the threshold decides"),
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
    done = gate(place, "release=single", "--strict")
    assert (done.returncode, "at least 3 a side" in done.stderr) == (4, True)


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
    assert (smaller["name"], smaller["unit"], bigger["unit"]) == (DEFAULT_METRIC, "ms", "tokens/s/p")
    rows = list(csv.DictReader((out / "otava.csv").read_text().splitlines()))
    assert len(rows) == 10
    assert [row["time"] for row in rows] == sorted(row["time"] for row in rows)
    lines = (out / "openmetrics.txt").read_text().splitlines()
    assert lines[-1] == "# EOF"
    assert f'logparse_verdict{{metric="{DEFAULT_METRIC}",logparse_verdict="regression"}} 1.0' in lines


@pytest.mark.parametrize("reader", ["head -c 1", "true"])
def test_a_reader_that_goes_away_changes_no_exit_code(place, tmp_path, reader):
    program = f"{Path(sys.executable).with_name('logparse')} gate --history h --baseline release=good"
    line = f"set -o pipefail; {program} --candidate release=slow -o {tmp_path}/out | {reader}"
    assert subprocess.run(["bash", "-c", line], cwd=place, capture_output=True, check=False).returncode == 1
    assert (tmp_path / "out" / "junit.xml").exists()


def test_output_that_cannot_be_written_hides_no_regression(place, tmp_path):
    program = f"{Path(sys.executable).with_name('logparse')} gate --history h --baseline release=good"
    line = f"{program} --candidate release=slow -o {tmp_path}/out > /dev/full"
    assert subprocess.run(["bash", "-c", line], cwd=place, capture_output=True, check=False).returncode == 1
    assert (tmp_path / "out" / "summary.md").exists()


def outcomes(out):
    suite = ElementTree.parse(out / "junit.xml").getroot().find("testsuite")
    return {name: int(suite.get(name)) for name in ("failures", "errors", "skipped")}


def test_junit_and_exit_code_agree(place, tmp_path):
    done = gate(place, "release=long", "-o", str(tmp_path / "refused"))
    assert (done.returncode, outcomes(tmp_path / "refused")) == (2, {"failures": 0, "errors": 1, "skipped": 0})
    assert sorted(p.name for p in (tmp_path / "refused").iterdir()) == ["junit.xml", "summary.md"]
    strict = gate(place, "release=single", "--strict", "-o", str(tmp_path / "few"))
    assert (strict.returncode, outcomes(tmp_path / "few")["errors"]) == (4, 1)
    assert gate(place, "release=single", "-o", str(tmp_path / "few"), "--force").returncode == 0
    assert sum(outcomes(tmp_path / "few").values()) == 0


def test_what_an_earlier_verdict_left_is_cleared(place, tmp_path):
    gate(place, "release=same", "-o", str(tmp_path / "out"))
    assert not (tmp_path / "out" / "benchmark-bigger-is-better.json").exists()
    gate(place, "release=long", "-o", str(tmp_path / "out"), "--force")
    assert not (tmp_path / "out" / "otava.csv").exists()


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
    assert (done.returncode, "the folder of -o has no name" in done.stderr) == (2, True)
    assert sorted(place.iterdir()) == before


def test_help_names_every_output(place):
    for language in ("en", "zh"):
        told = "".join(run_logparse("gate", "--help", "--lang", language, cwd=place).stdout.split())
        assert [output.name for output in OUTPUTS if output.name not in told] == []


def test_json(place):
    told = json.loads(gate(place, "release=slow", "--json").stdout)
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
    assert (refused.returncode, "num_layers are not known of both sides" in refused.stderr) == (2, True)
    assert "give what the log lacks (--model, --seq-length ...); or accept it: --allow unknown" in refused.stderr
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
    assert "num_layers are not known" in refused
    assert "remove the recorded runs and record them again" in refused
    assert "give what the log lacks" not in refused
    assert refused.rstrip().endswith("or accept it: --allow seq_length --allow unknown")


WRONG = [
    ["--candidate", "release=none"],
    ["--candidate", "release=good"],
    ["--candidate", "release=same", "--threshold", "3"],
    ["--candidate", "release=same", "--threshold", "x%"],
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
    assert "bad?0.log" in ElementTree.parse(tmp_path / "out/junit.xml").find("testsuite/system-out").text
