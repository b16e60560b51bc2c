"""What the log itself prints of rates: the framework's own figures, never mixed with ours.

Comes in: rows marked by ``row_selection``, and settings. Goes out: a median for each printed rate, over the rows that
count; over all rows where none counts. Where no row has it, the rate that the log prints of the whole run.
Notes compare a printed MFU with the peak of the run's own device, and a rate of the whole run with that of its steps.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from analysis.hardware.devices import DevicePeak, choose_peak, find_device, known_name
from analysis.identify.causes import of_devices
from analysis.identify.implied_peak import SAME_PEAK, divided_by, implied_peak
from analysis.identify.printed_precision import printed_unit
from analysis.run.result import Analysis
from analysis.run.rows.frame_filters import known
from logparse.context.relations import SUMMARY
from logparse.context.run_context import RunContext
from logparse.context.step_times import resolution
from logparse.findings import Note, info, warning
from logparse.light_dataclass import dataclass
from logparse.schema import UNITS

PREFIX = "logged_"
COUNTED, ALL, WHOLE = "counted rows", "all rows", "whole run"
# Rates spread if 80 % of the lines are further apart than this, of at least so many.
APART, LINES = 1.5, 10


@dataclass(frozen=True)
class LoggedRate:
    """The ``median`` of a rate over ``n`` rows, as the log prints it; ``covers`` says which rows these are."""

    unit: str
    median: float
    n: int
    covers: str


def printed_rates(steps: pl.DataFrame, settings: pl.DataFrame | None = None) -> dict[str, LoggedRate]:
    """Each rate that rows print, by the name of ours: ``tokens_per_second_per_device``, ``mfu`` and so on."""
    printed = {}
    for column in (name for name in steps.columns if name.startswith(PREFIX)):
        values, covers = _values(steps, column)
        if len(values):
            name = column.removeprefix(PREFIX)
            printed[name] = LoggedRate(UNITS[column], _median(values), len(values), covers)
    whole = _of_whole_run(settings) if settings is not None else {}
    # A format can give every row the rate of the whole run, as the only one from which its time follows.
    return printed | {
        name: rate for name, rate in whole.items() if name not in printed or printed[name].median == rate.median
    }


def _values(steps: pl.DataFrame, column: str) -> tuple[pl.Series, str]:
    """The values of the counted rows, or of all where none of these has one; and which rows that are."""
    values = steps[column]
    if not values.count():
        return values.clear(), ALL
    counted = known(values.filter(steps["counted"]))
    return (counted, COUNTED) if len(counted) else (known(values), ALL)


def spread_of(name: str, steps: pl.DataFrame) -> tuple[float, float] | None:
    """Between what 80 % of the lines print the rate ``name``; None where that is close together or lines are few."""
    values, _ = _values(steps, PREFIX + name)
    low, high = values.quantile(0.1, "nearest"), values.quantile(0.9, "nearest")
    return (low, high) if len(values) >= LINES and low and high and high > APART * low else None


def _of_whole_run(settings: pl.DataFrame) -> dict[str, LoggedRate]:
    """The rates of a summary, the last one of each where a log has several; 0 is a rate that was not counted."""
    if not (settings["kind"] == SUMMARY).any():
        return {}
    summary = settings.filter(pl.col("kind") == SUMMARY, pl.col("name").str.starts_with(PREFIX))
    rows = summary.select("name", pl.col("value").cast(pl.Float64, strict=False))
    return {
        name.removeprefix(PREFIX): LoggedRate(UNITS[name], value, 1, WHOLE)
        for name, value in rows.iter_rows()
        if value is not None and math.isfinite(value) and value > 0
    }


def _median(values: pl.Series) -> float:
    """The median. The mean of two in the middle overflows for numbers that no rate has."""
    ordered = values.sort()
    return float(statistics.median(ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]))


# The number type of the peak that torchtitan falls back to. Source: torchtitan tools/utils.py, get_peak_flops.
FALLBACK_TYPE = "bf16"


@dataclass(frozen=True)
class DeviceMfu:
    """``value`` is the printed TFLOP/s over ``peak``, that of the run's device; the log divides by ``printed_peak``.

    ``printed`` is the MFU as printed. Peaks are TFLOP/s of one device. None: the run's device has no known peak.
    """

    value: float | None
    peak: float | None
    printed: float
    printed_peak: float


def mfu_of_device(steps: pl.DataFrame, context: RunContext, peak: DevicePeak | None) -> DeviceMfu | None:
    """The printed MFU by ``peak``; None where the log prints none or divides by that peak."""
    printed = printed_rates(steps).get("mfu")
    if printed is None:
        return None
    divisor = _fallback(context)
    if divisor is None and peak is not None:
        divisor = _other_peak(steps, context, peak)
    if divisor is None:
        return None
    if peak is None:
        return DeviceMfu(None, None, printed.median, divisor)
    ours = peak.peak_tflops_per_second
    if abs(divisor / ours - 1) <= SAME_PEAK:
        return None
    tflops = printed_rates(steps).get("tflops_per_second_per_device")
    done = printed.median * divisor if tflops is None else tflops.median
    return DeviceMfu(done / ours, ours, printed.median, divisor)


def _fallback(context: RunContext) -> float | None:
    """The peak of the device that the log took in place of the run's own."""
    device = context.get("mfu_peak_device")
    name = None if device is None else known_name(device)
    peak = None if name is None else choose_peak(find_device(name), FALLBACK_TYPE)
    return None if peak is None else peak.peak_tflops_per_second


def _other_peak(steps: pl.DataFrame, context: RunContext, peak: DevicePeak) -> float | None:
    """The peak that follows from the printed TFLOP/s and MFU, where it is not that of the device."""
    implied = implied_peak(steps)
    if implied is None or implied.ratio != "mfu":
        return None
    if peak.range is not None and peak.range[0] <= implied.high and implied.low <= peak.range[1]:
        return None
    other = divided_by(implied, peak)
    # Where the number type is assumed, the log may know it: then its peak is the right one.
    if other is None or (other.code == "divided_by_own_other" and context.get("precision") is None):
        return None
    return implied.tflops_per_second


def describe_device_mfu(
    mfu: DeviceMfu | None, peak: DevicePeak | None, context: RunContext, on_cpu: bool
) -> Iterator[Note]:
    """A warning that the printed MFU is by another peak than that of the run's device."""
    if mfu is None:
        return
    fields = {"printed": mfu.printed, "printed_peak": mfu.printed_peak, "fallback": context.get("mfu_peak_device")}
    if on_cpu and peak is None:
        yield warning("printed_mfu_on_cpu", **fields)
    elif peak is None or mfu.value is None:
        yield warning("printed_mfu_by_fallback", **fields)
    else:
        yield warning("printed_mfu_by_another_peak", value=mfu.value, peak=mfu.peak, device=peak.name, **fields)


SAMPLES, STEPS, TOKENS_OF_ALL = "samples_per_second", "steps_per_second", "tokens_per_second"
SECONDS = "seconds_per_step"
# So near is the rate of a run without pauses.
SAME_RUN = 0.05


def rates_of_all(analysis: Analysis, rate: Mapping[str, Any]) -> dict[str, float]:
    """The samples/s and tokens/s of all devices at a named ``rate``, where they are known.

    Of an unknown number of devices by the batch, if it is always the same.
    """
    devices, length = analysis.computation.world_size, analysis.computation.seq_length
    samples, tokens = (rate[f"{name}_per_device"] for name in (SAMPLES, TOKENS_OF_ALL))
    if samples is None:
        of_rate = analysis.sizes.head(1) if rate["rate"] == "steady" else analysis.sizes.clear()
        sized = of_rate if len(of_rate) else analysis.steps.filter(~pl.col("copied"))
        batches, time = sized["global_batch_size"].unique().to_list(), rate["step_time_ms"]
        samples = batches[0] * 1000 / time if len(batches) == 1 and batches[0] and time else None
        tokens, devices = samples and length and samples * length, 1
    return {name: value * devices for name, value in ((SAMPLES, samples), (TOKENS_OF_ALL, tokens)) if value and devices}


def unlike_ours(
    printed: Mapping[str, LoggedRate], analysis: Analysis, rate: Mapping[str, Any]
) -> dict[str, tuple[LoggedRate, float]]:
    """The ``printed`` rates that are not those of the named ``rate``, and the ratio to ours.

    Of the whole run one alone. Tokens/s of one device are no part: they are shown in any case.
    """
    each, time = f"{SAMPLES}_per_device", rate["step_time_ms"]
    of_steps = {SECONDS: time / 1000, STEPS: 1000 / time} if time else {}
    ours = {each: rate[each]} | rates_of_all(analysis, rate) | of_steps
    # A bar prints the one of slow steps and the other of fast ones.
    of_most = sorted(of_steps.keys() & printed.keys(), key=lambda name: (-printed[name].n, name))[:1]
    known_of_both = (name for name in (TOKENS_OF_ALL, each, SAMPLES, *of_most) if name in printed and ours.get(name))
    ratios = {name: printed[name].median / ours[name] for name in known_of_both}
    half = {name: _last_digit(name, printed[name], analysis.steps) / 2 / ours[name] for name in ratios}
    unlike = [name for name, ratio in ratios.items() if abs(ratio - 1) > max(SAME_RUN, half[name])]
    of_run = [name for name in unlike if printed[name].covers == WHOLE]
    return {name: (printed[name], ratios[name]) for name in unlike if name not in of_run[1:]}


def _last_digit(name: str, rate: LoggedRate, steps: pl.DataFrame) -> float:
    """The unit of the last digit that the log prints of a ``rate``."""
    return resolution(pl.Series([rate.median]) if rate.covers == WHOLE else steps[PREFIX + name].cast(pl.Float64))


# Every training starts up, and most save: a rate within these shares of ours is that of the same steps.
LEAST, MOST = 0.8, 1.1
# Trainers round it to three decimals or fewer.
ROUNDED_TO = (0.01, 0.001)
# How far the batch that follows from both rates may be from the known one: the last batch of an epoch may be smaller.
SAME_BATCH = 0.1


def describe_whole_run_rate(analysis: Analysis, settings: pl.DataFrame, context: RunContext) -> Iterator[Note]:
    """A warning where the samples/s of the whole training are not those of the steps, with the cause."""
    printed = printed_rates(analysis.steps, settings)
    whole, ours = printed.get(SAMPLES), rates_of_all(analysis, analysis.rate("steady")).get(SAMPLES)
    if whole is None or whole.covers != WHOLE or not ours or not analysis.computation.world_size:
        return
    half = printed_unit(pl.Series([whole.median]), ROUNDED_TO) / 2
    if whole.median - half <= MOST * ours and whole.median + half >= LEAST * ours:
        return
    ratio = whole.median / ours
    batch, steps = context.get("global_batch_size"), printed.get(STEPS)
    implied = None if steps is None else whole.median / steps.median
    if implied is None or not batch or abs(implied / batch - 1) <= SAME_BATCH:
        code, cause = "printed_rate_differs", info("rate_of_whole_run" if ratio < 1 else "rate_of_steps_before_resume")
    elif counted := _counted(implied / batch, context):
        code, cause = "printed_rate_differs", counted
    else:
        code, cause = "printed_rate_unexplained", info("no_known_cause_of_samples", ours=batch, implied=round(implied))
    yield warning(code, figure=f"logged_{SAMPLES}", printed=whole.median, ours=ours, ratio=ratio, cause=cause)


def _counted(times: float, context: RunContext) -> Note | None:
    """Which devices were counted once too often, if the printed batch is so many ``times`` ours by them."""
    for cause in of_devices(context, total=True):
        if isinstance(cause.factor, float) and abs(times / cause.factor - 1) <= SAME_BATCH:
            return cause.note
    return None
