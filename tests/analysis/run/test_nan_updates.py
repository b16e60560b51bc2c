"""A loss or a gradient norm of NaN, and a loss that vanishes, are no useful work."""

import pytest
from helpers import megatron_line
from runs import WORLD

from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions


def analyzed(tmp_path, pairs_of):
    path = tmp_path / "run.log"
    lines = [megatron_line(step, 1000.0, pairs=pairs_of(step)) for step in range(1, 41)]
    path.write_text("\n".join([WORLD, *lines]) + "\n")
    return analyze_logs([str(path)], RunOptions())


@pytest.mark.parametrize(
    "pairs",
    [{"lm loss": "nan"}, {"grad norm": "nan"}, {"lm loss": None}, {"lm loss": "inf", "grad norm": "inf"}],
    ids=["loss", "gradient norm", "vanished loss", "infinite"],
)
def test_half_of_the_steps_are_lost(tmp_path, pairs):
    run = analyzed(tmp_path, lambda step: pairs if step > 20 else None)
    assert run.goodput == pytest.approx(0.5)
    (note,) = [note for note in run.notes if note.code == "not_a_number"]
    assert (note.fields["n"], note.fields["of"], note.fields["line"]) == (20, 40, 22)
    assert run.steps["update_is_nan"].to_list() == [False] * 20 + [True] * 20


def test_a_run_of_nan_alone_did_nothing_useful(tmp_path):
    run = analyzed(tmp_path, lambda _: {"grad norm": "nan", "lm loss": None})
    assert run.goodput == 0
    assert run.step_time_ms == pytest.approx(1000.0)


def test_skipped_updates_of_a_first_row_are_no_warm_up(tmp_path):
    run = analyzed(tmp_path, lambda step: {"number of skipped iterations": "1"} if step <= 8 else None)
    parts = dict(run.time_breakdown.select("part", "share").iter_rows())
    assert (parts.get("skipped"), parts.get("warm_up", 0)) == pytest.approx((0.2, 0.0))
    assert "not_a_number" not in [note.code for note in run.notes]


def test_an_infinite_gradient_with_a_printed_skip_stays_a_skip(tmp_path):
    pairs = {"lm loss": "inf", "grad norm": "inf", "number of skipped iterations": "1"}
    run = analyzed(tmp_path, lambda step: pairs if step > 30 else None)
    assert run.goodput == pytest.approx(0.75)
    assert "not_a_number" not in [note.code for note in run.notes]
    assert set(run.steps["excluded_reason"][30:]) == {"update_skipped"}


def test_an_infinite_gradient_alone_is_an_update_that_was_left_out(tmp_path):
    run = analyzed(tmp_path, lambda step: {"grad norm": "inf"} if step > 30 else None)
    assert run.goodput == pytest.approx(0.75)
    (note,) = [note for note in run.notes if note.code == "not_a_number"]
    assert note.fields["n"] == 10


def test_a_loss_of_zero_is_doubted(tmp_path):
    run = analyzed(tmp_path, lambda step: {"lm loss": "0.000000E+00"} if step > 30 else None)
    (note,) = [note for note in run.notes if note.code == "loss_is_zero"]
    assert (note.fields["n"], note.fields["of"], note.fields["line"]) == (10, 40, 32)
    assert run.goodput == 1


def test_a_policy_may_have_a_loss_of_zero(tmp_path):
    path = tmp_path / "run.log"
    pairs = "actor/pg_loss:0.0 - timing_s/gen:2.0 - timing_s/step:5.0"
    path.write_text("".join(f"step:{step} - {pairs}\n" for step in range(1, 9)))
    run = analyze_logs([str(path)], RunOptions())
    assert run.steps["loss"].to_list() == [0.0] * 8
    assert "loss_is_zero" not in [note.code for note in run.notes]
