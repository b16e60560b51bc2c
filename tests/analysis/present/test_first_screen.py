"""The first screen: when the run began, and how far it can be trusted."""

import re

import pytest
from helpers import SETTINGS, arguments_dump, megatron_line, run_logparse

from analysis.present.views.who import who
from logparse import analyze


@pytest.fixture
def log(tmp_path):
    """20 steps of a second, from 08:10 on, of a process that printed its first stamp at 08:00."""
    lines = ["[2026-03-01 08:00:00] the process starts", arguments_dump(SETTINGS).rstrip("\n")]
    lines += [megatron_line(step, 1000.0, f"2026-03-01 08:10:{step:02}") for step in range(1, 21)]
    path = tmp_path / "worker_0.log"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_run_begins_where_its_log_does(log):
    assert " · 2026-03-01 08:00, 10 min 20 s · " in who(analyze(log))


def test_a_restart_by_another_clock_does_not_begin_the_run(log, tmp_path):
    """The second process prints in a zone eight hours behind."""
    lines = ["[2026-03-01 00:20:00] the process starts", arguments_dump(SETTINGS).rstrip("\n")]
    lines += [megatron_line(step, 1000.0, f"2026-03-01 00:30:{step - 20:02}") for step in range(21, 41)]
    log.write_text(log.read_text() + "\n".join(lines) + "\n")
    assert " · 2026-03-01 08:00, " in who(analyze(log))


def test_copies_by_other_ranks_do_not_count_against_the_run(log, tmp_path):
    (tmp_path / "worker_1.log").write_text(log.read_text())
    shown = " ".join(run_logparse("analyze", str(tmp_path), cwd=tmp_path).stdout.split())
    assert "19 of 20 step lines count; 1 warm-up; 20 more are copies by other ranks" in shown


def screen(folder, *options):
    return " ".join(run_logparse("analyze", "worker_0.log", *options, cwd=folder).stdout.split())


def test_a_run_that_failed_says_so_first_and_has_no_plan_but_if_it_resumes(log, tmp_path):
    log.write_text(log.read_text() + "torch.OutOfMemoryError: NPU out of memory. Tried to allocate 2.00 GiB\n")
    shown = screen(tmp_path, "--peak-tflops", "2000")
    first = shown.partition("! ")[2]
    assert first.startswith("the run ended at step 20 of 500, and error lines follow")
    assert "480 steps left if resumed, 8 min 0 s" in shown


def test_an_interval_is_no_finer_than_the_times_are_printed(tmp_path):
    """Times of whole milliseconds, all alike: the true median can lie half of one to either side."""
    steps = [megatron_line(step, 1003).replace("1003.0", "1003") for step in range(1, 21)]
    (tmp_path / "worker_0.log").write_text("\n".join(steps) + "\n")
    assert "ms/step 1,003.0 1,003.0 1,002 to 1,004" in screen(tmp_path)


def test_steady_above_delivered_is_explained(tmp_path):
    """Seven steps in ten take 1.1 s, the others 1 s."""
    steps = [megatron_line(s, 1000.0 if s % 10 in (0, 3, 6) else 1100.0) for s in range(1, 101)]
    (tmp_path / "worker_0.log").write_text("\n".join(steps) + "\n")
    assert "1,099.5 to 1,100.5 steady is the median; faster steps lower the mean" in screen(tmp_path)


def test_a_run_without_a_clock_says_why_nothing_is_by_the_clock(log, tmp_path):
    assert "tokens/s/p by the clock" in screen(tmp_path)
    steps = [megatron_line(step, 1000.0) for step in range(1, 21)]
    log.write_text(arguments_dump(SETTINGS) + "\n".join(steps) + "\n")
    assert "no clock of the whole run" in screen(tmp_path)


def test_mfu_as_built_of_packed_documents_is_a_range_without_an_interval(log, tmp_path):
    log.write_text(log.read_text().replace("  bf16", "  use_packed_seq_params .................. True\n  bf16", 1))
    row = re.search(
        r"MFU as built, % (\S+) (\S+) (\S+) to (\S+): by documents", screen(tmp_path, "--peak-tflops", "2000")
    )
    assert row
    assert float(row[3]) < float(row[4]) == float(row[2])


def test_a_log_that_counts_the_work_as_built_is_named(log, tmp_path):
    """The rate that Megatron prints for 32 samples of LLaMA2-7B in a second on 8 devices, and another."""
    plain = log.read_text()
    of_built = analyze(log, peak_tflops=2000).rates["mfu_as_built"][0] * 2000
    for tflops, named in ((round(of_built, 1), True), (round(of_built * 1.05, 1), False)):
        printed = f"number of nan iterations:   0 | throughput per GPU (TFLOP/s/GPU): {tflops:.1f} |"
        log.write_text(plain.replace("number of nan iterations:   0 |", printed))
        assert (f"the log's {tflops:.2f} counts this work" in screen(tmp_path, "--peak-tflops", "2000")) is named


def test_adapters_of_unknown_size_leave_no_mfu_and_name_the_flag(log, tmp_path):
    dense = re.search(r"MFU, % .*? (\S+) ", screen(tmp_path, "--peak-tflops", "2000"))
    log.write_text(log.read_text().replace("  bf16", "  lora_target_modules .................... ['q']\n  bf16", 1))
    assert "adapter_parameters unknown; pass --adapter-parameters" in screen(tmp_path, "--peak-tflops", "2000")
    known = re.search(
        r"MFU, % .*? (\S+) ", screen(tmp_path, "--peak-tflops", "2000", "--adapter-parameters", "4194304")
    )
    assert dense
    assert known
    assert 2 / 3 < float(known[1]) / float(dense[1]) < 0.8


def test_a_device_without_a_peak_of_the_number_type_is_named_all_the_same(log, tmp_path):
    shown = screen(tmp_path, "--hw", "v100")
    assert " on 8 x V100 SXM2 " in shown
    assert "V100 SXM2 has no bf16 peak; --peak-tflops gives one" in shown


def test_without_a_clock_the_shares_are_said_to_be_of_the_steps(log, tmp_path):
    assert "of the time of the steps" not in screen(tmp_path)
    log.write_text(arguments_dump(SETTINGS) + "".join(megatron_line(s, 1000.0) + "\n" for s in range(1, 21)))
    shown = screen(tmp_path)
    assert "(of the time of the steps: no clock tells what lay between them)" in shown
    assert " · 20 s of steps · " in shown


def test_of_several_trainings_each_pace_is_told_first(log, tmp_path):
    log.write_text(log.read_text() + "".join(megatron_line(s, 1500.0) + "\n" for s in range(1, 21)))
    first = screen(tmp_path, "--peak-tflops", "2000").partition("! ")[2]
    assert first.startswith("2 trainings behind each other in worker_0.log, of 1,000.0, 1,500.0 ms/step")
