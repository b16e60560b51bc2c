"""Marks beside the steps: saves, evaluations, restarts, and from where to where each start lasted."""

import polars as pl
from browser import run_of
from helpers import ROOT
from test_charts import steps

from analysis.charts.marks import EVALUATION, MOST_MARKS, RESTART, SAVE, mark_rows, start_rows
from logparse.schema import EVALUATION_COLUMNS, EVENT_COLUMNS, RECORD_COLUMNS, conform

LLAMA = ROOT / "fixtures/megatron/core-v0.12-llama2-7b/run.log"


def records(saves: list[int], evaluations: list[int]) -> dict[str, pl.DataFrame]:
    found = {name: conform(pl.DataFrame(), columns) for name, columns in RECORD_COLUMNS.items()}
    events = pl.DataFrame({"kind": ["save starts"] * len(saves), "step": saves})
    evaluated = pl.DataFrame({"step": evaluations})
    return found | {"events": conform(events, EVENT_COLUMNS), "evaluations": conform(evaluated, EVALUATION_COLUMNS)}


def test_marks_stand_where_their_step_was_done():
    marks = mark_rows(steps(30), records([10, 20], [15]))
    assert marks.select("kind", "step", "consumed_tokens").rows() == [
        (SAVE, 10, 10 * 32 * 4096),
        (SAVE, 20, 20 * 32 * 4096),
        (EVALUATION, 15, 15 * 32 * 4096),
    ]


def test_a_restart_is_marked_at_the_first_row_of_the_start():
    again = steps(segment=[0] * 20 + [1] * 10, step=[*range(1, 21), *range(11, 21)])
    assert mark_rows(again, records([], [])).select("kind", "step").rows() == [(RESTART, 11)]
    assert start_rows(again).select("segment", "step", "step_to").rows() == [(0, 1, 20), (1, 11, 20)]
    assert start_rows(steps()).is_empty()


def test_of_thousands_of_saves_some_are_marked():
    many = mark_rows(steps(5000), records(list(range(1, 5001)), []))
    assert MOST_MARKS / 2 < len(many) <= MOST_MARKS


def test_a_run_has_the_marks_that_its_log_tells():
    run = run_of(LLAMA)
    counted = dict(mark_rows(run.steps, run.records).group_by("kind").len().rows())
    assert counted == {SAVE: 3, EVALUATION: 1}
