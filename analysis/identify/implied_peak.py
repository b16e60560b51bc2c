"""The peak behind a printed MFU: what a log's TFLOP/s divided by its MFU comes to, and which device that is."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from analysis.hardware.devices import all_devices
from analysis.identify.matching import LOGGED, RATIO_UNITS, TFLOPS_UNITS, printed_unit
from logparse.language import tr

TRAINING_TYPES = ("bf16", "fp16")


@dataclass(frozen=True)
class ImpliedPeak:
    """``low`` and ``high`` bound the peak of one device, in TFLOP/s, that the printed digits allow.

    ``devices`` are those whose bf16 or fp16 peak, on any basis, lies there or rounds to a whole number that does.
    """

    tflops_per_second: float
    low: float
    high: float
    devices: tuple[str, ...]
    sentence: str


def implied_peak(steps: pl.DataFrame) -> ImpliedPeak | None:
    """The peak a log divided by, None where it does not print both TFLOP/s and MFU.

    Where it prints HFU too, its TFLOP/s count recompute, so HFU is what they were divided into.
    """
    ratio = "logged_hfu" if steps["logged_hfu"].drop_nulls().len() else "logged_mfu"
    rows = steps.select(tflops=LOGGED, ratio=ratio).filter((pl.col("tflops") > 0) & (pl.col("ratio") > 0))
    if rows.is_empty():
        return None
    tflops_off = printed_unit(rows["tflops"], TFLOPS_UNITS) / 2
    ratio_off = printed_unit(rows["ratio"], RATIO_UNITS) / 2
    # Every row bounds the same peak; the median row stands for them where one of them is odd.
    spans = rows.select(
        (pl.col("tflops") / pl.col("ratio")).median().alias("middle"),
        ((pl.col("tflops") - tflops_off) / (pl.col("ratio") + ratio_off)).median().alias("low"),
        ((pl.col("tflops") + tflops_off) / (pl.col("ratio") - ratio_off)).median().alias("high"),
    )
    middle, low, high = spans.row(0)
    devices = _devices(low, high)
    sentence = tr(
        "the log's {ratio} was taken against {middle:.4g} TFLOP/s ({low:.5g} to {high:.5g}): {devices}",
        ratio="HFU" if ratio == "logged_hfu" else "MFU",
        middle=middle,
        low=low,
        high=high,
        devices=", ".join(devices) or tr("no device of the table"),
    )
    return ImpliedPeak(middle, low, high, devices, sentence)


def _devices(low: float, high: float) -> tuple[str, ...]:
    return tuple(
        f"{device.name} ({peak.tflops_per_second:g}, {peak.dtype} {peak.basis})"
        for device in all_devices()
        for peak in device.peaks
        if peak.dtype in TRAINING_TYPES
        and (low <= peak.tflops_per_second <= high or low <= round(peak.tflops_per_second) <= high)
    )
