"""Rates that the log itself prints: of its rows, and of the whole run in a summary."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import polars as pl
import pytest
from helpers import SETTINGS, arguments_dump, megatron_line

from analysis.present.views.analyze_json import document
from analysis.present.views.first_screen import rows
from analysis.run.build import analyze_logs
from analysis.run.checks.target_verdicts import judge
from analysis.run.checks.targets import parse_requirement
from analysis.run.options import RunOptions
from analysis.run.rates.printed_rates import printed_rates

STEP = (
    "{{'loss': '2.5', 'grad_norm': '1.5', 'learning_rate': '5e-05', 'epoch': '0.{n}'}}\n"
    " {n}%|█ | {n}/9 [00:0{n}<00:09,  1.00s/it]\n"
)
SUMMARY = (
    "{'train_runtime': '9.5', 'train_samples_per_second': '15.25', 'train_steps_per_second': '0', "
    "'train_tokens_per_second': '99.5', 'train_loss': '2.5', 'epoch': '1'}\n"
)


def test_a_summary_gives_the_rates_of_the_whole_run(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("".join(STEP.format(n=n) for n in range(1, 9)) + SUMMARY)
    run = analyze_logs([str(log)], RunOptions())
    # A rate of 0 was not counted; tokens per second may be of one process. The pace of the bar is of the rows.
    assert {name: asdict(rate) for name, rate in run.printed.items()} == {
        "seconds_per_step": {"unit": "s/step", "median": 1.0, "n": 8, "covers": "all rows"},
        "samples_per_second": {"unit": "samples/s", "median": 15.25, "n": 1, "covers": "whole run"},
    }


def test_a_rate_that_is_printed_as_0_is_none_of_the_run(tmp_path: Path) -> None:
    log, label = tmp_path / "run.log", "throughput per GPU (TFLOP/s/GPU)"
    lines = (megatron_line(step, pairs={label: "0.0" if step < 9 else "-0.0"}) for step in range(1, 12))
    log.write_text(arguments_dump(SETTINGS) + "\n".join(lines) + "\n")
    rates = analyze_logs([str(log)], RunOptions()).rates
    assert rates["logged_tflops_per_second_per_device"].is_null().all()
    assert (rates.filter(pl.col("rate") == "steady")["tflops_per_second_per_device"] > 0).all()


def test_rates_of_rows_go_before_those_of_the_whole_run() -> None:
    steps = pl.DataFrame({"counted": [True, True, False], "logged_samples_per_second": [4.0, 6.0, 100.0]})
    settings = pl.DataFrame({"name": ["logged_samples_per_second"], "value": ["2.5"], "kind": ["summary"]})
    assert printed_rates(steps, settings)["samples_per_second"].median == 5.0


HEAD = "[rank0]:[titan] 2026-01-02 10:00:00,000 - root - "
NAMED = HEAD + "INFO - CUDA capacity: {device} with 31.36GiB memory"
UNKNOWN = HEAD + "WARNING - Peak flops undefined for: {device}, fallback to A100"


def titan(tmp_path, device, tflops=31.2, mfu=10.0, fallback=True):
    """A run of torchtitan on ``device`` that prints so many TFLOP/s and per cent; None: no TFLOP/s."""
    lines = [NAMED.format(device=device), *([UNKNOWN.format(device=device)] if fallback else [])]
    printed = "" if tflops is None else f"tflops: {tflops:.2f}  "
    for step in range(1, 41):
        clock = f"[rank0]:[titan] 2026-01-02 10:{step // 60:02}:{step % 60:02},000 - root - INFO - "
        lines.append(
            f"{clock}step: {step:2}  loss: 5.00000  memory: 9.00GiB(30.00%)  tps: 8,192  {printed}mfu: {mfu:.2f}%"
        )
    path = tmp_path / "titan.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def shown(run):
    return next(row for row in rows(run) if row.label == "MFU")


@pytest.mark.parametrize("tflops", [31.2, None])
def test_an_mfu_by_the_fallback_peak_is_by_the_peak_of_the_device(tmp_path, tflops):
    asked = (parse_requirement("mfu>=0.12"), parse_requirement("mfu<0.12"))
    run = analyze_logs([titan(tmp_path, "NVIDIA GeForce RTX 5090", tflops)], RunOptions(requirements=asked))
    # 31.2 TFLOP/s of the device's 209.5, not of the A100's 312.
    assert run.device_mfu.value == pytest.approx(31.2 / 209.5, rel=1e-3)
    assert (shown(run).value, run.mfu) == ("14.9 %", None)
    (told,) = document([run])["runs"]
    assert told["device_mfu"]["printed_peak"] == 312
    assert told["printed"]["mfu"]["median"] == pytest.approx(0.10)
    (note,) = [note for note in told["notes"] if note["code"] == "printed_mfu_by_another_peak"]
    assert "(A100)" in note["text"]
    assert [judgement.outcome for judgement in judge(run)] == ["pass", "fail"]
    assert [note.code for judgement in judge(run) for note in judgement.findings] == ["figure_of_log"] * 2


def test_a_given_device_has_its_effect_on_a_printed_mfu(tmp_path):
    log = titan(tmp_path, "NVIDIA H100 80GB HBM3", tflops=98.9, mfu=10.0, fallback=False)
    assert analyze_logs([log], RunOptions()).device_mfu is None
    run = analyze_logs([log], RunOptions(hw="a100"))
    assert run.device_mfu.value == pytest.approx(98.9 / 312, rel=1e-3)


def test_an_unknown_device_leaves_the_printed_mfu_with_a_warning(tmp_path):
    run = analyze_logs([titan(tmp_path, "NVIDIA Unheard Of 9")], RunOptions())
    assert (run.device_mfu.value, shown(run).value) == (None, "10.0 %")
    assert "printed_mfu_by_fallback" in [note.code for note in run.notes]
    assert analyze_logs([titan(tmp_path, "NVIDIA Unheard Of 9")], RunOptions(hw="a100")).device_mfu is None


def test_an_assumed_number_type_overrules_no_peak_of_the_log(tmp_path):
    # 1,979 TFLOP/s: the fp8 peak of an H100, where the log names no number type.
    log = titan(tmp_path, "NVIDIA H100 80GB HBM3", tflops=197.9, mfu=10.0, fallback=False)
    assert analyze_logs([log], RunOptions()).device_mfu is None


def test_requirements_of_printed_rates_are_judged_by_them(tmp_path):
    asked = (parse_requirement("tflops_per_second_per_device>=31"), parse_requirement("hfu>=0.1"))
    log = titan(tmp_path, "NVIDIA GeForce RTX 5090")
    assert [j.outcome for j in judge(analyze_logs([log], RunOptions(requirements=asked)))] == ["pass", "unknown"]


def test_on_a_cpu_no_device_is_asked_for(tmp_path):
    log = titan(tmp_path, "NVIDIA H100 80GB HBM3", fallback=False)
    text = Path(log).read_text(encoding="utf-8")
    Path(log).write_text(text.replace("CUDA capacity", "CPU capacity"), encoding="utf-8")
    codes = [note.code for note in analyze_logs([log], RunOptions()).notes]
    assert "printed_mfu_on_cpu" in codes
    assert "printed_mfu_by_fallback" not in codes
    assert "hw_for_cpu" in [note.code for note in analyze_logs([log], RunOptions(hw="h100")).notes]


@pytest.mark.parametrize(("mfu", "doubted"), [(39.5, []), (100.0, []), (101.8, [1.018]), (480.0, [4.8])])
def test_a_printed_mfu_above_one_is_doubted(tmp_path, mfu, doubted):
    run = analyze_logs([titan(tmp_path, "NVIDIA Titan Z", mfu=mfu, tflops=None, fallback=False)], RunOptions())
    noted = [note.fields for note in run.notes if note.code == "printed_share_above_one"]
    assert noted == [{"figure": "logged_mfu", "share": pytest.approx(share)} for share in doubted]
