"""What saves and evaluations took: behind the last step line, and where one gap or one row holds both; by hand."""

from datetime import timedelta

import polars as pl
import pytest
from helpers import SETTINGS, arguments_dump, megatron_line
from runs import BEGIN, analyze_text, as_computed, events, no_starts, parts_of, rows

from analysis.run.clock.interruptions import Pauses, find_pauses
from analysis.run.clock.pause_times import EventStamps, between_lines
from analysis.run.rows.restarts import number_starts, trace_starts
from analysis.run.rows.row_selection import RowRules, select_rows
from analysis.run.useful.time_breakdown import break_down_time
from logparse.decode.read_run import read_run

SAVED = ["saving checkpoint at iteration      10 to ckpt", "successfully saved checkpoint at iteration      10 to ckpt"]
EVALUATED = " validation loss at iteration 10 | lm loss value: 2.1E+00 | lm loss PPL: 8.1E+00 | "
SAVE_TIMER = [
    "(min, max) time across ranks (ms):",
    "    save-checkpoint ........................: (19000.00, 20000.00)",
]
EVALUATION_TIMER = [
    "(min, max) time across ranks (ms):",
    "    evaluate ...............................: (29000.00, 30000.00)",
]


def clock(seconds):
    return f"{BEGIN + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}"


def lines(first, last, begin):
    """Steps of 1 s from ``begin`` on."""
    return [megatron_line(step, 1000.0, clock(begin + step - first + 1)) for step in range(first, last + 1)]


def parts(folder, *text):
    found = parts_of(analyze_text(folder, "\n".join(text)).time_breakdown)
    return {part: seconds for part, seconds in found.items() if seconds > 0.01}


def test_a_save_behind_the_last_line_is_bounded_by_the_stamp_behind_it(tmp_path):
    text = [*lines(1, 10, 0), *SAVED, f"[after training is done] datetime: {clock(60)} "]
    assert parts(tmp_path, *text) == pytest.approx({"useful": 10.0, "saves_between": 50.0})


def test_what_lies_behind_the_last_line_beside_no_pause_is_not_explained(tmp_path):
    text = [*lines(1, 10, 0), f"[after training is done] datetime: {clock(60)} "]
    assert parts(tmp_path, *text) == pytest.approx({"useful": 10.0, "not_explained": 50.0})


def test_a_later_process_that_did_no_step_ends_the_pause(tmp_path):
    """It saved to 30 s; the next process began at 500 s and ended at 600 s."""
    ends = [f"[after training is done] datetime: {clock(30)} "]
    died = [f"[after megatron is initialized] datetime: {clock(500)} ", f"[exiting program] datetime: {clock(600)} "]
    text = [*lines(1, 10, 0), *SAVED, *ends, *died]
    assert parts(tmp_path, *text) == pytest.approx({"useful": 10.0, "saves_between": 20.0, "not_explained": 570.0})


@pytest.mark.parametrize(("resumes", "saved"), [(11, 20.0), (9, 0.0)])
def test_a_save_behind_the_last_line_of_a_start_is_no_restart_gap(tmp_path, resumes, saved):
    """20 s of save by its timer; the next process begins at 70 s. One that does step 10 again saved it another time."""
    second = lines(resumes, 20, 70)
    begins = f"[after megatron is initialized] datetime: {clock(70)} "
    dump = arguments_dump(SETTINGS)
    found = parts(tmp_path, dump, *lines(1, 10, 0), *SAVED, *SAVE_TIMER, dump, begins, *second)
    assert found["restarts"] == pytest.approx(60.0 - saved)
    assert found.get("saves_between", 0.0) == pytest.approx(saved)


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (SAVE_TIMER, {"evaluation_between": 30.0, "saves_between": 20.0}),
        (EVALUATION_TIMER, {"evaluation_between": 30.0, "saves_between": 20.0}),
        ([], {"saves_and_evaluation_between": 50.0}),
    ],
)
def test_an_evaluation_and_a_save_in_one_gap_are_told_apart_by_a_timer(tmp_path, printed, expected):
    """50 s behind step 10: 30 of evaluation, 20 of save."""
    text = [*lines(1, 10, 0), EVALUATED, *SAVED, *printed, *lines(11, 20, 60)]
    assert parts(tmp_path, *text) == pytest.approx({"useful": 20.0} | expected)


def test_stamps_around_a_save_tell_it_from_an_evaluation():
    stamped = [BEGIN + timedelta(seconds=s) for s in (1, 2, 3, 54, 55, 56)]
    steps = rows([1, 2, 3, 4, 5, 6], timestamp=stamped)
    found = events(
        (3, "save starts", 3, BEGIN + timedelta(seconds=33)), (3, "save ends", 3, BEGIN + timedelta(seconds=53))
    )
    pauses = Pauses(saved=(3,), evaluated=(3,))
    marked = select_rows(trace_starts(number_starts(steps, no_starts()), found, None), pauses, RowRules())
    told = parts_of(break_down_time(as_computed(marked), found, pauses))
    assert told == pytest.approx({"useful": 6.0, "evaluation_between": 30.0, "saves_between": 20.0, "not_explained": 0})


def test_no_gap_is_before_the_first_line():
    """A coarse clock gives the first two rows one time together."""
    same = {name: [1000.0, 1000.0] for name in ("time_ms", "step_time_ms", "time_resolution_ms")}
    stamped = [BEGIN, BEGIN + timedelta(seconds=9)]
    read = pl.DataFrame({"segment": [0, 0], "step": [1, 2], "timestamp": stamped} | same)
    assert list(between_lines(read, EventStamps.of(events()), Pauses(saved=(0, 1)))[0]) == [{"saves": 8.0}]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [({11: 20.0}, {"evaluation": 30.0, "saves": 20.0}), ({}, {"saves_and_evaluation": 50.0})],
)
def test_an_evaluation_and_a_save_in_one_row_are_told_apart_by_a_timer(seconds, expected):
    """The time of row 12 is 51 s; row 16 holds an evaluation of 9 s alone."""
    times = [51_000.0 if step == 12 else 10_000.0 if step == 16 else 1000.0 for step in range(1, 21)]
    steps = rows(list(range(1, 21)), step_time_ms=times)
    pauses = Pauses((11,), (11, 15), save_seconds=seconds)
    traced = trace_starts(number_starts(steps, no_starts()), events(), None)
    told = parts_of(
        break_down_time(as_computed(select_rows(traced, pauses, RowRules(time_holds_pauses=True))), events(), pauses)
    )
    expected = expected | {"evaluation": expected.get("evaluation", 0.0) + 9.0}
    assert told == pytest.approx({"useful": 20.0, "not_explained": 0.0} | expected)


def test_the_timer_of_a_block_of_its_own_tells_how_long_a_save_took(tmp_path):
    (tmp_path / "run.log").write_text("\n".join([*lines(1, 10, 0), *SAVED, *SAVE_TIMER, ""]))
    assert find_pauses(read_run([str(tmp_path / "run.log")]).records).save_seconds == {10: 20.0}
