"""``--require``: what a run must reach, as a person, a script and a CI server are told of it."""

import json
from xml.etree import ElementTree

import pytest
from helpers import SETTINGS, arguments_dump, megatron_line, megatron_log, run_logparse

import logparse
from analysis.metrics import BY_COLUMN
from analysis.run.checks.target_verdicts import exit_code, judge
from analysis.run.checks.targets import figures, parse_requirement
from logparse.errors import UsageError

pytestmark = pytest.mark.usefixtures("analysed_once")

# Rows 2 to 6 of 1002 to 1006 ms count: 32 samples of 4096 tokens in 1.004 s on 8 devices are 16,318.7 tokens/s/p.
TOKENS = "tokens_per_second_per_device"
CLOCKED = "".join(f"{megatron_line(n, clock=f'2025-06-17 09:12:{n:02d}')}\n" for n in range(1, 9))

SLOW = "".join(f"{megatron_line(n, ms=9000.0)}\n" for n in range(1, 7))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run.log").write_text(megatron_log())
    (tmp_path / "slow.log").write_text(
        arguments_dump(SETTINGS) + "".join(f"{megatron_line(n, ms=9000.0)}\n" for n in range(1, 7))
    )
    (tmp_path / "words.log").write_text("all is well\n")
    (tmp_path / "clocked.log").write_text(arguments_dump(SETTINGS) + CLOCKED)
    return tmp_path


def analyze(folder, *arguments, required=(), **env):
    asked = [word for text in required for word in ("--require", text)]
    return run_logparse("analyze", *arguments, *asked, cwd=folder, **env)


CRASH = "Traceback (most recent call last):\n  File 'x', line 1\ntorch.OutOfMemoryError: out of memory\n"
# By the end of the log and the number of steps in it: what is required, and the exit code.
ENDS = {
    ("completed", "", 20): 0,
    ("completed", "", 12): 1,
    ("completed", CRASH, 12): 1,
    ("steps>=15", "", 12): 1,
    ("steps>=15", "", 20): 0,
    ("step_time_p95_ms<=1100", "", 20): 0,
    ("step_time_p99_ms<=1001", "", 20): 1,
    ("final_loss<=3.2", "", 20): 0,
    ("nan_share<=0", "", 20): 0,
}


@pytest.mark.parametrize(("required", "end", "steps"), ENDS)
def test_how_a_run_ends_and_what_it_learns(tmp_path, required, end, steps):
    pairs = {"lm loss": "3.1", "number of nan iterations": "  0"}
    lines = [megatron_line(n, 1000.0 + n, pairs=pairs).replace("/     500", "/      20") for n in range(1, steps + 1)]
    (tmp_path / "run.log").write_text(arguments_dump(SETTINGS) + "\n".join(lines) + f"\n{end}")
    assert analyze(tmp_path, "run.log", required=(required,)).returncode == ENDS[required, end, steps]


def said(done):
    return [line for line in done.stdout.splitlines() if line.startswith(("- pass", "! fail", "! unknown"))]


@pytest.mark.parametrize(
    ("required", "code"),
    [
        ([f"{TOKENS}>=16300"], 0),
        ([f"{TOKENS}>=16319"], 1),
        ([f"{TOKENS} < 16319"], 0),
        ([f"{TOKENS}<=1.6e4"], 1),
        (["elapsed_time_per_iteration_ms<=1004"], 0),
        (["elapsed_time_per_iteration_ms<1004"], 1),
        (["mfu>=0.1"], 4),
        (["mfu>=0.1", f"{TOKENS}>=16300"], 4),
        (["mfu>=0.1", f"{TOKENS}>=20000"], 1),
        ([], 0),
    ],
)
def test_exit_codes(folder, required, code):
    done = analyze(folder, "run.log", required=required)
    assert done.returncode == code
    assert len(said(done)) == len(required)
    assert done.stderr == ""


def test_lines_stand_last_and_say_what_was_found(folder):
    done = analyze(folder, "run.log", "--hw", "h100", required=["elapsed_time_per_iteration_ms<=900", "planned>0.5"])
    assert done.stdout.rstrip().splitlines()[-3:] == [
        "required",
        "! fail: elapsed_time_per_iteration_ms<=900, found 1004",
        "! unknown: planned>0.5 (no plan given; pass --utilisation, the planned share of the peak)",
    ]


@pytest.mark.parametrize(
    ("figure", "options", "why"),
    [
        ("mfu", (), "the device is unknown; pass --hw NAME"),
        ("with_stalls_mfu", (), "the device is unknown; pass --hw NAME"),
        ("mfu", ("--peak-tflops", "100"), "impossible value"),
        ("planned", ("--peak-tflops", "100", "--utilisation", "0.5"), "impossible value"),
        ("wall_clock_step_time_ms", (), "fewer than two step lines have a timestamp"),
        ("max_memory_allocated_bytes", (), "not in the log"),
        ("planned", ("--hw", "h100"), "no plan given; pass --utilisation"),
    ],
)
def test_what_is_unknown_says_why(folder, figure, options, why):
    done = analyze(folder, "run.log", "-q", *options, required=[f"{figure}>=0.1"])
    (line,) = [line for line in done.stdout.splitlines() if line.startswith(f"run: unknown: {figure}")]
    assert why in line
    assert done.returncode == 4


def test_goodput_without_a_clock_says_so(folder):
    done = analyze(folder, "run.log", "-q", required=["goodput>=0.1"])
    assert (done.returncode, "fewer than two step lines have a timestamp" in done.stdout) == (0, True)


def test_a_figure_of_each_kind_is_found(folder):
    figures_of_kinds = ["goodput>0.5", "with_stalls_step_time_ms<1100", "wall_clock_step_time_ms>900", "baseline>0.1"]
    plan = ["planned>0.1", "hfu>0.1", "with_stalls_hfu>0.1", "max_memory_allocated_bytes>1"]
    log = (folder / "clocked.log").read_text() + "[Rank 0] (after 8 iterations) memory (MB) | allocated: 10.0 | "
    (folder / "clocked.log").write_text(log + "max allocated: 20.0 | reserved: 30.0 | max reserved: 40.0\n")
    options = ("--utilisation", "0.2", "--peak-tflops", "4000", "--json")
    done = analyze(folder, "clocked.log", *options, required=[*figures_of_kinds, *plan])
    (run,) = json.loads(done.stdout)["runs"]
    found = {judged["figure"]: judged for judged in run["requirements"]}
    assert {name: judged["outcome"] for name, judged in found.items()} == dict.fromkeys(found, "pass")
    assert (len(found), done.returncode) == (8, 0)
    assert found["goodput"]["value"] == run["goodput"]
    assert found["with_stalls_hfu"]["value"] == run["rates"]["with_stalls"]["hfu"]
    assert found["max_memory_allocated_bytes"]["value"] == 20 * 2**20
    (against,) = [match for match in run["published"]["matches"] if match["share"] == found["baseline"]["value"]]
    assert against["sentence"] in found["baseline"]["sentence"]


def test_baseline_is_the_row_that_is_named(folder):
    row = ("--baseline", "modellink-llama2-7b-1x8")
    done = analyze(folder, "run.log", *row, "--json", required=["baseline>=1"])
    (run,) = json.loads(done.stdout)["runs"]
    assert run["requirements"][0]["value"] == pytest.approx(16318.7 / 2681, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "problem", "remedy"),
    [
        ("mfu", "--require is 'mfu'", "in quotes: --require 'mfu>=0.45'"),
        ("mfu==0.4", "--require is 'mfu==0.4'", "in quotes"),
        ("mfu>=", "--require is 'mfu>='", "in quotes"),
        ("mfu>=nan", "--require is 'mfu>=nan'", "in quotes"),
        ("mfu>=-1", "--require is 'mfu>=-1'", "in quotes"),
        ("mfuu>=0.4", "unknown figure 'mfuu'", "did you mean mfu"),
        ("with_stalls_tokens_per_second>=1", "unknown figure", "did you mean with_stalls_tokens_per_second_per_device"),
        ("mfu>=45", "--require is 'mfu>=45'", "mfu is a share from 0 to 1: write 0.45, or 45%"),
        (f"{TOKENS}>=45%", f"--require is '{TOKENS}>=45%'", f"give {TOKENS} in tokens/s/p"),
    ],
)
def test_what_is_no_requirement_is_refused(folder, text, problem, remedy):
    done = analyze(folder, "gone.log", required=[text])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"logparse: {problem}")
    assert remedy in done.stderr.partition("try:")[2]


def test_percent_and_case_are_read():
    asked = parse_requirement(" MFU >= 45% ")
    assert (asked.figure.name, asked.comparison, asked.limit, asked.text) == ("mfu", ">=", 0.45, "MFU >= 45%")


def test_digits_show_on_which_side_of_the_limit_a_value_is():
    asked = parse_requirement("mfu>=0.45")
    assert asked.shown(0.50676543) == "0.506765"
    assert asked.shown(0.44999999999) == "0.44999999999"


def test_every_metric_of_the_registry_can_be_required():
    assert BY_COLUMN.keys() < figures().keys()


@pytest.mark.parametrize(
    ("outcomes", "code"), [([], 0), (["pass"], 0), (["pass", "unknown"], 4), (["unknown", "fail", "pass"], 1)]
)
def test_the_worst_outcome_decides(outcomes, code):
    assert exit_code(outcomes) == code


# Several runs.


def test_each_run_is_judged_and_the_worst_decides(folder):
    done = analyze(folder, "--each", "run.log", "slow.log", "-q", required=[f"{TOKENS}>=10000"])
    assert done.returncode == 1
    assert [line for line in done.stdout.splitlines() if "found" in line] == [
        f"run: pass: {TOKENS}>=10000, found 16318.7",
        f"slow: fail: {TOKENS}>=10000, found 1820.44",
    ]


def test_lines_of_several_runs_name_them(folder):
    done = analyze(folder, "--each", "run.log", "slow.log", required=[f"{TOKENS}>=10000"])
    assert [line[:8] for line in done.stdout.rstrip().splitlines()[-2:]] == ["- run: p", "! slow: "]


def test_a_log_that_cannot_be_read_is_worse_than_a_run_that_fails(folder):
    done = analyze(folder, "--each", "run.log", "words.log", "-q", required=[f"{TOKENS}>=20000"])
    assert (done.returncode, "fail" in done.stdout) == (3, True)


def test_shards_end_as_the_whole_call(folder):
    logs = ("--each", "run.log", "slow.log", "-o", "out", "--no-charts")
    required = [f"{TOKENS}>=10000"]
    ends = [analyze(folder, *logs, "--shard", f"{n}/2", required=required).returncode for n in (1, 2)]
    merged = run_logparse("merge", "out", cwd=folder)
    assert (ends, merged.returncode) == ([0, 1], 1)
    assert f"! slow: fail: {TOKENS}>=10000" in merged.stdout
    whole = analyze(folder, *logs[:3], "-o", "whole", "--no-charts", required=required)
    assert whole.returncode == 1
    for name in ("junit.xml", "requirements.md"):
        assert (folder / "out" / name).read_text() == (folder / "whole" / name).read_text()


def test_shards_of_other_requirements_do_not_mix(folder):
    for n, limit in ((1, 1), (2, 2)):
        logs = ("--each", "run.log", "slow.log", "-o", "out", "--no-charts", "--shard", f"{n}/2")
        analyze(folder, *logs, required=[f"{TOKENS}>={limit}"])
    done = run_logparse("merge", "out", cwd=folder)
    assert (done.returncode, "differ in require" in done.stderr) == (2, True)


# Files and forms.


def test_junit_has_a_test_for_each_requirement(folder):
    required = [f"{TOKENS}>=10000", "mfu>=0.4", f"{TOKENS}>20000"]
    assert analyze(folder, "run.log", "-o", "out", "--no-charts", required=required).returncode == 1
    suite = ElementTree.parse(folder / "out/junit.xml").getroot()[0]
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["3", "1", "1", "0"]
    assert [(case.get("name"), [child.tag for child in case]) for case in suite] == [
        (required[0], []),
        (required[1], ["error"]),
        (required[2], ["failure"]),
    ]
    assert "| run | mfu\\>=0.4 | - | unknown | " in (folder / "out/requirements.md").read_text()


def test_files_of_an_earlier_call_do_not_stay(folder):
    analyze(folder, "run.log", "-o", "out", "--no-charts", required=[f"{TOKENS}>=1"])
    analyze(folder, "run.log", "-o", "out", "--no-charts", "--force")
    assert not (folder / "out/junit.xml").exists()
    assert not (folder / "out/requirements.md").exists()


def test_markdown_ends_with_them(folder):
    done = analyze(folder, "run.log", "--markdown", required=[f"{TOKENS}>=20000"])
    expected = f"- **fail: {TOKENS}>=20000, found 16318.7**".replace("_", "\\_").replace(">", "\\>")
    assert done.stdout.rstrip().splitlines()[-1] == expected
    assert done.returncode == 1


def test_the_config_file_requires_and_a_flag_beats_it(folder):
    (folder / "team.toml").write_text(f'require = ["{TOKENS}>=20000", "{TOKENS}<=30000", "mfu>=0.1"]\n')
    done = analyze(folder, "run.log", "--config", "team.toml", "--json")
    assert [judged["outcome"] for judged in json.loads(done.stdout)["runs"][0]["requirements"]] == [
        "fail",
        "pass",
        "unknown",
    ]
    done = analyze(folder, "run.log", "--config", "team.toml", "--json", required=[f"{TOKENS}>=1"])
    assert [judged["require"] for judged in json.loads(done.stdout)["runs"][0]["requirements"]] == [
        f"{TOKENS}>=1",
        "mfu>=0.1",
    ]
    assert run_logparse("formulas", "run.log", "--config", "team.toml", cwd=folder).returncode == 0


@pytest.mark.parametrize("line", ['require = "mfu>=0.4"', "require = [0.4]", "utilisation = 40", "baseline = 3"])
def test_a_wrong_value_in_the_config_file_is_refused(folder, line):
    (folder / "wrong.toml").write_text(f"{line}\n")
    done = analyze(folder, "run.log", "--config", "wrong.toml")
    assert (done.returncode, "wrong.toml" in done.stderr, "try:" in done.stderr) == (2, True, True)


def test_the_config_file_says_the_plan_and_the_baseline(folder):
    (folder / "team.toml").write_text('utilisation = 0.5\nbaseline = "modellink-llama2-7b-1x8"\nhw = "b200"\n')
    done = analyze(folder, "run.log", "--config", "team.toml", "--json", required=["planned>0.1", "baseline>0.1"])
    (run,) = json.loads(done.stdout)["runs"]
    assert [match["name"] for match in run["published"]["matches"]] == ["modellink-llama2-7b-1x8"]
    hfu = next(row for row in run["planned"]["rows"] if row["name"] == "utilisation")["measured"]
    assert run["requirements"][0]["value"] == pytest.approx(hfu / 0.5)


def test_chinese(folder):
    done = analyze(folder, "run.log", "-q", required=[f"{TOKENS}>=20000", "mfu>0.1"], LANG="zh_CN.UTF-8")
    assert "run：未达标：tokens_per_second_per_device>=20000" in done.stdout
    assert "无法判断：mfu>0.1" in done.stdout


def test_python_asks_the_same(folder):
    run = logparse.analyze(folder / "run.log", require=[f"{TOKENS}>=16300", "mfu>=0.4"])
    assert [judgement.outcome for judgement in judge(run)] == ["pass", "unknown"]
    with pytest.raises(UsageError, match="unknown figure"):
        logparse.analyze(folder / "run.log", require=["speed>=1"])
