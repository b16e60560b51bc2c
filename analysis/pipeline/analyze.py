"""From a log that was read to its numbers: what commands that analyse have in common."""

from __future__ import annotations

from dataclasses import dataclass, field

from analysis.flops import Formula, default_formula, find_formula
from analysis.hardware.devices import DevicePeak
from analysis.hardware.peak import resolve_peak
from analysis.identify import Identification, identify
from analysis.pipeline.expectations import Yardsticks, measure_against
from analysis.pipeline.load import Given, Loaded
from analysis.published.rows import Baseline, published
from analysis.run.analyze import Analysis, analyze_steps
from analysis.run.findings import Note
from analysis.run.throughput import Later, before_changes, plan_computation
from analysis.run.time_breakdown import describe_clock
from analysis.run.window import WindowOptions, describe_warm_up
from logparse.context.dialects import Framework
from logparse.context.run_context import RunContext
from logparse.language import tr
from logparse.read.parse import ParsedLog


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

    def peak(self, context: RunContext) -> tuple[DevicePeak | None, tuple[str, ...]]:
        """The peak to divide by, and what must be said of it."""
        return resolve_peak(self.hw, context.get("precision"), self.peak_tflops, self.peak_basis, self.peak_origin)


def choose(
    beside: Given,
    formula: str | None,
    hw: str | None,
    peak_tflops: float | None,
    peak_basis: str | None,
    warmup: int | None,
) -> Choices:
    """What the flags say, then what the config file says; a device named by a flag beats a peak of the file."""
    options = beside.options
    named = formula or options.get("formula")
    chosen = find_formula(named) if named else default_formula()
    if peak_tflops is None and hw is None and "peak_tflops" in options:
        device, peak, basis = options.get("hw"), options["peak_tflops"], peak_basis
        return Choices(chosen, device, peak, basis, warmup, tr("config file {path}", path=beside.file))
    return Choices(chosen, hw or options.get("hw"), peak_tflops, peak_basis, warmup)


@dataclass(frozen=True)
class RunResult:
    """Everything known about one run, from its text to its numbers."""

    log: ParsedLog
    framework: Framework
    context: RunContext
    analysis: Analysis
    identified: Identification
    notes: tuple[Note, ...]
    yardsticks: Yardsticks

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from analysis.screens.analyze import compose
        from analysis.screens.html import html

        return html(compose(self))


def analyze_run(run: Loaded, choices: Choices) -> RunResult:
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
    changed = dict.fromkeys(note for change in run.changes for note in change.context.notes)
    warnings = (*log.notes, *context.notes, *changed, *said)
    told = (
        *describe_warm_up(analysis.steps, choices.warmup),
        *describe_clock(analysis.steps),
        *meaning.notes,
        *([found.sentence] if found.logged is not None else []),
    )
    notes = (*analysis.notes, *(Note("warning", t) for t in warnings), *(Note("info", t) for t in told))
    ordered = sorted(notes, key=lambda note: note.level != "warning")
    beside = measure_against(analysis, context, log.records, choices.published, choices.baseline, choices.utilisation)
    return RunResult(log, meaning.framework, context, analysis, found, tuple(ordered), beside)
