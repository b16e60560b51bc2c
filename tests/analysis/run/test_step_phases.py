"""Where a log prints the phases of a step and no total, their sum is a lower bound; with a total, each has a share."""

import pytest

from analysis.present.views.first_screen import quiet_line, rows
from analysis.present.words import words
from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions
from logparse.formats import all_formats

PHASES = ["update_actor 45 %", "gen 40 %", "ref 14 %"]


def verl(tmp_path, name="timing", total="", steps=20):
    """Steps of 100 s of phases, every tenth with a validation of 50 s."""
    lines = []
    for step in range(1, steps + 1):
        testing = f" - {name}/testing:50.0" if step % 10 == 0 else ""
        lines.append(
            f"(main_task pid=64) step:{step} - {name}/gen:40.0 - {name}/update_actor:45.0 - {name}/adv:0.5 - "
            f"{name}/ref:14.5{testing}{total} - actor/pg_loss:-0.0057 - actor/lr(1e-4):0.01"
        )
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return analyze_logs([str(path)], RunOptions())


def test_the_sum_of_the_phases_is_a_lower_bound(tmp_path):
    run = verl(tmp_path)
    assert run.step_time_ms is None
    (note,) = [note for note in run.notes if note.code == "phases_without_total"]
    assert note.fields["ms"] == pytest.approx(100_000)
    assert [part.fields["name"] for part in note.fields["phases"]] == ["update_actor", "gen", "ref", "adv"]
    time = next(row for row in rows(run) if row.label == "step time")
    assert time.value == "100 s"
    assert time.clauses == ["at least: sum of the printed phases", *PHASES, "of the run testing 5 %"]
    assert not run.short
    assert quiet_line(run).startswith("run: at least 100 s/step")
    (rare,) = [note for note in run.notes if note.code == "phases_of_some_steps"]
    assert rare.fields["phases"][0].fields == {"name": "testing", "share": pytest.approx(100 / 2100)}


@pytest.mark.parametrize(("steps", "short"), [(19, True), (20, False)])
def test_phases_show_whether_a_run_is_short(tmp_path, steps, short):
    run = verl(tmp_path, steps=steps)
    assert run.short == short


def test_a_printed_total_needs_no_sum(tmp_path):
    run = verl(tmp_path, "timing_s", " - timing_s/step:110.0")
    assert run.step_time_ms == 110_000
    assert "phases_without_total" not in [note.code for note in run.notes]


def inside(run):
    """The clauses of the row on the parts of a step."""
    return next((row.clauses for row in rows(run) if row.label == "inside a step"), None)


def test_the_parts_of_a_step_are_shown_by_their_share_of_its_time(tmp_path):
    run = verl(tmp_path, "timing_s", " - timing_s/step:110.0")
    assert inside(run) == ["update 41 %", "generation 36 %", "reference 13 %", "other 9 %"]


def test_the_bar_of_openrlhf_has_the_timers_of_the_lines_of_its_steps(tmp_path):
    timers = "'timing/generation': 20.0, 'timing/make_experience': 8.0, 'timing/ppo_train': 10.0, 'kl': 0.1"
    lines = []
    for step in range(1, 13):
        clock = f"{40 * step // 60:02d}:{40 * step % 60:02d}"
        lines.append(f"(PPOTrainer pid=12) ppo_trainer.py:547] Global step {step}: {{'policy_loss': 0.01, {timers}}}")
        lines.append(f"Episode [1/1]: {100 * step // 12:3d}%|#         | {step}/12 [{clock}<01:00, 40.00s/it, kl=0.1]")
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    run = analyze_logs([str(path)], RunOptions())
    assert run.step_time_ms == 40_000
    assert inside(run) == ["generation 50 %", "update 25 %", "log-probabilities 20 %", "other 5 %"]


def test_parts_that_overlap_are_not_shown(tmp_path):
    assert inside(verl(tmp_path, "timing_s", " - timing_s/step:90.0")) is None


def test_a_step_without_a_time_has_no_parts(tmp_path):
    assert inside(verl(tmp_path)) is None


@pytest.mark.parametrize("fmt", [fmt for fmt in all_formats() if fmt.parts], ids=lambda fmt: fmt.name)
def test_every_part_has_words(fmt):
    assert {*fmt.parts.values()} <= {*words("en")["step_parts"]} == {*words("zh")["step_parts"]}
    assert any(record.frame == "timers" for record in fmt.records)
