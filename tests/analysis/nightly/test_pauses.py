"""Pauses of single steps are the noise of a short run; slow steps, NaN and memory are changes."""

import numpy as np
import polars as pl
import pytest
from releases import record, write_run
from test_gate_jobs import judge, reasons, rows

from analysis.history.run_records import run_frame
from analysis.metrics import JUDGED
from analysis.nightly.metric_verdict import nights_at_one_step, one_step_by_chance, watch_metric, without_longest_stall
from analysis.nightly.policy import JobRule

STALLED = "with_stalls_step_time_ms"
STEPS = 100


def stalls(slow, longest, steps=STEPS):
    """Nights of a job whose mean step time is ``slow`` and whose longest stall is ``longest``, both in steps."""
    made = rows(*[0.0] * 5, before=len(slow) - 5)
    rng = np.random.default_rng(5)
    for row, share, stall in zip(made, slow, longest, strict=True):
        ms = 1000 * (1 + rng.normal(0, 0.002))
        clock = ms * (steps * 1.1 + share)
        row |= {"steady_step_time_ms": ms, STALLED: ms * (1 + share / steps), "longest_stall_ms": stall and ms * stall}
        row |= {"with_stalls_steps": steps, "wall_clock_steps": steps, "wall_clock_step_time_ms": clock / steps}
        row |= {"goodput": steps * ms / clock}
    return made


def states(made, metric=STALLED):
    runs = run_frame(made).with_columns(block=pl.lit(None, pl.String))
    return [night.state for night in watch_metric(runs, JUDGED[metric], 0.005, JobRule(), lambda _: False)]


@pytest.mark.parametrize("metric", [STALLED, "goodput"])
def test_two_nights_with_one_pause_each_are_no_regression(metric):
    paused = [0.0] * 25 + [4.0, 3.0, 0.0, 0.0, 0.0]
    assert states(stalls(paused, paused), metric)[25:] == ["off", "off", "expected", "expected", "expected"]


@pytest.mark.parametrize("metric", [STALLED, "goodput"])
def test_every_25th_step_twice_as_long_is_found_on_the_second_night(metric):
    slow = [0.0] * 25 + [4.0] * 5
    longest = [0.0] * 25 + [1.0] * 5
    made = stalls(slow, longest)
    assert states(made, metric)[25:] == ["off", *["confirmed"] * 4]
    (job,) = judge(made[:27])
    (found,) = [found for found in job.metrics if found.metric.column == STALLED]
    assert (found.verdict, found.reason) == ("regression", "confirmed")
    assert found.night.change == pytest.approx(0.04, abs=0.003)


def test_a_pause_of_every_night_is_found_on_the_fourth():
    slow = [0.0] * 25 + [3.0] * 5
    assert states(stalls(slow, slow))[25:] == ["off"] * 3 + ["confirmed"] * 2


@pytest.mark.parametrize(("at", "found"), [((25, 25, 25), "confirmed"), ((25, 25, 7), "off"), ((25, 7, 9), "off")])
@pytest.mark.parametrize("metric", [STALLED, "goodput"])
def test_one_slow_step_is_a_change_if_the_next_nights_have_it_at_the_same_step(metric, at, found):
    """A run of 40 steps with one slow step: a pause of every tenth night, or every 25th step since three nights."""
    paused = [1.0 if night % 10 == 3 else 0.0 for night in range(25)]
    slow = [*paused, 1.0, 1.0, 1.0]
    made = stalls(slow, slow, steps=40)
    for row, step in zip(made, [*range(1, 26), *at], strict=True):
        row |= {"step_lines": 40, "longest_stall_step": step if row["longest_stall_ms"] else None}
    assert states(made, metric)[25:] == ["off", "off", found]


def test_the_same_step_twice_is_no_change_where_pauses_are_frequent():
    slow = [1.0, 0.0] * 12 + [1.0, 1.0]
    made = stalls(slow, slow, steps=40)
    for row, step in zip(made, [*range(1, 25), 25, 25], strict=True):
        row |= {"step_lines": 40, "longest_stall_step": step if row["longest_stall_ms"] else None}
    runs = run_frame(made)
    assert one_step_by_chance(runs, 3) == pytest.approx(26 * 12 / 26 * (12 / 26 / 40) ** 2)
    assert nights_at_one_step(runs) == 3
    assert states(made)[-1] != "confirmed"


def test_a_history_without_the_longest_stall_is_judged_by_the_mean_alone():
    slow = [0.0] * 25 + [3.0] * 5
    made = stalls(slow, [None] * 30)
    assert without_longest_stall(run_frame(made), JUDGED[STALLED]) is None
    assert states(made)[25:27] == ["off", "confirmed"]


def test_the_mean_without_the_longest_stall_is_hand_worked():
    """100 steps of 1,000 ms and 4 of them 500 ms longer: 1,020 ms, and 1,015 ms without one of them."""
    row = rows(0.0, before=0)[0] | {STALLED: 1020.0, "with_stalls_steps": 100, "longest_stall_ms": 500.0}
    assert without_longest_stall(run_frame([row]), JUDGED[STALLED]) == [1015.0]
    row |= {"goodput": 0.9, "wall_clock_step_time_ms": 1100.0, "wall_clock_steps": 100}
    assert without_longest_stall(run_frame([row]), JUDGED["goodput"]) == pytest.approx([0.9 * 110 / 109.5])
    assert without_longest_stall(run_frame([row]), JUDGED["steady_step_time_ms"]) is None


@pytest.mark.parametrize(
    ("metric", "before", "after", "nights"),
    [
        ("nan_share", 0.0, 0.02, 1),
        ("max_memory_allocated_bytes", 5e10, 5.4e10, 2),
        ("step_time_p95_ms", 1050.0, 1250.0, 2),
    ],
)
def test_nan_memory_and_tails_are_judged_by_default(metric, before, after, nights):
    (job,) = judge(rows(*[0.0] * nights, **{metric: [before] * 20 + [after] * nights}))
    assert (job.verdict, reasons(job)[metric]) == ("regression", "confirmed")
    (job,) = judge(rows(0.0, **{metric: before}))
    assert job.verdict == "no regression"


@pytest.mark.parametrize("metric", ["max_memory_allocated_bytes", "step_time_p95_ms"])
def test_memory_and_tails_have_thresholds_of_their_own(metric):
    (job,) = judge(rows(0.0, 0.0, 0.0, **{metric: [1000.0] * 20 + [1015.0] * 3}))
    assert reasons(job)[metric] == "as_expected"


def test_a_record_has_the_longest_stall_and_the_95th_percentile(tmp_path):
    log = write_run(tmp_path / "a.log", 1, steps=40)
    text = log.read_text().splitlines(keepends=True)
    slow = [
        number for number, line in enumerate(text) if "iteration       20/" in line or "iteration       30/" in line
    ]
    for number, ms in zip(slow, (3000.0, 2000.0), strict=True):
        head, _, rest = text[number].partition("elapsed time per iteration (ms): ")
        text[number] = f"{head}elapsed time per iteration (ms): {ms} {rest[rest.index('|') :]}"
    log.write_text("".join(text))
    row = record(log).summary.row(0, named=True)
    assert row["longest_stall_ms"] == pytest.approx(3000 - row["steady_step_time_ms"], rel=0.01)
    assert row["longest_stall_step"] == 20
    assert row["step_time_p95_ms"] == pytest.approx(row["steady_step_time_ms"], rel=0.01)
