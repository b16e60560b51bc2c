"""Each run of a file has the ending of its own lines; where runs take turns nobody knows whose a line is."""

import json
from datetime import datetime, timedelta

import pytest
from helpers import megatron_line, run_logparse

from analysis.run.build import analyze_logs, analyze_parts
from analysis.run.options import RunOptions
from analysis.run.run import Run

BEGIN = datetime(2026, 3, 1, 8)
OOM = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
DISK = "[rank1]: OSError: [Errno 28] No space left on device"


def stamped(steps, begin=BEGIN, pace=5.0, planned=30):
    """Step lines, each with its clock."""
    for count, step in enumerate(steps, 1):
        clock = begin + timedelta(seconds=pace * count)
        line = megatron_line(step, 1000 * pace, f"{clock:%Y-%m-%d %H:%M:%S}")
        yield clock, line.replace("/     500", f"/{planned:8d}")


def lines_of(*arguments, **options):
    return [line for _, line in stamped(*arguments, **options)]


def in_turn(*between, after=()):
    """A whole training, and one that stops at step 20."""
    first, second = lines_of(range(1, 31)), lines_of(range(1, 21), BEGIN + timedelta(hours=1))
    return [*first, *between, *second, *after]


def mixed(after=()):
    """Two runs that take turns."""
    both = [*stamped(range(1, 61), planned=500), *stamped(range(200, 241), pace=7.5, planned=500)]
    return [*(line for _, line in sorted(both)), *after]


def parts(tmp_path, lines, mixed_too=False) -> list[Run]:
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return analyze_parts([str(path)], RunOptions(), mixed_too=mixed_too)


def test_runs_that_follow_each_other_have_endings_of_their_own(tmp_path):
    first, second = (run.log.ending for run in parts(tmp_path, in_turn(after=[OOM])))
    assert (first.state, first.step, first.failed) == ("completed", 30, False)
    assert (second.state, second.family, second.step, second.line) == ("failed", "device_memory", 20, 51)


def test_a_line_between_two_runs_is_of_the_earlier_one(tmp_path):
    first, second = parts(tmp_path, in_turn(DISK))
    # It did all its steps: what follows is tear-down.
    assert (first.log.ending.state, second.log.ending.state) == ("completed", "cut_off")
    assert [run.log.ending.lines_of_failure for run in (first, second)] == [0, 0]


def test_the_warning_of_a_failure_is_of_the_run_that_failed(tmp_path):
    runs = parts(tmp_path, in_turn(after=[OOM]))
    codes = [[note.code for note in run.notes if note.code.startswith("ended_")] for run in runs]
    assert codes == [[], ["ended_early_with_errors"]]


def test_of_runs_that_take_turns_no_ending_is_known(tmp_path):
    runs = parts(tmp_path, mixed(after=[OOM]), mixed_too=True)
    assert [run.log.ending for run in runs] == [None, None]
    for run in runs:
        codes = [note.code for note in run.notes]
        assert "ending_of_mixed_runs" in codes
        assert not {"ended_with_errors", "ended_early_with_errors"} & set(codes)


@pytest.mark.parametrize("flags", [[], ["--each"]])
def test_null_in_json_with_a_reason(tmp_path, flags):
    (tmp_path / "run.log").write_text("\n".join(mixed(after=[OOM])) + "\n")
    done = run_logparse("analyze", "run.log", "--split", "--json", *flags, cwd=tmp_path)
    runs = json.loads(done.stdout)["runs"]
    assert [run["ending"] for run in runs] == [None, None]
    texts = [note["text"] for run in runs for note in run["notes"] if note["code"] == "ending_of_mixed_runs"]
    assert (len(texts), "ended is unknown" in texts[0]) == (2, True)


def test_every_screen_shows_mixed_runs(tmp_path):
    (tmp_path / "run.log").write_text("\n".join(mixed(after=[OOM])) + "\n")
    for options in (["-v"], ["-q"], ["--each"], ["-o", "out"]):
        done = run_logparse("analyze", "run.log", "--split", *options, cwd=tmp_path)
        assert (done.returncode, "out of device memory" in done.stdout) == (0, False)
    assert "out of device memory" not in (tmp_path / "out/report.html").read_text()


def test_the_lines_of_an_ending_are_not_kept_with_the_run(tmp_path):
    path = tmp_path / "run.log"
    path.write_text("\n".join([*lines_of(range(1, 21)), OOM]) + "\n")
    assert analyze_logs([str(path)], RunOptions()).log.hits == ()


def test_a_run_that_another_follows_is_not_running(tmp_path):
    lines = [*lines_of(range(1, 21)), *lines_of(range(21, 29), BEGIN + timedelta(days=400))]
    assert [run.log.ending.state for run in parts(tmp_path, lines)] == ["unknown", "cut_off"]
