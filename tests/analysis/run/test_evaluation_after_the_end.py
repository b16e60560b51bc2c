"""After its last step a process evaluates, saves and leaves: only so much is evaluation as the others took."""

from datetime import datetime, timedelta

import pytest
from runs import parts_of

from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions

BEGUN = datetime(2026, 3, 1, 12)
EPOCH, EVALUATION = 40, 8.0


def log(seconds_after):
    """Three epochs of 40 steps of a second, each with an evaluation; the end is ``seconds_after`` the last step."""
    lines, clock = [], 0.0

    def stamp():
        return f"{BEGUN + timedelta(seconds=clock):%Y-%m-%d %H:%M:%S},000"

    for step in range(5, 3 * EPOCH + 1, 5):
        clock += 5.0
        lines.append(
            f"[{stamp()}] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped=0, lr=[1e-05], mom=[0.9]"
        )
        if step % EPOCH == 0:
            lines += [f"***** Evaluating perplexity, Epoch {step // EPOCH}/3 *****", "ppl: 2.5"]
            clock += EVALUATION if step < 3 * EPOCH else seconds_after
    lines += ["saving the final model ...", f"[{stamp()}] [INFO] [launch.py:460:main] Process 7 exits successfully."]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("seconds_after", "evaluated"), [(6.0, 22.0), (48.0, 24.0)])
def test_what_is_longer_than_the_other_evaluations_is_the_save(tmp_path, seconds_after, evaluated):
    path = tmp_path / "run.log"
    path.write_text(log(seconds_after), encoding="utf-8")
    breakdown = analyze_logs([str(path)], RunOptions()).time_breakdown
    parts = parts_of(breakdown)
    assert parts["evaluation"] + parts["evaluation_between"] == pytest.approx(evaluated, abs=0.5)
    assert parts.get("saves_between", 0.0) == pytest.approx(2 * EVALUATION + seconds_after - evaluated, abs=0.5)
    assert breakdown["share"].sum() == pytest.approx(1.0)
