"""The denominator of MFU and HFU: which peak, of which device, for which number type."""

from __future__ import annotations

from analysis.hardware import BASES
from analysis.hardware.devices import DevicePeak, choose_peak, device_notes, find_device, other_parts, peak_by_hand
from logparse.errors import UsageError
from logparse.findings import Note, warning
from logparse.language import tr

ASSUMED_DTYPE = "bf16"


def resolve_peak(
    hw: str | None,
    precision: str | None,
    peak_tflops: float | None = None,
    basis: str | None = None,
    origin: str = "--peak-tflops",
    assumes_type: bool = True,
) -> tuple[DevicePeak | None, tuple[Note, ...]]:
    """The peak to divide by, and the notes to print with it; None with a reason where there is none.

    ``peak_tflops``, given by ``origin``, wins over ``hw``. An unknown ``precision`` is bf16 where ``assumes_type``.
    Raises UsageError for a name of no device, or a peak that is not a number above 0.
    """
    if basis not in (*BASES, None):
        remedy = tr("use one of {names}", names=", ".join(BASES))
        raise UsageError(tr("{name} is {value!r}", name="--peak-basis", value=basis), remedy=remedy)
    if basis is not None and peak_tflops is not None:
        problem = tr("--peak-basis and --peak-tflops exclude each other: --peak-basis selects a peak of --hw")
        raise UsageError(problem, remedy=tr("leave one out"))
    device = find_device(hw) if hw is not None else None
    if peak_tflops is not None:
        return peak_by_hand(peak_tflops, precision or "unknown", origin), ()
    if device is None:
        return None, (warning("device_unknown"),)
    if precision is None and not assumes_type:
        return None, (warning("number_type_unknown", device=device.name), *device_notes(device))
    dtype = precision or ASSUMED_DTYPE
    peak = choose_peak(device, dtype, basis or BASES[0])
    if peak is None:
        reason = warning("no_peak_of_type", dtype=dtype, basis=basis or BASES[0], device=device.name)
        return None, (reason, *device_notes(device))
    assumed = () if precision else (warning("number_type_assumed", dtype=dtype),)
    return peak, (*assumed, *peak.notes, *other_parts(hw or device.name, device, dtype, peak.basis))
