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
