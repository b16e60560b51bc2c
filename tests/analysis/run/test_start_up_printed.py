"""The time between the start of a process and the start of its training is start-up, where the log has a clock."""

import json

import pytest
from runs import parts_of

from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions

BEGIN = 1_750_000_000_000


def mllog(tmp_path, ranks=1):
    """250 s from init_start to run_start, then 40 steps of 10 s; every rank prints its own init_start."""
    events = [(0.01 * rank, "init_start", None, {}) for rank in range(ranks)]
    events += [(1, "global_batch_size", 64, {}), (1, "max_sequence_length", 8192, {}), (250, "run_start", None, {})]
    for step in range(1, 41):
        value = {"train_step_time": 10.0, "reduced_train_loss": 1.5}
        events.append((250 + 10 * step, "tracked_stats", value, {"step": step, "samples_count": 64 * step}))
    events.append((651, "run_stop", None, {"status": "success"}))
    path = tmp_path / "result_0.txt"
    lines = [
        json.dumps(
            {"namespace": "", "time_ms": BEGIN + int(1000 * at), "event_type": "X", "key": key, "value": value}
            | {"metadata": metadata}
        )
        for at, key, value, metadata in events
    ]
    path.write_text("\n".join(f":::MLLOG {line}" for line in lines) + "\n", encoding="utf-8")
    return analyze_logs([str(path)], RunOptions())


@pytest.mark.parametrize("ranks", [1, 8])
def test_the_time_from_init_start_to_run_start_is_start_up(tmp_path, ranks):
    run = mllog(tmp_path, ranks)
    assert len(run.segments) == 1
    assert parts_of(run.time_breakdown)["start_up"] == pytest.approx(250, abs=0.5)
    # The benchmark's own time begins with run_start.
    assert run.time_to_train_seconds == pytest.approx(401)
