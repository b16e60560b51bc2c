"""Each training of a file has the sizes of its own banner."""

import pytest

from analysis.run.build import analyze_parts
from analysis.run.options import RunOptions


def training(batch, examples, rate):
    """100 steps of one epoch, between them an evaluation of 64 examples."""
    text = (
        f"***** Running training *****\n  Num examples = {examples:,}\n  Num Epochs = 1\n"
        f"  Total train batch size (w. parallel) = {batch}\n  Total optimization steps = 100\n"
    )
    for step in range(1, 101):
        text += f"{{'loss': '2.5', 'grad_norm': '1', 'learning_rate': '1e-05', 'epoch': '{step / 100}'}}\n"
        text += "***** Running Evaluation *****\n  Num examples = 64\n  Batch size = 8\n" if step % 25 == 0 else ""
    return text + f"{{'train_runtime': '200', 'train_steps_per_second': '{rate}', 'train_loss': '1', 'epoch': '1'}}\n"


@pytest.mark.parametrize("second", [(64, 6400), (32, 3200)], ids=["another batch", "the same"])
def test_each_training_of_a_file_has_the_batch_of_its_banner(tmp_path, second):
    path = tmp_path / "run.log"
    path.write_text(training(32, 3200, 0.5) + training(*second, 0.25), encoding="utf-8")
    runs = analyze_parts([str(path)], RunOptions())
    assert [run.steps["global_batch_size"].unique().to_list() for run in runs] == [[32], [second[0]]]
    assert [run.steps["step"].to_list() for run in runs] == [list(range(1, 101))] * 2
    assert [run.steps["step_time_ms"].unique().to_list() for run in runs] == [[2000], [4000]]


# What transformers prints of a model, at the start and at each save of adapters.
MODEL = 'Model config Qwen2Config {\n  "hidden_size": 3584,\n  "num_hidden_layers": 28\n}\n'


def test_training_whose_dicts_come_late_is_one_run(tmp_path):
    """A program whose output is no terminal writes its dicts in clumps, after the banner of an evaluation."""
    evaluation = "***** Running Evaluation *****\n  Num examples = 64\n  Batch size = 8\n"
    banner, *rest = training(32, 3200, 0.5).replace(evaluation, "").partition("{'loss'")
    *dicts, summary = "".join(rest).splitlines(keepends=True)
    save = "Saving model checkpoint to out/checkpoint-50\n" + MODEL
    text = [MODEL, banner, evaluation, *dicts[:50], save, evaluation, *dicts[50:], summary]
    path = tmp_path / "run.log"
    path.write_text("".join(text), encoding="utf-8")
    (run,) = analyze_parts([str(path)], RunOptions())
    assert run.steps["step"].to_list() == list(range(1, 101))
    assert len(run.segments) == 1
    assert run.steps["step_time_ms"].unique().to_list() == [2000]
