"""The devices that are known, and every peak of one: parts for people, a list for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from analysis.hardware.devices import Device, DevicePeak, choose_peak
from analysis.present.parts import Heading, Part, Sentence, Table
from logparse.language import tr

UNKNOWN = "-"


def hardware_parts(devices: Sequence[Device]) -> list[Part]:
    """All devices, one a row."""
    headings = (tr("device"), tr("matrix"), tr("headline"), "GB", tr("confidence"), tr("also called"))
    return [
        Heading(tr("Peaks of one device, TFLOP/s"), "title"),
        Table(headings, tuple(map(_cells, devices)), prose={4, 5}, headed=True),
        Sentence(
            tr("bf16, or fp16 (marked *) if there is no bf16; a family shows the range of its SKUs; - is unknown")
        ),
    ]


def _cells(device: Device) -> tuple[str, ...]:
    matrix, headline = _training_peak(device, "matrix"), _training_peak(device, "headline")
    shown = matrix or headline
    return (
        device.name,
        _rate(matrix) + _spread(matrix, " ", start="\n"),
        _rate(headline),
        _number(device.hbm_gb),
        tr(shown.confidence) if shown else UNKNOWN,
        tr(", ").join(device.aliases),
    )


def device_parts(device: Device) -> list[Part]:
    """One device: what is known of it, then its peaks with their sources."""
    facts = tuple((label, value) for label, value in _facts(device) if value not in ("", UNKNOWN))
    peaks = tuple(
        (p.dtype, tr(p.basis), _number(p.tflops_per_second), tr(p.confidence), p.source) for p in device.peaks
    )
    headings = ("dtype", tr("basis"), "TFLOP/s", tr("confidence"), tr("source"))
    return [
        Table(("", ""), facts, prose={1}),
        Heading(tr("Peaks of one device, TFLOP/s")),
        Table(headings, peaks, prose={1, 3, 4}, headed=True),
    ]


def _facts(device: Device) -> Iterator[tuple[str, str]]:
    yield tr("device"), device.name
    yield tr("also called"), tr(", ").join(device.aliases)
    yield tr("one of"), tr(", ").join(device.members)
    yield tr("range"), _spread(_training_peak(device, "matrix"), tr(" TFLOP/s, matrix"))
    yield tr("vendor"), device.vendor
    yield tr("year"), _number(device.year)
    yield tr("dies"), _number(device.dies)
    yield tr("memory"), _number(device.hbm_gb, " GB")
    yield tr("memory rate"), _number(device.hbm_gbps, " GB/s")
    yield tr("link"), _number(device.link_gbps, tr(" GB/s per direction"))
    yield tr("power"), _number(device.tdp_w, " W")
    yield from ((tr("note"), tr(note)) for note in device.notes)


def hardware_document(devices: Sequence[Device]) -> list[dict[str, Any]]:
    """The JSON list, the same in every language."""
    return [asdict(device) for device in devices]


def _training_peak(device: Device, basis: str) -> DevicePeak | None:
    return choose_peak(device, "bf16", basis) or choose_peak(device, "fp16", basis)


def _rate(peak: DevicePeak | None) -> str:
    """Write a peak with its mark; one without keeps the mark's place free, so that the digits line up."""
    if peak is None:
        return UNKNOWN + " "
    return _number(peak.peak_tflops_per_second, "*" if peak.dtype == "fp16" else " ")


def _spread(peak: DevicePeak | None, end: str, start: str = "") -> str:
    if peak is None or peak.range is None:
        return ""
    low, high = peak.range
    return f"{start}{_number(low)}-{_number(high)}{end}"


def _number(value: float | None, unit: str = "") -> str:
    return UNKNOWN if value is None else f"{value:.10g}{unit}"
