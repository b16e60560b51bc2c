"""Slow steps that come periodically in logs of reinforcement learning are pauses, not stalls."""

from datetime import timedelta

import pytest
from helpers import ROOT, of_code
from runs import analyze_text, parts_of, rate_of

from analysis.present.words import say
from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions


def verl(step: int, seconds: float, more: str = "") -> str:
    return (
        f"(TaskRunner pid=41) step:{step} - actor/pg_loss:-0.0057 - actor/lr:1e-06 - training/global_step:{step} - "
        f"timing_s/gen:60.0 - timing_s/update_actor:30.0{more} - timing_s/step:{seconds} - perf/throughput:4096.9"
    )


def test_periodic_slow_steps_are_pauses_of_unknown_kind(tmp_path):
    """60 steps of 100 s, every tenth of 160 s: 360 s of pauses."""
    lines = [verl(step, 160.0 if step % 10 == 0 else 100.0 + step % 3 / 10) for step in range(1, 61)]
    result = analyze_text(tmp_path, "\n".join(lines))
    parts = parts_of(result.time_breakdown)
    assert "stalls" not in parts
    assert parts["saves_and_evaluation"] == pytest.approx(360, abs=3)
    (note,) = of_code(result.notes, "pauses_periodic")
    assert (note.fields["n"], note.fields["period"]) == (6, 10)
    assert say(note).startswith("6 steps, every 10 steps, are 59,900 ms longer than a typical step")
    assert not [note for note in result.notes if note.code.startswith(("stalls_", "pauses_not_told"))]
    assert rate_of(result, "with_stalls") == pytest.approx(100_100, rel=0.001)


def test_lone_slow_steps_stay_stalls(tmp_path):
    lines = [verl(step, 160.0 if step in (17, 40) else 100.0 + step % 3 / 10) for step in range(1, 61)]
    result = analyze_text(tmp_path, "\n".join(lines))
    assert parts_of(result.time_breakdown)["stalls"] == pytest.approx(120, abs=2)
    assert not of_code(result.notes, "pauses_periodic")


def test_timers_of_a_step_name_its_saves_and_evaluations(tmp_path):
    lines = []
    for step in range(1, 61):
        saves, tests = step % 20 == 0, step % 10 == 5
        more = " - timing_s/save_checkpoint:60.0" if saves else " - timing_s/testing:40.0" if tests else ""
        lines.append(verl(step, 160.0 if saves else 140.0 if tests else 100.0, more))
    result = analyze_text(tmp_path, "\n".join(lines))
    parts = parts_of(result.time_breakdown)
    assert (parts["saves"], parts["evaluation"]) == pytest.approx((180, 240), abs=1)
    assert "stalls" not in parts


def test_a_save_of_nemo_rl_is_in_the_step_whose_timers_name_it():
    run = analyze_logs([str(ROOT / "fixtures/nemo-rl/grpo-8gpu/run.log")], RunOptions(hw="h100"))
    assert run.steps.filter(run.steps["excluded_reason"] == "holds_save")["step"].to_list() == [10]
    assert parts_of(run.time_breakdown)["saves"] == pytest.approx(37.8, abs=0.5)
    assert "stalls" not in parts_of(run.time_breakdown)


def llama_factory_log(tmp_path, evaluated):
    """Rows of ten steps of 2 s; after every 100 steps an evaluation of 60 s, with a line where ``evaluated``."""
    seconds, lines = 0, []
    for step in range(10, 1010, 10):
        seconds += 20
        place = f'{{"current_steps": {step}, "total_steps": 1000, '
        clock = f'"epoch": 0.5, "percentage": 1.0, "elapsed_time": "{timedelta(seconds=seconds)}"}}'
        lines.append(f'{place}"loss": 1.5, "lr": 1e-05, {clock}')
        if step % 100 == 0:
            seconds += 60
            lines += [f'{place}"eval_loss": 1.25, {clock}'] if evaluated else []
    path = tmp_path / "trainer_log.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return analyze_logs([str(path)], RunOptions())


def test_an_evaluation_that_llama_factory_prints_is_no_stall(tmp_path):
    run = llama_factory_log(tmp_path, evaluated=True)
    assert len(run.records["evaluations"]) == 10
    parts = parts_of(run.time_breakdown)
    assert "stalls" not in parts
    assert parts["evaluation"] == pytest.approx(9 * 60)
    assert "pauses_not_told" not in [note.code for note in run.notes]


def test_the_size_of_a_stall_is_of_all_steps_of_its_row(tmp_path):
    run = llama_factory_log(tmp_path, evaluated=False)
    (note,) = [note for note in run.notes if note.code == "stalls_periodic"]
    assert note.fields["longer_ms"] == pytest.approx(60_000)
    assert parts_of(run.time_breakdown)["stalls"] == pytest.approx(note.fields["n"] * 60)
