"""Each self-check has a log that breaks it, and one that is near and does not."""

import json
from datetime import timedelta

import pytest
from helpers import SETTINGS, arguments_dump, megatron_line
from runs import BEGIN, WORLD, stamped_log

from analysis.present.views.analyze_json import document
from analysis.present.views.title import extent
from analysis.run.build import analyze_logs, analyze_parts
from analysis.run.checks.self_checks import SELF_CHECKS, check_run
from analysis.run.options import RunOptions
from analysis.run.rows.streams import find_streams
from logparse.findings import warning

SHAPE = {"world_size": 8, "global_batch_size": 32, "seq_length": 4096}


def mixed_log(first=(1, 60), second=(200, 240), paces=(6.0, 7.5)):
    """Two runs that write to one file: lines of both in the order of their clocks."""
    lines = []
    for (begin, end), pace in zip((first, second), paces, strict=True):
        for step in range(begin, end + 1):
            clock = BEGIN + timedelta(seconds=pace * (step - begin + 1))
            lines.append((clock, megatron_line(step, 1000 * pace, f"{clock:%Y-%m-%d %H:%M:%S}")))
    return [WORLD, *(line for _, line in sorted(lines))]


def write(folder, lines, name="run.log"):
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def failed(run):
    return [check.code for check in run.checks if not check.passed]


def test_every_check_names_findings_of_its_own():
    findings = [code for check in SELF_CHECKS for code in check.findings]
    assert len(findings) == len(set(findings))
    for check in SELF_CHECKS:
        for code in check.findings:
            assert [c.code for c in check_run([warning(code)]) if not c.passed] == [check.code]
    assert all(check.passed for check in check_run([]))


def test_two_runs_that_write_to_one_file_get_no_goodput(tmp_path):
    run = analyze_logs([write(tmp_path, mixed_log())], RunOptions())
    assert failed(run)[0] == "one_run_writes_a_file"
    assert (run.goodput, run.overheads, run.expectations.plan.left) == (None, (), None)
    assert run.time_breakdown.is_empty()
    (note,) = [note for note in run.notes if note.code == "runs_mixed"]
    assert (note.fields["n"], note.fields["spans"]) == (2, [[1, 60], [200, 240]])
    assert extent(run).startswith("2 runs mixed in one file")
    (told,) = document([run])["runs"]
    assert {k: told["checks"][0][k] for k in ("code", "passed")} == {"code": "one_run_writes_a_file", "passed": False}
    assert told["goodput"] is None
    json.dumps(told, allow_nan=False)


def test_mixed_runs_are_split_where_that_is_asked(tmp_path):
    path = write(tmp_path, mixed_log())
    assert len(analyze_parts([path], RunOptions())) == 1
    first, second = analyze_parts([path], RunOptions(), mixed_too=True)
    assert [run.name for run in (first, second)] == ["run#1", "run#2"]
    assert (first.step_time_ms, second.step_time_ms) == pytest.approx((6000.0, 7500.0))
    assert (failed(first), failed(second)) == ([], [])
    assert [len(run.steps) for run in (first, second)] == [60, 41]


def test_trainings_that_follow_each_other_at_other_intervals_are_not_mixed(tmp_path):
    """Every 100th step twice, then every step: step 101 of the third goes on from no other."""
    steps = [*range(100, 1001, 100), *range(100, 1001, 100), *range(1, 1001)]
    path = write(tmp_path, [WORLD, *(megatron_line(step, 100.0) for step in steps)])
    assert analyze_logs([path], RunOptions()).analysis.streams == ()


@pytest.mark.parametrize(
    ("first", "second", "losses"),
    [((1, 60), (1001, 1060), (2.0, 2.0)), ((501, 560), (2001, 2060), (2.0, 2.0)), ((1, 60), (1, 60), (2.0, 12.0))],
    ids=["far apart", "in the middle", "same steps"],
)
def test_runs_of_equal_pace_whose_lines_alternate_are_mixed(tmp_path, first, second, losses):
    lines = [WORLD]
    for index in range(60):
        for run, loss in enumerate(losses):
            clock = BEGIN + timedelta(seconds=6.0 * index + 2.0 * run)
            step, pairs = (first, second)[run][0] + index, {"lm loss": f"{loss:.6E}"}
            lines.append(megatron_line(step, 6000.0 + index % 7 + run, f"{clock:%Y-%m-%d %H:%M:%S}", pairs=pairs))
    path = write(tmp_path, lines)
    run = analyze_logs([path], RunOptions())
    assert failed(run)[0] == "one_run_writes_a_file"
    assert (run.goodput, run.overheads, run.expectations.plan.left) == (None, (), None)
    parts = analyze_parts([path], RunOptions(), mixed_too=True)
    assert [(part.steps["step"].min(), part.steps["step"].max()) for part in parts] == [first, second]
    assert [part.steps["loss"].unique().to_list() for part in parts] == [[loss] for loss in losses]
    assert [failed(part) for part in parts] == [[], []]


@pytest.mark.parametrize(
    "starts",
    [[(1, 60), (51, 200)], [(1, 60), (31, 60), (31, 200)], [(1, 20), (1, 20), (1, 200)]],
    ids=["restart", "restart twice", "from the beginning"],
)
def test_restarts_are_no_mixture(tmp_path, starts):
    run = analyze_logs([write(tmp_path, stamped_log(starts, lambda *_: 7000.0))], RunOptions())
    assert "one_run_writes_a_file" not in failed(run)
    assert run.analysis.streams == ()


def test_damaged_step_numbers_are_no_mixture(tmp_path):
    lines = stamped_log([(1, 100)], lambda *_: 7000.0)
    for at in (20, 40, 60, 80):
        lines[at] = lines[at].replace(f"iteration{at - 1:9d}/", "iteration        1/")
    assert not find_streams(analyze_logs([write(tmp_path, lines)], RunOptions()).steps)


def test_trainings_that_follow_each_other_are_runs_of_their_own(tmp_path):
    def training(begin, pace):
        lines = []
        for step in range(1, 31):
            clock = begin + timedelta(seconds=pace * step)
            lines.append(
                megatron_line(step, 1000 * pace, f"{clock:%Y-%m-%d %H:%M:%S}").replace("/     500", "/      30")
            )
        return lines

    lines = [WORLD, *training(BEGIN, 5.0), *training(BEGIN + timedelta(hours=1), 8.0)]
    first, second = analyze_parts([write(tmp_path, lines)], RunOptions())
    assert (first.step_time_ms, second.step_time_ms) == pytest.approx((5000.0, 8000.0))


@pytest.mark.parametrize(("ends", "runs"), [((500, 500, 500), 3), ((500, 400, 500), 1)])
def test_trainings_without_a_plan_are_complete_if_all_end_at_the_same_step(tmp_path, ends, runs):
    lines = []
    for end, speed in zip(ends, (25.0, 26.0, 28.0), strict=True):
        for step in range(10, end + 1, 10):
            took = f"time: {10 / speed:.3f}, speed: {speed + step / 1000:.3f} steps/s"
            lines.append(f"[train][1] progress: 1/1 step: {step}, {took}")
    parts = analyze_parts([write(tmp_path, lines)], RunOptions())
    assert len(parts) == runs
    if runs == 3:
        assert [round(run.step_time_ms) for run in parts] == [40, 38, 35]


def test_steps_longer_than_the_clock_break_their_check(tmp_path):
    lines = stamped_log([(1, 100)], lambda *_: 7000.0)
    short = [line.replace("iteration (ms): 7000.0", "iteration (ms): 9000.0") for line in lines]
    assert failed(analyze_logs([write(tmp_path, short)], RunOptions())) == ["steps_fit_the_clock"]
    near = [line.replace("iteration (ms): 7000.0", "iteration (ms): 7050.0") for line in lines]
    assert failed(analyze_logs([write(tmp_path, near, "near.log")], RunOptions())) == []


@pytest.mark.parametrize(("ms", "broken"), [(3500.0, ["steps_fit_the_clock"]), (5600.0, [])])
def test_steps_much_shorter_than_every_gap_break_their_check(tmp_path, ms, broken):
    lines = stamped_log([(1, 100)], lambda *_: 7000.0)
    lines = [line.replace("iteration (ms): 7000.0", f"iteration (ms): {ms}") for line in lines]
    run = analyze_logs([write(tmp_path, lines)], RunOptions())
    assert failed(run) == broken
    assert (run.goodput is None, run.expectations.plan.left is None) == (bool(broken), bool(broken))


def test_a_clock_of_unknown_jumps_breaks_its_check(tmp_path):
    lines = stamped_log([(1, 60), (51, 100)], lambda *_: 7000.0)
    at = next(i for i, line in enumerate(lines) if "loaded checkpoint" in line)
    early = [line.replace("2026-03-01", "2026-02-28") for line in lines[at:]]
    assert "clock_runs_forward" in failed(analyze_logs([write(tmp_path, [*lines[:at], *early])], RunOptions()))
    assert failed(analyze_logs([write(tmp_path, lines, "near.log")], RunOptions())) == []


@pytest.mark.parametrize(("tflops", "broken"), [(400.0, ["rates_are_possible"]), (350.0, [])])
def test_a_printed_rate_above_the_peak_breaks_its_check(tmp_path, tflops, broken):
    path = write(tmp_path, stamped_log([(1, 60)], lambda *_: 7000.0, tflops))
    run = analyze_logs([path], RunOptions(hw="910b2"))
    assert failed(run) == broken
    assert ("printed_above_peak" in [note.code for note in run.notes]) == bool(broken)


@pytest.mark.parametrize(
    ("ratio", "every", "broken"),
    [(3.3, 1, ["printed_rates_agree"]), (1.03, 1, []), (0.1, 10, [])],
    ids=["of an unknown batch", "near", "of one step of ten"],
)
def test_an_unexplained_rate_breaks_its_check(tmp_path, ratio, every, broken):
    """The log prints ``ratio`` times the 8 samples a step of 2 s; PaddleNLP 2.4 counts one step of a line of ten."""
    pairs = {"samples per second": f"{4 * ratio:.3f}", "global batch size": "8", "consumed samples": None}
    lines = [megatron_line(step, 2000.0, pairs=pairs) for step in range(every, 40 * every + 1, every)]
    path = write(tmp_path, [arguments_dump({**SETTINGS, "global_batch_size": 8}), *lines])
    run = analyze_logs([path], RunOptions())
    assert failed(run) == broken
    assert not broken or run.goodput is None


def test_a_damaged_file_breaks_its_check(tmp_path):
    import gzip

    text = "\n".join(stamped_log([(1, 100)], lambda *_: 7000.0)) + "\n"
    whole, cut = tmp_path / "whole.log.gz", tmp_path / "cut.log.gz"
    packed = gzip.compress(text.encode())
    whole.write_bytes(packed)
    cut.write_bytes(packed[: len(packed) // 2])
    assert failed(analyze_logs([str(whole)], RunOptions())) == []
    assert failed(analyze_logs([str(cut)], RunOptions())) == ["file_is_whole"]
