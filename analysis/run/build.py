"""From a log that was read to a finished run: the numbers, what they mean, and what was to be expected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from analysis.hardware.devices import find_device
from analysis.identify import LOGGED, describe_disagreements, identify
from analysis.metrics import BY_COLUMN
from analysis.run.analyze_steps import analyze_steps
from analysis.run.expectations import measure_against
from analysis.run.load import Loaded, load
from analysis.run.one_run import check_one_run
from analysis.run.options import RunOptions
from analysis.run.overheads import list_losses
from analysis.run.rank_comparison import describe_missing
from analysis.run.result import Analysis
from analysis.run.row_selection import RowRules, describe_warm_up
from analysis.run.run import Run
from analysis.run.throughput import Later, before_changes, plan_computation
from analysis.run.time_breakdown import describe_clock
from logparse.context.dialects import Framework
from logparse.context.vendors import named_vendors
from logparse.decode.read_run import ParsedLog, Watch
from logparse.errors import InputError
from logparse.findings import Note, info, warning
from logparse.language import tr


def analyze_logs(logs: Sequence[str], how: RunOptions, name: str | None = None, watch: Watch | None = None) -> Run:
    """Read ``logs`` as one run and compute what it achieved. Raises as ``load`` and ``analyze_run``."""
    return analyze_run(load(logs, how, name, watch), how)


def analyze_run(run: Loaded, how: RunOptions) -> Run:
    """Compute what a run achieved.

    Raises UsageError for a device or a peak that cannot be used; InputError for files that cannot be one run and, with
    ``strict``, for an impossible result.
    """
    log, meaning, context = run.log, run.meaning, run.context
    peak, said = how.peak(context)
    warm_up = replace(
        how.warm_up, profiling_steps=meaning.profiling_steps, times_are_shared=meaning.times_are_shared
    )
    rules = RowRules(warm_up, meaning.time_holds_pauses)
    later = [
        Later(c.source, c.line_number, plan_computation(c.context, how.formula, how.peak(c.context)[0]))
        for c in run.changes
    ]
    analysis = analyze_steps(
        meaning.steps, log.starts, log.records, context, how.formula, peak, rules=rules, later=later
    )
    check_one_run(run, analysis.steps)
    if how.strict and analysis.impossible:
        raise _impossible(log.name, analysis)
    unchanged = before_changes(analysis.steps, later)
    found = identify(unchanged, context)
    differ = describe_disagreements(unchanged, context, peak, found)
    # Where the log's TFLOP/s is not ours, the warning says which formula it is.
    identified = found.logged is not None and LOGGED not in [note.fields["figure"] for note in differ]
    changed = [note for change in run.changes for note in change.context.notes]
    first_time = [note for at, note in enumerate(changed) if note not in changed[:at]]
    warnings = (*log.notes, *context.notes, *first_time, *said)
    # What would give the time of a step says more than that no line does.
    lacking = [note for note in meaning.notes if note.code == "rate_lacks_sizes"]
    missing = [note for note in analysis.notes if not lacking or note.code != "no_step_time"]
    told = (
        *describe_missing(log.sources, context.get("world_size")),
        *describe_warm_up(analysis.steps, how.warm_up.asked),
        *describe_clock(analysis.steps),
        *(note for note in meaning.notes if note not in lacking),
        *([info("formula_identified", findings=found.findings)] if identified else []),
    )
    # First, since it says that every share of the peak is of another device.
    notes = (*_contradicted(how, log, meaning.framework), *missing, *lacking, *differ, *warnings, *told)
    ordered = sorted(notes, key=lambda note: note.level != "warning")
    beside = measure_against(analysis, context, log.records, how.published, how.baseline, how.utilisation)
    losses = list_losses(analysis, context, analysis.pauses, beside)
    notes = tuple(ordered)
    return Run(log, meaning.framework, context, analysis, found, notes, beside, losses, how.requirements)


def _contradicted(how: RunOptions, log: ParsedLog, framework: Framework) -> Iterator[Note]:
    """A device of one vendor given for a log that names software of another's alone."""
    if how.hw is None or how.peak_tflops is not None:
        return
    device, named = find_device(how.hw), list(named_vendors(log, framework))
    vendors = list(dict.fromkeys(vendor for vendor, _ in named))
    if named and device.vendor not in vendors:
        found = [note for _, note in named]
        fields = {"device": device.name, "vendor": device.vendor, "vendors": vendors, "named": found}
        yield warning("device_contradicts_log", **fields)


def _impossible(name: str, analysis: Analysis) -> InputError:
    """The error for the first of the metrics that cannot be."""
    metric = BY_COLUMN[analysis.impossible[0]]
    rates = analysis.rates[metric.column] if metric.rated else ()
    values = [*rates, analysis.value(metric.column) if metric.row_column else analysis.goodput]
    most = max(value for value in values if value is not None)
    problem = tr(
        "{metric} is {value} %, more than can be", metric=tr(metric.label), value=f"{most * metric.scale:,.1f}"
    )
    remedy = tr("check --hw, --world-size, the batch and the shape; leave out --strict to see it marked")
    return InputError(problem, where=name, remedy=remedy)
