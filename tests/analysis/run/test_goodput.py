"""Goodput by the field's terms, worked by hand."""

from datetime import timedelta

import pytest
from helpers import megatron_line
from runs import BEGIN, analyze_text, rate_of, stamped_log

from analysis.run.useful.goodput import TYPES


def field_of(tmp_path, lines):
    return analyze_text(tmp_path, "\n".join(lines)).reliability


def types_of(found):
    return dict(found.badput.select("type", "seconds").iter_rows())


def test_a_crash_is_an_interruption_with_its_lost_steps(tmp_path):
    """60 steps of 7 s, a crash, 10 of them done again of 150 more; nothing else happens, so 200 of 210 are worth it."""
    found = field_of(tmp_path, stamped_log([(1, 60), (51, 200)], lambda *_: 7000.0))
    assert found.ettr == pytest.approx(200 / 210)
    assert (found.interruptions, found.planned_stops, found.lost_steps) == (1, 0, 10)
    assert found.seconds_between == pytest.approx(210 * 7)
    assert types_of(found) == pytest.approx({"WASTED_PROGRESS_FROM_DISRUPTION": 70.0})
    assert found.longest_dead.seconds == 7.0
    assert found.worst_hour is None
    # By the end of the first start 60 steps were done, of which 50 were kept.
    half = found.curve.filter(found.curve["hours"] <= 420 / 3600).tail(1)
    assert half["ettr"].item() == pytest.approx(50 / 60, abs=0.01)
    assert found.curve["ettr"][-1] == pytest.approx(found.ettr)


def test_an_announced_stop_is_no_interruption(tmp_path):
    lines = stamped_log([(1, 60), (61, 100)], lambda *_: 7000.0)
    at = next(i for i, line in enumerate(lines) if "loaded checkpoint" in line)
    lines[at:at] = ["[exiting program at iteration 60] datetime: 2026-03-01 08:07:00 ", *DUMP]
    found = field_of(tmp_path, [*DUMP, *lines])
    assert (found.interruptions, found.planned_stops) == (0, 1)


DUMP = [
    "------------------------ arguments ------------------------",
    "  num_layers ...................................... 8",
    "-------------------- end of arguments ---------------------",
]


def test_of_a_run_without_interruption_the_time_between_is_a_lower_bound(tmp_path):
    found = field_of(tmp_path, stamped_log([(1, 100)], lambda *_: 7000.0))
    assert (found.interruptions, found.seconds_between) == (0, pytest.approx(700.0))
    assert types_of(found) == {}


def test_the_worst_hour_holds_the_longest_pause(tmp_path):
    """400 steps of 10 s; the log is silent for 1,840 s behind step 200; an hour around it is productive else."""
    ends = [BEGIN + timedelta(seconds=10 * step + (1840 if step > 200 else 0)) for step in range(1, 401)]
    lines = [megatron_line(at + 1, 10_000.0, f"{end:%Y-%m-%d %H:%M:%S}") for at, end in enumerate(ends)]
    found = field_of(tmp_path, lines)
    assert found.ettr == pytest.approx(4000 / 5840)
    assert found.worst_hour.share == pytest.approx(1760 / 3600)
    assert BEGIN + timedelta(seconds=200) <= found.worst_hour.begins <= BEGIN + timedelta(seconds=2000)
    assert found.longest_dead.seconds == 1850.0
    assert found.longest_dead.begins == BEGIN + timedelta(seconds=2000)
    assert types_of(found) == pytest.approx({"OTHER": 1840.0})


def test_without_a_clock_there_is_no_ettr(tmp_path):
    lines = [line.split("] ", 1)[-1] for line in stamped_log([(1, 100)], lambda *_: 7000.0) if "elapsed" in line]
    result = analyze_text(tmp_path, "\n".join(lines))
    assert rate_of(result, "wall_clock") is None
    assert (result.reliability.ettr, result.reliability.worst_hour, result.reliability.longest_dead) == (
        None,
        None,
        None,
    )
    assert result.reliability.curve.is_empty()
    assert result.reliability.seconds_between == pytest.approx(700.0)


def test_every_part_of_the_account_has_a_type():
    from analysis.run.useful import time_breakdown

    outside = (time_breakdown.START_UP, time_breakdown.RESTARTS)
    between = (
        time_breakdown.SAVES_BETWEEN,
        time_breakdown.EVALUATION_BETWEEN,
        time_breakdown.UNDIVIDED_BETWEEN,
    )
    known = {*time_breakdown.PARTS, *outside, *between, "not_explained"}
    assert {part for parts in TYPES.values() for part in parts} == known
