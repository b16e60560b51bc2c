"""From a log that was read to its numbers: what commands that analyse have in common."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from analysis.baselines import Baseline, published
from analysis.devices import DevicePeak
from analysis.flops import Formula, find_formula
from analysis.identify import Identification, identify
from analysis.metrics import Later, before_changes, plan_computation
from analysis.peak import resolve_peak
from analysis.run import Analysis, Note, analyze_steps
from analysis.window import WARM_UP, WindowOptions
from logparse.commands._load import Given, Loaded
from logparse.commands._yardsticks import Yardsticks, measure_against
from logparse.decode import ParsedLog
from logparse.dialects import Framework
from logparse.language import tr
from logparse.run_context import RunContext

# Starts whose warm-up is told one by one.
STARTS_SHOWN = 3


@dataclass(frozen=True)
class Choices:
    """How the user wants a run computed; ``warmup`` None is found from the data."""

    formula: Formula
    hw: str | None = None
    peak_tflops: float | None = None
    peak_basis: str | None = None
    warmup: int | None = None
    peak_origin: str = "--peak-tflops"
    published: tuple[Baseline, ...] = field(default_factory=published)
    baseline: str | None = None

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
    chosen = find_formula(formula or options.get("formula") or "ascendspeed")
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
        from logparse.commands._html import html
        from logparse.commands._screen import compose

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
        *_warm_up(analysis, choices.warmup),
        *_unclocked(analysis),
        *meaning.notes,
        *([found.sentence] if found.logged is not None else []),
    )
    notes = (*analysis.notes, *(Note("warning", t) for t in warnings), *(Note("info", t) for t in told))
    ordered = sorted(notes, key=lambda note: note.level != "warning")
    beside = measure_against(analysis, context, log.records, choices.published, choices.baseline)
    return RunResult(log, meaning.framework, context, analysis, found, tuple(ordered), beside)


def _unclocked(analysis: Analysis) -> tuple[str, ...]:
    """Say why there is no all-in rate."""
    if len(analysis.steps.drop_nulls("timestamp")) > 1:
        return ()
    return (tr("all-in not computed: fewer than two step lines carry a time stamp"),)


def _warm_up(analysis: Analysis, asked: int | None) -> tuple[str, ...]:
    """What was taken for warm-up, with its evidence: the first rows of a start against its settled ones."""
    if asked is not None:
        return (tr("warm-up: {n} rows of each start, as --warmup says", n=asked),)
    time, warm = pl.col("step_time_ms"), pl.col("excluded_reason") == WARM_UP
    starts = (
        analysis.steps.group_by("segment", maintain_order=True)
        .agg(warm.sum().alias("n"), time.filter(warm).max().alias("slowest"), time.filter("counted").median())
        .filter(pl.col("n") > 0)
    )
    found = [
        tr("start {start}: {n} rows of up to {slowest} ms", start=start + 1, n=n, slowest=f"{slowest or 0:,.0f}")
        + (tr(" before the median of {settled} ms", settled=f"{settled:,.0f}") if settled else "")
        for start, n, slowest, settled in starts.head(STARTS_SHOWN).rows()
    ]
    more = [tr("{n} more starts", n=len(starts) - STARTS_SHOWN)] if len(starts) > STARTS_SHOWN else []
    return (tr("warm-up, {found}", found="; ".join((*found, *more))),) if found else ()
