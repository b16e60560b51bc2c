"""A log that ends within an evaluation after its last step is not completed."""

import pytest
from helpers import arguments_dump, megatron_line

from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions

DONE = "[after training is done] datetime: 2026-03-01 12:10:00 "


@pytest.mark.parametrize(
    ("last", "state"),
    [
        ("Evaluating iter 1/10", "cut_off"),
        ("Evaluating iter 9/10", "cut_off"),
        ("validation: batch 3 / 40", "cut_off"),
        ("Testing DataLoader 0: 12/64", "cut_off"),
        ("Evaluating iter 10/10", "completed"),
        ("Evaluated 80 samples", "completed"),
        ("wrote 1/2 of the shards", "completed"),
        ("", "completed"),
    ],
)
def test_the_last_line_counts_an_evaluation(tmp_path, last, state):
    lines = [*arguments_dump({"world_size": 8}).splitlines(), *(megatron_line(n) for n in range(491, 501)), DONE, last]
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines) + "\n")
    assert analyze_logs([str(path)], RunOptions()).log.ending.state == state
