"""From a log that was read to a finished run: the numbers, what they mean, and what was to be expected."""

from __future__ import annotations

from dataclasses import dataclass, field

from analysis.flops import Formula, default_formula, find_formula
from analysis.hardware.devices import DevicePeak
from analysis.hardware.peak import resolve_peak
from analysis.identify import identify
from analysis.pipeline.expectations import measure_against
from analysis.pipeline.load import Given, Loaded
from analysis.pipeline.run import Run
from analysis.published.rows import Baseline, published
from analysis.run.analyze import analyze_steps
from analysis.run.throughput import Later, before_changes, plan_computation
from analysis.run.time_breakdown import describe_clock
from analysis.run.window import WindowOptions, describe_warm_up
from logparse.context.run_context import RunContext
from logparse.findings import Note, info


@dataclass(frozen=True)
class Choices:
    """How the user wants a run computed; ``warmup`` None is found from the data, ``utilisation`` is the planned one."""

    formula: Formula
    hw: str | None = None
    peak_tflops: float | None = None
    peak_basis: str | None = None
    warmup: int | None = None
    peak_origin: str = "--peak-tflops"
    published: tuple[Baseline, ...] = field(default_factory=published)
    baseline: str | None = None
    utilisation: float | None = None

    def peak(self, context: RunContext) -> tuple[DevicePeak | None, tuple[Note, ...]]:
        """The peak to divide by, and what must be said of it."""
        return resolve_peak(self.hw, context.get("precision"), self.peak_tflops, self.peak_basis, self.peak_origin)


def choose(
    beside: Given,
    formula: str | None = None,
    hw: str | None = None,
    peak_tflops: float | None = None,
    peak_basis: str | None = None,
    warmup: int | None = None,
) -> Choices:
    """What the flags say, then what the config file says; a device named by a flag beats a peak of the file."""
    options = beside.options
    named = formula or options.get("formula")
    chosen = find_formula(named) if named else default_formula()
    if peak_tflops is None and hw is None and "peak_tflops" in options:
        device, peak, basis = options.get("hw"), options["peak_tflops"], peak_basis
        return Choices(chosen, device, peak, basis, warmup, f"config file {beside.file}")
    return Choices(chosen, hw or options.get("hw"), peak_tflops, peak_basis, warmup)


def analyze_run(run: Loaded, choices: Choices) -> Run:
    """Compute what a run achieved. Raises UsageError for a device or a peak that cannot be used."""
    log, meaning, context = run.log, run.meaning, run.context
    peak, said = choices.peak(context)
    window = WindowOptions(choices.warmup, meaning.profiling_steps, meaning.time_holds_pauses, meaning.times_are_shared)
    later = [
        Later(c.source, c.line_number, plan_computation(c.context, choices.formula, choices.peak(c.context)[0]))
        for c in run.changes
    ]
    analysis = analyze_steps(
        meaning.steps, log.starts, log.records, context, choices.formula, peak, window=window, later=later
    )
    found = identify(before_changes(analysis.steps, later), context)
    changed = [note for change in run.changes for note in change.context.notes]
    first_time = [note for at, note in enumerate(changed) if note not in changed[:at]]
    warnings = (*log.notes, *context.notes, *first_time, *said)
    told = (
        *describe_warm_up(analysis.steps, choices.warmup),
        *describe_clock(analysis.steps),
        *meaning.notes,
        *([info("formula_identified", findings=found.findings)] if found.logged is not None else []),
    )
    notes = (*analysis.notes, *warnings, *told)
    ordered = sorted(notes, key=lambda note: note.level != "warning")
    beside = measure_against(analysis, context, log.records, choices.published, choices.baseline, choices.utilisation)
    return Run(log, meaning.framework, context, analysis, found, tuple(ordered), beside)
