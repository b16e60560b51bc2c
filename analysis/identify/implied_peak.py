"""The peak of a printed MFU: a log's TFLOP/s divided by its MFU, and which device has that peak."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import polars as pl

from analysis.hardware.devices import DevicePeak, Peak, all_devices, find_device
from analysis.identify.matching import LOGGED, RATIO_UNITS, TFLOPS_UNITS
from analysis.identify.printed_precision import printed_unit
from logparse.errors import UsageError
from logparse.findings import Note, info
from logparse.light_dataclass import dataclass

TRAINING_TYPES = ("bf16", "fp16")
# Tables write the same peak as 989, 989.4 and 989.5.
SAME_PEAK = 0.005


@dataclass(frozen=True)
class ImpliedPeak:
    """``low`` and ``high`` bound the peak of one device, in TFLOP/s, that the printed digits allow.

    ``ratio`` is what the log's TFLOP/s were divided into. ``peaks`` are those for bf16 or fp16 on any basis, each with
    its device, that lie between the bounds or round to a whole number that does.
    """

    tflops_per_second: float
    low: float
    high: float
    ratio: Literal["mfu", "hfu"]
    peaks: tuple[tuple[str, Peak], ...]


def implied_peak(steps: pl.DataFrame) -> ImpliedPeak | None:
    """The peak a log divided by, None where it does not print both TFLOP/s and MFU.

    Where it prints HFU too, its TFLOP/s count recompute, so HFU is what they were divided into.
    """
    ratio: Literal["mfu", "hfu"] = "hfu" if steps["logged_hfu"].drop_nulls().len() else "mfu"
    printed = steps.select(tflops=LOGGED, ratio=f"logged_{ratio}")
    rows = printed.filter((pl.col("tflops") > 0) & (pl.col("ratio") > 0))
    if rows.is_empty():
        return None
    tflops_off = printed_unit(rows["tflops"], TFLOPS_UNITS) / 2
    ratio_off = printed_unit(rows["ratio"], RATIO_UNITS) / 2
    # Every row bounds the same peak; the median is robust against an outlier.
    spans = rows.select(
        (pl.col("tflops") / pl.col("ratio")).median().alias("middle"),
        ((pl.col("tflops") - tflops_off) / (pl.col("ratio") + ratio_off)).median().alias("low"),
        ((pl.col("tflops") + tflops_off) / (pl.col("ratio") - ratio_off)).median().alias("high"),
    )
    middle, low, high = spans.row(0)
    return ImpliedPeak(middle, low, high, ratio, _peaks_between(low, high))


def _peaks_between(low: float, high: float) -> tuple[tuple[str, Peak], ...]:
    return tuple(
        (device.name, peak)
        for device in all_devices()
        for peak in device.peaks
        if peak.dtype in TRAINING_TYPES
        and (low <= peak.tflops_per_second <= high or low <= round(peak.tflops_per_second) <= high)
    )


def divided_by(implied: ImpliedPeak, ours: DevicePeak) -> Note | None:
    """Which peak the log divided by; None where it is ``ours``."""
    low, high = implied.low * (1 - SAME_PEAK), implied.high * (1 + SAME_PEAK)
    peak, known = ours.peak_tflops_per_second, {"peak": implied.tflops_per_second}
    if low <= peak <= high:
        return None
    known["ours"] = peak
    kinds = [kind for kind, value in _others_of(ours) if low <= value <= high]
    if kinds:
        return info("divided_by_own_other", kinds=list(dict.fromkeys(kinds)), **known)
    devices = list(dict.fromkeys(device for device, _ in implied.peaks))
    return info("divided_by_peak_of", devices=devices, **known) if devices else info("divided_by_no_peak", **known)


def _others_of(ours: DevicePeak) -> Iterator[tuple[str, float]]:
    """Other peaks of the same device: with 2:4 sparsity, twice as much, and those of other number types."""
    yield f"{ours.dtype} sparse", 2 * ours.peak_tflops_per_second
    try:
        device = find_device(ours.name)
    except UsageError:
        return
    yield from ((peak.dtype, peak.tflops_per_second) for peak in device.peaks if peak.dtype != ours.dtype)
