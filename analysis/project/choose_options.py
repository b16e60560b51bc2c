"""The options of a run: flags first, then the file of --config, then the environment and the project file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from analysis.flops import default_formula, find_formula
from analysis.hardware.devices import find_device
from analysis.project.given_facts import gather
from analysis.project.project_file import Standing
from analysis.run.options import RunOptions
from analysis.run.targets import gather_requirements
from analysis.run.warm_up import WarmUpRule
from logparse.context.given import Given
from logparse.context.run_context import Fact
from logparse.errors import UsageError
from logparse.findings import Origin, flag

NOTHING_STANDS = Standing()
# What a run is compared with; a file says it for the commands that have a flag for it.
BESIDE = ("utilisation", "baseline")


def choose(
    quantities: Mapping[str, Any],
    model: str | None = None,
    config: Path | None = None,
    formula: str | None = None,
    hw: str | None = None,
    peak_tflops: float | None = None,
    require: Sequence[str] | None = None,
    warmup: int | None = None,
    standing: Standing = NOTHING_STANDS,
    **others: Any,
) -> RunOptions:
    """What the flags say, then what the config file says, then what is ``standing``.

    ``require`` are texts as ``mfu>=0.45``. ``others`` are fields of RunOptions; of those the files set BESIDE.
    Raises UsageError for what does not exist, InputError for a file that cannot be read.
    """
    given = replace(gather(quantities, model, config), weaker=standing.facts)
    layers = (options_of(given), *standing.layers)
    merged = {name: fact.value for layer in reversed(layers) for name, fact in layer.items()}
    device, peak = choose_device(hw, peak_tflops, layers)
    if peak and peak.origin.kind == "config":
        others |= {"peak_origin": f"config file {peak.origin.file}"}
    named = formula or merged.get("formula")
    others |= {name: merged[name] for name in BESIDE if name in merged and others.get(name, ...) is None}
    files = [(layer["require"].value, layer["require"].origin.file) for layer in layers if "require" in layer]
    return RunOptions(
        given=given,
        formula=find_formula(named) if named else default_formula(),
        hw=device.value if device else None,
        peak_tflops=peak.value if peak else None,
        warm_up=WarmUpRule(warmup),
        requirements=gather_requirements([(require or (), None), *files]),
        **others,
    )


def options_of(given: Given) -> dict[str, Fact]:
    """The options of the config file."""
    return {name: Fact(value, Origin("config", str(given.file))) for name, value in given.options.items()}


def choose_device(
    hw: str | None, peak_tflops: float | None, layers: Sequence[Mapping[str, Fact]]
) -> tuple[Fact | None, Fact | None]:
    """The device and the peak of the strongest that gives each: flags, then ``layers``.

    A device beats a peak that a weaker one gives. Raises UsageError, with its place, for a device that is not known and
    that no flag names.
    """
    told = {"hw": hw, "peak_tflops": peak_tflops}
    flags = {
        name: Fact(value, flag(f"--{name}".replace("_", "-"))) for name, value in told.items() if value is not None
    }
    ranked = list(enumerate((flags, *layers)))
    at, device = next(((at, layer["hw"]) for at, layer in ranked if "hw" in layer), (len(ranked), None))
    peak = next((layer["peak_tflops"] for rank, layer in ranked if rank <= at and "peak_tflops" in layer), None)
    if device and device.origin.kind != "flag":
        try:
            find_device(device.value)
        except UsageError as error:
            raise UsageError(error.problem, where=str(device.origin), remedy=error.remedy) from error
    return device, peak
