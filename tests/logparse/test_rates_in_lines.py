"""Each rate of the steps that a log prints is read, by the patterns of benchmarks/printed_rates.py."""

from pathlib import Path

import pytest
from printed_rates import MISSING, rows_of

FIXTURES = Path(__file__).parents[2] / "fixtures"
# Logs with rates of every kind; the script goes through all of them.
LOGS = (
    *(
        "megatron/core-v0.12-llama2-7b",
        "megatron-bridge/rank0",
        "torchtitan/llama3-8b-2d",
        "verl/grpo",
        "verl-lines/grpo",
    ),
    *("fleetx/gpt-dp8", "paddlenlp/llama-pp2-tp2", "deepspeed-global-step/timer-alone", "fairseq-2017/lstm"),
    "hf-trainer-summary/report-to",
)
ITERATION = (
    "iteration {n}/ 100 | consumed samples: {n}0 | elapsed time per iteration (ms): 500.0 |{rate} lm loss: 2.5 |"
)


def reasons(path):
    return {label: reason for _, label, _, _, reason in rows_of(path)}


@pytest.mark.parametrize("name", LOGS)
def test_the_rates_of_a_log_are_among_its_printed_ones(name):
    found = reasons(FIXTURES / name / "run.log")
    assert "printed" in found.values()
    assert MISSING not in found.values(), found


@pytest.mark.parametrize(
    ("rate", "reason"),
    [
        (" throughput per GPU (TFLOP/s/GPU): 140.5 |", "printed"),
        (" tokens/sec/gpu: 1405.5 |", "printed"),
        (" mfu: 45.75% |", "printed"),
        (" speed of all (tokens/sec): 140.5 |", MISSING),
    ],
)
def test_a_rate_that_no_format_reads_is_missing(tmp_path, rate, reason):
    lines = [ITERATION.format(n=n, rate=rate) for n in range(1, 9)]
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n")
    assert [*reasons(tmp_path / "run.log").values()] == [reason]


def test_the_rate_of_another_line_before_the_step_is_printed(tmp_path):
    pair = "Step Time : 0.50s GPU utilization: 24.7MODEL_TFLOP/s/GPU\n"
    lines = [pair + ITERATION.format(n=n, rate="") for n in range(1, 9)]
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n")
    assert {"printed"} == {*reasons(tmp_path / "run.log").values()}
