"""The rates that the first screen shows as the log prints them, where ours is unknown."""

import math
from collections.abc import Mapping
from typing import Any

import polars as pl

from analysis.present.numbers import percent, three
from analysis.run.rates.printed_rates import PREFIX, WHOLE, LoggedRate, unlike_ours
from analysis.run.run import Run
from logparse.context.step_times import resolution
from logparse.language import msg, tr

TOKENS, TFLOPS = "tokens_per_second_per_device", "tflops_per_second_per_device"
# Printed rates that are shown where ours is unknown, the most telling one first.
PRINTED_RATES = {
    TOKENS: msg("{n} tokens/s/p"),
    "samples_per_second_per_device": msg("{n} samples/s/p (per device)"),
    "tokens_per_second": msg("{n} tokens/s of all devices"),
    "samples_per_second": msg("{n} samples/s of all devices"),
}
# Rates of steps, which are shown next to the step time.
PRINTED_PACES = {"seconds_per_step": msg("{n} s/step"), "steps_per_second": msg("{n} steps/s")}


def unlike_ours_text(run: Run, rate: Mapping[str, Any], texts: Mapping[str, str]) -> list[str]:
    """The rates of ``texts`` that the log prints and that are not ours, each with its share of ours."""
    clauses, of_run = [], msg("over the whole run, pauses included: {share} of ours")
    for name, (printed, ratio) in unlike_ours(run.printed, run.analysis, rate).items():
        if name in texts:
            value = tr(texts[name], n=printed_text(run, name))
            share = msg("{share} of ours") if printed.covers != WHOLE else of_run
            clauses += [tr("the log prints {value}", value=value), tr(share, share=percent(ratio))]
    return clauses


def printed_text(run: Run, name: str) -> str:
    """The rate ``name`` as ``three`` shows it, without decimals that the log does not print."""
    rate: LoggedRate = run.printed[name]
    column, own = PREFIX + name, pl.Series([rate.median])
    values = own if rate.covers == WHOLE else pl.concat([run.steps[column].cast(pl.Float64), own])
    decimals, text = round(-math.log10(resolution(values.rename("")))), three(rate.median)
    shown = len(text.partition(".")[2])
    return f"{rate.median:,.{decimals}f}" if decimals < shown else text
