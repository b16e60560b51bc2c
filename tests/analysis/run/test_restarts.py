"""Starts: where a process began, what it did again, what its end lost, and how many steps a row stands for."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl
import pytest
from helpers import megatron_line, run_logparse
from runs import BEGIN, analyze_text, as_computed, events, no_starts, parts_of, rows, stamped_log

from analysis.run.rows.exclusion_reasons import COPY, OTHER_JOB, WARM_UP
from analysis.run.rows.restarts import list_segments, mark_other_jobs, number_starts, trace_starts
from analysis.run.rows.row_selection import select_rows


def trace(
    steps: pl.DataFrame,
    found: pl.DataFrame | None = None,
    log_interval: int | None = None,
    begun: pl.DataFrame | None = None,
) -> pl.DataFrame:
    numbered = number_starts(steps, no_starts() if begun is None else begun)
    return trace_starts(numbered, events() if found is None else found, log_interval)


def segments(steps: pl.DataFrame) -> pl.DataFrame:
    return list_segments(as_computed(select_rows(trace(steps))))


def test_a_restart_goes_on_with_its_lineage_and_does_steps_again():
    traced = trace(rows([1, 2, 3, 4, 5, 4, 5, 6]))
    assert traced["segment"].to_list() == [0] * 5 + [1] * 3
    assert traced["lineage"].to_list() == [0] * 8
    assert traced["replayed"].to_list() == [False] * 5 + [True, True, False]


def test_a_run_that_begins_again_at_1_is_a_run_of_its_own():
    traced = trace(rows([1, 2, 3, 1, 2, 3]))
    assert traced["lineage"].to_list() == [0, 0, 0, 1, 1, 1]
    assert not traced["replayed"].any()


def test_a_second_restart_is_measured_at_the_furthest_step_of_its_lineage():
    """The second start crashed before it had caught up, so the third does steps of the first again."""
    traced = trace(rows([1, 2, 3, 4, 5, 6, 3, 4, 3, 4, 5, 6, 7]))
    assert traced.filter("replayed").select("segment", "step").rows() == [
        (1, 3),
        (1, 4),
        *((2, s) for s in (3, 4, 5, 6)),
    ]


def test_lost_steps_belong_to_the_start_that_had_done_them():
    table = segments(rows([1, 2, 3, 4, 5, 4, 5, 6, 7, 7, 8]))
    assert table["replayed_steps"].to_list() == [0, 2, 1]
    assert table["lost_steps"].to_list() == [2, 1, 0]


def test_a_row_can_hold_steps_done_again_and_new_ones():
    """Steps 1 to 7 line by line; from the checkpoint of step 5 every fifth: 6 and 7 are in the row of 6 to 10."""
    loaded = events((75, "checkpoint loaded", 5, None))
    begun = pl.DataFrame({"source": ["a.log"], "line_number": [75]})
    traced = trace(rows([1, 2, 3, 4, 5, 6, 7, 10, 15]), loaded, begun=begun)
    assert traced["iterations"].to_list() == [1] * 7 + [5, 5]
    assert traced["replayed_steps"].to_list() == [0] * 7 + [2, 0]
    assert not traced["replayed"].any()
    assert list_segments(as_computed(select_rows(traced)))["lost_steps"].to_list() == [2, 0]


def test_nothing_is_lost_to_another_run_of_the_same_file():
    table = segments(rows([1, 2, 3, 1, 2, 3, 3, 4]))
    assert table["lineage"].to_list() == [0, 1, 1]
    assert table["lost_steps"].to_list() == [0, 1, 0]


def test_a_row_of_the_list_says_where_its_start_is():
    clock = [BEGIN + timedelta(seconds=i) for i in range(5)]
    table = segments(rows([1, 2, 3, 2, 3], timestamp=clock))
    columns = (
        "line_number",
        "first_step",
        "last_step",
        "rows",
        "first_timestamp",
        "last_timestamp",
        "step_time_sum_ms",
    )
    assert table.select(columns).rows() == [
        (10, 1, 3, 3, clock[0], clock[2], 3000.0),
        (40, 2, 3, 2, clock[3], clock[4], 2000.0),
    ]


@pytest.mark.parametrize(
    ("steps", "log_interval", "iterations"),
    [
        ([10, 20, 30], 10, [10, 10, 10]),
        ([1, 10, 20], 10, [1, 9, 10]),  # the first iteration is printed at once
        ([1, 2, 3], 1, [1, 1, 1]),
        ([1, 2, 3], None, [1, 1, 1]),
        ([10, 20, 40], 10, [10, 10, 20]),  # a line is lacking
        ([510, 520, 530], 10, [10, 10, 10]),  # resumed and nothing says where: as far apart as the others
        ([7], None, [1]),
    ],
)
def test_a_row_stands_for_the_steps_since_the_row_before(steps, log_interval, iterations):
    assert trace(rows(steps), log_interval=log_interval)["iterations"].to_list() == iterations


def test_the_checkpoint_that_was_loaded_tells_how_many_steps_the_first_row_holds():
    found = events((5, "checkpoint loaded", 505, None), (35, "checkpoint loaded", 517, None))
    traced = trace(rows([510, 520, 530, 520, 530]), found, log_interval=10)
    assert traced["iterations"].to_list() == [5, 10, 10, 3, 10]


def test_without_the_line_of_the_checkpoint_a_restart_holds_the_usual_number():
    traced = trace(rows([10, 20, 30, 20, 30]), log_interval=10)
    assert traced["iterations"].to_list() == [10] * 5
    assert segments(rows([10, 20, 30, 20, 30]))["lost_steps"].to_list() == [20, 0]


def test_a_checkpoint_of_another_file_tells_nothing():
    found = events((5, "checkpoint loaded", 505, None), source="b.log")
    assert trace(rows([510, 520]), found, log_interval=10)["iterations"].to_list() == [10, 10]


def test_a_checkpoint_ahead_of_the_row_is_not_its_own():
    found = events((5, "checkpoint loaded", 900, None))
    assert trace(rows([510, 520]), found, log_interval=10)["iterations"].to_list() == [10, 10]


def test_a_line_that_stands_twice_in_one_file_is_a_copy_and_no_start():
    doubled = rows([1, 1, 2, 2, 3, 3], loss=[3.0, 3.0, 2.0, 2.0, 1.0, 1.0], elapsed_time_per_iteration_ms=[9.0] * 6)
    traced = trace(doubled)
    assert traced["copied"].to_list() == [False, True] * 3
    assert set(traced["segment"]) == {0}
    assert traced.filter(~pl.col("copied"))["iterations"].to_list() == [1, 1, 1]


def test_doubled_lines_have_the_interval_of_single_ones():
    traced = trace(rows([10, 10, 20, 20, 30, 30], elapsed_time_per_iteration_ms=[9.0] * 6))
    assert traced.filter(~pl.col("copied"))["iterations"].to_list() == [10, 10, 10]


def test_a_step_done_again_with_another_time_is_no_copy():
    traced = trace(rows([1, 2, 2, 3], step_time_ms=[1.0] * 4, elapsed_time_per_iteration_ms=[9.0, 5.0, 6.0, 5.0]))
    assert not traced["copied"].any()
    assert traced["segment"].to_list() == [0, 0, 1, 1]


def test_warm_up_of_doubled_lines_is_that_of_single_ones():
    times = [60_000.0, 5000.0, *[1000.0] * 8]
    doubled = [t for t in times for _ in range(2)]
    steps = rows(
        [s for s in range(1, 11) for _ in range(2)], step_time_ms=doubled, elapsed_time_per_iteration_ms=doubled
    )
    marked = select_rows(trace(steps))
    assert marked["excluded_reason"].to_list()[:6] == [WARM_UP, COPY, WARM_UP, COPY, None, COPY]


def clocked(steps: list[int], source: str, begin: datetime) -> pl.DataFrame:
    return rows(steps, source, timestamp=[begin + timedelta(seconds=i) for i in range(len(steps))])


def test_a_file_that_goes_on_by_the_clock_is_the_same_start():
    two = pl.concat([clocked([1, 2, 3], "a.log", BEGIN), clocked([4, 5], "b.log", BEGIN + timedelta(seconds=3))])
    assert set(trace(two)["segment"]) == {0}


@pytest.mark.parametrize("pause", [6, 600, -2])
def test_a_file_that_begins_after_a_pause_is_a_start(pause):
    begin = BEGIN + timedelta(seconds=3 + pause)
    two = pl.concat([clocked([1, 2, 3], "a.log", BEGIN), clocked([4, 5], "b.log", begin)])
    assert trace(two)["segment"].to_list() == [0, 0, 0, 1, 1]


def test_a_file_that_prints_settings_is_a_start_whatever_its_clock():
    begun = pl.DataFrame({"source": ["b.log"], "line_number": [1]})
    two = pl.concat([clocked([1, 2, 3], "a.log", BEGIN), clocked([4, 5], "b.log", BEGIN + timedelta(seconds=3))])
    assert trace(two, begun=begun)["segment"].to_list() == [0, 0, 0, 1, 1]


def test_no_rows_have_no_starts():
    assert segments(rows([])).is_empty()


# A process begins in front of the 21st row.
BEGUN = pl.DataFrame([("a.log", 1), ("a.log", 201)], schema=no_starts().schema, orient="row")


def test_each_start_has_a_log_interval_of_its_own():
    traced = trace(rows([*range(1, 21), *range(30, 121, 10)]), log_interval=10, begun=BEGUN)
    assert traced["iterations"].to_list() == [1] * 20 + [10] * 10


@pytest.mark.parametrize(("first", "stands_for"), [(25, 5), (30, 10), (31, 10), (90, 10)])
def test_the_first_row_of_a_later_start_goes_back_to_the_step_reached(first, stands_for):
    steps = [*range(1, 21), first, first + 10, first + 20]
    traced = trace(rows(steps), begun=BEGUN)
    assert traced["iterations"].to_list() == [1] * 20 + [stands_for, 10, 10]


def test_a_checkpoint_that_was_loaded_tells_more_than_the_step_reached():
    loaded = events((205, "checkpoint loaded", 22, None))
    traced = trace(rows([*range(1, 21), 30, 40]), loaded, begun=BEGUN)
    assert traced["iterations"].to_list() == [1] * 20 + [8, 10]


def test_trainings_behind_each_other_in_one_file_are_told(tmp_path):
    """Three trials of 20 steps by one script, each a little slower."""
    one, two, three = ("".join(megatron_line(s, ms) + "\n" for s in range(1, 21)) for ms in (1000, 1100, 1200))
    notes = {note.code: note for note in analyze_text(tmp_path, one + two + three).notes}
    assert notes["trainings_in_one_file"].fields == {
        "n": 3,
        "source": str(tmp_path / "part0.log"),
        "lines": [21, 41],
        "ms": ["1,000.0", "1,100.0", "1,200.0"],
    }
    assert "trainings_in_one_file" not in {note.code for note in analyze_text(tmp_path, one, two).notes}


@pytest.mark.parametrize(
    ("steps", "asked", "of_others"),
    [
        ([1, 2, 1, 2, 3], [2, 2, 9, 9, 9], 2),
        ([1, 1, 2, 1, 2], [1, 2, 2, 9, 9], 3),  # two trials
        ([1, 2, 1, 2, 3], [9, 9, 9, 9, 9], 0),  # it began again
        ([1, 2, 1, 2, 3], [3, 3, 9, 9, 9], 0),  # it did not end: what it did was lost
        ([1, 2, 3, 4, 5], [2, 2, 9, 9, 9], 0),  # it went on
        ([1, 2, 3, 1, 2], [3, 3, 3, 2, 2], 0),  # a shorter one behind it
    ],
)
def test_a_job_that_ended_before_a_longer_one_began_is_another(steps, asked, of_others):
    no = [False] * len(steps)
    frame = rows(steps, train_steps=asked).with_columns(copied=pl.Series(no), damaged=pl.Series(no))
    assert mark_other_jobs(frame)["other_job"].to_list() == [True] * of_others + [False] * (len(steps) - of_others)


@pytest.fixture(scope="module")
def with_a_trial() -> str:
    """Two steps of another job, of which the first ends 111 s before the run begins; then 40 steps of 7 s."""
    trial = [megatron_line(s, 9000, f"2026-03-01 07:58:{s * 9:02d}").replace("/     500", "/       2") for s in (1, 2)]
    assert "/       2 |" in trial[1]
    return "\n".join([*trial, *stamped_log([(1, 40)], lambda step, place: 7000.0)]) + "\n"


def test_its_steps_are_no_work_of_the_run_and_its_time_is_start_up(tmp_path, with_a_trial):
    found = analyze_text(tmp_path, with_a_trial)
    assert found.steps["excluded_reason"].head(3).to_list()[:2] == [OTHER_JOB] * 2
    assert found.steps["iterations"].sum() == 40
    assert (len(found.segments), found.segments["lost_steps"].sum()) == (1, 0)
    parts = parts_of(found.time_breakdown)
    assert (parts["start_up"], parts["useful"]) == (pytest.approx(111), pytest.approx(280))
    assert "restarts" not in parts


def test_it_is_told(tmp_path, with_a_trial):
    (tmp_path / "run.log").write_text(with_a_trial)
    done = run_logparse("analyze", "run.log", "-v", cwd=tmp_path)
    assert "start-up includes an earlier job" in done.stdout
    assert "2 excluded: step of an earlier job" in done.stdout
    assert "run.log, lines 1 to 2: 2 steps of a job that ended before this one" in done.stdout.replace("\n", " ")
