"""A bar's clock gives spans of short steps one mean: the time of an evaluation is in none that counts."""

import pytest

from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions

BANNER = (
    "***** Running training *****\n  Num examples = 12,800\n  Num Epochs = 1\n"
    "  Total train batch size (w. parallel, distributed & accumulation) = 32\n  Total optimization steps = 400\n"
)
EVALUATION = (
    "***** Running Evaluation *****\n  Num examples = 64\n{'eval_loss': 1.25, 'eval_runtime': 6.0, 'epoch': 0.5}\n"
)


def bar(step, clock):
    minutes, seconds = divmod(int(clock), 60)
    return f" {step // 4}%|#   | {step}/400 [{minutes:02}:{seconds:02}<09:00,  1.00it/s]\n"


def log(drawn_again):
    """400 steps of 1.3 s, with an evaluation of 6 s after each 40."""
    text, clock = BANNER, 0.0
    for step in range(1, 401):
        clock += 1.3
        text += bar(step, clock)
        if step % 40 == 0:
            clock += 6.0
            text += EVALUATION + (bar(step, clock) if drawn_again else "")
    return text


@pytest.mark.parametrize("drawn_again", [True, False])
def test_steps_without_evaluations(tmp_path, drawn_again):
    path = tmp_path / "run.log"
    path.write_text(log(drawn_again), encoding="utf-8")
    run = analyze_logs([str(path)], RunOptions())
    assert run.analysis.rate("steady")["step_time_ms"] == pytest.approx(1300, rel=0.03)
    # 54 s of 574; the last evaluation is after the last step.
    assert run.goodput == pytest.approx(520 / 574, abs=0.02)


def test_a_row_after_rows_without_a_time_holds_their_evaluations(tmp_path):
    """The bar is drawn with each tenth dict, evaluations are between the others."""
    text, clock = BANNER, 0.0
    for step in range(1, 401):
        clock += 1.3
        text += f"{{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': {step / 400}}}\n"
        if step % 40 == 5:
            clock += 6.0
            text += EVALUATION.replace("0.5}", f"{step / 400}}}")
        text += bar(step, clock) if step % 20 == 0 else ""
    path = tmp_path / "run.log"
    path.write_text(text, encoding="utf-8")
    run = analyze_logs([str(path)], RunOptions())
    assert run.analysis.rate("steady")["step_time_ms"] == pytest.approx(1300, rel=0.03)
