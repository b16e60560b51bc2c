"""Steps of a progress bar alone may be of other work than training."""

import pytest

from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions


@pytest.mark.parametrize(
    ("beside", "doubted"),
    [
        ("", True),
        ("trainable params: 8 || all params: 80 || trainable%: 10.0\n", True),
        ("***** Running training *****\n", False),
    ],
)
def test_a_bar_without_anything_of_its_trainer_is_doubted(tmp_path, beside, doubted):
    """The line of LoRA is no proof: other programs print it too."""
    bars = "".join(f"{n}%|#| {n}/100 [{n // 30:02d}:{2 * n % 60:02d}<09:00, 2.00s/it]\n" for n in range(1, 41))
    (tmp_path / "run.log").write_text(beside + bars)
    run = analyze_logs([str(tmp_path / "run.log")], RunOptions())
    assert ("steps_of_a_bar" in [note.code for note in run.notes]) == doubted


@pytest.mark.parametrize("whole", [True, False])
def test_losses_that_no_bar_gives_a_step_are_counted(tmp_path, whole):
    """A capture of a terminal keeps one bar of several, and not each dict: the steps between are unknown."""
    row = "{{'loss': {:.2f}, 'grad_norm': 1.0, 'learning_rate': 2e-05, 'epoch': 0.0}}\n"
    dicts = [3 if whole else 3 + n % 3 for n in range(12)]
    bars = [f"{n}%|#| {6 * n + 6}/600 [00:{4 * n + 4:02d}<09:00, 1.50it/s]\n" for n in range(12)]
    text = "".join(row.format(3 - n / 100) * dicts[n] + bars[n] for n in range(12))
    (tmp_path / "run.log").write_text(text)
    run = analyze_logs([str(tmp_path / "run.log")], RunOptions())
    notes = [note.fields for note in run.notes if note.code == "lines_without_step"]
    assert notes == ([] if whole else [{"n": sum(dicts) - len(run.steps), "of": sum(dicts)}])
    assert (run.loss.first, run.loss.last, run.loss.steps) == (3.0, 2.89, sum(dicts))
