"""Step numbers, clocks and batches that cannot be: found between neighbours that agree, told, and kept out."""

from datetime import timedelta

import polars as pl
import pytest
from helpers import megatron_line, of_code
from runs import BEGIN, acceptance_time, analyze_text, as_computed, events, no_starts, parts_of, rows, stamped_log

from analysis.present.words import say
from analysis.run.clock.clock import read_clock
from analysis.run.rows.corrupt_rows import describe_damage
from analysis.run.rows.exclusion_reasons import DAMAGED, WARM_UP
from analysis.run.rows.restarts import list_segments, number_starts, trace_starts
from analysis.run.rows.row_selection import NO_PAUSES, select_rows
from analysis.run.useful.time_breakdown import USEFUL, break_down_time
from logparse.findings import warning


def numbered(steps: pl.DataFrame) -> pl.DataFrame:
    return number_starts(steps, no_starts())


def computed(steps: pl.DataFrame) -> pl.DataFrame:
    return as_computed(select_rows(trace_starts(numbered(steps), events(), None)))


def damaged(steps: list[int], **columns: list[object]) -> list[int]:
    return numbered(rows(steps, **columns)).filter("damaged")["step"].to_list()


@pytest.mark.parametrize("wrong", [400_010, 1, 0, 100])
def test_a_step_number_out_of_line_is_of_no_start_and_no_rate(wrong):
    steps = [*range(1, 10), wrong, *range(11, 31)]
    marked = computed(rows(steps))
    assert marked["step"].to_list() == steps
    assert marked.row(9, named=True)["excluded_reason"] == DAMAGED
    assert marked["excluded_reason"].to_list().count(WARM_UP) == 1
    # The row behind stands for two steps, as where a line is lacking.
    assert marked["iterations"].to_list() == [*[1] * 9, None, 2, *[1] * 19]
    assert parts_of(break_down_time(marked, events(), NO_PAUSES)) == pytest.approx({USEFUL: 30.0, "not_explained": 0.0})
    (start,) = list_segments(marked).iter_rows(named=True)
    assert (start["first_step"], start["last_step"], start["rows"]) == (1, 30, 29)


def test_a_damaged_row_is_counted_no_time_in_the_account_by_the_clock():
    clock = [BEGIN + timedelta(seconds=i) for i in range(1, 31)]
    marked = computed(rows([*range(1, 10), 400_010, *range(11, 31)], timestamp=clock))
    assert read_clock(marked, events()).seconds == 30.0
    assert parts_of(break_down_time(marked, events(), NO_PAUSES))["not_explained"] == pytest.approx(0.0)


@pytest.mark.parametrize(
    "steps",
    [
        [1, 2, 3, 4, 5, 4, 5, 6],
        [1, 2, 3, 1, 2, 3],
        [1, 2, 3, 4, 5, 6, 3, 4, 3, 4, 5, 6, 7],
        [98, 99, 99, 100],
        [98, 99, 100, 100, 101],
        [10, 20, 500],
        [10, 20, 30, 500, 510, 520],
        [9, 10, 5, 6],
        [1, 2, 3, 7, 8],
        [5],
        [],
    ],
)
def test_numbers_that_go_back_and_stay_back_or_ahead_are_no_damage(steps):
    assert damaged(steps) == []


def test_a_start_of_one_row_is_no_damage_where_it_printed_its_settings():
    steps = rows([7, 8, 9, 10, 5, 11, 12])
    begun = pl.DataFrame({"source": ["a.log"] * 2, "line_number": [45, 55]})
    assert not number_starts(steps, begun)["damaged"].any()


def test_a_step_above_those_asked_for_is_damaged_wherever_it_stands():
    steps = [400_001, 2, 3, 4, 400_005, 400_006, 7, 8, 9, 400_010]
    assert damaged(steps, train_steps=[500] * 10) == [400_001, 400_005, 400_006, 400_010]


def test_a_number_of_steps_that_most_rows_exceed_means_something_else():
    assert damaged([8, 9, 10, 11, 12, 13], train_steps=[9] * 6) == []


def test_a_number_of_steps_that_is_damaged_itself_damages_no_row():
    assert damaged([8, 9, 10, 11, 12], train_steps=[500, 500, 5, 500, 500]) == []


def test_a_run_that_was_asked_for_more_steps_when_it_went_on_is_not_damaged():
    assert damaged([8, 9, 10, 11, 12], train_steps=[10, 10, 10, 20, 20]) == []


def stamped(*seconds: float) -> pl.DataFrame:
    return rows(list(range(1, len(seconds) + 1)), timestamp=[BEGIN + timedelta(seconds=s) for s in seconds])


YEAR = 365 * 86400


@pytest.mark.parametrize("off", [YEAR, -YEAR, 3600, -3600, 120])
@pytest.mark.parametrize("at", [1, 4, 8])
def test_a_stamp_out_of_line_is_not_the_clock_and_its_row_counts(off, at):
    marked = computed(stamped(*(i + off * (i == at) for i in range(10))))
    assert marked["timestamp"].null_count() == 1
    assert marked["timestamp"][at] is None
    assert marked["counted"][at]
    assert read_clock(marked, events()).seconds == 10.0
    assert marked["segment"].max() == 0


@pytest.mark.parametrize("off", [YEAR, -YEAR])
@pytest.mark.parametrize("at", [0, 9])
def test_the_stamp_at_an_end_of_a_file_may_be_a_month_away(off, at):
    marked = computed(stamped(*(i + off * (i == at) for i in range(10))))
    assert marked["timestamp"].is_null().to_list() == [i == at for i in range(10)]
    near = computed(stamped(*(i + off / 20 * (i == at) for i in range(10))))
    assert near["timestamp"].null_count() == (1 if (off > 0) == (at == 0) else 0)


@pytest.mark.parametrize(
    "seconds",
    [
        [0, 1, 2, 3600, 3601, 3602],  # a pause
        [3600, 3601, 3602, 0, 1, 2],  # a clock set back
        [0, 1, 3, 2, 4, 5],  # two threads
        [0, 1, 2, YEAR, YEAR + 1, YEAR + 2],
    ],
)
def test_a_clock_that_goes_on_from_where_it_jumped_is_no_damage(seconds):
    assert computed(stamped(*seconds))["timestamp"].null_count() == 0


@pytest.mark.parametrize("at", [2, 3])
def test_a_file_goes_on_though_the_stamp_at_its_edge_is_damaged(at):
    clock = [BEGIN + timedelta(seconds=i + YEAR * (i == at)) for i in range(6)]
    two = pl.concat([rows([1, 2, 3], "a.log", timestamp=clock[:3]), rows([4, 5, 6], "b.log", timestamp=clock[3:])])
    assert computed(two)["segment"].max() == 0


def test_what_was_damaged_is_told_with_file_and_line():
    clock = [BEGIN + timedelta(seconds=i + YEAR * (i == 4)) for i in range(8)]
    steps = rows([1, 2, 99, 4, 5, 6, 7, 8], timestamp=clock, global_batch_size=[32, 32, 32, 32, 32, 0, -32, 32])
    marked = numbered(steps)
    assert marked["global_batch_size"].to_list() == [32] * 5 + [None] * 2 + [32]
    notes = list(describe_damage(steps, marked))
    assert notes == [
        warning("step_damaged", value=99, source="a.log", line=30),
        warning("stamp_damaged", value=clock[4], source="a.log", line=50),
        warning("batch_damaged", value=0, source="a.log", line=60),
        warning("batch_damaged", value=-32, source="a.log", line=70),
    ]
    assert [say(note) for note in notes] == [
        "a.log, line 30: step number 99 is out of order; row ignored",
        "a.log, line 50: timestamp 2027-03-01 08:00:04 is out of order; ignored",
        "a.log, line 60: batch size 0 is invalid; ignored",
        "a.log, line 70: batch size -32 is invalid; ignored",
    ]


def test_of_much_damage_the_first_lines_are_told():
    steps = rows([1, 2, 3, 4, 5], global_batch_size=[0] * 5)
    *first, last = describe_damage(steps, numbered(steps))
    assert [note.code for note in first] == ["batch_damaged"] * 3
    assert last == warning("more_batches_damaged", n=2)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("iteration       30/", "iteration   400030/"),
        ("iteration       30/", "iteration        3/"),
        ("[2026-03-01 08:0", "[2027-03-01 08:0"),
    ],
)
def test_damage_to_one_line_changes_no_figure(tmp_path, old, new):
    lines = stamped_log([(1, 60), (51, 200)], acceptance_time)
    at = next(i for i, line in enumerate(lines) if "iteration       30/" in line)
    sound = analyze_text(tmp_path, "\n".join(lines))
    lines[at] = lines[at].replace(old, new)
    result = analyze_text(tmp_path, "\n".join(lines))
    assert result.segments["first_step"].to_list() == [1, 51]
    assert result.rates["step_time_ms"].to_list() == pytest.approx(sound.rates["step_time_ms"].to_list(), rel=1e-3)
    assert result.goodput == pytest.approx(sound.goodput, rel=1e-3)
    (note,) = of_code(result.notes, "step_damaged", "stamp_damaged")
    assert (note.level, note.fields["line"]) == ("warning", at + 1)


def test_a_batch_of_nothing_gives_no_rate(tmp_path):
    lines = [megatron_line(step, 1000.0 + step) for step in range(1, 12)]
    lines[5] = lines[5].replace("global batch size:    32", "global batch size:     0")
    steps = analyze_text(tmp_path, "using world size: 8\n" + "\n".join(lines) + "\n").steps
    assert steps["global_batch_size"].to_list() == [*[32] * 5, None, *[32] * 5]
    assert steps["samples_per_second_per_device"][5] is None


def test_each_file_and_start_is_asked_for_itself():
    """File a counts by 1 to 8, file b by 10 to 500: what is usual in one says nothing about the other."""
    two = pl.concat(
        [
            rows([1, 2, 900, 4, 5, 6, 7, 8], "a.log", train_steps=[8] * 8),
            rows([410, 420, 4300, 440, 450], "b.log", train_steps=[9000] * 5),
        ]
    )
    assert numbered(two).filter("damaged")["step"].to_list() == [900, 4300]
