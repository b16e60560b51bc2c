"""Where the time went: by hand, and that its parts are the whole."""

from datetime import timedelta

import polars as pl
import pytest
from helpers import ROOT, few
from hypothesis import example, given
from hypothesis import strategies as st
from runs import BEGIN, as_computed, events, no_starts, parts_of, rows

from analysis.present.words import say
from analysis.run.build import analyze_logs
from analysis.run.clock.clock import read_clock
from analysis.run.clock.interruptions import Pauses
from analysis.run.clock.step_time_patterns import describe_pace
from analysis.run.options import RunOptions
from analysis.run.rates.rates_of_run import name_rates
from analysis.run.rows.exclusion_reasons import TIME_DAMAGED, WARM_UP
from analysis.run.rows.restarts import list_segments, number_starts, trace_starts
from analysis.run.rows.row_selection import NO_PAUSES, RowRules, select_rows
from analysis.run.useful.time_breakdown import (
    EVALUATION_BETWEEN,
    RESTARTS,
    SAVES_BETWEEN,
    START_UP,
    USEFUL,
    _share,
    break_down_time,
)
from analysis.run.useful.useful_time import value_rows
from logparse.findings import info

FIXTURES = ROOT / "fixtures"


def computed(steps: pl.DataFrame, found: pl.DataFrame | None = None, pauses: Pauses = NO_PAUSES, holds: bool = False):
    traced = trace_starts(number_starts(steps, no_starts()), events() if found is None else found, None)
    return as_computed(select_rows(traced, pauses, RowRules(time_holds_pauses=holds)))


def time_breakdown(
    steps: pl.DataFrame, found: pl.DataFrame | None = None, pauses: Pauses = NO_PAUSES, holds: bool = False
):
    happened = events() if found is None else found
    return break_down_time(computed(steps, happened, pauses, holds), happened, pauses)


def rate(steps: pl.DataFrame, name: str, wall: float | None = None) -> dict[str, object]:
    return name_rates(computed(steps), wall).row(by_predicate=pl.col("rate") == name, named=True)


def stamps(*seconds: float) -> list[object]:
    return [BEGIN + timedelta(seconds=s) for s in seconds]


SLOW = [5000.0, *[1000.0] * 9]  # ten steps of which the first takes 5 s


def test_without_a_clock_the_step_lines_are_all_there_is():
    result = time_breakdown(rows(list(range(1, 11)), step_time_ms=SLOW), pauses=Pauses(saved=(5,)))
    assert parts_of(result) == {USEFUL: 10.0, WARM_UP: 4.0, "not_explained": 0.0}
    assert result["share"].to_list() == pytest.approx([10 / 14, 4 / 14, 0.0])


def test_a_sum_in_another_order_is_no_share_above_one():
    assert _share(0.1 + 0.2, 0.3) == 1.0
    assert _share(1.0, 4.0) == 0.25
    assert _share(0.0, 0.0) is None


def test_a_save_between_the_lines_is_the_gap_beyond_the_step():
    """Begun at 0 s, stepping from 20 s on; 7 s saved behind step 4, 2 s evaluated behind 6, 0.5 s behind 8 unknown."""
    ends = [25, 26, 27, 28, 36, 37, 40, 41, 42.5, 43.5]
    found = events((1, "training starts", None, BEGIN))
    steps = rows(list(range(1, 11)), step_time_ms=SLOW, timestamp=stamps(*ends))
    result = time_breakdown(steps, found, Pauses(saved=(4, 10), evaluated=(6,)))
    assert parts_of(result) == pytest.approx(
        {
            USEFUL: 10.0,
            WARM_UP: 4.0,
            START_UP: 20.0,
            SAVES_BETWEEN: 7.0,
            EVALUATION_BETWEEN: 2.0,
            "not_explained": 0.5,
        }
    )


def test_a_restart_is_a_gap_then_a_start_up_then_steps_done_again():
    """Steps 1 to 4 end at 14 s; the next process begins at 44 s, steps from 50 s and does step 4 again."""
    first, second = [11.0, 12, 13, 14], [55.0, 56, 57, 58]
    found = events((1, "process starts", None, BEGIN), (45, "process starts", None, BEGIN + timedelta(seconds=44)))
    times = [5000.0, 1000, 1000, 1000] * 2
    steps = rows([1, 2, 3, 4, 4, 5, 6, 7], step_time_ms=times, timestamp=stamps(*first, *second))
    assert parts_of(time_breakdown(steps, found)) == pytest.approx(
        {
            USEFUL: 7.0,
            WARM_UP: 4.0,
            "replayed": 5.0,
            START_UP: 6.0 + 6.0,
            RESTARTS: 30.0,
            "not_explained": 0.0,
        },
        abs=1e-9,
    )


@pytest.mark.parametrize(
    ("set_up", "useful", "start_up"),
    [(30.0, 80.0, 30.0), (0.0, 80.0, 0.0), (-8.0, 72.0, 0.0)],
    ids=["set-up", "none", "less than ten steps"],
)
def test_the_steps_of_a_first_row_without_a_time_are_no_start_up(set_up, useful, start_up):
    """A line every 10 steps of 1 s; the times of all but the first line follow from the stamps."""
    found = events((1, "training starts", None, BEGIN))
    ends = [set_up + 10 * n for n in range(1, 9)]
    steps = rows([*range(10, 81, 10)], step_time_ms=[None, *[1000.0] * 7], timestamp=stamps(*ends))
    parts = parts_of(time_breakdown(steps, found))
    assert (parts[USEFUL], parts.get(START_UP, 0.0)) == pytest.approx((useful, start_up))
    assert parts["not_explained"] == pytest.approx(0.0)


def test_the_first_row_of_a_restart_without_a_time_holds_steps_too():
    """Steps 1 to 30 end at 30 s; the next process begins at 100 s and prints step 40 at 115 s, 5 s after its set-up."""
    found = events((1, "process starts", None, BEGIN), (35, "process starts", None, BEGIN + timedelta(seconds=100)))
    found = pl.concat([found, events((36, "checkpoint loaded", 30, None))])
    ends = [10, 20, 30, 115, 125, 135]
    times = [None, 1000.0, 1000.0, None, 1000.0, 1000.0]
    starts = pl.DataFrame({"source": ["a.log"], "line_number": [35]}, schema=no_starts().schema)
    traced = trace_starts(
        number_starts(rows([*range(10, 61, 10)], step_time_ms=times, timestamp=stamps(*ends)), starts), found, None
    )
    marked = as_computed(select_rows(traced, NO_PAUSES, RowRules()))
    parts = parts_of(break_down_time(marked, found, NO_PAUSES))
    assert parts == pytest.approx({USEFUL: 60.0, START_UP: 5.0, RESTARTS: 70.0, "not_explained": 0.0})


def test_steps_done_again_in_a_row_with_new_ones_are_its_share():
    """Steps of 1 s: 1 to 7 line by line, again from 1 every third. 1 to 6, and 7 of the row of 7 to 9, are lost.

    All steps: 7 + 12 s for 12 steps. Delivered: 2 to 7, 8 and 9, 10 to 12.
    """
    steps = rows([1, 2, 3, 4, 5, 6, 7, 3, 6, 9, 12])
    assert parts_of(time_breakdown(steps)) == pytest.approx({USEFUL: 12.0, "replayed": 7.0, "not_explained": 0.0})
    assert (rate(steps, "all_steps")["step_time_ms"], rate(steps, "all_steps")["steps"]) == (19_000 / 12, 12)
    assert (rate(steps, "with_stalls")["step_time_ms"], rate(steps, "with_stalls")["steps"]) == (1000.0, 6 + 2 + 3)


def test_a_save_inside_a_row_is_what_the_row_took_above_the_pace():
    times = [5000.0, *[1000.0] * 4, 4000.0, *[1000.0] * 4]
    result = time_breakdown(rows(list(range(1, 11)), step_time_ms=times), pauses=Pauses(saved=(5,)), holds=True)
    assert parts_of(result) == {USEFUL: 10.0, WARM_UP: 4.0, "saves": 3.0, "not_explained": 0.0}


def test_a_skipped_update_is_time_without_a_useful_step():
    skipped = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    result = time_breakdown(rows(list(range(1, 11)), step_time_ms=SLOW, skipped_iterations=skipped))
    assert parts_of(result) == {USEFUL: 9.0, WARM_UP: 4.0, "skipped": 1.0, "not_explained": 0.0}


@pytest.mark.parametrize(
    "columns",
    [
        {"skipped_iterations": [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]},
        {"nan_iterations": [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]},
        {"overflow": [False, False, False, True, *[False] * 6]},
    ],
)
def test_delivered_pays_for_a_step_that_was_not_kept(columns):
    steps = rows(list(range(1, 11)), step_time_ms=SLOW, **columns)
    delivered, everything = rate(steps, "with_stalls"), rate(steps, "all_steps")
    assert (delivered["step_time_ms"], delivered["steps"]) == (pytest.approx(9000 / 8), 8)
    assert (everything["step_time_ms"], everything["steps"]) == (pytest.approx(14_000 / 9), 9)
    assert rate(steps, "steady")["step_time_ms"] == 1000.0


def test_a_nan_iteration_is_one_of_those_that_were_skipped():
    # Steps 11 to 20: two without an update, one of them NaN; 40 - 2 are useful.
    steps = rows([10, 20, 30, 40], skipped_iterations=[0, 2, 0, 0], nan_iterations=[0, 1, 0, 0])
    assert rate(steps, "all_steps")["steps"] == 38
    assert rate(steps, "all_steps")["step_time_ms"] == pytest.approx(40_000 / 38)


def test_of_a_row_of_ten_steps_those_that_were_skipped_are_not_useful():
    steps = rows([10, 20, 30, 40], skipped_iterations=[0, 3, 0, 0])
    assert rate(steps, "all_steps")["steps"] == 37
    assert rate(steps, "all_steps")["step_time_ms"] == pytest.approx(40_000 / 37)
    assert rate(steps, "steady")["steps"] == 20


def test_all_in_is_the_clock_over_the_useful_steps():
    steps = rows(list(range(1, 11)), step_time_ms=SLOW)
    assert rate(steps, "wall_clock", 40.0)["step_time_ms"] == 4000.0
    assert rate(steps, "wall_clock", None)["step_time_ms"] is None


def test_work_of_a_rate_is_its_steps_work_over_its_time():
    """Each step is 8000 tokens per device; 9 of them in 10 s behind the first."""
    times = [5000.0, *[1000.0] * 8, 2000.0]
    tokens = [8000 / t * 1000 for t in times]
    frame = computed(rows(list(range(1, 11)), step_time_ms=times)).with_columns(
        tokens_per_second_per_device=pl.Series(tokens)
    )
    named = {row["rate"]: row for row in name_rates(frame, 20.0).iter_rows(named=True)}
    found = {name: row["tokens_per_second_per_device"] for name, row in named.items()}
    assert found == pytest.approx({"steady": 8000, "with_stalls": 7200, "all_steps": 80_000 / 15, "wall_clock": 4000})


def test_steps_of_a_row_without_a_rate_count_as_the_others():
    """Ten steps of 1 s and 8000 tokens, two of which print no rate."""
    tokens = [8000.0] * 4 + [None] * 2 + [8000.0] * 4
    frame = computed(rows(list(range(1, 11)))).with_columns(tokens_per_second_per_device=pl.Series(tokens))
    named = {row["rate"]: row["tokens_per_second_per_device"] for row in name_rates(frame, 20.0).to_dicts()}
    assert named == pytest.approx({"steady": 8000, "with_stalls": 8000, "all_steps": 8000, "wall_clock": 4000})


def test_a_rate_of_replayed_rows_alone_is_unknown():
    frame = computed(rows([1, 2, 3, 4, 5])).with_columns(
        tokens_per_second_per_device=pl.Series([None, None, None, 8000.0, None])
    )
    replayed = value_rows(frame).with_columns(useful=pl.Series([1, 1, 1, 0, 0]))
    named = {row["rate"]: row["tokens_per_second_per_device"] for row in name_rates(frame, None, replayed).to_dicts()}
    assert named["all_steps"] is None


def test_the_same_log_has_the_same_shares_each_time():
    (log,) = FIXTURES.glob("verl/grpo/*.log")
    assert len({str(analyze_logs([str(log)], RunOptions()).notes) for _ in range(8)}) == 1


def test_of_two_paces_the_steady_rates_are_of_the_slow_one_as_the_step_time_is():
    times = [1000.0, 1500.0] * 5
    frame = computed(rows(list(range(1, 11)), step_time_ms=times)).with_columns(
        counted=pl.lit(value=True), tokens_per_second_per_device=pl.Series(8e6 / ms for ms in times)
    )
    steady = name_rates(frame, None).row(0, named=True)
    assert (steady["step_time_ms"], steady["tokens_per_second_per_device"]) == (1500.0, pytest.approx(8e6 / 1500))


def test_the_clock_begins_with_the_first_step_of_the_first_row():
    """The row of step 10 stands for ten steps of 1 s, so the run is 30 s long."""
    steps = rows([10, 20, 30], timestamp=stamps(10, 20, 30))
    assert read_clock(computed(steps), events()).seconds == 30.0
    assert parts_of(time_breakdown(steps))["not_explained"] == pytest.approx(0.0)


def test_the_clock_goes_on_to_the_last_stamped_event():
    steps = rows([1, 2, 3], timestamp=stamps(1, 2, 3))
    found = events((40, "training ends", None, BEGIN + timedelta(seconds=50)))
    assert read_clock(computed(steps), found).seconds == 50.0


def test_a_step_without_a_time_begins_at_its_stamp():
    steps = rows([1, 2, 3], timestamp=stamps(1, 2, 3), step_time_ms=[float("inf"), 1000.0, 1000.0])
    assert read_clock(computed(steps), events()).seconds == 2.0


def test_one_stamp_is_no_clock():
    assert read_clock(computed(rows([1, 2], timestamp=[BEGIN, None])), events()).seconds is None


def test_a_start_printed_in_the_second_after_the_step_began_is_no_start_up_below_0():
    found = events((1, "training starts", None, BEGIN + timedelta(seconds=1)))
    parts = parts_of(time_breakdown(rows([1, 2, 3, 4], timestamp=stamps(1.4, 2.4, 3.4, 4.4)), found))
    assert START_UP not in parts


def test_copies_take_no_time():
    ranks = pl.concat([rows([1, 2, 3, 4], "a.log"), rows([1, 2, 3], "b.log")])
    assert parts_of(time_breakdown(ranks)) == {USEFUL: 4.0, "not_explained": 0.0}


def test_where_no_row_counts_there_is_no_time_breakdown():
    assert time_breakdown(rows([1])).is_empty()


@st.composite
def logs(draw: st.DrawFn) -> tuple[pl.DataFrame, pl.DataFrame, Pauses]:
    """Rows of one run with restarts, a clock or none, skipped steps and pauses."""
    jumps = draw(st.lists(st.sampled_from([1, 1, 1, 1, 2, -3]), min_size=2, max_size=40))
    steps = [10]
    for jump in jumps:
        steps.append(max(1, steps[-1] + jump))
    count = len(steps)
    times = draw(st.lists(st.sampled_from([0.0, 900.0, 1000.0, 1100.0, 9000.0]), min_size=count, max_size=count))
    gaps = draw(st.lists(st.integers(0, 30), min_size=count, max_size=count))
    clock = [sum(gaps[: i + 1]) + sum(times[: i + 1]) / 1000 for i in range(count)]
    shown: list[object] = stamps(*clock) if draw(st.booleans()) else [None] * count
    skipped = draw(st.lists(st.sampled_from([0, 0, 0, 1, None]), min_size=count, max_size=count))
    found = events((5, "process starts", None, BEGIN)) if draw(st.booleans()) else events()
    pauses = Pauses(*(tuple(sorted(draw(st.sets(st.integers(1, 40), max_size=5)))) for _ in range(2)))
    return rows(steps, step_time_ms=times, timestamp=shown, skipped_iterations=skipped), found, pauses


# The second start's 900 ms stand for 9,000 ms that lost a digit: a time that is in no sum.
LOST_A_DIGIT = rows([10, 11, 12, 13] * 2, step_time_ms=[0.0, 0.0, 900.0, 900.0, 0.0, 900.0, 9000.0, 9000.0])


@few(8)
@example((LOST_A_DIGIT, events(), NO_PAUSES), False)
@given(logs(), st.booleans())
def test_the_parts_are_the_whole_and_the_shares_are_one(log, holds):
    steps, found, pauses = log
    result, marked = time_breakdown(steps, found, pauses, holds), computed(steps, found, pauses, holds)
    timed = marked.filter((pl.col("step_time_ms") > 0) & pl.col("excluded_reason").ne_missing(TIME_DAMAGED))
    lines = timed.select((pl.col("step_time_ms") * pl.col("iterations")).sum()).item()
    wall = read_clock(marked, found).seconds
    total = lines / 1000 if wall is None else wall
    if not marked["counted"].any():
        assert result.is_empty()
        return
    assert result["seconds"].sum() == pytest.approx(total, abs=1e-6)
    assert list_segments(marked)["step_time_sum_ms"].sum() == pytest.approx(lines)
    if total:
        assert result["share"].sum() == pytest.approx(1.0)
    assert not result["seconds"].is_nan().any()


@given(st.integers(3, 60), st.sampled_from([100.0, 1000.0, 7000.5]), st.integers(0, 5), st.floats(0, 100))
def test_goodput_of_a_steady_log_is_at_most_1(count, ms, pause, start_up):
    ends = [start_up + (i + 1) * ms / 1000 + i * pause for i in range(count)]
    steps = rows(list(range(1, count + 1)), step_time_ms=[ms] * count, timestamp=stamps(*ends))
    result = time_breakdown(steps, events((1, "training starts", None, BEGIN)))
    share = dict(result.select("part", "share").iter_rows())[USEFUL]
    assert share == pytest.approx(count * ms / 1000 / ends[-1], rel=1e-4)
    assert share <= 1 + 1e-4  # stamps hold microseconds


def test_each_start_is_priced_at_its_own_pace():
    """A restart at step 11 with longer samples: 2 s a step instead of 1 s."""
    steps = pl.concat(
        [rows(list(range(1, 11)), step_time_ms=SLOW), rows(list(range(9, 21)), step_time_ms=[2000.0] * 12)]
    )
    assert parts_of(time_breakdown(steps)) == {USEFUL: 30.0, WARM_UP: 4.0, "replayed": 4.0, "not_explained": 0.0}


def test_a_step_whose_loss_is_no_number_is_not_useful():
    loss: list[object] = [2.5] * 7 + [float("nan")] * 3
    steps = rows(list(range(1, 11)), loss=loss, timestamp=stamps(*range(1, 11)))
    found = {name: rate(steps, name, 10.0)["steps"] for name in ("with_stalls", "all_steps", "wall_clock")}
    assert found == {"with_stalls": 6, "all_steps": 7, "wall_clock": 7}
    assert parts_of(time_breakdown(steps))["skipped"] == 3.0


def test_a_time_that_lost_digits_is_in_no_rate():
    times = [5000.0] * 20
    times[10] = 50.0
    steps = rows(list(range(1, 21)), step_time_ms=times)
    for name, count in (("steady", 18), ("with_stalls", 18), ("all_steps", 19)):
        named = rate(steps, name)
        assert (named["step_time_ms"], named["steps"]) == (5000.0, count)


def test_a_time_that_lost_digits_is_in_no_sum():
    times = [5000.0] * 20
    times[10] = 50.0
    steps = rows(list(range(1, 21)), step_time_ms=times)
    assert time_breakdown(steps)["seconds"].sum() == 95.0
    assert list_segments(computed(steps))["step_time_sum_ms"].to_list() == [95_000.0]


def test_a_time_that_lost_digits_is_told_with_file_and_line():
    times = [5000.0] * 60
    for place in (10, 20, 30, 40):
        times[place] = 50.0
    told = list(describe_pace(computed(rows(list(range(1, 61)), step_time_ms=times)), NO_PAUSES))
    lines = [110, 210, 310]
    assert told[:3] == [info("time_damaged", value=50.0, source="a.log", line=line) for line in lines]
    assert told[3:] == [info("more_times_damaged", n=1)]
    assert say(told[0]) == "a.log, line 110: step time 50 ms is invalid; row ignored"
