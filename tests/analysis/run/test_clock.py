"""Clocks that run back, and stamps that contradict the steps: mended where the steps prove it, else unknown."""

import itertools
import re
from datetime import datetime, timedelta

import pytest
from helpers import few, megatron_line, of_code
from hypothesis import given
from hypothesis import strategies as st
from runs import BEGIN, analyze_text, events, no_starts, parts_of, rate_of, rows, stamped_log, started

from analysis.present.words import say
from analysis.run.clock.clock import read_clock, repair_clock
from analysis.run.rows.restarts import number_starts, trace_starts
from analysis.run.useful.time_breakdown import USEFUL

HOUR = timedelta(hours=1)


def traced(seconds, times):
    steps = list(range(1, len(seconds) + 1))
    stamps = [BEGIN + timedelta(seconds=s) for s in seconds]
    return trace_starts(number_starts(rows(steps, step_time_ms=times, timestamp=stamps), no_starts()), events(), None)


def earlier(lines, by=HOUR):
    """The lines by a clock that was set back."""

    def moved(stamp):
        return f"{datetime.fromisoformat(stamp[0]) - by:%Y-%m-%d %H:%M:%S}"

    return [re.sub(r"2026-\S+ \d\d:\d\d:\d\d", moved, line) for line in lines]


@pytest.mark.parametrize("by", [HOUR, timedelta(minutes=30), timedelta(hours=8), timedelta(seconds=400)])
def test_a_clock_set_back_within_a_start_is_mended(tmp_path, by):
    """200 steps of 7 s are 1,400 s, whatever the clock says behind step 101."""
    lines = stamped_log([(1, 200)], lambda *_: 7000.0)
    lines = [*lines[:102], *earlier(lines[102:], by)]
    result = analyze_text(tmp_path, "\n".join(lines))
    assert rate_of(result, "wall_clock") == pytest.approx(7000.0)
    assert result.goodput == pytest.approx(1.0)
    assert parts_of(result.time_breakdown) == pytest.approx({USEFUL: 1400.0, "not_explained": 0.0})
    (note,) = of_code(result.notes, "clock_set_back")
    assert note.level == "warning"
    assert note.fields["seconds"] == by.total_seconds()
    assert "timestamps go back by" in say(note)


def test_a_save_where_the_clock_is_set_back_is_a_pause_still(tmp_path):
    """200 steps of 7 s, 40 s behind steps 50, 100, 150; the clock falls back an hour behind 100: 1,400 + 120 s."""
    lines, late = [], timedelta()
    for step in range(1, 201):
        shown = BEGIN + timedelta(seconds=7 * step) + late - (HOUR if step > 100 else timedelta())
        lines.append(megatron_line(step, 7000.0, f"{shown:%Y-%m-%d %H:%M:%S}"))
        if step in (50, 100, 150):
            late += timedelta(seconds=40)
            lines.append(f"saving checkpoint at iteration {step:7d} to ckpt")
    result = analyze_text(tmp_path, "\n".join(lines))
    assert parts_of(result.time_breakdown) == pytest.approx(
        {USEFUL: 1400.0, "saves_between": 120.0, "not_explained": 0.0}
    )
    (note,) = of_code(result.notes, "clock_set_back")
    assert note.fields["seconds"] == 3600.0


def jumping(jump, between=(), pause_after=None, pause=0.0, slow=None):
    """200 steps of 7 s; the clock jumps after step 100, where the lines ``between`` are; a pause after another step."""
    lines, late = [], timedelta()
    for step in range(1, 201):
        shown = BEGIN + timedelta(seconds=7 * step) + late
        lines.append(megatron_line(step, slow if slow and step == 101 else 7000.0, f"{shown:%Y-%m-%d %H:%M:%S}"))
        if step == 100:
            late += jump
            lines += between
        if step == pause_after:
            late += timedelta(seconds=pause)
    return "\n".join(lines)


@pytest.mark.parametrize("by", [HOUR, timedelta(minutes=15), timedelta(hours=8)])
def test_a_clock_set_forward_for_good_is_no_dead_time(tmp_path, by):
    result = analyze_text(tmp_path, jumping(by))
    assert rate_of(result, "wall_clock") == pytest.approx(7000.0)
    assert result.goodput == pytest.approx(1.0)
    (note,) = of_code(result.notes, "clock_set_forward")
    assert note.fields["seconds"] == by.total_seconds()
    assert "jump ahead by" in say(note)


SAVE = "saving checkpoint at iteration     100 to ckpt"
LOAD = "  successfully loaded checkpoint from ckpt [ t 0, p 0 ] at iteration 100"
BEGUN = "[before the start of training step] datetime: 2026-07-18 09:00:00 "


@pytest.mark.parametrize(
    "text",
    [
        jumping(HOUR, [SAVE]),
        jumping(HOUR, [LOAD]),
        jumping(HOUR, [BEGUN]),
        jumping(timedelta(seconds=3540)),
        jumping(HOUR, slow=60_000.0),
        jumping(HOUR, pause_after=150, pause=2500.0),
    ],
    ids=["save", "load", "process", "59 minutes", "slow step", "another long pause"],
)
def test_an_hour_that_may_be_a_pause_stays_one(tmp_path, text):
    result = analyze_text(tmp_path, text)
    assert not of_code(result.notes, "clock_set_forward")
    assert result.goodput < 0.35


def test_long_steps_are_set_back_though_their_stamps_rise():
    """Steps of 2 h: from 4 h to 5 h by the clock is 2 h, as summer time ended between."""
    hours = [2, 4, 5, 7, 9]
    repaired = repair_clock(traced([3600 * h for h in hours], [7_200_000.0] * 5), events())
    assert [note.fields["seconds"] for note in repaired.notes] == [3600.0]
    assert read_clock(repaired.steps.with_columns(excluded_reason=None), events()).seconds == 10 * 3600


def test_a_restart_in_another_time_zone_leaves_the_clock_unknown(tmp_path):
    """How long the run lay still between the starts, nothing tells."""
    lines = stamped_log([(1, 60), (51, 100)], lambda *_: 7000.0)
    at = next(i for i, line in enumerate(lines) if "loaded checkpoint" in line)
    result = analyze_text(tmp_path, "\n".join([*lines[:at], *earlier(lines[at:], 5 * HOUR)]))
    assert rate_of(result, "wall_clock") is None
    assert result.goodput is None
    assert rate_of(result, "with_stalls") == pytest.approx(7000.0)
    assert parts_of(result.time_breakdown) == pytest.approx({USEFUL: 700.0, "replayed": 70.0, "not_explained": 0.0})
    (note,) = of_code(result.notes, "clock_unknown")
    assert say(note).endswith("wall-clock rate and goodput are unknown, the time breakdown covers step lines only")


def test_a_step_whose_time_is_not_known_proves_nothing():
    back = traced([7, 14, 14 - 3000, 21 - 3000], [7000.0, 7000.0, None, 7000.0])
    assert not repair_clock(back, events()).trusted


def test_a_clock_that_is_set_back_again_and_again_is_none():
    back = traced([7 * i - 1000 * (i // 10) for i in range(60)], [7000.0] * 60)
    assert not repair_clock(back, events()).trusted


@pytest.mark.parametrize("seconds", [[7, 14, 13, 28], [7, 14, 21, 4000], [7, 14, 3614, 3621], [7, 7, 7, 7]])
def test_threads_pauses_and_cut_stamps_are_no_jump(seconds):
    steps = traced(seconds, [7000.0] * 4)
    repaired = repair_clock(steps, events())
    assert repaired.trusted
    assert repaired.steps.equals(steps)


def test_events_are_mended_with_the_rows_around_them():
    """A save behind step 3, whose lines stand on both sides of the jump; the training ends an hour early by them."""
    found = events(
        (31, "save starts", 3, BEGIN + timedelta(seconds=21)),
        (32, "save ends", 3, BEGIN + timedelta(seconds=24) - HOUR),
        (60, "training ends", None, BEGIN + timedelta(seconds=40) - HOUR),
    )
    steps = traced([7, 14, 21, 31 - 3600, 38 - 3600], [7000.0] * 5)
    repaired = repair_clock(steps, found)
    late = [(stamp - BEGIN).total_seconds() for stamp in repaired.events["timestamp"]]
    assert late == pytest.approx([21, 24, 40], abs=4)


def test_steps_that_take_longer_than_their_clock_say_so(tmp_path):
    """Lines of two runs, by turns: 2 x 100 steps of 7 s in 700 s."""
    one = stamped_log([(1, 200)], lambda *_: 7000.0)
    for at, line in enumerate(one):
        if line.startswith(" [2026"):
            step = at - 1
            one[at] = megatron_line(step, 7000.0, f"{BEGIN + timedelta(seconds=3.5 * step):%Y-%m-%d %H:%M:%S}")
    result = analyze_text(tmp_path, "\n".join(one))
    (note,) = of_code(result.notes, "clock_shorter_than_steps")
    assert note.fields["steps_seconds"] == pytest.approx(1400)
    assert note.fields["seconds"] == pytest.approx(700, rel=0.02)
    assert rate_of(result, "wall_clock") is None
    assert result.goodput is None
    assert result.time_breakdown.is_empty()


RUN = stamped_log([(1, 100)], lambda *_: 7000.0)


@pytest.mark.parametrize(
    ("before", "late_s"),
    [
        (["2026-03-01 07:50:00,123 INFO pulling the image"], 600 - 0.123),
        (["[2026-03-01 07:58:00] launched", "no clock", "[2026-03-01 07:59:00] begun"], 120),
        (["INFO 2026-02-28 20:17:00 yesterday evening"], 12 * 3600 - 17 * 60),
        (["2026-02-20 08:00:00 a date of another week"], 0),
        (["2026-03-01 09:00:00 a line of later on"], 0),
        (["2026-03-01 00:00:00 by a clock 8 h behind"], 0),
        (["x" * 120 + " 2026-03-01 07:00:00 in a text"], 0),
        ([], 0),
    ],
)
def test_all_in_starts_at_the_first_stamp_of_the_log(tmp_path, before, late_s):
    """100 steps of 7 s from 08:00 on; what was stamped before them is start-up."""
    lines = [*before, *(["2026-03-01 07:59:59 ready"] if late_s > 10 else []), *RUN]
    result = analyze_text(tmp_path, "\n".join(lines))
    assert rate_of(result, "wall_clock") == pytest.approx(7000.0 + late_s * 10)
    assert parts_of(result.time_breakdown).get("start_up", 0.0) == pytest.approx(late_s)
    assert result.goodput == pytest.approx(700 / (700 + late_s))


def test_a_file_of_a_restart_begins_at_its_own_first_stamp(tmp_path):
    """Crash at 08:07, lines of the next process from 08:10 on, steps from 08:11 on, 40 of them again."""
    again = stamped_log([(1, 60)], lambda *_: 7000.0)
    moved = earlier(again, timedelta(minutes=-11))
    second = ["2026-03-01 08:10:00 waiting for the others", *(line.replace("2.34", "2.33") for line in moved[1:])]
    for step in range(60, 0, -1):
        second = [line.replace(f"iteration {step:8d}/", f"iteration {step + 20:8d}/") for line in second]
    result = analyze_text(tmp_path, "\n".join(stamped_log([(1, 60)], lambda *_: 7000.0)), "\n".join(second))
    parts = parts_of(result.time_breakdown)
    assert parts == pytest.approx(
        {USEFUL: 560.0, "replayed": 280.0, "restarts": 180.0, "start_up": 60.0, "not_explained": 0.0}
    )


@few(5)
@given(st.data())
def test_goodput_lies_between_0_and_1_and_no_part_below_0_for_any_log(tmp_path_factory, data):
    """Any times, stamps, batches, starts, damage: lines as a decoder could read them."""
    count = data.draw(st.integers(1, 60))
    draw = data.draw(st.randoms(use_true_random=False))
    lines, step, clock = ["using world size: 8 "], 0, BEGIN
    for _ in range(count):
        step = max(1, step + draw.choice([1, 1, 1, 1, 1, 2, 10, 0, -3, 100_000]))
        ms = draw.choice([1000.0, 1000.0, 1000.0, 1500.0, 72.7, 0.1, 60_000.0, 7_200_000.0]) * draw.uniform(0.9, 1.1)
        clock += timedelta(seconds=draw.choice([ms / 1000, ms / 1000, ms / 1000, 0, -3600, 3600, 1, -90]))
        shown = f"{clock:%Y-%m-%d %H:%M:%S}" if draw.random() < 0.9 else ""
        more = {
            "global batch size": str(draw.choice([32, 32, 32, 64, 8, 0])),
            "number of skipped iterations": str(draw.choice([0, 0, 0, 1, 3])),
            "number of nan iterations": str(draw.choice([0, 0, 0, 0, 1])),
        }
        lines += started(step, clock) if draw.random() < 0.05 else []
        lines.append(megatron_line(step, ms, shown, more))
        if draw.random() < 0.1:
            lines.append(f"saving checkpoint at iteration {step:7d} to ckpt")
    result = analyze_text(tmp_path_factory.mktemp("any"), "\n".join(lines) + "\n")
    assert result.goodput is None or 0 <= result.goodput <= 1
    assert (result.time_breakdown["seconds"] >= 0).all()
    shares = result.time_breakdown["share"].drop_nulls()
    assert shares.is_empty() or shares.sum() == pytest.approx(1)
    assert all(0 <= share <= 1 + 1e-9 for share in itertools.chain(shares))


@pytest.mark.parametrize(("last_s", "doubted"), [(2, False), (0, True)])
def test_a_clock_of_whole_seconds_may_be_2_s_short(tmp_path, last_s, doubted):
    """Steps of 2 s whose stamps are each cut, or printed late."""
    lines = [
        megatron_line(step, 2000.0, f"{BEGIN + timedelta(seconds=s):%Y-%m-%d %H:%M:%S}")
        for step, s in enumerate((0, 1, last_s), 1)
    ]
    result = analyze_text(tmp_path, "\n".join(lines) + "\n")
    assert bool(of_code(result.notes, "clock_shorter_than_steps")) == doubted
