"""``logparse hardware``: which devices are known, and where each peak is from. Reads options, calls, prints."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from analysis.commands import _options as options
from analysis.hardware.devices import all_devices, find_device
from analysis.screens.console import make_console
from analysis.screens.hardware import device_parts, hardware_document, hardware_parts
from analysis.screens.terminal import print_parts


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
        typer.echo(json.dumps(hardware_document(devices), indent=2, ensure_ascii=False))
    else:
        print_parts(make_console(), hardware_parts(devices) if name is None else device_parts(devices[0]))
