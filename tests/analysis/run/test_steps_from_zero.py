"""Trainers that number their steps from 0: what is left, and which step is the last one of the plan."""

from datetime import datetime, timedelta

import pytest

from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions

PLANNED = 12
NUMBERS = "seconds: 9.0{n:02}, TFLOP/s/device: 116.4, Tokens/s/device: 2715.1, loss: 3.{n:02}\n"
# What each trainer prints before its first step, and of step n.
PRINTERS = {
    "maxtext": (f"Config param steps: {PLANNED}\n", "completed step: {n}, " + NUMBERS),
    "nemo": (
        "",
        f"Training epoch 0, iteration {{n}}/{PLANNED - 1} | lr: 1e-05 | global_batch_size: 8 | global_step: {{n}} | "
        "reduced_train_loss: 1.2{n:02} | train_step_timing in s: 4.5{n:02}\n",
    ),
    "composer": (
        "",
        f"[batch={{m}}/{PLANNED}]:\n\t Train time/batch: {{n}}\n\t Train loss/train/total: 3.{{n:02}}\n"
        "\t Train throughput/batches_per_sec: 0.31{n:02}\n",
    ),
    "nanochat": (
        "",
        f"step {{n:05d}}/{PLANNED:05d} (10.00%) | loss: 3.{{n:02}} | lrm: 1.00 | dt: 990.{{n:02}}ms | "
        "tok/sec: 529,123 | mfu: 40.10 | total time: 1.00m\n",
    ),
}


def analyzed(tmp_path, text):
    (tmp_path / "run.log").write_text(text)
    return analyze_logs([str(tmp_path / "run.log")], RunOptions())


@pytest.mark.parametrize("first", [0, 5], ids=["whole", "resumed"])
@pytest.mark.parametrize("last", [8, PLANNED - 2, PLANNED - 1])
@pytest.mark.parametrize("name", PRINTERS)
def test_the_last_step_of_the_plan_is_the_end(name, last, first, tmp_path):
    head, line = PRINTERS[name]
    run = analyzed(tmp_path, head + "".join(line.format(n=n, m=n + 1) for n in range(first, last + 1)))
    left = PLANNED - 1 - last
    assert run.log.ending.state == ("cut_off" if left else "completed")
    assert (run.expectations.plan.left.steps if run.expectations.plan.left else 0) == left
    if not left:
        assert run.log.ending.step == run.log.ending.planned_steps


# Seconds that each line prints, and after which it comes; then the times of the steps in seconds.
PLAIN = ([40.0, 9.0, 9.1, 9.0, 9.2], [None, 9.1, 9.1, 9.1, 9.2])
DISPATCHED = {
    "first": ([40.0, 0.4, 9.1, 9.0, 9.2], [None, 9.2, 9.1, 9.0, 9.2], [None, 9.2, 9.1, 9.0, 9.2]),
    "ahead": ([3.4, 0.4, 9.1, 18.3, 9.2], [None, 9.2, 9.1, 9.3, 9.2], [None, 9.2, 9.1, 9.3, 9.2]),
    "two at once": ([3.4, 9.0, 9.1, 0.1, 9.2], [None, 9.0, 9.1, 20.0, 0.0], [None, 9.0, 9.1, 10.0, 10.0]),
    "none": (*PLAIN, PLAIN[0]),
    "work between steps": ([40.0, 1.0, 1.1, 1.0, 1.1], PLAIN[1], [40.0, 1.0, 1.1, 1.0, 1.1]),
    "a late line": ([40.0, 9.0, 9.1, 9.0, 9.2], [None, 9.1, 14.0, 5.0, 9.2], [40.0, 9.0, 9.1, 9.0, 9.2]),
    "the first two at once": ([40.0, 9.5, 9.1, 9.0, 9.2], [None, 0.1, 9.1, 9.1, 9.2], [40.0, 9.5, 9.1, 9.0, 9.2]),
    "a save": ([40.0, 9.0, 9.1, 9.0, 9.2], [None, 9.1, 39.1, 9.1, 9.2], [40.0, 9.0, 9.1, 9.0, 9.2]),
}


@pytest.mark.parametrize("case", DISPATCHED)
def test_the_clock_gives_the_time_of_steps_in_flight(case, tmp_path):
    printed, gaps, true = DISPATCHED[case]
    clock, lines = datetime(2026, 3, 1, 12), []
    for n, (seconds, gap) in enumerate(zip(printed, gaps, strict=True)):
        clock += timedelta(seconds=gap or 0.0)
        lines.append(f"{clock:%Y-%m-%d %H:%M:%S.%f} completed step: {n}, seconds: {seconds:.3f}, loss: 9.1\n")
    steps = analyzed(tmp_path, "".join(lines)).steps
    assert steps["step_time_ms"].to_list() == [s and pytest.approx(1000 * s) for s in true]


def test_a_line_of_2023_prints_tflops_of_a_device(tmp_path):
    text = "Num_devices: 16, shape (1, 16, 1)\nRunning Model: llama2-7b\n" + "".join(
        f"completed step: {n}, seconds: 9.1, TFLOP/s: 116.4, loss: 9.1\n" for n in range(4)
    )
    run = analyzed(tmp_path, text)
    assert run.steps["logged_tflops_per_second_per_device"].to_list() == [116.4] * 4
    assert (run.context.get("world_size"), run.context.get("num_layers")) == (16, 32)
