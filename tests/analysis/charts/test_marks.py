"""Marks beside the steps: saves, evaluations, restarts, and from where to where each start lasted."""

from browser import run_of
from helpers import ROOT
from test_charts import steps

from analysis.charts.marks import EVALUATION, MOST_MARKS, RESTART, SAVE, mark_rows, start_rows
from analysis.run.clock.interruptions import NO_PAUSES, Pauses

LLAMA = ROOT / "fixtures/megatron/core-v0.12-llama2-7b/run.log"


def test_marks_stand_where_their_step_was_done():
    marks = mark_rows(steps(30), Pauses(saved=(10, 20), evaluated=(15,)))
    assert marks.select("kind", "step", "consumed_tokens").rows() == [
        (SAVE, 10, 10 * 32 * 4096),
        (SAVE, 20, 20 * 32 * 4096),
        (EVALUATION, 15, 15 * 32 * 4096),
    ]


def test_a_restart_is_marked_at_the_first_row_of_the_start():
    again = steps(segment=[0] * 20 + [1] * 10, step=[*range(1, 21), *range(11, 21)])
    assert mark_rows(again, NO_PAUSES).select("kind", "step").rows() == [(RESTART, 11)]
    assert start_rows(again).select("segment", "step", "step_to").rows() == [(0, 1, 20), (1, 11, 20)]
    assert start_rows(steps()).is_empty()


def test_of_thousands_of_saves_some_are_marked():
    many = mark_rows(steps(5000), Pauses(saved=tuple(range(1, 5001))))
    assert MOST_MARKS / 2 < len(many) <= MOST_MARKS


def test_a_run_has_the_marks_that_its_log_tells():
    run = run_of(LLAMA)
    counted = dict(mark_rows(run.steps, run.analysis.pauses).group_by("kind").len().rows())
    assert counted == {SAVE: 3, EVALUATION: 1}
