"""The denominator of MFU and HFU: which peak, of which device, for which number type."""

from __future__ import annotations

from analysis.devices import DevicePeak, choose_peak, find_device, peak_by_hand
from logparse.errors import UsageError

ASSUMED_DTYPE = "bf16"
BASES = ("matrix", "headline")


def resolve_peak(
    hw: str | None, precision: str | None, peak_tflops: float | None = None, basis: str | None = None
) -> tuple[DevicePeak | None, tuple[str, ...]]:
    """The peak to divide by, and the sentences that must stand beside it; None with a reason where there is none.

    ``peak_tflops`` wins over ``hw``. Raises UsageError for a name no device has or a peak that is not a number above 0.
    """
    if basis not in (*BASES, None):
        raise UsageError(f"--peak-basis is {basis!r}", remedy=f"use one of {', '.join(BASES)}")
    if basis is not None and peak_tflops is not None:
        raise UsageError("--peak-basis chooses a peak of --hw, and --peak-tflops gives one", remedy="leave one out")
    device = find_device(hw) if hw is not None else None
    if peak_tflops is not None:
        return peak_by_hand(peak_tflops, precision or "unknown"), ()
    if device is None:
        return None, ("mfu and hfu not computed: the device is unknown; pass --hw NAME or --peak-tflops",)
    dtype = precision or ASSUMED_DTYPE
    peak = choose_peak(device, dtype, basis or BASES[0])
    said = () if precision else (f"the log does not tell the number type; the {dtype} peak is used; pass --dtype",)
    if peak is None:
        reason = f"mfu and hfu not computed: no {dtype} {basis or BASES[0]} peak for {device.name}; pass --peak-tflops or --dtype"
        return None, (reason, *device.notes)
    return peak, (*said, *peak.notes)
