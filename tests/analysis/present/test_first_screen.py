"""The first screen: at most 18 lines at 80 columns over all fixtures, and what each row says."""

import io
import re

import pytest
from fixture_runs import run_of_fixture
from helpers import ROOT, SETTINGS, arguments_dump, megatron_line, run_logparse, sweep_after
from rich.cells import cell_len

from analysis.present.console import make_console
from analysis.present.numbers import about_range, percent
from analysis.present.parts import RunTitle, ScreenRows
from analysis.present.terminal import print_parts
from analysis.present.views.ending import LONGEST, headline
from analysis.present.views.first_screen import first_screen, quiet_line, remaining, time_left
from analysis.present.views.title import extent, who
from analysis.report.first_screen import answer_of
from analysis.run.checks.self_checks import broken_by
from logparse import analyze
from logparse.language import LANGUAGES, speaking, tr

pytestmark = pytest.mark.usefixtures("analysed_once")

# A fixture is a folder, all logs of it one run; those of releases and rounds are a run each.
CASES = sorted(
    {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "fixtures").glob("*/*/*.log")}
    | {path.relative_to(ROOT).as_posix() for path in (ROOT / "fixtures").glob("*/*.log")}
)
# Lines of a healthy run; how many more a run has that failed or whose figures are withheld, and one of later attempts.
MOST_LINES, MORE_LINES = 18, 4


@pytest.fixture
def log(tmp_path):
    """20 steps of a second, from 08:10 on, of a process that printed its first stamp at 08:00."""
    lines = ["[2026-03-01 08:00:00] the process starts", arguments_dump(SETTINGS).rstrip("\n")]
    lines += [megatron_line(step, 1000.0, f"2026-03-01 08:10:{step:02}") for step in range(1, 21)]
    path = tmp_path / "worker_0.log"
    path.write_text("\n".join(lines) + "\n")
    return path


def screen(folder, *options):
    return " ".join(run_logparse("analyze", "worker_0.log", *options, cwd=folder).stdout.split())


def shown_lines(parts, columns):
    """``parts`` on a terminal of so many columns."""
    console = make_console()
    console.file, console.width = io.StringIO(), columns
    print_parts(console, parts)
    return console.file.getvalue().rstrip("\n").splitlines()


def clauses_of(parts):
    """What no line may break; the error is a line of the log and may be longer than a terminal is wide."""
    for part in parts:
        if isinstance(part, RunTitle):
            yield from (*part.who, *part.extent)
        elif isinstance(part, ScreenRows):
            rows = (row for row in part.rows if row.label != tr("error"))
            yield from (text for row in rows for text in (row.label, row.value, *row.clauses))


def faults(parts, columns, most):
    """What is wrong with a first screen on a terminal of so many columns; None where it fits."""
    lines = shown_lines(parts, columns)
    too_wide = [line for line in lines if cell_len(line) > columns]
    broken = [clause for clause in clauses_of(parts) if not any(clause in line for line in lines)]
    cut = [line for line in lines if "…" in line or "..." in line]
    return (len(lines), too_wide, broken, cut) if len(lines) > most or too_wide or broken or cut else None


@pytest.mark.parametrize("case", CASES)
def test_every_fixture_fits_on_a_screen(case):
    run = run_of_fixture(ROOT / case) if (ROOT / case).is_dir() else analyze(str(ROOT / case), hw="910b3")
    unhealthy, again = run.log.ending.failed or bool(broken_by(run.checks)), run.log.ending.attempts_in_log > 1
    most = MOST_LINES + (MORE_LINES if unhealthy else again) + len(run.analysis.sizes[1:])
    found = {}
    for language in LANGUAGES:
        with speaking(language):
            parts = first_screen(run)
            found |= {(language, columns): faults(parts, columns, most) for columns in (80, 120)}
            assert cell_len(quiet_line(run)) <= LONGEST
    assert {where: fault for where, fault in found.items() if fault} == {}


def test_the_fixtures_are_all_there():
    assert len(CASES) > 120


def test_a_run_that_failed_has_four_lines_more_at_most(log):
    """A long error, torn lines and lines of zeros, and every row of a healthy run."""
    lines = log.read_text().splitlines()
    lines += [megatron_line(step, 1000.0, f"2026-03-01 08:{10 + step // 60}:{step % 60:02}") for step in range(21, 340)]
    lines[100:100] = [lines[100][:50], "\0" * 200, "validation loss at iteration 99 | lm loss value: 2.0E+00 |"]
    error = f"torch.OutOfMemoryError: NPU out of memory. Tried to allocate 2.00 GiB ({'of a long sentence, ' * 12})"
    log.write_text("\n".join([*lines, error]) + "\n")
    parts = first_screen(analyze(str(log), hw="910b3"))
    assert "error" in {row.label for row in parts[-1].rows}
    assert [fault for columns in (80, 120) if (fault := faults(parts, columns, MOST_LINES + MORE_LINES))] == []


def test_a_healthy_run_takes_seventeen_lines_at_most():
    log = "fixtures/megatron/core-v0.12-llama2-7b/run.log"
    shown = run_logparse("analyze", log, "--hw", "910b3", cwd=ROOT, COLUMNS="80").stdout.rstrip("\n").splitlines()
    assert len(shown) <= 17
    for row in ("step time", "throughput", "TFLOP/s", "MFU", "loss", "goodput", "remaining", "compared"):
        assert any(line.startswith(row) for line in shown)


def test_the_answer_in_one_line_is_that_of_the_first_screen():
    log = "fixtures/megatron/core-v0.12-llama2-7b/run.log"
    done = run_logparse("analyze", log, "--hw", "910b3", "-q", cwd=ROOT)
    assert done.stdout == f"{quiet_line(analyze(str(ROOT / log), hw='910b3'))}\n"


def test_a_run_begins_where_its_log_does(log):
    assert " · 2026-03-01 08:00, 10 min 20 s" in extent(analyze(log))


def test_a_restart_by_another_clock_does_not_begin_the_run(log, tmp_path):
    """The second process prints in a zone eight hours behind."""
    lines = ["[2026-03-01 00:20:00] the process starts", arguments_dump(SETTINGS).rstrip("\n")]
    lines += [megatron_line(step, 1000.0, f"2026-03-01 00:30:{step - 20:02}") for step in range(21, 41)]
    log.write_text(log.read_text() + "\n".join(lines) + "\n")
    assert " · 2026-03-01 08:00, " in extent(analyze(log))


def test_copies_by_other_ranks_are_counted_apart(log, tmp_path):
    (tmp_path / "worker_1.log").write_text(log.read_text())
    shown = " ".join(run_logparse("analyze", str(tmp_path), "-v", cwd=tmp_path).stdout.split())
    assert "20 excluded: copy from another rank" in shown


def test_a_run_that_failed_says_so_in_its_second_line_and_has_no_plan_but_if_it_resumes(log, tmp_path):
    steps = [megatron_line(step, 1000.0, f"2026-03-01 08:{10 + step // 60}:{step % 60:02}") for step in range(21, 340)]
    saved = "  successfully saved checkpoint at iteration     339 to ckpt\n"
    error = "torch.OutOfMemoryError: NPU out of memory. Tried to allocate 2.00 GiB\n"
    log.write_text(log.read_text() + "\n".join(steps) + "\n" + saved + error)
    lines = run_logparse("analyze", "worker_0.log", cwd=tmp_path, COLUMNS="100").stdout.splitlines()
    assert lines[1].startswith("failed at step 339 of 500: out of device memory · ")
    assert any(line.startswith("remaining      161 steps if resumed, about ") for line in lines)


def test_a_short_run_has_no_goodput_no_plan_and_no_interval(log, tmp_path):
    log.write_text("\n".join(log.read_text().splitlines()[:-2]) + "\n")
    shown = screen(tmp_path, "-v")
    assert " log lines: too few for goodput" in shown
    assert "remaining" not in shown
    assert re.search(r"95 % interval( -)+ samples/s/p", shown)
    assert not re.search(r"goodput [0-9.]+ %", screen(tmp_path))


def test_a_run_without_a_clock_is_measured_by_its_steps(log, tmp_path):
    log.write_text(arguments_dump(SETTINGS) + "".join(megatron_line(s, 1000.0) + "\n" for s in range(1, 21)))
    assert " · 20 s logged · " in screen(tmp_path)


def test_mfu_of_packed_documents_is_a_range(log, tmp_path):
    log.write_text(log.read_text().replace("  bf16", "  use_packed_seq_params .................. True\n  bf16", 1))
    row = re.search(
        r"MFU ([0-9.]+) % .*?([0-9.]+) % at least: document lengths", screen(tmp_path, "--peak-tflops", "2000")
    )
    assert row
    assert float(row[2]) < float(row[1])


def test_adapters_of_unknown_size_are_left_out_of_mfu(log, tmp_path):
    dense = re.search(r"MFU ([0-9.]+) %", screen(tmp_path, "--peak-tflops", "2000"))
    log.write_text(log.read_text().replace("  bf16", "  lora_target_modules .................... ['q']\n  bf16", 1))
    unknown = screen(tmp_path, "--peak-tflops", "2000")
    known = re.search(r"MFU ([0-9.]+) %", screen(tmp_path, "--peak-tflops", "2000", "--adapter-parameters", "4194304"))
    assert dense
    assert known
    without = re.search(r"MFU ([0-9.]+) %", unknown)
    assert "--adapter-parameters" not in unknown
    assert without
    assert float(without[1]) == pytest.approx(float(known[1]), rel=0.02)
    assert 2 / 3 - 0.01 < float(known[1]) / float(dense[1]) < 0.8


def test_a_device_without_a_peak_of_the_precision_is_named_all_the_same(log, tmp_path):
    assert " on 8 x V100 SXM2" in who(analyze(log, hw="v100"))
    assert "MFU: no bf16 peak of V100 SXM2 is known: pass --peak-tflops or another --dtype" in screen(
        tmp_path, "--hw", "v100"
    )


def test_one_row_names_every_flag_that_is_missing(tmp_path):
    (tmp_path / "worker_0.log").write_text("".join(f"{megatron_line(step)}\n" for step in range(1, 31)))
    shown = screen(tmp_path)
    flags = "--world-size --seq-length --model --hw --dtype"
    assert "throughput 32.0 samples/s of all devices" in shown
    assert f"missing tokens/s/p, TFLOP/s, MFU: pass {flags}" in shown


def test_several_trainings_are_the_first_warning(log, tmp_path):
    log.write_text(log.read_text() + "".join(megatron_line(s, 1100.0) + "\n" for s in range(1, 21)))
    shown = screen(tmp_path, "--peak-tflops", "2000")
    assert re.search(r"warnings \d+: 2 separate runs in one file: split it", shown)


def test_the_time_between_two_trainings_is_of_neither(log, tmp_path):
    assert "2026-03-01 08:00, 10 min 20 s" in screen(tmp_path)
    later = [megatron_line(step, 1000.0, f"2026-03-02 08:10:{step:02}") + "\n" for step in range(1, 21)]
    log.write_text(log.read_text() + "".join(later))
    assert "2026-03-01 08:00 ·" in screen(tmp_path)


def test_a_mean_alone_has_no_goodput_and_says_so(tmp_path):
    dicts = (f"{{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': {n / 181:.2f}}}\n" for n in range(10, 181, 10))
    end = "{'train_runtime': 1810.4, 'train_steps_per_second': 0.1, 'train_loss': 2.1, 'epoch': 1.0}\n"
    head = "  Num examples = 1,448\n  Total optimization steps = 181\n"
    (tmp_path / "worker_0.log").write_text(head + "".join(dicts) + end)
    shown = screen(tmp_path)
    assert "no goodput: the log has only the average step time" in shown
    assert "step time 10.0 s" in shown


def test_updates_that_are_all_nan_have_a_goodput(tmp_path):
    line = "2026/03/01 08:{:02}:00 - mmengine - INFO - Iter(train) [{}0/900]  time: 6.0  loss: 0.7  grad_norm: nan\n"
    (tmp_path / "worker_0.log").write_text("".join(line.format(n, n) for n in range(1, 41)))
    shown = screen(tmp_path)
    assert "goodput 0.0 %" in shown
    assert "no goodput" not in shown


@pytest.mark.parametrize("sizes", [{"num_layers": 31}, {"num_layers": 31, "num_experts": 64, "hidden_size": 6144}])
def test_every_flag_of_a_model_without_a_name_fits_on_the_screen(tmp_path, sizes):
    (tmp_path / "run.log").write_text("".join(f"{megatron_line(step)}\n" for step in range(1, 31)))
    run = analyze(str(tmp_path / "run.log"), **sizes)
    for language in LANGUAGES:
        with speaking(language):
            assert faults(first_screen(run), 80, MOST_LINES) is None


@pytest.mark.parametrize(
    ("low", "high", "english", "chinese"),
    [
        (7 * 3600, 9 * 3600, "7 to 9 h", "7 ~ 9 小时"),
        (50 * 60, 2 * 3600, "50 min to 2 h", "50 分钟 ~ 2 小时"),
        (3 * 86_400, 3 * 86_400, "", ""),
    ],
)
def test_a_range_of_long_times_has_its_unit_once(low, high, english, chinese):
    with speaking("en"):
        assert about_range(low, high) == english
    with speaking("zh"):
        assert about_range(low, high) == chinese


def test_a_run_whose_steps_count_from_0_is_complete_one_step_before_its_plan():
    assert "steps 0 to 40 of 41, completed" in extent(analyze(ROOT / "fixtures/roll/sft/run.log"))


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (7200, 10_000, "about 2 h (2 to 3 h)"),
        (7200, 80_000, "2 to 22 h"),
        (7200, 8_000_000, "time unknown"),
        (10_000, None, "at least 2 h"),
    ],
)
def test_the_time_left_is_shown_as_far_as_it_is_known(low, high, shown):
    assert time_left(7300, low, high) == shown


@pytest.mark.parametrize(("every", "least"), [(10, True), (60, False)])
def test_steps_without_a_time_make_sums_the_least_that_they_can_be(tmp_path, every, least):
    """Steps of 100 to 102 s, of which every 10th prints no time; a last one without may be cut off."""
    lines = []
    for step in range(1, 61):
        timed = "" if step % every == 0 else f" - timing_s/step:{100 + step % 3}.0"
        lines.append(
            f"Training Progress:   1%|  | {step}/700 [00:10<10:00]\nstep:{step} - actor/pg_loss:0.0125{timed}\n"
        )
    path = tmp_path / "run.log"
    path.write_text("".join(lines))
    run = analyze(path)
    assert ("at least" in extent(run)) == least
    row = remaining(run)
    assert row is not None
    assert row.clauses[1].startswith("at least" if least else "about")
    left = run.expectations.plan.left
    assert left is not None
    assert (left.seconds is None, left.seconds_high is None) == (least, least)
    assert left.seconds_low == pytest.approx(left.steps * 101, rel=0.01)


@pytest.mark.parametrize(
    ("share", "shown"), [(0.0, "0.0 %"), (0.0004, "0.04 %"), (0.4, "40.0 %"), (-0.00001, "-0.001 %")]
)
def test_only_no_share_at_all_is_shown_as_0(share, shown):
    assert percent(share) == shown


def test_the_screen_says_why_mfu_is_another_share_of_the_peak_than_the_formula():
    log = "fixtures/megatron/core-v0.12-llama2-7b/run.log"
    told = "counts the real model, not the formula"
    assert told in run_logparse("analyze", log, "--hw", "910b3", cwd=ROOT).stdout
    assert told not in run_logparse("analyze", log, "--hw", "910b3", "--formula", "megatron-current", cwd=ROOT).stdout


@pytest.mark.parametrize(
    ("steps", "plan", "after", "ends"),
    [
        (20, "500", "", True),
        (20, "20", "", False),
        (20, "500", "[rank0]: torch.OutOfMemoryError: CUDA out of memory.\n", False),
    ],
    ids=["before its plan", "at its plan", "failed"],
)
def test_a_log_that_ends_before_its_plan_says_so(tmp_path, steps, plan, after, ends):
    lines = [megatron_line(step, 1000.0).replace("/     500", f"/{plan:>8}") for step in range(1, steps + 1)]
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n" + after)
    run = analyze(tmp_path / "run.log")
    assert ("cut off or running" in extent(run)) == ends
    with speaking("zh"):
        assert ("日志截断或仍在训练" in extent(run)) == ends


def test_a_log_without_a_plan_does_not_say_how_it_ends():
    run = analyze(ROOT / "fixtures/detectron2/faster-rcnn/run.log")
    assert (run.title.planned_steps, run.log.ending.state) == (None, "cut_off")
    assert "running" not in extent(run)


def test_a_completed_training_whose_last_steps_have_no_line_says_how_far_lines_go(tmp_path):
    lines = [megatron_line(step, 1000.0).replace("/     500", "/     205") for step in range(10, 201, 10)]
    (tmp_path / "worker_0.log").write_text(
        "\n".join([*lines, "[after training is done] datetime: 2026-03-01 09:00:00 "])
    )
    assert "steps 1 to 200 of 205 printed, completed" in screen(tmp_path)


DONE, EXITING = "[after training is done] datetime", "[exiting program at iteration 1] datetime"


@pytest.mark.parametrize(("first", "by_itself"), sweep_after(2, [(1, DONE), (201, EXITING), (1, EXITING), (201, DONE)]))
@pytest.mark.parametrize("interval", [1, 5, 10])
@pytest.mark.parametrize("left", [0, 0.5, 1, 1.5, 40])
def test_a_trainer_that_ends_by_itself_before_its_plan_says_so_on_each_screen(
    tmp_path, interval, left, first, by_itself
):
    last = first - 1 + 20 * interval
    planned = last + int(left * interval)
    steps = range(first - 1 + interval, last + 1, interval)
    lines = [megatron_line(step).replace("/     500", f"/{planned:>8}") for step in steps]
    (tmp_path / "run.log").write_text("\n".join([*lines, by_itself]) + "\n")
    run = analyze(tmp_path / "run.log")
    early = int(left * interval) > interval
    assert (run.log.ending.state, run.log.ending.ended_early) == ("completed", early)
    for language, words in (
        ("en", "the trainer ended by itself before its plan"),
        ("zh", "训练程序在计划步数之前自行结束"),
    ):
        with speaking(language):
            shown = [extent(run), headline(run.log.ending), answer_of(run, run).ended]
        assert all((words in text) == early for text in shown), shown
        assert early or all("completed" in text or "完成" in text for text in shown), shown


def test_a_short_log_names_what_is_lost_inside_a_step(log):
    deep = SETTINGS | {"pipeline_model_parallel_size": 4, "data_parallel_size": 2, "micro_batch_size": 4}
    log.write_text(log.read_text().replace(arguments_dump(SETTINGS), arguments_dump(deep)))
    shown = screen(log.parent)
    assert "log lines: too few for goodput" in shown
    assert "inside a step estimated: pipeline bubble" in shown


def test_the_time_of_one_line_is_called_so(tmp_path):
    (tmp_path / "worker_0.log").write_text(megatron_line(1, 1000.0) + "\n")
    assert "step time 1.00 s of the only step line" in screen(tmp_path)


def test_a_cpu_has_no_peak(log):
    refused = run_logparse("analyze", "worker_0.log", "--hw", "cpu", cwd=log.parent)
    assert refused.returncode == 2
    assert "leave --hw out, or give --peak-tflops" in refused.stderr
