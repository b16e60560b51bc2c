"""The rates that the first screen shows as the log prints them, where ours is unknown."""

import math

import polars as pl

from analysis.present.numbers import three
from analysis.run.rates.printed_rates import PREFIX, WHOLE, LoggedRate
from analysis.run.run import Run
from logparse.context.step_times import resolution
from logparse.language import msg

TOKENS, TFLOPS = "tokens_per_second_per_device", "tflops_per_second_per_device"
# Printed rates that are shown where ours is unknown, the most telling one first.
PRINTED_RATES = {
    TOKENS: msg("{n} tokens/s/p"),
    "samples_per_second_per_device": msg("{n} samples/s/p (per device)"),
    "tokens_per_second": msg("{n} tokens/s of all devices"),
    "samples_per_second": msg("{n} samples/s of all devices"),
}


def printed_text(run: Run, name: str) -> str:
    """The rate ``name`` as ``three`` shows it, without decimals that the log does not print."""
    rate: LoggedRate = run.printed[name]
    column, own = PREFIX + name, pl.Series([rate.median])
    values = own if rate.covers == WHOLE else pl.concat([run.steps[column].cast(pl.Float64), own])
    decimals, text = round(-math.log10(resolution(values.rename("")))), three(rate.median)
    shown = len(text.partition(".")[2])
    return f"{rate.median:,.{decimals}f}" if decimals < shown else text
