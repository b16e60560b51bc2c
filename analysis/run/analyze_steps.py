"""One run from frames to numbers: window, rates, summary, and a note on everything that could not be computed.

Comes in: decoded steps and the run's context. Goes out: an Analysis. Nothing is printed or written here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from analysis.flops import Formula
from analysis.hardware.devices import DevicePeak
from analysis.run.clock.clock import Clock, describe_long_gaps, read_clock, repair_clock, time_to_train
from analysis.run.clock.interruptions import describe_pauses, find_pauses
from analysis.run.clock.planned_evaluations import with_planned_evaluations
from analysis.run.clock.step_time_patterns import describe_pace
from analysis.run.notes import describe_rounded, describe_run
from analysis.run.ranks.rank_comparison import compare_ranks, describe_ranks
from analysis.run.rates.baseline_step_time import with_baseline
from analysis.run.rates.batch_sizes import (
    counts_beyond_length,
    describe_batches,
    describe_counted_tokens,
    tokens_per_sample,
)
from analysis.run.rates.model_flops import describe_counted_work
from analysis.run.rates.rates_of_run import name_rates
from analysis.run.rates.sizes import describe_sizes, of_longest_run, rates_by_size
from analysis.run.rates.throughput import (
    Computation,
    Later,
    by_settings,
    compute_metrics,
    fill_batch,
    in_force,
    plan_computation,
)
from analysis.run.result import Analysis
from analysis.run.rows.corrupt_rows import describe_damage
from analysis.run.rows.duplicates import describe_copies, of_one_clock
from analysis.run.rows.restarts import (
    describe_other_jobs,
    left_out_steps,
    lines_of_starts,
    list_segments,
    number_starts,
    trace_starts,
)
from analysis.run.rows.row_selection import DEFAULT_RULES, RowRules, select_without_pauses
from analysis.run.rows.streams import describe_streams, find_streams
from analysis.run.rows.unprinted_steps import describe_missing_lines, describe_missing_logs, unprinted_between
from analysis.run.summary import summarize
from analysis.run.tables import STEP_COLUMNS
from analysis.run.useful.goodput import count_goodput
from analysis.run.useful.time_breakdown import USEFUL, break_down_time
from analysis.run.useful.useful_time import describe_nan_updates, describe_zero_losses, value_rows
from logparse.context.run_context import RunContext
from logparse.schema import conform


def analyze_steps(
    steps: pl.DataFrame,
    starts: pl.DataFrame,
    records: Mapping[str, pl.DataFrame],
    context: RunContext,
    formula: Formula,
    peak: DevicePeak | None,
    rules: RowRules = DEFAULT_RULES,
    later: Sequence[Later] = (),
) -> Analysis:
    """Compute the analysis of ``steps`` from ``records`` and ``context``.

    ``later`` are the computations for the rows of starts that printed other settings.
    """
    how = plan_computation(context, formula, peak)
    printed = find_pauses(records)
    numbered = number_starts(steps, lines_of_starts(starts, records["events"]), printed)
    streams = find_streams(numbered)
    events = of_one_clock(records["events"], numbered)
    traced = trace_starts(numbered, events, context.get("log_interval"), left_out_steps(context))
    pauses = with_planned_evaluations(printed, traced, rules.evaluates_every)
    repaired = repair_clock(traced, events, pauses)
    events = repaired.events
    filled = by_settings(repaired.steps, how, later, fill_batch)
    marked, taken_out = select_without_pauses(filled, pauses, rules)
    # Rates use the mean batch and the tokens that are counted; the columns keep what is printed.
    means = marked.with_columns(global_batch_size="mean_batch")
    counted = tokens_per_sample(means)
    beyond = counts_beyond_length(steps, counted)
    sized = means if counted is None or beyond else means.with_columns(seq_length=pl.lit(counted))
    rated = by_settings(sized, how, later, compute_metrics)
    computed = conform(rated.with_columns(marked["global_batch_size", "seq_length"]), STEP_COLUMNS)
    clock = read_clock(computed, events) if repaired.trusted else Clock(None)
    # The baseline and the value of a row are used several times and are slow to compute.
    rows = with_baseline(computed.hstack([marked["mean_batch"], rated["devices"]]))
    sizes = rates_by_size(rows)
    of_one_size = of_longest_run(rows, sizes)
    priced = value_rows(rows)
    time_breakdown = break_down_time(rows, events, pauses, clock, priced, taken_out)
    long_gaps = describe_long_gaps(repaired.gaps) if repaired.trusted and not streams else ()
    clock_notes = (*repaired.notes, *clock.notes, *long_gaps)
    segments = list_segments(computed)
    # Stamps that contradict the steps give neither goodput nor time to train.
    is_clock_sure = repaired.trusted and not clock.notes
    # The time of separate trainings is of none of them.
    one_training = segments["lineage"].n_unique() <= 1
    goodput = _share(time_breakdown, USEFUL) if is_clock_sure and one_training else None
    reliability = count_goodput(rows, priced, time_breakdown, segments, events, goodput if clock.seconds else None)
    if streams:
        # The turns that runs take are no restarts.
        reliability = replace(reliability, interruptions=None, planned_stops=None, lost_steps=None)
    result = Analysis(
        steps=computed,
        summary=summarize(of_one_size),
        segments=segments,
        rates=name_rates(rows, clock.seconds, priced, unprinted_between(priced), of_one_size),
        time_breakdown=time_breakdown,
        ranks=compare_ranks(computed),
        goodput=goodput,
        computation=how,
        flops_per_iteration=_last_flops(computed, how),
        notes=(),
        latest=later[-1].how if later else how,
        in_force=in_force(of_one_size.filter("counted"), how, later),
        sizes=sizes,
        reliability=reliability,
        pauses=pauses,
        warm_up=rules.warm_up,
        time_to_train_seconds=time_to_train(computed, events) if is_clock_sure else None,
        streams=tuple(streams),
    )
    data_notes = (
        *describe_streams(streams),
        *describe_rounded(context),
        *(() if streams else describe_damage(steps, numbered)),
        *describe_copies(numbered),
        *describe_other_jobs(numbered),
    )
    pause_notes = describe_pauses(rows, pauses, rules.time_holds_pauses, rules.pauses_are_printed)
    pace_notes = (*describe_pace(rows, pauses), *pause_notes, *describe_ranks(result.ranks, numbered))
    notes = (
        *data_notes,
        *describe_batches(computed),
        *describe_sizes(rows, sizes),
        *describe_counted_tokens(computed, counted, beyond),
        *describe_nan_updates(computed),
        *describe_zero_losses(computed, how),
        *describe_missing_lines(computed),
        *describe_missing_logs(computed, events),
        *clock_notes,
        *describe_run(result, steps, context),
        *describe_counted_work(result, context),
        *pace_notes,
    )
    return replace(result, notes=notes)


def _share(time_breakdown: pl.DataFrame, part: str) -> float | None:
    return dict(time_breakdown["part", "share"].iter_rows()).get(part)


def _last_flops(steps: pl.DataFrame, how: Computation) -> float | None:
    """FLOPs of the last step whose batch and sequence length are known."""
    sizes = steps["global_batch_size", "seq_length"].drop_nulls()
    if sizes.is_empty():
        return None
    batch, length = sizes.row(-1)
    per_sample = how.flops_per_sample(length, how.quoted)
    return None if per_sample is None else per_sample * batch
