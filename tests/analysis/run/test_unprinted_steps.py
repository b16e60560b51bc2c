"""Steps that no line prints: their time is useful, and a missing log is named."""

from datetime import timedelta

import pytest
from helpers import arguments_dump, megatron_line
from runs import BEGIN

from analysis.run.build import analyze_logs
from analysis.run.options import RunOptions

DUMP = arguments_dump({"world_size": 8, "seq_length": 4096, "global_batch_size": 32}).splitlines()


def rows(first, last, begin):
    """Lines of every 100th step of 5 s, from ``begin`` on."""
    lines = []
    for n, step in enumerate(range(first, last + 1, 100)):
        clock = begin + timedelta(seconds=500 * (n + 1))
        line = megatron_line(step, 5000.0, f"{clock:%Y-%m-%d %H:%M:%S}")
        lines.append(line.replace("/     500", "/    5000"))
    return lines, begin + timedelta(seconds=500 * ((last - first) // 100 + 1))


def chain(tmp_path, loaded, between, saved=None):
    """Steps 100 to 300, then ``between`` seconds until a process that loads the step ``loaded``."""
    before, end = rows(100, 300, BEGIN)
    after, _ = rows(loaded + 100, loaded + 300, end + timedelta(seconds=between))
    save = [] if saved is None else [f" saving checkpoint at iteration {saved:7d} to ckpt"]
    load = f"  successfully loaded checkpoint from ckpt [ t 0, p 0 ] at iteration {loaded}"
    path = tmp_path / "run.log"
    path.write_text("\n".join([*DUMP, *before, *save, *DUMP, load, *after]) + "\n")
    return analyze_logs([str(path)], RunOptions())


def test_steps_that_a_save_shows_are_useful(tmp_path):
    """90 steps of 5 s before the restart, which took 60 s: 690 of 750 steps' time and pause are known useful."""
    run = chain(tmp_path, loaded=390, between=510, saved=390)
    assert run.goodput == pytest.approx((600 + 90) * 5 / (690 * 5 + 60), abs=1e-3)
    assert "log_missing" not in [note.code for note in run.notes]


def test_the_log_of_a_job_between_is_missing(tmp_path):
    run = chain(tmp_path, loaded=600, between=1560)
    (note,) = [note for note in run.notes if note.code == "log_missing"]
    assert (note.fields["first"], note.fields["last"]) == (301, 600)
    assert run.goodput == pytest.approx(900 * 5 / (900 * 5 + 60), abs=1e-3)


def test_a_restart_from_a_printed_step_has_no_unprinted_ones(tmp_path):
    run = chain(tmp_path, loaded=300, between=600)
    assert run.goodput == pytest.approx(600 * 5 / (600 * 5 + 600), abs=1e-3)
    assert "log_missing" not in [note.code for note in run.notes]


def test_a_row_after_missing_lines_is_of_its_own_interval(tmp_path):
    """Steps 1 to 20 and 41 to 60 of 5 s: those between are useful by the clock, and the slow step 41 is one step."""
    lines = []
    for step in (*range(1, 21), *range(41, 61)):
        clock = BEGIN + timedelta(seconds=5 * step + (step > 40))
        lines.append(megatron_line(step, 5900.0 if step == 41 else 5000.0, f"{clock:%Y-%m-%d %H:%M:%S}"))
    path = tmp_path / "run.log"
    path.write_text("\n".join([*DUMP, *lines]) + "\n")
    run = analyze_logs([str(path)], RunOptions())
    assert run.steps.filter(step=41)["iterations"].item() == 1
    assert "clock_shorter_than_steps" not in [note.code for note in run.notes]
    assert run.rate("wall_clock")["step_time_ms"] == pytest.approx(301_000 / 60)
    assert run.goodput == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("stamped", [True, False], ids=["stamped", "without stamps"])
def test_the_last_steps_of_a_completed_training_are_useful(tmp_path, stamped):
    """Of 530 steps every 100th has a line; the 30 after the last one take 150 s, and the save 10 s."""
    lines, end = rows(100, 500, BEGIN)
    lines = [line.replace("/    5000", "/     530") for line in lines]
    lines = lines if stamped else [line.partition("]")[2] for line in lines]
    first = f"[before the start of training step] datetime: {BEGIN:%Y-%m-%d %H:%M:%S} "
    last = f"[after training is done] datetime: {end + timedelta(seconds=160):%Y-%m-%d %H:%M:%S} "
    path = tmp_path / "run.log"
    path.write_text("\n".join([*DUMP, first, *lines, "time (ms) | save-checkpoint: 10000.00", last]) + "\n")
    run = analyze_logs([str(path)], RunOptions())
    assert run.goodput == pytest.approx(2650 / 2660, abs=2e-3)
    # Without a save there is the same time after the last line.
    path.write_text("\n".join([*DUMP, first, *lines, last]) + "\n")
    assert analyze_logs([str(path)], RunOptions()).goodput == pytest.approx(2650 / 2660, abs=2e-3)


def test_an_excerpt_says_how_many_steps_have_no_line(tmp_path):
    lines = [megatron_line(step, 5000.0) for step in (*range(1, 11), *range(41, 51))]
    path = tmp_path / "run.log"
    path.write_text("\n".join([*DUMP, *lines]) + "\n")
    (note,) = [note for note in analyze_logs([str(path)], RunOptions()).notes if note.code == "step_lines_missing"]
    assert (note.fields["n"], note.fields["of"]) == (30, 50)


def test_an_excerpt_is_short_by_its_lines(tmp_path):
    """Five lines of 50 steps: no goodput, and the first step is the first that a line shows."""
    lines = [megatron_line(step, 5000.0) for step in (10, 30, 47, 48, 50)]
    path = tmp_path / "run.log"
    path.write_text("\n".join([*DUMP, *lines]) + "\n")
    run = analyze_logs([str(path)], RunOptions())
    assert (run.short, run.title.first_step, run.title.last_step) == (True, 10, 50)


def test_a_line_far_ahead_has_a_time_of_its_own_interval(tmp_path):
    """Lines 10 steps apart, then two from much later: each is the mean of 10 steps, not of those between."""
    lines = [megatron_line(step, 5000.0) for step in (*range(10, 90, 10), 900, 4400)]
    lines = [line.replace("/     500 ", "/   50000 ") for line in lines]
    path = tmp_path / "run.log"
    path.write_text("\n".join([*DUMP, *lines]) + "\n")
    run = analyze_logs([str(path)], RunOptions())
    assert run.steps["iterations"].to_list()[1:] == [10] * 9


def test_a_printed_rate_far_from_the_clock_is_doubted(tmp_path):
    """Ten lines of 50 steps at 1,280 samples/s, of which the clock between the first and the last gives 40."""
    begin = "[INFO 2024-02-06 10:00:00]"
    batch = "  gradient_accumulation_steps .. 1\n  train_batch_size ............. 4"
    late = f"{begin[:-9]}10:41:28]"
    lines = [f"{begin} 0/{step}, SamplesPerSec=1280.5" for step in range(50, 300, 50)]
    lines += [f"{late} 0/{step}, SamplesPerSec=1280.5" for step in range(24750, 25050, 50)]
    path = tmp_path / "run.log"
    path.write_text("\n".join(["DeepSpeedLight configuration:", batch, *lines]) + "\n")
    run = analyze_logs([str(path)], RunOptions())
    (note,) = [note for note in run.notes if note.code == "printed_rate_unlike_clock"]
    assert note.fields["by_clock"] == pytest.approx((25000 - 50) * 4 / 2488)
    assert note.fields["ratio"] == pytest.approx(1280.5 / note.fields["by_clock"])
    assert run.title.seconds == 2488
    near = path.read_text().replace(late, f"{begin[:-9]}10:01:18]")
    path.write_text(near)
    assert "printed_rate_unlike_clock" not in [note.code for note in analyze_logs([str(path)], RunOptions()).notes]
