"""A bar of an evaluation gives no step, no plan and no clock to the dicts of a training."""

import pytest

from analysis.present.views.analyze import rates_table
from analysis.present.views.first_screen import rows
from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions

PLAN = (
    "  Num examples = 320\n  Num Epochs = 5\n  Total train batch size (w. parallel) = 8\n"
    "  Total optimization steps = {steps}\n"
)
DICT = "{{'loss': '2.5', 'grad_norm': '1', 'learning_rate': '1e-05', 'epoch': '{epoch}'}}\n"
EVALUATION = "100%|██████| 30/30 [00:01<00:00, 20.00it/s]\n{'eval_loss': '2.1', 'eval_runtime': '1.5', 'epoch': '1'}\n"


def log(tmp_path, bars=True):
    """200 steps of 40 an epoch whose dicts come together, before the bars of evaluations; 400 s in all."""
    text = PLAN.format(steps=200)
    for step in range(5, 201, 5):
        text += DICT.format(epoch=round(step / 40, 4))
        text += EVALUATION if bars and step % 50 == 0 else ""
    text += "{'train_runtime': '400', 'train_steps_per_second': '0.5', 'train_loss': '1.0', 'epoch': '5'}\n"
    path = tmp_path / "run.log"
    path.write_text(text, encoding="utf-8")
    return analyze_logs([str(path)], RunOptions())


@pytest.mark.parametrize("bars", [True, False])
def test_the_plan_is_that_of_the_training(tmp_path, bars):
    run = log(tmp_path, bars)
    assert run.steps["train_steps"].unique().to_list() == [200]
    assert run.steps["step"].to_list() == list(range(5, 201, 5))
    assert run.steps["runtime_seconds"].null_count() == len(run.steps)


@pytest.mark.parametrize("banner", [PLAN.format(steps=200), ""])
def test_an_evaluation_that_is_not_over_gives_no_plan(tmp_path, banner):
    text = banner
    for step in range(5, 51, 5):
        length, done = (30, 1) if step == 50 else (200, step)
        text += DICT.format(epoch=round(step / 40, 4)) + f"  3%|▎   | {done}/{length} [01:{step}<10:00,  2.00s/it]\n"
    path = tmp_path / "run.log"
    path.write_text(text, encoding="utf-8")
    run = analyze_logs([str(path)], RunOptions())
    assert (run.steps["train_steps"].unique().to_list(), run.steps["step"][-1]) == ([200], 50)
    assert run.ending.state != "completed"


def test_the_runtime_of_the_training_gives_its_mean_step_time(tmp_path):
    run = log(tmp_path)
    assert run.step_time_ms == 2000
    assert (run.goodput, run.overheads) == (None, ())
    time = next(row for row in rows(run) if row.label == "step time")
    assert time.clauses == ["mean of the training, with evaluations and saves"]
    # Without a rate by the clock.
    assert rates_table(run).rows[-1][-1] == "-"


@pytest.mark.parametrize(("line", "ms"), [("  Continuing training from global step 100\n", 4000), ("", None)])
def test_the_rate_of_a_resumed_training_counts_the_steps_of_its_process(tmp_path, line, ms):
    """The trainer prints 200 steps over 400 s; the process did 100 of them."""
    text = PLAN.format(steps=200) + line
    text += "".join(DICT.format(epoch=round(step / 40, 4)) for step in range(105, 201, 5))
    text += "{'train_runtime': '400', 'train_steps_per_second': '0.5', 'train_loss': '1.0', 'epoch': '5'}\n"
    path = tmp_path / "run.log"
    path.write_text(text, encoding="utf-8")
    run = analyze_logs([str(path)], RunOptions())
    assert run.steps["step_time_ms"].unique().to_list() == [ms]
    codes = [note.code for note in run.notes]
    assert ("rate_of_resumed_run" in codes, "no_step_time" in codes) == (ms is None, False)
