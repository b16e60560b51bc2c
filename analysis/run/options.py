"""How logs are read and a run is computed, as the user wants it."""

from __future__ import annotations

from analysis.flops import Formula, default_formula
from analysis.hardware.devices import DevicePeak, known_name, resolve_peak
from analysis.published.baselines import Baseline, published
from analysis.run.checks.targets import Requirement
from analysis.run.rows.warm_up import FROM_THE_DATA, WarmUpRule
from logparse.context.run_context import Given, RunContext
from logparse.findings import Note, Origin, warning
from logparse.light_dataclass import dataclass, field, replace
from logparse.pseudonyms import Pseudonyms


def _not_listed(note: Note, device: str) -> Note:
    """``note``, which says that the device is unknown, of a ``device`` that the log names."""
    return warning("device_not_listed", device=device) if note.code == "device_unknown" else note


@dataclass(frozen=True)
class RunOptions:
    """Everything that the user gives for a run along with its logs.

    ``drafts``: a log of an unknown format is read by a format drafted from it. ``all_files`` reads every file of a run
    to its end, ``jobs`` blocks at once (None: one for each core).
    ``warm_up`` says which rows are left out; ``utilisation`` is the planned one, from 0 to 1; ``baseline`` names one of
    the ``published`` rows. ``peak_tflops`` is TFLOP/s of one device, ``peak_origin`` the flag or file it is from.
    ``requirements`` are what the run must reach. ``pseudonyms`` take the place of hosts, users, paths and names.
    """

    given: Given = field(default_factory=Given)
    log_format: str | None = None
    dialect: str | None = None
    drafts: bool = False
    strict: bool = False
    all_files: bool = False
    jobs: int | None = None
    formula: Formula = field(default_factory=default_formula)
    hw: str | None = None
    peak_tflops: float | None = None
    peak_basis: str | None = None
    peak_origin: str = "--peak-tflops"
    warm_up: WarmUpRule = FROM_THE_DATA
    published: tuple[Baseline, ...] = field(default_factory=published)
    baseline: str | None = None
    utilisation: float | None = None
    requirements: tuple[Requirement, ...] = ()
    pseudonyms: Pseudonyms | None = None

    def peak(self, context: RunContext, assumes_type: bool = True) -> tuple[DevicePeak | None, tuple[Note, ...]]:
        """The peak to divide by, and the notes on it: of the device that the log names, unless one is given.

        ``assumes_type``: where the number type is unknown, it is assumed.
        """
        device_name = context.facts.get("device_name")
        printed = None if device_name is None else known_name(device_name.value)
        hw, origin = self.hw, Origin("flag", rule="--hw")
        if hw is None and self.peak_tflops is None and device_name is not None and printed is not None:
            hw, origin = printed, device_name.origin
        if self.peak_tflops is not None:
            origin = Origin("flag", rule=self.peak_origin)
        if hw is None and self.peak_tflops is None and context.without_tokens:
            # Nothing would be divided by it.
            return None, ()
        given = (context.get("precision"), self.peak_tflops, self.peak_basis, self.peak_origin)
        peak, notes = resolve_peak(hw, *given, assumes_type=assumes_type)
        if hw is None and device_name is not None:
            notes = tuple(_not_listed(note, device_name.value) for note in notes)
        return (None if peak is None else replace(peak, origin=origin)), notes
