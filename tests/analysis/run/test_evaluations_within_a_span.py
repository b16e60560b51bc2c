"""A bar's clock gives spans of short steps one mean: the time of an evaluation is in none that counts."""

import pytest
from runs import parts_of

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


OVERFLOW = "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 8, reducing to 4\n"
OF_EVALUATION = "100%|#####| 30/30 [00:29<00:00,  1.00it/s]\n"


def dicts(skipped=(), evaluated=True):
    """400 steps of 4 s, with a dict after each 10; the training's bar is in seconds, that of the evaluation is not."""
    text = BANNER
    for step in range(1, 401):
        clock = 4 * step + step // 20 % 3
        text += OVERFLOW if step in skipped else ""
        text += f"{{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': {step / 400}}}\n" if step % 10 == 0 else ""
        text += bar(step, clock).replace("1.00it/s", "4.00s/it")
    return text + (OF_EVALUATION + EVALUATION.replace("6.0", "30.0") if evaluated else "")


def analyzed(tmp_path, text):
    path = tmp_path / "run.log"
    path.write_text(text, encoding="utf-8")
    return analyze_logs([str(path)], RunOptions())


@pytest.mark.parametrize("evaluated", [True, False])
def test_an_evaluation_after_the_last_step_is_counted(tmp_path, evaluated):
    run = analyzed(tmp_path, dicts(evaluated=evaluated))
    parts = parts_of(run.time_breakdown)
    assert parts.get("evaluation_between") == (pytest.approx(30.0) if evaluated else None)
    assert sum(parts.values()) == pytest.approx(1632 if evaluated else 1602)
    # The bar of the evaluation is not that of the last dict.
    assert run.steps["train_steps"].unique().to_list() == [400]
    assert run.steps["runtime_seconds"][-1] == 1602


def test_updates_that_deepspeed_skips_are_lost(tmp_path):
    run = analyzed(tmp_path, dicts(skipped=(2, 3, 112)))
    assert run.steps["skipped_iterations"].to_list() == [2, *[0] * 10, 1, *[0] * 28]
    assert parts_of(run.time_breakdown)["skipped"] == pytest.approx(12, abs=0.5)


def test_a_log_without_skipped_updates_does_not_say_there_are_none(tmp_path):
    assert analyzed(tmp_path, dicts()).steps["skipped_iterations"].null_count() == 40


def test_dicts_between_two_bars_share_their_mean_time(tmp_path):
    """The bar is drawn with each fifth dict."""
    lines = dicts(evaluated=False).splitlines(keepends=True)
    kept = [line for line in lines if "|" not in line or int(line.split("| ")[1].split("/")[0]) % 50 == 0]
    run = analyzed(tmp_path, "".join(kept))
    assert run.steps["step_time_ms"].null_count() == 0
    assert run.steps["step_time_ms"].sum() * 10 == pytest.approx(1_602_000)
