"""Gaps between step lines that nothing explains: hand-worked."""

from datetime import datetime, timedelta

import pytest
from helpers import SETTINGS, arguments_dump, megatron_line

from analysis.present.words import say
from logparse import analyze

BEGIN = datetime(2026, 3, 1, 8)


def log(tmp_path, gaps, saves=()):
    """60 steps of 2 s; before each of ``gaps`` so many seconds go by, behind each of ``saves`` a line tells of one."""
    lines, clock = [arguments_dump(SETTINGS)], BEGIN
    for step in range(1, 61):
        clock += timedelta(seconds=2 + gaps.get(step, 0))
        lines.append(megatron_line(step, 2000.0, f"{clock:%Y-%m-%d %H:%M:%S}"))
        lines += [f"saving checkpoint at iteration {step:7d} to ckpt"] if step in saves else []
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines) + "\n")
    return analyze(path)


def advice(run):
    (loss,) = [loss for loss in run.overheads if loss.cause == "not_explained"]
    return loss.advice


def test_gaps_that_come_again_and_again_are_told_with_their_period(tmp_path):
    run = log(tmp_path, dict.fromkeys(range(10, 61, 10), 95))
    assert dict(advice(run).fields) == {"n": 6, "each": 95.0, "steps": [10, 20, 30, 40, 50, 60], "period": 10}
    assert say(advice(run)) == "6 gaps of about 1 min 35 s between step lines, every 10 steps"


def test_gaps_here_and_there_are_told_with_their_steps(tmp_path):
    run = log(tmp_path, {7: 40, 31: 44})
    assert say(advice(run)) == "gaps of about 42 s between step lines, before steps 7, 31"


def test_a_gap_behind_a_save_is_that_of_the_save(tmp_path):
    run = log(tmp_path, {11: 60, 21: 60, 40: 30}, saves=(10, 20))
    assert advice(run).fields["steps"] == [40]


@pytest.mark.parametrize("gap", [0, 1, 2])
def test_what_rounding_makes_is_no_gap(tmp_path, gap):
    assert not [loss for loss in log(tmp_path, {30: gap}).overheads if loss.cause == "not_explained" and loss.advice]
