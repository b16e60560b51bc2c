"""DeepSpeed-Chat prints a line before each of its evaluations: a long step there is no stall without a cause."""

from datetime import datetime, timedelta

import pytest

from analysis.api import analyze

LINE = (
    "[{clock:%Y-%m-%d %H:%M:%S},000] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped=0, lr=[9e-06], "
    "mom=[(0.9, 0.95)]\n"
)


@pytest.mark.parametrize("what", ["perplexity", "reward", None])
def test_evaluations_are_read(tmp_path, what):
    clock, lines = datetime(2026, 3, 1, 8), []
    for step in range(10, 1210, 10):
        clock += timedelta(seconds=15 if step % 300 == 10 and step > 10 else 5)
        lines.append(LINE.format(clock=clock, step=step))
        if what and step % 300 == 0:
            lines.append(f"***** Evaluating {what}, Epoch {step // 300}/4 *****\nppl: 2.01\n")
    (tmp_path / "run.log").write_text("".join(lines))
    run = analyze(str(tmp_path / "run.log"))
    assert len(run.records["evaluations"]) == (4 if what else 0)
    assert ("pauses_not_told" in {note.code for note in run.notes}) == (what is None)
