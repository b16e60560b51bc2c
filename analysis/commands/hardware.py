"""``logparse hardware``: which devices are known, and where each peak is from.

Comes in: a name or none. Goes out: a table, or JSON. Nothing is looked up or computed here.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.commands import _options as options
from analysis.hardware.devices import Device, DevicePeak, all_devices, choose_peak, find_device
from analysis.screens.console import make_console
from logparse.language import tr

if TYPE_CHECKING:
    from rich.table import Table

UNKNOWN = "-"


def hardware(
    name: Annotated[str | None, typer.Argument(help="One device, by any of its names; leave out to list all.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list of devices instead of a table.")] = False,
    lang: options.Language = None,
) -> None:
    """List the devices that MFU and HFU can be computed for, with their peaks.

    A device is what one rank sees: one die of a 910C, one GCD of an MI250X.
    Give a NAME to see every peak of that device with basis, source and
    confidence. MFU is taken against the matrix peak; the headline figure of an
    Ascend data sheet is larger because it counts the vector units too.

    "910b" is the A2 family, four SKUs from 245.76 to 363.72 TFLOP/s: pass
    910b1, 910b2, 910b3 or 910b4, as `npu-smi info` prints it.
    A run on a device that is not listed needs --peak-tflops.
    \f
    Raises UsageError when no device goes by NAME.
    """
    devices = (find_device(name),) if name is not None else all_devices()
    if as_json:
        typer.echo(json.dumps([asdict(device) for device in devices], indent=2, ensure_ascii=False))
    elif name is not None:
        _print(_facts_table(devices[0]), _peaks_table(devices[0]))
    else:
        _print(_devices_table(devices))


def _print(*tables: Table) -> None:
    console = make_console()
    for number, table in enumerate(tables):
        if number:
            console.print()
        console.print(table)


def _devices_table(devices: tuple[Device, ...]) -> Table:
    from rich.table import Table

    table = Table(
        title=tr("Peaks of one device, TFLOP/s"),
        caption=tr("bf16, or fp16 (marked *) where there is no bf16; a family with the span of its SKUs; - is unknown"),
        box=None,
        pad_edge=False,
    )
    table.add_column(tr("device"), ratio=3)
    for heading in (tr("matrix"), tr("headline"), "GB"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column(tr("confidence"), no_wrap=True)
    table.add_column(tr("also called"), ratio=4)
    for device in devices:
        matrix, headline = _training_peak(device, "matrix"), _training_peak(device, "headline")
        shown = matrix or headline
        confidence = tr(shown.confidence) if shown else "-"
        aliases = ", ".join(device.aliases)
        rates = _rate(matrix) + _spread(matrix, " ", start="\n"), _rate(headline)
        table.add_row(device.name, *rates, _number(device.hbm_gb), confidence, aliases)
    return table


def _facts_table(device: Device) -> Table:
    from rich.table import Table

    facts = {
        tr("device"): device.name,
        tr("also called"): ", ".join(device.aliases),
        tr("one of"): ", ".join(device.members),
        tr("span"): _spread(_training_peak(device, "matrix"), tr(" TFLOP/s, matrix")),
        tr("vendor"): device.vendor,
        tr("year"): _number(device.year),
        tr("dies"): _number(device.dies),
        tr("memory"): _number(device.hbm_gb, " GB"),
        tr("memory rate"): _number(device.hbm_gbps, " GB/s"),
        tr("link"): _number(device.link_gbps, tr(" GB/s per direction")),
        tr("power"): _number(device.tdp_w, " W"),
        tr("note"): "\n".join(tr(note) for note in device.notes),
    }
    table = Table(box=None, show_header=False, pad_edge=False)
    for label, value in facts.items():
        if value not in ("", UNKNOWN):
            table.add_row(label, value)
    return table


def _peaks_table(device: Device) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("dtype", no_wrap=True)
    table.add_column(tr("basis"), no_wrap=True)
    table.add_column("TFLOP/s", justify="right", no_wrap=True)
    table.add_column(tr("confidence"), no_wrap=True)
    table.add_column(tr("source"), overflow="fold")
    for p in device.peaks:
        table.add_row(p.dtype, tr(p.basis), _number(p.tflops_per_second), tr(p.confidence), p.source)
    return table


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
