"""The MFU that a log prints, by the peak of the run's own device.

Comes in: rows with printed TFLOP/s and MFU, the facts of the run, its peak. Goes out: the printed MFU over the right
peak where the log divides by another, as torchtitan does for a device whose peak it does not know. The FLOPs stay those
of the log's own formula.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from analysis.hardware.devices import DevicePeak, choose_peak, find_device, known_name
from analysis.identify.implied_peak import SAME_PEAK, divided_by, implied_peak
from analysis.run.printed_rates import printed_rates
from logparse.context.run_context import RunContext
from logparse.findings import Note, warning
from logparse.light_dataclass import dataclass

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
    named = context.get("mfu_peak_device")
    name = None if named is None else known_name(named)
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
