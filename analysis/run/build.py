"""From a log that was read to a finished run: the numbers, what they mean, and what was to be expected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from analysis.hardware.devices import DevicePeak, find_device, is_cpu, known_name
from analysis.identify import LOGGED, Identification, describe_disagreements, identify
from analysis.metrics import BY_COLUMN
from analysis.model.shape import ROLLOUTS
from analysis.run.analyze_steps import analyze_steps
from analysis.run.anonymous import shown_run
from analysis.run.checks.expectations import measure_against
from analysis.run.checks.self_checks import GOODPUT, PLAN, RATES, check_run, is_withheld, without_goodput, without_rates
from analysis.run.clock.interruptions import describe_parts, describe_phases
from analysis.run.load import Loaded, check_one_run, load, split
from analysis.run.notes import too_fast_for_cpu
from analysis.run.options import RunOptions
from analysis.run.ranks.rank_comparison import describe_missing
from analysis.run.rates.printed_rates import (
    PREFIX,
    describe_device_mfu,
    describe_whole_run_rate,
    mfu_of_device,
    printed_rates,
)
from analysis.run.rates.throughput import Later, before_changes, plan_computation
from analysis.run.result import Analysis
from analysis.run.rows.row_selection import RowRules, describe_warm_up
from analysis.run.rows.streams import trainings_in_turn
from analysis.run.run import Run
from analysis.run.useful.overheads import list_overheads
from analysis.run.useful.time_breakdown import describe_clock
from logparse.context.run_context import RunContext
from logparse.context.vendors import named_vendors
from logparse.decode.read_run import ParsedLog, Watch
from logparse.errors import StrictError
from logparse.findings import Note, info, warning
from logparse.language import tr

# The note that all times are the mean of the whole training.
MEAN_OF_RUN = "time_by_rate_of_run"
# Settings of LoRA are printed by a library that other programs use too.
OF_ADAPTERS = "peft"
# The notes that say more than that no line has the time of a step.
WHY_NO_TIME = ("rate_lacks_sizes", "rate_of_resumed_run")


def analyze_logs(logs: Sequence[str], how: RunOptions, name: str | None = None, watch: Watch | None = None) -> Run:
    """Read ``logs`` as one run and compute what it achieved. Raises as ``load`` and ``analyze_run``."""
    loaded = load(logs, how, name, watch)
    return shown_run(analyze_run(loaded, how), loaded.log, how)


def analyze_parts(
    logs: Sequence[str], how: RunOptions, name: str | None = None, watch: Watch | None = None, mixed_too: bool = False
) -> list[Run]:
    """As ``analyze_logs``, but trainings of one file that follow each other are runs of their own.

    With ``mixed_too`` runs that write to one file at the same time are too.
    """
    return parts_of(load(logs, how, name, watch), how, mixed_too)


def parts_of(loaded: Loaded, how: RunOptions, mixed_too: bool = False) -> list[Run]:
    """The runs of a log that was read, see ``analyze_parts``."""
    run = analyze_run(loaded, how)
    mixed, in_turn = run.analysis.streams, trainings_in_turn(run.steps)
    if mixed and mixed_too:
        parts = split(loaded.log, mixed, how, in_turn=False)
    elif in_turn and not mixed:
        parts = split(loaded.log, in_turn, how, in_turn=True)
    else:
        return [shown_run(run, loaded.log, how)]
    return [shown_run(analyze_run(part, how), part.log, how) for part in parts]


def analyze_run(run: Loaded, how: RunOptions) -> Run:
    """Compute what a run achieved.

    Raises UsageError for a device or a peak that cannot be used; InputError for files that cannot be one run and, with
    ``strict``, for an impossible result.
    """
    log, meaning, context = run.log, run.meaning, run.context
    peak_of = partial(how.peak, assumes_type=not log.format.benchmark)
    peak, of_peak = peak_of(context)
    warm_up = replace(how.warm_up, profiling_steps=meaning.profiling_steps, times_are_shared=meaning.times_are_shared)
    # A step that also generates prints neither its saves nor its evaluations.
    silent, printed = context.get("mixed_step") == ROLLOUTS, log.format.prints_pauses
    rules = RowRules(warm_up, meaning.time_holds_pauses, silent, printed, context.get("evaluation_interval"))
    peaks = [peak_of(change.context) for change in run.changes]
    later = [
        Later(c.source, c.line_number, plan_computation(c.context, how.formula, of_change))
        for c, (of_change, _) in zip(run.changes, peaks, strict=True)
    ]
    analysis = analyze_steps(
        meaning.steps, log.starts, log.records, context, how.formula, peak, rules=rules, later=later
    )
    check_one_run(run, analysis.steps)
    if how.strict and analysis.impossible:
        raise _impossible(log.name, analysis)
    unchanged = before_changes(analysis.steps, later)
    identified = identify(unchanged, context)
    of_passes = log.leaves_out_pauses("logged_samples_per_second")
    work = analysis.computation.formula_work()
    differ = describe_disagreements(unchanged, context, peak, identified, work, of_passes)
    # First, since it says that every share of the peak is of another device.
    notes = (
        *_contradicted(how, run, too_fast_for_cpu(analysis)),
        *_above_peak(analysis),
        *_of_another_peak(analysis, context),
        *_missing(run, analysis),
        *differ,
        *describe_whole_run_rate(analysis, log.settings, context),
        *_of_reading(run),
        *describe_parts(log.records["timers"], analysis.steps, log.format.parts),
        *_of_peaks(analysis, of_peak, peaks),
        *_of_rows(run, how, analysis),
        *_named_formula(identified, differ),
    )
    ordered = tuple(sorted(notes, key=lambda note: note.level != "warning"))
    checks = check_run(ordered)
    if is_withheld(checks, RATES):
        analysis = without_rates(analysis)
    completed = log.ending is not None and log.ending.state == "completed"
    expected = measure_against(analysis, context, log.records, how.published, how.baseline, how.utilisation, completed)
    if is_withheld(checks, PLAN):
        expected = replace(expected, plan=replace(expected.plan, left=None))
    failed = log.ending is not None and log.ending.failed
    overheads = list_overheads(analysis, context, analysis.pauses, expected, log.format.benchmark, failed)
    # In the mean of a whole training no pause can be seen.
    if is_withheld(checks, GOODPUT) or MEAN_OF_RUN in [note.code for note in notes]:
        analysis, overheads = without_goodput(analysis), ()
    # Only a split of the log needs them.
    log = replace(log, hits=())
    return Run(
        log, meaning.framework, context, analysis, identified, ordered, expected, overheads, how.requirements, checks
    )


def _missing(run: Loaded, analysis: Analysis) -> list[Note]:
    """What could not be computed, why no line gives the time of a step, and what its phases add up to."""
    why = [note for note in run.meaning.notes if note.code in WHY_NO_TIME]
    notes = [*(note for note in analysis.notes if not why or note.code != "no_step_time"), *why]
    if "no_step_time" in [note.code for note in notes]:
        notes += describe_phases(run.log.records["timers"], run.log.format.phases)
    return notes


def _of_peaks(
    analysis: Analysis, first: Sequence[Note], later: Sequence[tuple[DevicePeak | None, Sequence[Note]]]
) -> list[Note]:
    """The notes on the peak of the ``first`` start; where no share is known, also why a ``later`` one has none."""
    if analysis.value("peak_utilization") is not None:
        return list(first)
    return _once([*first, *(note for peak, notes in later if peak is None for note in notes)])


def _of_reading(run: Loaded) -> list[Note]:
    """What reading the log and its settings gave, notes of several changes of the settings once."""
    changed = _once([note for change in run.changes for note in change.context.notes])
    return [*run.log.notes, *_of_bars(run.log), *run.context.notes, *changed]


def _once(notes: Sequence[Note]) -> list[Note]:
    return [note for at, note in enumerate(notes) if note not in notes[:at]]


def _of_bars(log: ParsedLog) -> Iterator[Note]:
    """That steps are of a progress bar, which may be of other work where the log has nothing else of the trainer."""
    of_trainer = (log.settings["kind"] != OF_ADAPTERS).any()
    if log.format.longest_plan and not of_trainer and all(map(pl.DataFrame.is_empty, log.records.values())):
        yield warning("steps_of_a_bar", framework=log.format.framework)


def _of_rows(run: Loaded, how: RunOptions, analysis: Analysis) -> list[Note]:
    """What is not in the rows, which of them are left out, and what their times mean."""
    return [
        *describe_missing(run.log.sources, run.context.get("world_size")),
        *describe_warm_up(analysis.steps, how.warm_up.asked),
        *describe_clock(analysis.steps, run.log.records["events"]),
        *(note for note in run.meaning.notes if note.code not in WHY_NO_TIME),
    ]


def _named_formula(identified: Identification, differ: Sequence[Note]) -> Iterator[Note]:
    """The formula of the log's TFLOP/s; where this is not ours, the warning among ``differ`` names it already."""
    if identified.logged is not None and LOGGED not in [note.fields["figure"] for note in differ]:
        yield info("formula_identified", findings=identified.findings)


def _contradicted(how: RunOptions, run: Loaded, no_cpu: bool) -> Iterator[Note]:
    """A device given that is not the one that the log names, or for a log that names software of another vendor.

    With ``no_cpu`` the run is too fast for a CPU, whatever the log calls it.
    """
    if how.hw is None or how.peak_tflops is not None:
        return
    device, named = find_device(how.hw), list(named_vendors(run.log, run.meaning.framework))
    fact = run.context.facts.get("device_name")
    printed = None if fact is None else known_name(fact.value)
    if fact is not None and is_cpu(fact.value):
        if not no_cpu:
            yield warning("hw_for_cpu", device=device.name, origin=fact.origin)
        return
    if fact is not None and printed is not None:
        other = find_device(printed)
        if other is not device and other.name not in device.members:
            yield warning("hw_is_another_device", device=device.name, printed=fact.value, origin=fact.origin)
        return
    vendors = list(dict.fromkeys(vendor for vendor, _ in named))
    if named and device.vendor not in vendors:
        evidence = [note for _, note in named]
        fields = {"device": device.name, "vendor": device.vendor, "vendors": vendors, "named": evidence}
        yield warning("device_contradicts_log", **fields)


def _above_peak(analysis: Analysis) -> Iterator[Note]:
    """The log prints more TFLOP/s than the device can do, or than any: another device, number type or formula."""
    rates = printed_rates(analysis.steps)
    for name, rate in rates.items():
        if rate.unit == "ratio" and rate.median > 1:
            yield warning("printed_share_above_one", figure=f"{PREFIX}{name}", share=rate.median)
    peak, printed = analysis.computation.peak, rates.get("tflops_per_second_per_device")
    if peak is not None and printed is not None and printed.median > peak.peak_tflops_per_second:
        fields = {"printed": printed.median, "peak": peak.peak_tflops_per_second, "dtype": peak.dtype}
        yield warning("printed_above_peak", device=peak.name, **fields)


def _of_another_peak(analysis: Analysis, context: RunContext) -> Iterator[Note]:
    """The log divides its MFU by the peak of another device; where ours is known, the comparison of both says so."""
    if analysis.value("mfu") is None:
        peak = analysis.computation.peak
        on_cpu = is_cpu(context.get("device_name")) and not too_fast_for_cpu(analysis)
        yield from describe_device_mfu(mfu_of_device(analysis.steps, context, peak), peak, context, on_cpu)


def _impossible(name: str, analysis: Analysis) -> StrictError:
    """The error for the first of the metrics that cannot be."""
    metric = BY_COLUMN[analysis.impossible[0]]
    rates = analysis.rates[metric.column] if metric.rated else ()
    values = [*rates, analysis.value(metric.column) if metric.row_column else analysis.goodput]
    most = max(value for value in values if value is not None)
    problem = tr(
        "{metric} is {value} %, above the possible maximum",
        metric=tr(metric.label),
        value=f"{most * metric.scale:,.1f}",
    )
    remedy = tr("check --hw, --world-size, the batch and the shape; omit --strict to see the value")
    return StrictError(problem, where=name, remedy=remedy)
