"""Where every logged interval holds a save, the saves are taken out by what their timers print, or by the clock."""

from datetime import timedelta

import pytest
from helpers import arguments_dump, megatron_line
from runs import BEGIN, parts_of

from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions

OLD = {"world_size": 8, "seq_length": 4096, "global_batch_size": 32, "DDP_impl": "local"}


def analyzed(tmp_path, lines):
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines) + "\n")
    return analyze_logs([str(path)], RunOptions())


def save(step, seconds):
    yield f"saving checkpoint at iteration {step:7d} to ckpt"
    yield f"  successfully saved checkpoint at iteration {step:7d} to ckpt"
    if seconds is not None:
        yield f"time (ms) | save-checkpoint: {seconds * 1000:.2f}"


@pytest.mark.parametrize("interval", [1, 10])
@pytest.mark.parametrize("each", [0.5, 4.0, 30.0])
def test_timed_saves_are_taken_out_of_the_lines(tmp_path, interval, each):
    """40 lines of steps of 1 s; the time of each but the first holds a save."""
    lines = arguments_dump(OLD | {"log_interval": interval}).splitlines()
    for n in range(1, 41):
        held = each if n > 1 else 0.0
        lines += [megatron_line(n * interval, 1000.0 + held * 1000 / interval), *save(n * interval, each)]
    run = analyzed(tmp_path, lines)
    assert run.step_time_ms == pytest.approx(1000.0, abs=0.2)
    training = 40 * interval
    assert parts_of(run.time_breakdown)["saves_between"] == pytest.approx(40 * each, rel=0.01)
    assert run.goodput == pytest.approx(training / (training + 40 * each), rel=0.01)


def test_without_a_timer_no_steady_step_is_known(tmp_path):
    lines = arguments_dump(OLD | {"log_interval": 10}).splitlines()
    for n in range(1, 41):
        lines += [megatron_line(n * 10, 1400.0), *save(n * 10, None)]
    assert analyzed(tmp_path, lines).step_time_ms is None


@pytest.mark.parametrize("each", [2.0, 20.0])
def test_saves_between_the_lines_are_no_wrong_clock(tmp_path, each):
    """Steps of 1 s, and a save after each: the time of a line leaves it out, the clock has it."""
    lines, now = arguments_dump(OLD | {"context_parallel_size": 1}).splitlines(), BEGIN
    for step in range(1, 401):
        now += timedelta(seconds=1)
        lines += [megatron_line(step, 1000.0, f"{now:%Y-%m-%d %H:%M:%S}"), *save(step, None)]
        now += timedelta(seconds=each)
    run = analyzed(tmp_path, lines)
    assert run.step_time_ms == pytest.approx(1000.0)
    assert run.goodput == pytest.approx(1 / (1 + each), rel=0.01)
