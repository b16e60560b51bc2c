"""The options of a run: flags first, then the file of --config, then the environment and the project file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from analysis.flops import default_formula, find_formula
from analysis.hardware.devices import find_device
from analysis.project.given_facts import gather
from analysis.project.project_file import ProjectSettings
from analysis.run.checks.targets import gather_requirements
from analysis.run.options import RunOptions
from analysis.run.rows.warm_up import WarmUpRule
from logparse.context.run_context import Fact, Given
from logparse.errors import UsageError
from logparse.findings import Origin, flag

NO_PROJECT = ProjectSettings()
# What a run is compared with. A file sets these for the commands that have a flag for them.
COMPARISON_OPTIONS = ("utilisation", "baseline")


def choose(
    quantities: Mapping[str, Any],
    model: str | None = None,
    config: Path | None = None,
    formula: str | None = None,
    hw: str | None = None,
    peak_tflops: float | None = None,
    require: Sequence[str] | None = None,
    warmup: int | None = None,
    standing: ProjectSettings = NO_PROJECT,
    **others: Any,
) -> RunOptions:
    """The options of the flags, then of the config file, then of ``standing``, the settings of the project.

    ``require`` are texts such as ``mfu>=0.45``. ``others`` are fields of RunOptions; files set COMPARISON_OPTIONS of
    them. Raises UsageError for an unknown name, InputError for a file that cannot be read.
    """
    given = replace(gather(quantities, model, config), weaker=standing.facts)
    layers = (options_of(given), *standing.layers)
    merged = {name: fact.value for layer in reversed(layers) for name, fact in layer.items()}
    device, peak = choose_device(hw, peak_tflops, layers)
    if peak and peak.origin.kind == "config":
        others |= {"peak_origin": f"config file {peak.origin.file}"}
    formula_name = formula or merged.get("formula")
    others |= {name: merged[name] for name in COMPARISON_OPTIONS if name in merged and others.get(name, ...) is None}
    files = [(layer["require"].value, layer["require"].origin.file) for layer in layers if "require" in layer]
    return RunOptions(
        given=given,
        formula=find_formula(formula_name) if formula_name else default_formula(),
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
    """The device and the peak, each from the strongest source that gives it: flags, then ``layers``.

    A device overrides a peak from a weaker source. Raises UsageError, with its place, for an unknown device that no
    flag names.
    """
    given = {"hw": hw, "peak_tflops": peak_tflops}
    flags = {
        name: Fact(value, flag(f"--{name}".replace("_", "-"))) for name, value in given.items() if value is not None
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
