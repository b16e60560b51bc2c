"""When a run will end: by hand, on a ramp, after a change of devices, with saves and evaluations between the lines."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from helpers import SETTINGS, arguments_dump, megatron_line
from runs import BEGIN, WORLD

from analysis.present.words import sentences_of
from analysis.run.build import analyze_logs, analyze_parts
from analysis.run.options import RunOptions
from analysis.run.rows.warm_up import WarmUpRule
from logparse.context.run_context import Fact, Given
from logparse.findings import Origin


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


def analyzed(tmp_path, *lines, how=None):
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines) + "\n")
    return analyze_logs([str(path)], how or RunOptions())


def codes(run):
    return [note.code for note in run.notes]


def note_of(run, code):
    return next(note for note in run.notes if note.code == code)


def given(**sizes):
    """Options with the ``sizes`` as flags give them."""
    return RunOptions(given=Given(({name: Fact(size, Origin("flag")) for name, size in sizes.items()},)))


def record(step, seconds, loss=True):
    """A line of LLaMA-Factory; the last one of a training has no loss."""
    clock = f"0:{seconds // 60:02}:{seconds % 60:02}"
    value = '"loss": 0.5, ' if loss else ""
    return (
        f'{{"current_steps": {step}, "total_steps": 106, {value}"epoch": {step / 50}, "percentage": {step / 1.06:.2f}, '
        f'"elapsed_time": "{clock}", "remaining_time": "0:00:00"}}'
    )


def test_a_last_record_without_a_loss_completes_the_run(tmp_path):
    records = [record(step, step * 3) for step in range(10, 101, 10)]
    run = analyzed(tmp_path, *records, record(106, 318, loss=False))
    assert run.steps["step"].max() == 106
    assert run.expectations.plan.left in (None, 0)
    assert sum(run.time_breakdown["seconds"]) == pytest.approx(318)


def test_a_last_record_of_the_step_before_it_is_no_restart(tmp_path):
    records = [record(step, step * 3) for step in range(2, 107, 8)]
    run = analyzed(tmp_path, *records, record(106, 320, loss=False))
    assert len(run.steps) == 14
    assert len(run.analysis.segments) == 1


def bar(step, seconds):
    return f" {step / 3:.0f}%|███  | {step}/300 [{seconds // 60:02}:{seconds % 60:02}<01:00,  4.00it/s]"


def loss(step):
    return f"{{'loss': 2.5, 'grad_norm': 1.0, 'learning_rate': 2e-05, 'epoch': {step / 300:.2f}}}"


def bars_with_a_redrawn_one():
    """A dict before each bar; the bar of step 200 is drawn again after the dict of a later step, 40 s pass then."""
    lines = []
    for step in range(10, 301, 10):
        seconds = step // 4 + (40 if step > 200 else 0)
        lines += [loss(step), bar(step, seconds)]
        lines += [loss(step + 3), bar(step, seconds) + "a warning"] if step == 200 else []
    return lines


def test_a_redrawn_bar_is_no_restart_and_the_pause_counts(tmp_path):
    run = analyzed(tmp_path, *bars_with_a_redrawn_one())
    assert len(run.analysis.segments) == 1
    assert not run.steps["replayed"].any()
    stalls = dict(run.time_breakdown.select("part", "seconds").iter_rows())["stalls"]
    assert stalls == pytest.approx(40, abs=5)


SUMMARY = "{'train_runtime': 195.0, 'train_samples_per_second': 3.08, 'train_steps_per_second': 1.54, 'epoch': 1.0}"


@pytest.mark.parametrize(("batch", "code"), [(2, "printed_rate_differs"), (8, "printed_rate_unexplained")])
def test_a_rate_of_the_whole_training_that_differs_is_reported(tmp_path, batch, code):
    how = given(world_size=1, global_batch_size=batch)
    run = analyzed(tmp_path, *bars_with_a_redrawn_one(), SUMMARY, how=how)
    fields = note_of(run, code).fields
    assert fields["figure"] == "logged_samples_per_second"
    assert fields["cause"].code == ("rate_of_whole_run" if batch == 2 else "no_known_cause_of_samples")


def chat(step):
    return (
        f"step {step:05} (0.00%) | loss: 2.5 | lrm: 1.00 | dt: 5.00ms | tok/sec: 25,600 | mfu: 0.00 | epoch: 1 | "
        "total time: 0.00m"
    )


def test_an_mfu_of_0_is_none_and_the_device_is_named(tmp_path):
    named = "WARNING - Peak flops undefined for: NVIDIA Imaginary 9000, MFU will show as 0%"
    run = analyzed(tmp_path, named, *map(chat, range(1, 31)))
    assert "mfu" not in run.printed
    assert note_of(run, "device_not_listed").fields["device"] == "NVIDIA Imaginary 9000"
    assert "device_unknown" not in codes(run)


def knover(step, speed=20.0):
    return [f"[train][1] progress: 1/1 step: {step}, time: 5.000, speed: {speed} steps/s", "\tcurrent lr: 0.00001"]


def test_trainings_in_turn_at_other_intervals_are_not_mixed(tmp_path):
    trainings = [(range(100, 1001, 100), 20.0), (range(100, 1001, 100), 2.0), (range(1, 1001), 30.0)]
    path = tmp_path / "run.log"
    path.write_text("\n".join(line for steps, speed in trainings for step in steps for line in knover(step, speed)))
    assert "runs_mixed" not in codes(analyze_logs([str(path)], RunOptions()))
    parts = analyze_parts([str(path)], RunOptions(), mixed_too=True)
    assert [(run.steps["step"].min(), len(run.steps)) for run in parts] == [(100, 10), (100, 10), (1, 1000)]


def lines_of(steps, ms=1000.0, batch=32):
    """Step lines whose loss falls from 10 with a swing that no other start repeats."""
    pairs = ({"lm loss": f"{10 - step / 100 + ms / 1e6:.6f}", "global batch size": str(batch)} for step in steps)
    return [megatron_line(step, ms, pairs=pair) for step, pair in zip(steps, pairs, strict=True)]


def parts_of_file(tmp_path, *starts):
    path = tmp_path / "run.log"
    path.write_text("\n".join(line for start in starts for line in start) + "\n")
    assert "runs_mixed" not in codes(analyze_logs([str(path)], RunOptions()))
    return [(run.steps["step"].min(), run.steps["step"].max()) for run in analyze_parts([str(path)], RunOptions())]


def test_restarts_that_pass_where_others_broke_off_are_not_mixed(tmp_path):
    ends = [(101, 230), (201, 260), (241, 290), (281, 320), (311, 500), (1, 230), (201, 350)]
    starts = [lines_of(range(first, last + 1), 1000.0 + n % 3) for n, (first, last) in enumerate(ends)]
    assert parts_of_file(tmp_path, *starts) == [(101, 500), (1, 350)]


@pytest.mark.parametrize(
    ("ms", "batch", "runs"),
    [
        (1000.0, 32, [(1, 30)]),
        (1100.0, 32, [(1, 30)]),
        (1300.0, 32, [(1, 20), (1, 30)]),
        (1010.0, 64, [(1, 20), (1, 30)]),
    ],
)
def test_unfinished_trainings_of_another_pace_or_batch_are_runs_of_their_own(tmp_path, ms, batch, runs):
    assert parts_of_file(tmp_path, lines_of(range(1, 21)), lines_of(range(1, 31), ms, batch)) == runs


@pytest.mark.parametrize(("each", "days", "runs"), [(1, 150, 2), (3, 150, 2), (3, 20, 1)])
def test_rows_that_are_months_apart_without_a_start_are_of_two_runs(tmp_path, each, days, runs):
    stamps = [BEGIN + timedelta(seconds=n) for n in range(each)]
    stamps += [stamp + timedelta(days=days) for stamp in stamps]
    lines = [f"[{stamp:%Y-%m-%d %H:%M:%S}] {megatron_line(1 + n, 1000.0)}" for n, stamp in enumerate(stamps)]
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines) + "\n")
    parts = analyze_parts([str(path)], RunOptions())
    assert [len(run.steps) for run in parts] == [2 * each // runs] * runs
    assert "stamp_damaged" not in [code for run in parts for code in codes(run)]


@pytest.mark.parametrize(("whole", "warns"), [(3, True), (60, False)])
def test_wrapped_step_lines_are_reported_where_they_are_many(tmp_path, whole, warns):
    lines = [megatron_line(step, 1000.0) for step in range(1, whole + 1)]
    wrapped = megatron_line(whole + 1, 1000.0)
    cut = wrapped.index("elapsed time per iteration") + 10
    run = analyzed(tmp_path, WORLD, *lines, wrapped[:cut], wrapped[cut:], "the end")
    notes = [note for note in run.notes if note.code == "step_lines_broken"]
    assert [(note.fields["n"], note.fields["of"]) for note in notes] == ([(1, 4)] if warns else [])


def test_a_last_line_that_is_cut_is_not_reported(tmp_path):
    run = analyzed(tmp_path, WORLD, megatron_line(1, 1000.0), megatron_line(2, 1000.0), megatron_line(3, 1000.0)[:60])
    assert "step_lines_broken" not in codes(run)


@pytest.mark.parametrize(
    ("before", "warns"),
    [("09:56:51", True), ("09:43:10", False), ("09:43:50", False), ("17:40:00", False)],
    ids=["another job", "before", "a thread", "another zone"],
)
def test_stamps_that_go_back_before_the_first_step_are_reported(tmp_path, before, warns):
    lines = [f"[2025-11-10 09:43:{36 + step}] {megatron_line(step, 1000.0)}" for step in range(1, 11)]
    run = analyzed(tmp_path, f"[2025-11-10 {before}] building the model", WORLD, *lines)
    assert ("stamps_go_back" in codes(run)) is warns


DATED = "[{}] datetime: 2026-03-15 16:{}"


def dated_run():
    lines = [megatron_line(step, 1000.0) for step in range(1, 101)]
    return [
        "[2026-03-15 16:19:20,000] [INFO] [runner.py:630:main] cmd = python -u -m deepspeed.launcher.launch train.py",
        DATED.format("after megatron is initialized", "19:50"),
        WORLD,
        DATED.format("before the start of training step", "20:10"),
        *lines,
        DATED.format("after training is done", "21:50"),
    ]


def test_lines_with_a_date_give_the_start_up_of_steps_without_stamps(tmp_path):
    run = analyzed(tmp_path, *dated_run())
    parts = dict(run.time_breakdown.select("part", "seconds").iter_rows())
    assert parts["start_up"] == pytest.approx(50)
    assert sum(parts.values()) == pytest.approx(150)
    assert "wall_clock_not_computed" not in codes(run)


def test_a_loop_shorter_than_its_steps_is_no_clock(tmp_path):
    lines = [line.replace("16:21:50", "16:20:50") for line in dated_run()]
    run = analyzed(tmp_path, *lines)
    assert run.analysis.rate("wall_clock")["step_time_ms"] is None


def test_a_count_of_tokens_gives_tokens_without_a_batch(tmp_path):
    lines = [
        line
        for step in range(1, 9)
        for line in (
            f"[2024-04-17 09:42:{step * 5:02}] INFO     [olmo.train:816, rank=0] [step={step}/100]",
            f"    throughput/total_tokens={step * 1_000_000:,}",
        )
    ]
    run = analyzed(tmp_path, *lines, how=given(world_size=8))
    assert run.analysis.value("tokens_per_second_per_device") == pytest.approx(1_000_000 / 5 / 8)
    assert {"tokens_rate_not_computed", "samples_rate_not_computed"}.isdisjoint(codes(run))


def test_a_record_without_its_step_is_one_step(tmp_path):
    path = tmp_path / "run.log"
    path.write_text("  • Loss: 0.0103\n  • Total step time: 35.70s\n    - E2E (Tokens/sec): 8588.75\n")
    run = analyze_logs([str(path)], RunOptions())
    assert run.log.format.name == "nemo-rl-record"
    assert run.steps["step_time_ms"].to_list() == [35_700.0]


def test_the_tokens_of_a_ramp_are_those_of_the_samples_consumed(tmp_path):
    """From 16 to 32 inside the third row, of which 256 samples are 25.6 a step."""
    rows = [(10, 16, 160), (20, 16, 320), (30, 32, 576), (40, 32, 896)]
    shown = ({"global batch size": str(batch), "consumed samples": str(done)} for _, batch, done in rows)
    lines = [megatron_line(step, pairs=pairs) for (step, *_), pairs in zip(rows, shown, strict=True)]
    run = analyzed(tmp_path, WORLD, *lines, how=given(seq_length=1024))
    assert run.title.tokens == 896 * 1024


def test_the_trainer_may_count_devices_that_share_a_sample(tmp_path):
    """Sequence parallelism of 2: the Trainer multiplies the batch by all 4 devices, so that it is twice as large."""
    how = given(world_size=4, global_batch_size=4, context_parallel_size=2)
    summary = SUMMARY.replace("3.08", "12.32")
    run = analyzed(tmp_path, *bars_with_a_redrawn_one(), summary, how=how)
    assert note_of(run, "printed_rate_differs").fields["cause"].code == "model_parallel_counted"


def test_the_launcher_of_deepspeed_ends_the_run(tmp_path):
    stamp = "[2023-04-18 03:{:02}:{:02},000]"
    lines = [
        stamp.format(s // 60, s % 60)
        + f" [INFO] [logging.py:96:log_dist] [Rank 0] step={n}, skipped=0, lr=[1e-05], mom=[0.9]"
        for n, s in enumerate(range(0, 600, 10), 1)
    ]
    end = stamp.format(11, 0) + " [INFO] [launch.py:460:main] Process 7 exits successfully."
    run = analyzed(tmp_path, *lines, end)
    assert run.title.seconds == pytest.approx(660, abs=11)


PACES = {
    "constant": lambda _: 5000.0,
    "drifts up": lambda step: 4000.0 + 10.0 * step,
    "drifts down": lambda step: 6000.0 - 10.0 * step,
    "two levels": lambda step: 4000.0 if step <= 120 else 6000.0,
    "level, then drift": lambda step: 4000.0 if step <= 100 else 6000.0 + 10.0 * (step - 100),
}


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize("pace", PACES.values(), ids=PACES)
def test_what_is_left_takes_the_present_pace(tmp_path, pace, noise):
    lines, _ = steps_of(1, 200, lambda step: pace(step) * (1 + noise * (step * 7919 % 11 - 5) / 5))
    left, _ = left_of(tmp_path / "run.log", arguments_dump(SETTINGS), *lines)
    assert left.seconds == pytest.approx(left.steps * pace(200) / 1000, rel=0.02)
    assert left.seconds_low <= left.seconds <= left.seconds_high
