"""A rate of a window of steps gives the step time where the clock of the lines is too coarse for it."""

from datetime import datetime, timedelta

import pytest

from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions

BEGIN = datetime(2026, 1, 2, 10, 0, 0)


def olmo(tmp_path, seconds, stamp):
    """Records of ten steps of so many ``seconds``, of 8 devices, with a clock of the form ``stamp``."""
    lines = []
    for step in range(1, 11):
        clock = stamp(BEGIN + timedelta(seconds=seconds * step))
        lines += [
            f"[{clock}] INFO     [olmo.train:816, rank=0] [step={step}/1000]",
            "    train/CrossEntropyLoss=10.73",
            f"    throughput/total_tokens={4194304 * step:,}",
            f"    throughput/device/tokens_per_second={4194304 / 8 / seconds:,.0f}",
            f"    throughput/device/batches_per_second={1 / seconds:.4f}",
        ]
    path = tmp_path / "olmo.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return analyze_logs([str(path)], RunOptions())


def by_seconds(time):
    return f"{time:%Y-%m-%d %H:%M:%S}"


def by_milliseconds(time):
    return f"{time:%Y-%m-%d %H:%M:%S}.{time.microsecond // 1000:03}"


def test_a_coarse_clock_gives_way_to_the_printed_rate(tmp_path):
    run = olmo(tmp_path, 11.57, by_seconds)
    assert "time_by_rate" in [note.code for note in run.notes]
    assert run.step_time_ms == pytest.approx(11_570, rel=1e-3)
    assert run.context.get("world_size") == 8


def test_a_fine_clock_stays(tmp_path):
    run = olmo(tmp_path, 11.57, by_milliseconds)
    assert "time_by_stamps" in [note.code for note in run.notes]
    assert run.step_time_ms == pytest.approx(11_570, rel=1e-3)
