"""What is slow and why: warm-up found from the data, pauses on the line, stalls, their period, a level that shifts."""

import random
from datetime import timedelta

import polars as pl
import pytest
from helpers import megatron_line
from runs import BEGIN, analyze_text, as_computed, events, no_starts, parts_of, rate_of, rows

from analysis.present.words import say
from analysis.run.clock.interruptions import Pauses, find_pauses
from analysis.run.clock.step_time_patterns import describe_pace, find_period
from analysis.run.rates.baseline_step_time import stalled
from analysis.run.rows.exclusion_reasons import HOLDS_EVALUATION, HOLDS_SAVE, STALL, WARM_UP
from analysis.run.rows.restarts import number_starts, trace_starts
from analysis.run.rows.row_selection import DEFAULT_RULES, NO_PAUSES, RowRules, describe_warm_up, select_rows
from analysis.run.rows.warm_up import WarmUpRule
from logparse.decode.read_run import read_run
from logparse.findings import info
from logparse.schema import RECORD_COLUMNS, conform


def mark(steps: pl.DataFrame, pauses: Pauses = NO_PAUSES, rules: RowRules = DEFAULT_RULES) -> pl.DataFrame:
    return select_rows(trace_starts(number_starts(steps, no_starts()), events(), None), pauses, rules)


def timed(times: list[float], **columns: list[object]) -> pl.DataFrame:
    return rows(list(range(1, len(times) + 1)), step_time_ms=times, **columns)


def found(marked: pl.DataFrame, reason: str) -> list[int]:
    return marked.filter(pl.col("excluded_reason") == reason)["step"].to_list()


def gaussian(count: int, share: float = 0.02, seed: int = 0) -> list[float]:
    draw = random.Random(seed)
    return [1000 * draw.gauss(1.0, share) for _ in range(count)]


# Warm-up


def test_all_slow_rows_at_the_beginning_are_warm_up():
    assert found(mark(timed([60_000.0, 5000.0, *[1000.0] * 30])), WARM_UP) == [1, 2]


def test_of_a_settled_run_only_the_first_row_is_warm_up():
    assert found(mark(timed([1000.0] * 30)), WARM_UP) == [1]


def test_a_slow_row_behind_a_settled_one_is_not_warm_up():
    assert found(mark(timed([60_000.0, 1000.0, 5000.0, *[1000.0] * 30])), WARM_UP) == [1]


@pytest.mark.parametrize(("share", "slow"), [(1.099, [1]), (1.101, [1, 2])])
def test_a_row_is_settled_within_a_tenth(share, slow):
    assert found(mark(timed([60_000.0, 1000.0 * share, *[1000.0] * 30])), WARM_UP) == slow


@pytest.mark.parametrize("period", [2, 3, 4])
@pytest.mark.parametrize("slow", [1, 2])
def test_a_pace_that_comes_again_is_not_warm_up(period, slow):
    """Every second, third or fourth of 100 rows takes 1.3 s, row 1 or 2 among them; row 1 alone is slow for good."""
    times = [1300.0 if step % period == slow % period else 1000.0 for step in range(1, 101)]
    assert found(mark(timed([60_000.0, *times[1:]])), WARM_UP) == [1]


def test_a_slow_beginning_that_seldom_comes_again_is_warm_up():
    """Row 2 takes 1.3 s, as do 15 of the 98 rows behind it: less than a fifth."""
    times = [1300.0 if step % 6 == 2 else 1000.0 for step in range(3, 98)] + [1000.0] * 3
    assert found(mark(timed([60_000.0, 1300.0, *times])), WARM_UP) == [1, 2]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_the_user_says_how_many_rows_are_warm_up(count):
    marked = mark(timed([60_000.0, 5000.0, *[1000.0] * 30]), rules=RowRules(WarmUpRule(count)))
    assert found(marked, WARM_UP) == list(range(1, count + 1))


def test_warm_up_is_of_each_start():
    steps = rows([1, 2, 3, 4, 5, 10, 11, 12, 13], step_time_ms=[9e4, 5e3, 1e3, 1e3, 1e3, 9e4, 1e3, 1e3, 1e3])
    begun = pl.DataFrame({"source": ["a.log"], "line_number": [55]})
    marked = select_rows(trace_starts(number_starts(steps, begun), events(), None))
    assert found(marked, WARM_UP) == [1, 2, 10]


def test_steps_that_profile_are_warm_up_though_they_are_fast():
    marked = mark(timed([1000.0] * 30), rules=RowRules(WarmUpRule(profiling_steps=10)))
    assert found(marked, WARM_UP) == list(range(1, 11))


def test_steps_that_profile_are_counted_in_steps_and_not_in_rows():
    marked = mark(rows([10, 20, 30, 40, 50]), rules=RowRules(WarmUpRule(profiling_steps=20)))
    assert found(marked, WARM_UP) == [10, 20]


def test_a_batch_that_grows_is_not_slow():
    batch = [8 * (1 + i // 10) for i in range(60)]
    marked = mark(timed([125.0 * b for b in batch], global_batch_size=batch))
    assert found(marked, WARM_UP) == [1]
    assert found(marked, STALL) == []


def test_a_batch_that_shrinks_at_once_is_not_a_slow_beginning():
    batch = [64] * 10 + [8] * 30
    assert found(mark(timed([125.0 * b for b in batch], global_batch_size=batch)), WARM_UP) == [1]


def test_rows_that_share_the_first_ones_mean_are_all_warm_up():
    times = [1050.0] * 6 + [1000.0] * 12
    assert found(mark(timed(times), rules=RowRules(WarmUpRule(times_are_shared=True))), WARM_UP) == list(range(1, 7))
    assert found(mark(timed(times)), WARM_UP) == [1]


def test_a_run_that_is_one_mean_has_no_settled_row():
    assert not mark(timed([1050.0] * 6), rules=RowRules(WarmUpRule(times_are_shared=True)))["counted"].any()


def test_what_was_taken_for_warm_up_is_told_with_its_evidence():
    marked = as_computed(mark(timed([60_000.0, 5000.0, *[1000.0] * 30])))
    found = info("warm_up_of_start", start=1, n=2, slowest_ms=60_000.0, settled_ms=1000.0)
    assert list(describe_warm_up(marked, None)) == [info("warm_up_found", starts=[found])]
    assert list(describe_warm_up(marked, 2)) == [info("warm_up_as_asked", n=2)]
    assert list(describe_warm_up(as_computed(mark(timed([]))), None)) == []


def test_warm_up_of_a_start_that_never_settled_has_no_median():
    marked = as_computed(mark(timed([1050.0] * 6), rules=RowRules(WarmUpRule(times_are_shared=True))))
    found = info("warm_up_never_settled", start=1, n=6, slowest_ms=1050.0, settled_ms=None)
    assert list(describe_warm_up(marked, None)) == [info("warm_up_found", starts=[found])]


def test_of_many_starts_the_first_are_told_one_by_one():
    steps = rows([s for start in range(5) for s in range(1 + 10 * start, 6 + 10 * start)])
    begun = pl.DataFrame({"source": ["a.log"] * 5, "line_number": [1, 55, 105, 155, 205]})
    marked = select_rows(trace_starts(number_starts(steps, begun), events(), None))
    (note,) = describe_warm_up(as_computed(marked), None)
    *told, more = note.fields["starts"]
    assert [start.fields["start"] for start in told] == [1, 2, 3]
    assert more == info("warm_up_more_starts", n=2)


# Pauses on the line

HOLDS = RowRules(time_holds_pauses=True)


def test_the_row_whose_interval_holds_a_pause_does_not_count():
    """Ten steps a row: a save behind step 25 and an evaluation behind step 30 lie in the rows 30 and 40."""
    marked = mark(rows(list(range(10, 101, 10))), Pauses(saved=(25,), evaluated=(30,)), HOLDS)
    assert found(marked, HOLDS_SAVE) == [30]
    assert found(marked, HOLDS_EVALUATION) == [40]


def test_an_evaluation_comes_before_a_save_of_the_same_row():
    marked = mark(rows(list(range(1, 11))), Pauses(saved=(5,), evaluated=(5,)), HOLDS)
    assert (found(marked, HOLDS_EVALUATION), found(marked, HOLDS_SAVE)) == ([6], [])


def test_a_pause_behind_the_last_row_or_before_the_first_marks_none():
    assert found(mark(rows([5, 6, 7]), Pauses(saved=(3, 7)), HOLDS), HOLDS_SAVE) == []


def test_where_the_timer_is_stopped_a_pause_marks_nothing():
    assert found(mark(rows(list(range(1, 11))), Pauses(saved=(5,), evaluated=(7,))), HOLDS_SAVE) == []


def test_pauses_are_read_off_events_evaluations_and_timers():
    records = {name: pl.DataFrame(schema={c.name: c.dtype for c in cs}) for name, cs in RECORD_COLUMNS.items()}
    records["events"] = events((1, "save starts", 50, None), (2, "save ends", 51, None), (3, "save starts", None, None))
    timers = {
        "name": ["save-checkpoint", "forward", "save-checkpoint"],
        "step": [20, 30, 40],
        "max_ms": [5.0, 5.0, 0.0],
    }
    records["timers"] = conform(pl.DataFrame(timers), RECORD_COLUMNS["timers"])
    records["evaluations"] = conform(pl.DataFrame({"step": [7, 7, 3]}), RECORD_COLUMNS["evaluations"])
    assert find_pauses(records) == Pauses(saved=(20, 50), evaluated=(3, 7))


@pytest.mark.parametrize(
    ("lines", "pauses"),
    [
        # A line of its own tells of a save behind step 20; one beside the timers of the step, of the interval before.
        (["time (ms) | save-checkpoint: 900.00"], Pauses(saved=(20,))),
        (["time (ms) | forward-compute: 10.00 | save-checkpoint: 900.00 | optimizer: 5.00"], Pauses(saved=(19,))),
        (["time (ms) | forward-compute: 10.00 | optimizer: 5.00", "time (ms) | save-checkpoint: 9.00"], Pauses((20,))),
        (
            [
                "(min, max) time across ranks (ms):",
                "    forward-backward ...............................: (9.00, 10.00)",
                "    save-checkpoint ................................: (899.00, 900.00)",
            ],
            Pauses(saved=(19,)),
        ),
        (
            [
                "(min, max) time across ranks (ms):",
                "    forward-backward ...............................: (9.00, 10.00)",
                "(min, max) time across ranks (ms):",
                "    save-checkpoint ................................: (899.00, 900.00)",
                "(min, max) time across ranks (ms):",
                "    evaluate .......................................: (99.00, 100.00)",
            ],
            Pauses(saved=(20,), evaluated=(20,)),
        ),
        (
            ["[default7]:valid loss at iteration 20 | lm loss value: 2.3E+00 | lm loss PPL: 1.0E+01 |"],
            Pauses((), (20,)),
        ),
        (["test loss at the end of the day"], Pauses()),
    ],
)
def test_pauses_that_no_line_of_their_own_tells(tmp_path, lines, pauses):
    log = tmp_path / "run.log"
    shown = [megatron_line(10), megatron_line(20), *lines, megatron_line(30)]
    log.write_text("".join(line + "\n" for line in shown))
    assert find_pauses(read_run([str(log)]).records) == pauses


def test_steps_that_hold_a_pause_are_useful_for_their_usual_time(tmp_path):
    """An old Megatron: 40 steps of 1 s, an evaluation of 4 s behind 10 and a save of 9 s behind 20 in their times."""
    times = {11: 5000.0, 21: 10_000.0}
    lines = [megatron_line(step, times.get(step, 1000.0)) for step in range(1, 41)]
    lines.insert(20, " time (ms) | save-checkpoint: 9000.00")
    lines.insert(10, " valid loss at iteration 10 | lm loss value: 2.3E+00 | lm loss PPL: 1.0E+01 |")
    result = analyze_text(tmp_path, "\n".join(lines))
    assert found(result.steps, HOLDS_EVALUATION) == [11]
    assert found(result.steps, HOLDS_SAVE) == [21]
    # 40 s of steps, 53 s in all; delivered holds no pause, all steps do.
    assert parts_of(result.time_breakdown) == {"useful": 40.0, "saves": 9.0, "evaluation": 4.0, "not_explained": 0.0}
    assert (rate_of(result, "with_stalls"), rate_of(result, "all_steps")) == (1000.0, 53_000 / 40)


# Stalls


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_noise_of_two_percent_is_no_stall_and_no_shift(seed):
    marked = mark(timed(gaussian(500, seed=seed)))
    assert found(marked, STALL) == []
    assert list(describe_pace(marked, NO_PAUSES)) == []


def test_stalls_among_noisy_rows_are_found_and_no_other():
    times = gaussian(500)
    for step in (100, 230, 231, 420):
        times[step - 1] *= 1.5
    assert found(mark(timed(times)), STALL) == [100, 230, 231, 420]


@pytest.mark.parametrize(("share", "stalls"), [(1.24, []), (1.26, [20])])
def test_a_stall_takes_a_quarter_longer(share, stalls):
    times = [1000.0] * 40
    times[19] *= share
    assert found(mark(timed(times)), STALL) == stalls


def test_what_is_usual_in_a_noisy_run_is_no_stall():
    """A row 30 % slower is usual where rows vary by 15 %."""
    times = [1000.0 * (0.85 if i % 2 else 1.15) for i in range(60)]
    times[30] = 1300.0
    assert found(mark(timed(times)), STALL) == []


def test_a_larger_batch_is_no_stall():
    batch: list[object] = [8] * 40
    times = [1000.0] * 40
    batch[20], times[20] = 16, 2000.0
    assert found(mark(timed(times, global_batch_size=batch)), STALL) == []


@pytest.mark.parametrize(
    ("positions", "period"),
    [
        ([25, 50, 75, 100], 25),
        ([25, 75, 100, 125, 175], 25),  # two are lacking
        ([25, 50, 75, 81, 100, 125], 25),  # one lies between
        ([7, 32, 57], 25),
        ([25, 50], None),
        ([1, 2, 3, 4], None),  # all next to each other
        ([3, 17, 50, 121, 140], None),
        ([50, 50, 50], None),
        ([], None),
    ],
)
def test_find_period(positions, period):
    assert find_period(positions) == period


def stalled_every(every: int) -> pl.DataFrame:
    return mark(timed([1000.0 + (500.0 if step % every == 0 else 0.0) for step in range(1, 101)]))


def test_the_note_names_how_much_longer_and_the_period():
    (note,) = describe_pace(stalled_every(20), NO_PAUSES)
    assert note == info("stalls_periodic", n=5, longer_ms=500.0, period=20)
    assert say(note) == "5 stalls, in the median 500 ms longer than a typical step, every 20 steps"


@pytest.mark.parametrize(
    ("pauses", "cause"),
    [
        (Pauses(saved=(20, 40, 60, 80)), "as_often_as_saves"),
        (Pauses(evaluated=(19, 39, 59, 79)), "as_often_as_evaluations"),
        (Pauses(saved=(30, 60, 90)), "periodic"),
    ],
)
def test_a_cause_is_named_where_it_has_the_same_period(pauses, cause):
    assert list(describe_pace(stalled_every(20), pauses)) == [info(f"stalls_{cause}", n=5, longer_ms=500.0, period=20)]


def test_a_single_stall_is_named_with_its_step():
    assert list(describe_pace(stalled_every(70), NO_PAUSES)) == [info("stalls_one", n=1, longer_ms=500.0, steps=[70])]


def test_stalls_without_a_period_are_named_with_their_steps():
    places = [12, 25, 31, 58, 77, 93]
    marked = mark(timed([1500.0 if step in places else 1000.0 for step in range(1, 101)]))
    (note,) = describe_pace(marked, NO_PAUSES)
    assert note == info("stalls_several", n=6, longer_ms=500.0, steps=places)
    assert say(note) == "6 stalls, in the median 500 ms longer than a typical step, at steps 12, 25, 31, 58, 77 ..."


def test_a_level_that_shifts_is_told_with_its_place():
    times = gaussian(200, 0.005)
    times[100:] = [1.05 * t for t in times[100:]]
    (note,) = describe_pace(mark(timed(times)), NO_PAUSES)
    assert (note.code, note.level) == ("pace_changes", "info")
    assert 0.0495 < note.fields["change"] < 0.0605
    assert 95 <= note.fields["step"] <= 107
    assert say(note).startswith("step time changes by +5.")


@pytest.mark.parametrize(("share", "count"), [(1.015, 100), (1.05, 15)], ids=["too small", "too few rows"])
def test_a_shift_that_is_small_or_unsure_is_not_told(share, count):
    times = gaussian(2 * count, 0.001)
    times[count:] = [share * t for t in times[count:]]
    assert list(describe_pace(mark(timed(times)), NO_PAUSES)) == []


def test_a_clock_on_the_line_changes_no_reason():
    times = [60_000.0, *[1000.0] * 30]
    clock = [BEGIN + timedelta(seconds=60 + i) for i in range(31)]
    assert mark(timed(times, timestamp=clock))["excluded_reason"].equals(mark(timed(times))["excluded_reason"])


def test_rows_of_one_span_of_a_clock_are_one_stall(tmp_path):
    """A pause of 15 s lies in a span that several lines share: one stall, as long as the pause."""
    clock = [2 * n + (15 if n > 15 else 0) for n in range(1, 41)]
    bars = [f"{n}%|#| {5 * n}/200 [{s // 60:02d}:{s % 60:02d}<09:00, 2.5it/s]" for n, s in enumerate(clock, 1)]
    text = "".join(f"{{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.1}}\n{bar}\n" for bar in bars)
    run = analyze_text(tmp_path, text)
    assert run.steps.filter(excluded_reason=STALL).height > 1
    (stall,) = stalled(run.steps).iter_rows(named=True)
    assert stall["longer_ms"] == pytest.approx(15_000, rel=0.05)
