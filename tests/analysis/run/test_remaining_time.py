"""When a run will end: by hand, on a ramp, after a change of devices, with saves and evaluations between the lines."""

import re
from datetime import timedelta

import pytest
from helpers import SETTINGS, arguments_dump, megatron_line
from runs import BEGIN

from analysis.present.words import sentences_of
from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions
from analysis.run.rows.warm_up import WarmUpRule


def left_of(path, *parts, **how):
    path.write_text("".join(part if part.endswith("\n") else f"{part}\n" for part in parts))
    plan = analyze_logs([str(path)], RunOptions(**how)).expectations.plan
    (row,) = (row for row in plan.rows if row.name == "time_left")
    return plan.left, row


def steps_of(first, last, ms, clock=BEGIN, pause=None, batch=None):
    """Lines of steps that take ``ms``, with ``pause`` (every so many steps, seconds, line) between them."""
    lines = []
    consumed = 0
    for step in range(first, last + 1):
        size = batch(step) if batch else 32
        consumed += size
        time = ms(step) if callable(ms) else ms
        clock += timedelta(milliseconds=time)
        pairs = {"global batch size": str(size), "consumed samples": str(consumed)}
        lines.append(megatron_line(step, time, f"{clock:%Y-%m-%d %H:%M:%S}", pairs))
        if pause and step % pause[0] == 0:
            lines.append(pause[2].format(step=step))
            clock += timedelta(seconds=pause[1])
    return lines, clock


SAVE = "saving checkpoint at iteration {step:7d} to ckpt"
EVALUATION = " validation loss at iteration {step} | lm loss value: 2.1E+00 | lm loss PPL: 8.1E+00 | "


@pytest.mark.parametrize("said", [SAVE, EVALUATION])
@pytest.mark.parametrize("last", [110, 149])
def test_pauses_between_the_lines_are_what_the_calendar_sees(tmp_path, said, last):
    """7 s a step and 60 s behind every 50th: 8.2 s a step, wherever between two pauses the log ends."""
    lines, _ = steps_of(1, last, 7000.0, pause=(50, 60, said))
    left, row = left_of(tmp_path / "run.log", arguments_dump(SETTINGS), *lines)
    assert left.steps == 500 - last
    assert row.measured == left.seconds == pytest.approx((500 - last) * 8.2, rel=0.005)
    assert left.seconds_low <= left.seconds <= left.seconds_high
    assert " to " in sentences_of(row.findings)


def test_after_a_ramp_the_last_batch_tells(tmp_path):
    """100 steps of 2 s at batch 8, 100 of 5 s at batch 32: 300 are left at 5 s. All steps so far took 3.5 s."""
    lines, _ = steps_of(1, 200, lambda s: 2000.0 if s <= 100 else 5000.0, batch=lambda s: 8 if s <= 100 else 32)
    left, _ = left_of(tmp_path / "run.log", arguments_dump(SETTINGS), *lines)
    assert left.seconds == pytest.approx(300 * 5.0, rel=0.001)


def test_within_a_ramp_the_batches_to_come_tell(tmp_path):
    """Batch 8, 16, 24, then 32, 800 samples each: 100, 50, 34 steps, then the rest, 1 s + 0.1 s a sample.

    120 steps are done, 20 of batch 16. Left: 30 of 16 at 2.6 s, 34 of 24 at 3.4 s, 316 of 32 at 4.2 s.
    """
    settings = SETTINGS | {"rampup_batch_size": "['8', '8', '2400']"}
    lines, _ = steps_of(1, 120, lambda s: 1800.0 if s <= 100 else 2600.0, batch=lambda s: 8 if s <= 100 else 16)
    left, _ = left_of(tmp_path / "run.log", arguments_dump(settings), *lines)
    # Stamps are cut to seconds: 20 rows of 2.6 s are known to 1 s of 52.
    assert left.seconds == pytest.approx(30 * 2.6 + 34 * 3.4 + 316 * 4.2, rel=0.02)


RAMP = SETTINGS | {"rampup_batch_size": "['16', '16', '9600']", "global_batch_size": 64}


def test_one_batch_does_not_tell_what_the_next_takes(tmp_path):
    """0.51 s + 0.15 s a sample, 150 of 300 steps done, all of batch 16; left: 50 of 16, at 2.91 s, 100 of 32.

    Those take 5.31 s. In proportion they would take 5.82 s, and 2.91 s were all of a step fixed.
    """
    lines, _ = steps_of(1, 150, 2910.0, batch=lambda s: 16)
    left, row = left_of(tmp_path / "run.log", arguments_dump(RAMP), *(re.sub("/ *500", "/ 300", x) for x in lines))
    assert (left.steps, left.tokens) == (150, (50 * 16 + 100 * 32) * 4096)
    assert left.seconds == pytest.approx(50 * 2.91 + 100 * 5.82, rel=0.001)
    assert left.seconds_low < 150 * 2.91 < 50 * 2.91 + 100 * 5.31 < left.seconds_high
    assert "batch 32 has not run: its step time is scaled from batch 16" in sentences_of(row.findings)


def test_two_batches_tell_what_the_next_takes(tmp_path):
    """As above, but for 2 % by which steps differ; 250 of 500 are done, 200 of batch 16 and 50 of 32."""
    settings = RAMP | {"global_batch_size": 4096, "rampup_batch_size": "['16', '16', '816000']"}
    # 255 levels of 3200 samples each, where the last step of a level may reach into the next.
    sizes = [16] * 200 + [32] * 100 + [48] * 67 + [64] * 50 + [80] * 40 + [96] * 34 + [112] * 9

    def ms(step):
        return (510 + 150 * sizes[step - 1]) * (1.02 if step % 2 else 0.98)

    lines, _ = steps_of(1, 250, ms, batch=lambda step: sizes[step - 1])
    left, row = left_of(tmp_path / "run.log", arguments_dump(settings), *lines)
    true = sum(0.51 + 0.15 * size for size in sizes[250:])
    assert left.tokens == sum(sizes[250:]) * 4096
    assert left.seconds == pytest.approx(true, rel=0.02)
    assert left.seconds_low < true < left.seconds_high < 1.1 * true
    assert "batch 48 to 112 has not run: its step time is a fixed part" in sentences_of(row.findings)


def test_saves_take_no_longer_for_a_larger_batch(tmp_path):
    """Batch 8 at 1.8 s, 16 at 2.6 s, 32 at 4.2 s, 60 s of save behind every 20th step: 3 s for each step left."""
    settings = SETTINGS | {"rampup_batch_size": "['8', '8', '2400']"}
    lines, _ = steps_of(
        1, 140, lambda s: 1800.0 if s <= 100 else 2600.0, pause=(20, 60, SAVE), batch=lambda s: 8 if s <= 100 else 16
    )
    left, _ = left_of(tmp_path / "run.log", arguments_dump(settings), *lines)
    assert left.seconds == pytest.approx(10 * 2.6 + 34 * 3.4 + 316 * 4.2 + 360 * 3, rel=0.02)


def test_after_a_change_of_devices_the_last_start_tells(tmp_path):
    """100 steps of 4 s on 8 devices, then 100 of 8 s on 4: 300 steps are left, at 8 s, and the plan is for 4."""
    first, clock = steps_of(1, 100, 4000.0)
    second, _ = steps_of(101, 200, 8000.0, clock + timedelta(minutes=5))
    fewer = SETTINGS | {"world_size": 4, "data_parallel_size": 2}
    text = [arguments_dump(SETTINGS), *first, arguments_dump(fewer), *second]
    left, row = left_of(tmp_path / "run.log", *text, peak_tflops=400.0, utilisation=0.5)
    assert left.seconds == pytest.approx(300 * 8.0)
    alone, planned = left_of(tmp_path / "alone.log", arguments_dump(fewer), *second, peak_tflops=400.0, utilisation=0.5)
    assert alone.seconds == left.seconds
    assert row.planned == pytest.approx(planned.planned)


def test_the_warm_up_of_steps_done_again_is_no_pace(tmp_path):
    """Restarted at 51 after step 100: 61 s for the first, 7 s for the others; 350 steps of 7 s are left."""
    first, clock = steps_of(1, 100, 7000.0)
    second, _ = steps_of(51, 150, lambda step: 61_000.0 if step == 51 else 7000.0, clock + timedelta(minutes=5))
    left, _ = left_of(tmp_path / "run.log", arguments_dump(SETTINGS), *first, arguments_dump(SETTINGS), *second)
    assert left.seconds == pytest.approx(350 * 7.0, rel=0.001)


def test_without_stamps_the_lines_tell(tmp_path):
    lines = [megatron_line(step, 7000.0) for step in range(1, 101)]
    left, _ = left_of(tmp_path / "run.log", arguments_dump(SETTINGS), *lines)
    assert (left.seconds, left.ends_at) == (pytest.approx(2800.0), None)


def test_a_start_of_two_rows_says_nothing_of_its_pace(tmp_path):
    first, clock = steps_of(1, 100, 4000.0)
    second, _ = steps_of(101, 102, 90_000.0, clock + timedelta(minutes=5))
    text = [arguments_dump(SETTINGS), *first, arguments_dump(SETTINGS), *second]
    left, _ = left_of(tmp_path / "run.log", *text)
    assert left.seconds == pytest.approx(398 * 4.0, rel=0.001)


def test_warm_up_of_repeated_steps_is_left_out_by_the_rule_of_the_run(tmp_path):
    """After a restart four repeated steps are slow: they count in the pace only if the user asks for no warm-up."""
    head = arguments_dump(SETTINGS)
    first, clock = steps_of(1, 20, 3000)
    last, _ = steps_of(11, 40, lambda step: 9000 if step < 15 else 3000, clock + timedelta(minutes=5))
    parts = (head, *first, head, *last)
    by_data = left_of(tmp_path / "data.log", *parts)[0]
    with_all = left_of(tmp_path / "all.log", *parts, warm_up=WarmUpRule(0))[0]
    assert by_data.seconds / by_data.steps == pytest.approx(3.0, rel=0.02)
    assert with_all.seconds / with_all.steps == pytest.approx(3.8, rel=0.05)
