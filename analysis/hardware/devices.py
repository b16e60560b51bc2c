"""Peak rates of training devices: what MFU and HFU are divided by.

Comes in: a name as a person, a driver or a log writes it. Goes out: one device of ``devices.toml`` and one of its
peaks, with basis, source and confidence. No peak is guessed, and no name is matched by a part of it. An unknown name
is an error; an unknown peak is None. ``devices.toml`` explains the fields of a device and their units.

A device is what one rank sees: a die of a 910C, a GCD of an MI250X. Packages are separate devices. Basis ``matrix`` is
the dense matrix peak, which compares across vendors. ``headline`` is the figure of Ascend's data sheets, which adds the
vector units (910B2: 353.89 + 22.12 = 376). ``unverified`` has one source that does not say what it counts.

Names compare without case, spaces, hyphens and underscores. A brand in front, as a separate word, is optional but must
be right: ``NVIDIA L40S`` is ``L40S``, ``NVIDIA A2`` is not Huawei's ``a2``. Three Ascend names:

``910B``, ``ascend 910b``, ``Ascend-910B``: people mean the A2 family of four SKUs, so the peak has a range.
``Ascend910B`` as one word, in any case: drivers and torch_npu spell a SoC like this, and every A2 part has a digit
there (Ascend910B3). Without a digit it is a first-generation part of 221 fp16 TFLOP/s and no bf16. Build tools write
SoC strings in lower case, so only the missing separator distinguishes the two. The part has a note and gives a bf16
run no peak.
``Ascend910``, ``ascend 910``, ``910``: printed by ``npu-smi info`` on A3, and also the name of the 2019 part. Refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from analysis.hardware import BASES
from logparse.errors import UsageError, unknown_name
from logparse.findings import Note, Origin, info, warning
from logparse.language import msg, tr
from logparse.light_dataclass import dataclass, field
from logparse.package_tables import read_table


@dataclass(frozen=True)
class Peak:
    """The peak of one device for one number type, on one basis, in TFLOP/s."""

    dtype: str
    basis: str
    tflops_per_second: float
    source: str
    confidence: str


@dataclass(frozen=True)
class Device:
    """What one rank sees; unknown is None. ``members`` are a family's SKUs; ``notes`` are warnings for a run on it."""

    name: str
    aliases: tuple[str, ...]
    vendor: str
    dies: int | None
    peaks: tuple[Peak, ...]
    hbm_gb: float | None
    hbm_gbps: float | None
    link_gbps: float | None
    tdp_w: float | None
    year: int | None
    members: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class DevicePeak:
    """The peak a run is measured against, with its warnings; ``range`` spans the SKUs of a family.

    ``origin`` is what named the device.
    """

    name: str
    dtype: str
    peak_tflops_per_second: float
    basis: str
    source: str
    confidence: str
    range: tuple[float, float] | None
    notes: tuple[Note, ...]
    origin: Origin = field(default_factory=lambda: Origin("flag", rule="--hw"))


# The device name of a peak from the user, without a known device.
BY_HAND = "given by hand"
# What is shown of a device that the log calls a CPU.
CPU = "CPU"
# What the source of a peak says that is computed from the cores and their clock.
DERIVED, SIXTEEN_BIT = "derived: cores", ("bf16", "fp16")
# Number types of matrix multiplications in training.
TRAINED_IN = ("fp32", "bf16", "fp16", "fp8", "fp4")
_BRANDS = {"huawei": "Huawei", "ascend": "Huawei", "nvidia": "NVIDIA", "tesla": "NVIDIA", "geforce": "NVIDIA"}
_BRANDS |= {"amd": "AMD", "instinct": "AMD", "google": "Google", "intel": "Intel"}
_BRAND = re.compile(rf"(?:({'|'.join(_BRANDS)})[\s_-]+)+")
# The memory at the end of a name, as in B200_SXM_180GB.
_MEMORY = re.compile(r"[-_ ]\d+ ?GB$", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\s_-]+")
_AMBIGUOUS = msg(
    "{name!r} can mean several devices: `npu-smi info` prints Ascend910 on A3 (910C), and the 2019 part is also a 910"
)
_AMBIGUOUS_REMEDY = msg(
    "pass 910c (A3, SKU unknown), the NPU Name of `npu-smi info -t board -i 0 -c 0` such as 910_9392 (A3), "
    "910a (2019), or --peak-tflops"
)


@cache
def all_devices() -> tuple[Device, ...]:
    """Every device of the table, in its order."""
    return read_devices(read_table(Path(__file__).parent / "devices.toml"))


def read_devices(tables: Mapping[str, Any]) -> tuple[Device, ...]:
    """Every device of a table; the top of ``devices.toml`` explains its tables.

    Raises ValueError when two devices share a name or a device has an unknown key, KeyError when a key is missing.
    """
    devices = tuple(_device(table, tables["sources"]) for table in tables["device"])
    _by_name(devices)  # a shared name fails here, before anyone looks a device up
    return devices


@cache
def find_device(name: str) -> Device:
    """Give the device called ``name``; see the module's text for what counts as the same name.

    Raises UsageError when no device, or more than one, goes by that name.
    """
    if is_cpu(name):
        raise UsageError(tr("a CPU has no peak in the table"), remedy=tr("leave --hw out, or give --peak-tflops"))
    vendor, key = _split(name)
    if key in ("ascend910", "910"):
        raise UsageError(tr(_AMBIGUOUS, name=name), remedy=tr(_AMBIGUOUS_REMEDY))
    device = _index().get(key)
    if device is None or vendor not in ("", device.vendor):
        spellings = [spelling for d in all_devices() for spelling in (d.name, *d.aliases)]
        raise unknown_name(
            msg("device"), name, spellings, tr("`logparse hardware` lists them all; or give --peak-tflops")
        )
    return device


@cache
def known_name(printed: str) -> str | None:
    """The name of a device in what a log prints: the whole, or without its memory and its form; None if unknown."""
    words = printed.strip().split()
    for spelling in (" ".join(words), *(_MEMORY.sub("", " ".join(words[:n])) for n in range(len(words), 0, -1))):
        try:
            return find_device(spelling).name
        except UsageError:
            continue
    return None


def is_cpu(printed: object) -> bool:
    """Whether what a log prints as its device is a CPU, which no row of the table is."""
    return str(printed).casefold() == CPU.casefold()


def choose_peak(device: Device, dtype: str, basis: str = "matrix") -> DevicePeak | None:
    """Give the peak for ``dtype`` (bf16, fp16, fp8 ...) on ``basis``, TFLOP/s; None if the table has none."""
    peak = _peak(device, dtype, basis)
    if peak is None:
        return None
    spread = _range(device, dtype, basis)
    notes = device_notes(device) + (_other_figures(device, dtype) if basis == "matrix" else ())
    return DevicePeak(device.name, dtype, peak.tflops_per_second, basis, peak.source, peak.confidence, spread, notes)


def nominal_peak(peak: DevicePeak) -> float | None:
    """The data sheet's peak in TFLOP/s of a device whose ``peak`` is derived from its cores and clock; else None.

    A data sheet that gives one of the 16-bit types means both.
    """
    if DERIVED not in peak.source or peak.basis != "matrix":
        return None
    device = find_device(peak.name)
    dtypes = SIXTEEN_BIT if peak.dtype in SIXTEEN_BIT else (peak.dtype,)
    headline_peaks = (_peak(device, dtype, "headline") for dtype in (peak.dtype, *dtypes))
    return next((one.tflops_per_second for one in headline_peaks if one is not None), None)


def faster_types(peak: DevicePeak, share: float) -> list[str]:
    """The number types whose peak on the same device and basis is at least ``share`` of ``peak``, the slowest first."""
    if peak.name == BY_HAND:
        return []
    least = share * peak.peak_tflops_per_second
    able = [p for p in find_device(peak.name).peaks if p.basis == peak.basis and p.tflops_per_second >= least]
    return [p.dtype for p in sorted(able, key=lambda p: p.tflops_per_second) if p.dtype in TRAINED_IN]


def peak_by_hand(tflops: float, dtype: str, origin: str = "--peak-tflops") -> DevicePeak:
    """Make the peak that the user gave, in TFLOP/s of one device.

    Raises UsageError unless it is finite and above 0.
    """
    if not (math.isfinite(tflops) and tflops > 0):
        raise UsageError(
            tr("--peak-tflops is {value:g}, expected a finite number above 0", value=tflops),
            remedy=tr("give the dense matrix peak of one device in TFLOP/s, for example --peak-tflops 353.89"),
        )
    return DevicePeak(BY_HAND, dtype, tflops, origin, origin, "given", None, ())


def _device(table: dict[str, Any], sources: Mapping[str, str]) -> Device:
    device = Device(
        name=table.pop("name"),
        aliases=tuple(table.pop("aliases", ())),
        vendor=table.pop("vendor"),
        dies=table.pop("dies", None),
        peaks=tuple(peak for line in table.pop("peaks") for peak in _peaks(line, sources)),
        hbm_gb=_number(table, "hbm_gb"),
        hbm_gbps=_number(table, "hbm_gbps"),
        link_gbps=_number(table, "link_gbps"),
        tdp_w=_number(table, "tdp_w"),
        year=table.pop("year", None),
        members=tuple(table.pop("members", ())),
        notes=tuple(table.pop("notes", ())),
    )
    # Every key must have gone into a field: a misspelt one would otherwise be an unknown number.
    if table:
        raise ValueError(f"{device.name} has unknown keys: {', '.join(table)}")
    return device


def _peaks(line: dict[str, Any], sources: Mapping[str, str]) -> Iterator[Peak]:
    """Give the peaks of one source. Each key of its line is a basis, but source and confidence."""
    source, confidence = line.pop("source").format_map(sources), line.pop("confidence")
    for basis, values in line.items():
        for dtype, tflops in values.items():
            yield Peak(dtype, basis, float(tflops), source, confidence)


def _number(table: dict[str, Any], key: str) -> float | None:
    return float(table.pop(key)) if key in table else None


def _split(name: str) -> tuple[str, str]:
    """Split a name into the vendor of its brand, "" without a brand, and the rest in normalised form."""
    text = name.strip().lower()
    brand = _BRAND.match(text)
    vendor = _BRANDS[brand[1]] if brand else ""
    return vendor, _SEPARATORS.sub("", text[brand.end() :] if brand else text)


def _by_name(devices: tuple[Device, ...]) -> dict[str, Device]:
    """Map each name and alias, in normalised form, to its device.

    Raises ValueError when one names two devices.
    """
    owners: dict[str, Device] = {}
    for device in devices:
        for spelling in (device.name, *device.aliases):
            owner = owners.setdefault(_split(spelling)[1], device)
            if owner is not device:
                raise ValueError(f"{spelling} names two devices: {owner.name} and {device.name}")
    return owners


@cache
def _index() -> dict[str, Device]:
    return _by_name(all_devices())


def _peak(device: Device, dtype: str, basis: str) -> Peak | None:
    return next((p for p in device.peaks if (p.dtype, p.basis) == (dtype, basis)), None)


def _range(device: Device, dtype: str, basis: str) -> tuple[float, float] | None:
    peaks = (_peak(find_device(member), dtype, basis) for member in device.members)
    values = [p.tflops_per_second for p in peaks if p is not None]
    return (min(values), max(values)) if values else None


def other_parts(name: str, device: Device, dtype: str, basis: str) -> tuple[Note, ...]:
    """Report parts with other peaks that ``name`` could also mean: ``V100`` is the beginning of several names."""
    taken, words = _peak(device, dtype, basis), _words(name)
    if taken is None or device.members:
        return ()
    others = [
        info("part", name=other.name, tflops_per_second=peak.tflops_per_second)
        for other in all_devices()
        if other is not device and other.vendor == device.vendor and _words(other.name)[: len(words)] == words
        if (peak := _peak(other, dtype, basis)) and peak.tflops_per_second != taken.tflops_per_second
    ]
    if not others:
        return ()
    return (warning("device_taken", name=name, part=device.name, peak=taken.tflops_per_second, others=others),)


def _words(name: str) -> list[str]:
    text = name.strip().lower()
    brand = _BRAND.match(text)
    return _SEPARATORS.split(text[brand.end() :] if brand else text)


def device_notes(device: Device) -> tuple[Note, ...]:
    """Give the warnings that every run on the device gets."""
    return tuple(warning("device_note", text=text) for text in device.notes)


def _other_figures(device: Device, dtype: str) -> tuple[Note, ...]:
    """Report published figures that disagree with the matrix peak."""
    others = [p for p in device.peaks if p.dtype == dtype and p.basis.startswith(("alternative", "whitepaper"))]
    figures = [info("peak_figure", tflops_per_second=p.tflops_per_second, source=p.source) for p in others]
    return (warning("other_peak_figures", dtype=dtype, figures=figures),) if others else ()


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
