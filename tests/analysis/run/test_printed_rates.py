"""Rates that the log itself prints: of its rows, and of the whole run in a summary."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import polars as pl

from analysis.run.build import analyze_logs
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
    # A rate of 0 was not counted; tokens per second may be of one process.
    assert {name: asdict(rate) for name, rate in run.printed.items()} == {
        "samples_per_second": {"unit": "samples/s", "median": 15.25, "n": 1, "covers": "whole run"}
    }


def test_rates_of_rows_go_before_those_of_the_whole_run() -> None:
    steps = pl.DataFrame({"counted": [True, True, False], "logged_samples_per_second": [4.0, 6.0, 100.0]})
    settings = pl.DataFrame({"name": ["logged_samples_per_second"], "value": ["2.5"], "kind": ["summary"]})
    assert printed_rates(steps, settings)["samples_per_second"].median == 5.0
