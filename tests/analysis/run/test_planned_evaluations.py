"""Pauses at the interval of evaluations in the settings are evaluation, though no line prints one."""

from datetime import timedelta

import pytest
from helpers import arguments_dump, megatron_line
from runs import BEGIN, parts_of

from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions

OLD = {"world_size": 8, "seq_length": 4096, "global_batch_size": 32, "DDP_impl": "local"}
NEW = {"world_size": 8, "seq_length": 4096, "global_batch_size": 32, "context_parallel_size": 1}


def parts_with_pauses(tmp_path, settings, every, seconds, inside):
    """200 steps of 2 s, and ``seconds`` after each ``every`` of them: in the next line, or between lines."""
    lines, now = arguments_dump(settings).splitlines(), BEGIN
    for step in range(1, 201):
        paused = seconds if step > 1 and (step - 1) % every == 0 else 0
        now += timedelta(seconds=2 + paused)
        clock = "" if inside else f"{now:%Y-%m-%d %H:%M:%S}"
        lines.append(megatron_line(step, 1000.0 * (2 + (paused if inside else 0)), clock))
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines) + "\n")
    return parts_of(analyze_logs([str(path)], RunOptions()).time_breakdown)


@pytest.mark.parametrize(("settings", "inside"), [(OLD, True), (NEW, False)], ids=["in the line", "between lines"])
@pytest.mark.parametrize("seconds", [2, 30])
@pytest.mark.parametrize("every", [10, 50])
def test_pauses_at_the_interval_are_evaluation(tmp_path, settings, inside, every, seconds):
    planned = settings | {"eval_interval": every, "eval_iters": 10}
    parts = parts_with_pauses(tmp_path, planned, every, seconds, inside)
    evaluated = parts.get("evaluation", 0.0) + parts.get("evaluation_between", 0.0)
    assert evaluated == pytest.approx(seconds * (199 // every), rel=0.02)
    assert "stalls" not in parts


@pytest.mark.parametrize(("interval", "batches"), [(10, 0), (7, 10), (1000, 10)])
def test_pauses_elsewhere_or_without_batches_are_none(tmp_path, interval, batches):
    planned = NEW | {"eval_interval": interval, "eval_iters": batches}
    assert "evaluation_between" not in parts_with_pauses(tmp_path, planned, 10, 30, inside=False)
