"""How logs are read and a run is computed, as the user wants it: flags first, then the config file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.flops import Formula, default_formula, find_formula
from analysis.hardware.devices import DevicePeak
from analysis.hardware.peak import resolve_peak
from analysis.pipeline.inputs import Given, gather
from analysis.pipeline.requirements import Requirement, gather_requirements
from analysis.published.rows import Baseline, published
from logparse.context.run_context import RunContext
from logparse.findings import Note

# What a run is set beside; a file says it for the commands that have a flag for it.
BESIDE = ("utilisation", "baseline")


@dataclass(frozen=True)
class RunOptions:
    """Everything that is said of a run beside its logs.

    ``all_files`` reads every file of a run to its end, ``jobs`` blocks at once (None: one for each core).
    ``warmup`` None is found from the data; ``utilisation`` is the planned one, from 0 to 1; ``baseline`` names one of
    the ``published`` rows. ``peak_tflops`` is TFLOP/s of one device, ``peak_origin`` the flag or file it is from.
    ``requirements`` are what the run must reach.
    """

    given: Given = field(default_factory=Given)
    log_format: str | None = None
    dialect: str | None = None
    strict: bool = False
    all_files: bool = False
    jobs: int | None = None
    formula: Formula = field(default_factory=default_formula)
    hw: str | None = None
    peak_tflops: float | None = None
    peak_basis: str | None = None
    peak_origin: str = "--peak-tflops"
    warmup: int | None = None
    published: tuple[Baseline, ...] = field(default_factory=published)
    baseline: str | None = None
    utilisation: float | None = None
    requirements: tuple[Requirement, ...] = ()

    def peak(self, context: RunContext) -> tuple[DevicePeak | None, tuple[Note, ...]]:
        """The peak to divide by, and what must be said of it."""
        return resolve_peak(self.hw, context.get("precision"), self.peak_tflops, self.peak_basis, self.peak_origin)


def choose(
    quantities: Mapping[str, Any],
    model: str | None = None,
    config: Path | None = None,
    formula: str | None = None,
    hw: str | None = None,
    peak_tflops: float | None = None,
    require: Sequence[str] | None = None,
    **others: Any,
) -> RunOptions:
    """What the flags say, then what the config file says; a device named by a flag beats a peak of the file.

    ``require`` are texts as ``mfu>=0.45``. ``others`` are fields of RunOptions; of those the file sets BESIDE.
    Raises UsageError for what does not exist, InputError for a file that cannot be read.
    """
    given = gather(quantities, model, config)
    file = given.options
    named = formula or file.get("formula")
    if peak_tflops is None and hw is None and "peak_tflops" in file:
        peak_tflops, others = file["peak_tflops"], {**others, "peak_origin": f"config file {given.file}"}
    others |= {name: file[name] for name in BESIDE if name in file and others.get(name, ...) is None}
    return RunOptions(
        given=given,
        formula=find_formula(named) if named else default_formula(),
        hw=hw or file.get("hw"),
        peak_tflops=peak_tflops,
        requirements=gather_requirements(require or (), file.get("require", ()), given.file),
        **others,
    )
