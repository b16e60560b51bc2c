"""Trainers of images and speech have neither tokens nor MFU: one sentence says so, and no flag is asked for."""

from pathlib import Path

import pytest
from helpers import run_logparse

from analysis.api import analyze
from analysis.present.views.missing import missing_clauses
from logparse.formats import all_formats

ROOT = Path(__file__).parents[3]
CASES = {
    fmt.name: str(path)
    for fmt in all_formats()
    if fmt.trains_on in ("images", "speech")
    for path in sorted((ROOT / "fixtures" / fmt.name).glob("*/run.log"))
}
USELESS = ("--seq-length", "--model", "--hw", "--peak-tflops", "--recompute")
MMDET = (
    "03/02 20:17:{second:02} - mmengine - INFO - Epoch(train)  [1][{step:>4}/1051]  lr: 3.0e-04  time: 0.5  loss: 7.6\n"
)


def test_there_are_such_formats():
    assert len(CASES) > 10


@pytest.mark.parametrize("name", CASES)
def test_one_sentence_and_no_useless_flag(name):
    run = analyze(CASES[name])
    clauses = missing_clauses(run)
    assert clauses[-1].startswith("tokens/s, TFLOP/s, MFU: not computed for ")
    assert not [flag for flag in USELESS if flag in " ".join(clauses)]
    assert run.step_time_ms
    codes = {note.code for note in run.notes}
    assert "no_tokens" in codes
    assert not codes & {"tokens_rate_not_computed", "flops_rate_not_computed", "device_unknown", "hfu_not_computed"}


def test_a_given_length_makes_tokens_of_samples():
    run = analyze(CASES["openclip"], seq_length=77)
    assert "no_tokens" not in {note.code for note in run.notes}
    assert "--model" in missing_clauses(run)


def test_the_scope_of_mmengine_shows_images(tmp_path):
    steps = "".join(MMDET.format(second=n, step=50 * (n + 1)) for n in range(20))
    log = tmp_path / "run.log"
    log.write_text(f"default_scope = 'mmdet'\n{steps}")
    assert analyze(str(log)).context.get("training_data") == "images"
    log.write_text(steps)
    assert analyze(str(log)).context.get("training_data") is None


def test_composer_with_sgd_trains_on_images(tmp_path):
    records = "".join(
        f"[epoch=0][batch={n}/625]: wall_clock/train: {n * 0.72:.4f}\n"
        f"[epoch=0][batch={n}/625]: lr-DecoupledSGDW/group0: 0.0061\n"
        f"[epoch=0][batch={n}/625]: trainer/global_step: {n}\n"
        f"[epoch=0][batch={n}/625]: loss/train/total: 7.1\n"
        for n in range(16, 40)
    )
    (tmp_path / "run.log").write_text(records)
    shown = run_logparse("analyze", "run.log", cwd=tmp_path).stdout
    assert "tokens/s, TFLOP/s, MFU: not computed for images" in shown
    assert "--seq-length" not in shown
