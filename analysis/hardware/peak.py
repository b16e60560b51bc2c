"""The denominator of MFU and HFU: which peak, of which device, for which number type."""

from __future__ import annotations

from analysis.hardware.devices import DevicePeak, choose_peak, find_device, peak_by_hand
from logparse.errors import UsageError
from logparse.language import msg, tr

ASSUMED_DTYPE = "bf16"
BASES = (msg("matrix"), msg("headline"))


def resolve_peak(
    hw: str | None,
    precision: str | None,
    peak_tflops: float | None = None,
    basis: str | None = None,
    origin: str = "--peak-tflops",
) -> tuple[DevicePeak | None, tuple[str, ...]]:
    """The peak to divide by, and the sentences that must stand beside it; None with a reason where there is none.

    ``peak_tflops``, which ``origin`` gave, wins over ``hw``.
    Raises UsageError for a name no device has or a peak that is not a number above 0.
    """
    if basis not in (*BASES, None):
        remedy = tr("use one of {names}", names=", ".join(BASES))
        raise UsageError(tr("{name} is {value!r}", name="--peak-basis", value=basis), remedy=remedy)
    if basis is not None and peak_tflops is not None:
        problem = tr("--peak-basis chooses a peak of --hw, and --peak-tflops gives one")
        raise UsageError(problem, remedy=tr("leave one out"))
    device = find_device(hw) if hw is not None else None
    if peak_tflops is not None:
        return peak_by_hand(peak_tflops, precision or msg("unknown"), origin), ()
    if device is None:
        return None, (tr("mfu and hfu not computed: the device is unknown; pass --hw NAME or --peak-tflops"),)
    dtype = precision or ASSUMED_DTYPE
    peak = choose_peak(device, dtype, basis or BASES[0])
    assumed = tr("the log does not tell the number type; the {dtype} peak is used; pass --dtype", dtype=dtype)
    said = () if precision else (assumed,)
    notes = tuple(tr(note) for note in (peak or device).notes)
    if peak is None:
        reason = tr(
            "mfu and hfu not computed: no {dtype} {basis} peak for {device}; pass --peak-tflops or --dtype",
            dtype=dtype,
            basis=tr(basis or BASES[0]),
            device=device.name,
        )
        return None, (reason, *notes)
    return peak, (*said, *notes)
