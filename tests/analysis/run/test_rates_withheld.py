"""Samples/s that the log's own contradicts are withheld; time between the steps explains a small difference."""

import json
import re

import pytest
from helpers import run_logparse

PRINT = "[2025-03-02 10:00:00,000] [INFO] [config.py:999:print]   "
LINES = (
    "[2025-03-02 10:{clock},104] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped=0, lr=[1e-06], "
    "mom=[0.9]\n"
    "[2025-03-02 10:{clock},105] [INFO] [timer.py:258:stop] epoch=0/micro_step={micro}/global_step={step}, "
    "RunningAvgSamplesPerSec={rate}, CurrSamplesPerSec={rate}\n"
)


def log(rate):
    """Steps of 2 s with 4 samples in two passes: 2 samples/s."""
    text = f"{PRINT}train_batch_size ............. 4\n{PRINT}gradient_accumulation_steps .. 2\n"
    for row in range(1, 41):
        clock = f"{row // 3:02}:{row % 3 * 20:02}"
        text += LINES.format(clock=clock, step=10 * row, micro=20 * row, rate=f"{rate:.9f}")
    return text


@pytest.mark.parametrize(
    ("rate", "ours", "found"),
    [
        (2.0123, 2.0, []),
        (2.5123, 2.0, ["time_between_steps_left_out"]),
        (32.123, None, ["no_known_cause_of_samples"]),
        (1.3123, None, ["no_known_cause_of_samples"]),
        (4.0001, 2.0, ["num_microbatches_counted"]),
    ],
)
@pytest.mark.parametrize("devices", [(), ("--world-size", "1")], ids=["unknown devices", "one device"])
def test_samples(tmp_path, rate, ours, found, devices):
    (tmp_path / "run.log").write_text(log(rate), encoding="utf-8")
    (run,) = json.loads(run_logparse("analyze", "run.log", "--json", *devices, cwd=tmp_path).stdout)["runs"]
    causes = [n["fields"]["cause"]["code"] for n in run["notes"] if n["code"].startswith("printed_rate_")]
    assert causes == found
    steady = run["rates"]["steady"]
    assert steady["step_time_ms"] == 2000
    assert steady["samples_per_second_per_device"] == (ours if devices else None)
    assert (run["goodput"] is None) == (ours is None)


def test_rates_of_single_steps_that_spread_say_so(tmp_path):
    """Each line prints 2.1 or 3.4 samples/s, the rate of its last step; 2 samples/s is that of all."""
    text, others = log(2.0), iter([2.1, 3.4] * 20)
    text = re.sub(r"CurrSamplesPerSec=[\d.]+", lambda _: f"CurrSamplesPerSec={next(others)}", text)
    (tmp_path / "run.log").write_text(text, encoding="utf-8")
    (run,) = json.loads(run_logparse("analyze", "run.log", "--json", cwd=tmp_path).stdout)["runs"]
    (note,) = [note for note in run["notes"] if note["code"] == "printed_rate_differs"]
    assert note["fields"]["cause"]["code"] == "rates_of_last_steps"


def test_the_screen_says_that_rates_are_withheld_and_asks_for_no_flag(tmp_path):
    (tmp_path / "run.log").write_text(log(32.123), encoding="utf-8")
    shown = run_logparse("analyze", "run.log", cwd=tmp_path).stdout
    assert "missing       tokens/s/p, TFLOP/s, MFU: withheld, see the first line" in shown
    assert "pass --" not in shown
    assert "throughput    32.1 samples/s of all devices, printed by the log" in shown
    assert "but 2.00 by batch and step time" in shown


def test_the_launcher_of_deepspeed_counts_the_devices(tmp_path):
    (tmp_path / "run.log").write_text("[launch.py:163:main] dist_world_size=2\n" + log(2.0), encoding="utf-8")
    (run,) = json.loads(run_logparse("analyze", "run.log", "--json", cwd=tmp_path).stdout)["runs"]
    assert run["rates"]["steady"]["samples_per_second_per_device"] == 1.0
