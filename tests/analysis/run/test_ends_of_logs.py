"""The ends of a log: how far a run came, how long it took, whether it is one run."""

from datetime import timedelta

import pytest
from helpers import megatron_line
from runs import BEGIN, WORLD

from analysis.run.build import analyze_logs, analyze_parts
from analysis.run.options import RunOptions
from logparse.context.run_context import Fact, Given
from logparse.errors import NoStepLineError
from logparse.findings import Origin


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


def test_a_record_without_its_step_is_named(tmp_path):
    path = tmp_path / "run.log"
    path.write_text("  • Loss: 0.0103\n  • Total step time: 35.70s\n    - E2E (Tokens/sec): 8588.75\n")
    with pytest.raises(NoStepLineError, match="without the line that prints their step: 1") as refusal:
        analyze_logs([str(path)], RunOptions())
    assert "record" in str(refusal.value.remedy)


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
