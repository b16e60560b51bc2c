"""Levels of the pace: where they change, stretches the run came back from, two paces that take turns."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from helpers import of_code
from hypothesis import given
from hypothesis import strategies as st
from runs import analyze_text, as_computed, events, no_starts, parts_of, rate_of, rows, stamped_log

from analysis.present.words import say
from analysis.run.clock.interruptions import Pauses
from analysis.run.clock.step_time_patterns import describe_pace
from analysis.run.rates.baseline_step_time import middle
from analysis.run.rates.changepoints import find_levels, slow_stretches, two_modes
from analysis.run.rows.exclusion_reasons import STALL
from analysis.run.rows.restarts import number_starts, trace_starts
from analysis.run.rows.row_selection import NO_PAUSES, select_rows
from analysis.run.useful.time_breakdown import USEFUL, break_down_time


def marked(times, **columns):
    steps = rows(list(range(1, len(times) + 1)), step_time_ms=[float(t) for t in times], **columns)
    return as_computed(select_rows(trace_starts(number_starts(steps, no_starts()), events(), None)))


def spans(pace):
    return [(level.begin, level.end) for level in find_levels(np.array(pace, float))]


def goodput(times) -> float:
    time_breakdown = break_down_time(marked(times), events(), NO_PAUSES)
    return dict(time_breakdown.select("part", "share").iter_rows())[USEFUL]


def noisy(count, share=0.02, seed=0):
    return np.random.default_rng(seed).normal(1000, 1000 * share, count)


@pytest.mark.parametrize("at", [10, 20, 50, 98, 102, 180, 190])
def test_a_change_is_placed_where_it_is(at):
    assert spans([1000] * at + [1500] * (200 - at)) == [(0, at), (at, 200)]


@pytest.mark.parametrize(("count", "at"), [(100, 12), (400, 20), (400, 370)])
def test_a_change_in_noise_is_placed_within_a_few_rows(count, at):
    """5 % at row 20 of 400 was placed at row 100, a quarter of the rows."""
    pace = noisy(count, 0.01)
    pace[at:] *= 1.08
    ((_, end), (begin, _)) = spans(pace)
    assert begin == end
    assert abs(begin - at) <= 3


@pytest.mark.parametrize("seed", range(5))
def test_noise_has_one_level(seed):
    assert len(find_levels(noisy(1000, 0.05, seed))) == 1


@pytest.mark.parametrize("length", [12, 30, 60, 100])
def test_a_stretch_that_the_run_came_back_from_is_found(length):
    pace = [1000] * 100 + [1500] * length + [1000] * 100
    (found,) = slow_stretches(find_levels(np.array(pace, float)))
    assert (found.begin, found.end) == (100, 100 + length)


def test_a_short_stretch_of_a_long_run_is_found():
    pace = noisy(100_000)
    pace[500:530] *= 1.5
    (found,) = slow_stretches(find_levels(pace))
    assert abs(found.begin - 500) <= 1
    assert abs(found.end - 530) <= 1


@given(st.lists(st.floats(1.0, 1e9), max_size=120))
def test_levels_are_the_rows_one_after_the_other(pace):
    found = find_levels(np.array(pace, float))
    assert [i for level in found for i in range(level.begin, level.end)] == list(range(len(pace)))


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_two_paces_that_take_turns_are_told_apart(share):
    pace = np.where(np.arange(400) % 100 < 100 * share, 1500.0, 1000.0)
    between = two_modes(pace)
    assert between is not None
    assert 1000 < between < 1500


@pytest.mark.parametrize("pace", [noisy(400), noisy(400, 0.15), np.linspace(1000, 1500, 400), np.full(50, 7.0)])
def test_one_pace_however_wide_is_one(pace):
    assert two_modes(pace) is None


# What it means for a run


@pytest.mark.parametrize("length", [20, 26, 30, 40, 60])
def test_a_burst_of_slow_steps_is_stalls_however_long(length):
    """200 steps of 1 s, of which ``length`` took 1.5 s, and a first one: (200 x 1 s) of (200 + length / 2) s."""
    times = [1000] * 90 + [1500] * length + [1000] * (110 - length)
    steps = marked(times)
    assert (steps["excluded_reason"] == STALL).sum() == length
    (note,) = of_code(describe_pace(steps, NO_PAUSES), "stalls_several")
    assert (note.fields["n"], note.fields["longer_ms"]) == (length, 500.0)
    assert parts_of(break_down_time(steps, events(), NO_PAUSES)) == pytest.approx(
        {USEFUL: 200.0, "stalls": length * 0.5, "not_explained": 0.0}
    )


def test_two_levels_are_a_warning_with_both_paces_and_their_spans():
    """98 steps of 1 s, then 102 of 1.5 s. The first row is warm-up, so the median of 97 + 102 rows is a slow one."""
    steps = marked([1000] * 98 + [1500] * 102)
    (note,) = describe_pace(steps, NO_PAUSES)
    assert note.level == "warning"
    assert say(note) == (
        "step time changes by 50 % during the run: 1,000.0 ms at steps 2 to 98; 1,500.0 ms at steps 99 to 200; "
        "steady, 1,500.0 ms, is the median of all; --warmup 98 excludes the first level"
    )


def test_more_levels_than_can_be_read_are_counted():
    times = [t for level in (1000, 1300, 1600, 1900, 2200, 2500) for t in [level] * 40]
    (note,) = of_code(describe_pace(marked(times), NO_PAUSES), "pace_has_levels")
    assert note.fields["levels"][-1].code == "more_levels"


def test_a_level_of_few_steps_is_no_warning():
    times = [1000.0] * 1980 + [1500.0] * 20
    assert of_code(describe_pace(marked(times), NO_PAUSES), "pace_has_levels") == []


@pytest.mark.parametrize("slow", range(90, 111, 4))
def test_goodput_does_not_jump_where_the_slow_steps_become_more_than_half(slow):
    """Each step is worth what it took: nothing was lost. One median for all made it 118 % and 80 %."""
    assert goodput([1000] * (200 - slow) + [1500] * slow) == pytest.approx(1.0)


def test_goodput_moves_little_with_each_slow_step():
    """Slow steps among the others: stalls while they are few, the pace where they are half."""

    def of(slow):
        return goodput([1500.0 if i * slow // 200 != (i + 1) * slow // 200 else 1000.0 for i in range(200)])

    shares = [of(slow) for slow in range(0, 201, 4)]
    assert all(0 < share <= 1 for share in shares)
    assert max(abs(a - b) for a, b in pairwise(shares)) < 0.05
    assert of(20) == pytest.approx(200 / 210)
    assert of(140) == pytest.approx(1.0)


def test_a_steady_pace_is_one_that_ran(tmp_path):
    """100 steps of 5 s and 101 of 7 s: behind the first, 100 of each. No row took 6 s."""
    lines = stamped_log([(1, 201)], lambda step, _: 5000.0 if step <= 101 else 7000.0)
    result = analyze_text(tmp_path, "\n".join(lines))
    assert rate_of(result, "steady") == result.value("elapsed_time_per_iteration_ms") == 7000.0
    assert rate_of(result, "with_stalls") == pytest.approx(6000.0)
    assert result.goodput == pytest.approx(1.0)


def test_two_paces_that_take_turns_are_a_warning(tmp_path):
    lines = stamped_log([(1, 200)], lambda step, _: 5000.0 if step % 2 else 7000.0)
    result = analyze_text(tmp_path, "\n".join(lines))
    (note,) = of_code(result.notes, "pace_is_mixed")
    assert (note.level, note.fields["fast_ms"], note.fields["slow_ms"]) == ("warning", 5000.0, 7000.0)
    assert rate_of(result, "steady") in (5000.0, 7000.0)


def test_a_stall_in_a_ramp_is_measured_by_rows_of_its_batch():
    """Batch 8 takes 1 s, batch 80 takes 7 s; a step of batch 8 took 4 s: 3 s longer, where the median is 7 s."""
    batch = [8] * 40 + [80] * 100
    times = [1000.0] * 40 + [7000.0] * 100
    times[20] = 4000.0
    steps = marked(times, global_batch_size=batch)
    (note,) = of_code(describe_pace(steps, Pauses()), "stalls_one")
    assert note.fields["longer_ms"] == 3000.0
    assert parts_of(break_down_time(steps, events(), NO_PAUSES)) == pytest.approx(
        {USEFUL: 740.0, "stalls": 3.0, "not_explained": 0.0}
    )


def test_small_batches_at_the_beginning_of_a_ramp_are_no_warm_up():
    """500 ms + 10 ms a sample: batch 16 takes 660 ms, 41 a sample; batch 128 takes 1,780 ms, 14 a sample."""
    batch = [n for n in (16, 32, 64, 128) for _ in range(10)] + [128] * 30
    times = [500.0 + 10 * n for n in batch]
    times[0], times[1] = 30_000.0, 900.0
    steps = marked(times, global_batch_size=batch)
    assert steps["excluded_reason"].is_not_null().to_list() == [True, True] + [False] * 68
    assert parts_of(break_down_time(steps, events(), NO_PAUSES))["warm_up"] == pytest.approx(29.34 + 0.24)


def test_a_ramp_of_one_row_for_each_batch_has_one_row_of_warm_up():
    batch = [8 * (i + 1) for i in range(30)] + [240] * 30
    times = [500.0 + 10 * n for n in batch]
    times[0] = 30_000.0
    assert marked(times, global_batch_size=batch)["excluded_reason"].null_count() == 59


def test_a_fast_row_that_its_rate_bears_out_is_no_damage():
    """Two rows of 20 ms between neighbours of 150 ms print 7.5 times the rate."""
    times = [150.0] * 60
    times[20] = times[40] = 20.0
    rates = [10.0 * 150 / t for t in times]
    assert marked(times, logged_tflops_per_second_per_device=rates)["excluded_reason"].null_count() == 59
    flat = marked(times, logged_tflops_per_second_per_device=[10.0] * 60)
    assert flat.filter(flat["excluded_reason"] == "time_damaged")["step"].to_list() == [21, 41]


@pytest.mark.parametrize("fast", [72.7, 75.2])
def test_a_row_half_as_long_as_its_neighbours_can_be(fast):
    times = [150.0, 152.0] * 20
    times[20] = fast
    assert marked(times)["excluded_reason"].null_count() == 39


def test_steps_of_a_damaged_time_are_in_wall_clock(tmp_path):
    """100 steps of 7 s in 700 s; one time lost two digits, and its step was done all the same."""
    lines = stamped_log([(1, 100)], lambda *_: 7000.0)
    at = next(i for i, line in enumerate(lines) if "iteration       50/" in line)
    lines[at] = lines[at].replace("(ms): 7000.0", "(ms): 70.0")
    result = analyze_text(tmp_path, "\n".join(lines))
    assert rate_of(result, "wall_clock", "steps") == 100
    assert rate_of(result, "wall_clock") == pytest.approx(7000.0)
    assert result.goodput == pytest.approx(1.0)


def test_of_three_paces_the_median_is_one_that_ran():
    """10 rows of 100 ms, 4 of 200, 6 of 400: the two in the middle are 100 and 200, and none ran at 150."""
    times = pl.DataFrame({"ms": [100.0] * 10 + [200.0] * 4 + [400.0] * 6})
    assert (middle(times["ms"]), middle(times["ms"], "lower")) == (200.0, 100.0)


def test_of_two_far_paces_four_rows_are_enough():
    """No row ran at 250 ms."""
    assert middle(pl.Series([100.0, 100.0, 400.0, 400.0])) == 400.0
    assert middle(pl.Series([100.0, 110.0])) == 105.0
