"""``logparse hardware``: which devices are known, and where each peak is from. Reads options, calls, prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from analysis.commands import _completion
from analysis.commands import _options as options
from analysis.commands._forms import print_json
from analysis.commands._values import holds
from analysis.hardware.devices import Device, all_devices, find_device
from analysis.present.console import make_console
from analysis.present.terminal import print_parts
from analysis.present.views.hardware import device_parts, hardware_document, hardware_parts
from logparse.errors import UsageError

Words = Annotated[list[str] | None, options.words(_completion.devices)]


def hardware(
    words: Words = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list of devices instead of a table.")] = False,
    lang: options.Language = None,
) -> None:
    """List the devices that MFU and HFU can be computed for, with their peaks.

    A device is what one rank uses: one die of a 910C, one GCD of an MI250X.
    A full name shows every peak of that device with basis, source and confidence.
    Part of a name lists all matches, as in `logparse hardware 910`.

    MFU is relative to the matrix peak. The headline peak of an Ascend data sheet
    is larger because it includes the vector units.

    "910b" is the A2 family: four SKUs from 245.76 to 363.72 TFLOP/s. Pass 910b1,
    910b2, 910b3 or 910b4, as `npu-smi info` prints it. For a device that is not
    listed, pass --peak-tflops.
    \f
    Raises UsageError when no device goes by WORDS.
    """
    devices = _chosen(words or ())
    if as_json:
        print_json(hardware_document(devices))
    else:
        print_parts(
            make_console(), device_parts(devices[0]) if words and len(devices) == 1 else hardware_parts(devices)
        )


def _chosen(words: Sequence[str]) -> tuple[Device, ...]:
    """The device called so, else those with all ``words`` in one of their names. Raises UsageError where none is."""
    if not words:
        return all_devices()
    try:
        return (find_device(" ".join(words)),)
    except UsageError:
        matches = tuple(device for device in all_devices() if holds(words, (device.name, *device.aliases)))
        if not matches:
            raise
        return matches
