"""Which rows count: each rule marks rows with a reason; nothing is deleted, and the first reason stays.

Comes in: rows that ``restarts`` has traced, pauses, and what the dialect says of the time on a line. Goes out:
``excluded_reason`` and ``counted``, and notes on what was found. What counts is the settled window: the steady pace of
the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from analysis.run.clock.interruptions import NO_PAUSES, Pauses, count_between, seconds_between
from analysis.run.clock.step_time_patterns import find_period
from analysis.run.rates.baseline_step_time import READ, add_pace
from analysis.run.rates.batch_sizes import batch_changes, mean_batch
from analysis.run.rows.exclusion_reasons import (
    BATCH_CHANGES,
    COPY,
    DAMAGED,
    HOLDS_EVALUATION,
    HOLDS_PAUSE,
    HOLDS_SAVE,
    NAN,
    NO_TIME,
    OTHER_JOB,
    REPLAYED,
    SKIPPED,
    STALL,
    TIME_DAMAGED,
    WARM_UP,
)
from analysis.run.rows.restarts import OWN
from analysis.run.rows.stalls import borne_out, find_outlier_times
from analysis.run.rows.updates import is_infinite, thrown_away, update_is_nan, useful_steps
from analysis.run.rows.warm_up import FROM_THE_DATA, WarmUpRule
from logparse.findings import Note, info
from logparse.light_dataclass import dataclass

# Starts whose warm-up is reported one by one.
STARTS_SHOWN = 3
# A first row within this factor of the settled ones is excluded by the rule alone.
SLOWER = 1.01


@dataclass(frozen=True)
class RowRules:
    """What excludes rows. ``time_holds_pauses``: the time on a line includes evaluation and saving.

    ``pauses_are_silent``: of such pauses no line need be printed, so that stalls that come periodically are pauses.
    ``pauses_are_printed``: each has a line, so that no stall is one. ``evaluates_every``: by the settings.
    """

    warm_up: WarmUpRule = FROM_THE_DATA
    time_holds_pauses: bool = False
    pauses_are_silent: bool = False
    pauses_are_printed: bool = False
    evaluates_every: int | None = None


DEFAULT_RULES = RowRules()


def select_rows(steps: pl.DataFrame, pauses: Pauses = NO_PAUSES, rules: RowRules = DEFAULT_RULES) -> pl.DataFrame:
    """Add ``update_is_nan``, ``useful_steps``, ``counted`` and ``excluded_reason`` to rows that ``restarts`` traced."""
    steps = steps.with_columns(update_is_nan=update_is_nan(steps))
    steps = steps.hstack([useful_steps(steps)])
    timed = (pl.col("step_time_ms") > 0) & pl.col("step_time_ms").is_finite()
    known = {COPY: pl.col("copied"), DAMAGED: pl.col("damaged"), OTHER_JOB: pl.col("other_job")}
    done_again = pl.col("replayed") & (pl.col("useful_steps") == 0) & (thrown_away() > 0)
    known |= {NO_TIME: ~timed.fill_null(False), REPLAYED: done_again}
    if rules.time_holds_pauses:
        shared = rules.warm_up.times_are_shared
        known |= {
            reason: _holds(steps, of_kind, shared)
            for reason, of_kind in ((HOLDS_EVALUATION, pauses.evaluated), (HOLDS_SAVE, pauses.saved))
        }
    rows = steps.with_columns(excluded_reason=_first_reason(known), mean_batch=mean_batch())
    warm_up = OWN.cum_sum().over("segment") <= rules.warm_up.rows_of(
        _unpaused(rows) if rules.time_holds_pauses else rows
    )
    nan = (pl.col("nan_iterations").fill_null(0) > 0) | pl.col("loss").is_nan().fill_null(False)
    skipped = (pl.col("skipped_iterations").fill_null(0) > 0) | pl.col("overflow").fill_null(False)
    nan |= is_infinite("loss") & ~skipped
    marked = _first_reason({WARM_UP: warm_up, BATCH_CHANGES: batch_changes(), NAN: nan})
    rows = rows.with_columns(excluded_reason=pl.coalesce("excluded_reason", marked))
    # A skipped update runs forward and backward too: where there is no other row, its time is the pace.
    any_left = (pl.col("excluded_reason").is_null() & ~skipped).any()
    rows = rows.with_columns(
        excluded_reason=pl.coalesce("excluded_reason", _first_reason({SKIPPED: skipped & any_left}))
    )
    rows = _mark_times_out_of_line(rows)
    if rules.pauses_are_silent and pauses == NO_PAUSES:
        rows = _as_pauses(rows)
    return rows.with_columns(counted=pl.col("excluded_reason").is_null())


def select_without_pauses(
    steps: pl.DataFrame, pauses: Pauses = NO_PAUSES, rules: RowRules = DEFAULT_RULES
) -> tuple[pl.DataFrame, dict[str, float]]:
    """As ``select_rows``; if every row holds a pause, those whose time is printed are taken out of the step times.

    Also the seconds that were taken out, by the reason that their rows had.
    """
    marked = select_rows(steps, pauses, rules)
    if (
        rules.warm_up.times_are_shared
        or marked["counted"].any()
        or not marked["excluded_reason"].is_in([HOLDS_SAVE, HOLDS_EVALUATION]).any()
    ):
        return marked, {}
    begun, step = pl.col("step") - pl.col("iterations"), pl.col("step")
    untimed = Pauses(
        tuple(mark for mark in pauses.saved if mark not in pauses.save_seconds),
        tuple(mark for mark in pauses.evaluated if mark not in pauses.evaluation_seconds),
    )
    is_timed = count_between(untimed.saved, begun, step) + count_between(untimed.evaluated, begun, step) == 0
    timed = {HOLDS_SAVE: pauses.save_seconds, HOLDS_EVALUATION: pauses.evaluation_seconds}
    held = steps.select(
        pl.when(OWN & is_timed).then(seconds_between(seconds, begun, step)).fill_null(0.0).alias(reason)
        for reason, seconds in timed.items()
    )
    left = steps["step_time_ms"] - held.sum_horizontal() * 1000 / steps["iterations"]
    if (left <= 0).any():
        return marked, {}
    shorter = steps.with_columns(step_time_ms=left.fill_null(steps["step_time_ms"]))
    selected = select_rows(shorter, untimed, rules)
    if not selected["counted"].any():
        return marked, {}
    return selected, {name: seconds for name in timed if (seconds := float(held[name].sum()))}


def _as_pauses(rows: pl.DataFrame) -> pl.DataFrame:
    """The stalls that come again and again, at one distance, as pauses."""
    stall = pl.col("excluded_reason") == STALL
    places = rows["step"].filter(rows["excluded_reason"] == STALL).to_list()
    period = find_period(places)
    if period is None:
        return rows
    grid = Counter(step % period for step in places).most_common(1)[0][0]
    reason = pl.when(stall & (pl.col("step") % period == grid)).then(pl.lit(HOLDS_PAUSE)).otherwise("excluded_reason")
    return rows.with_columns(excluded_reason=reason)


def _first_reason(where: Mapping[str, pl.Expr]) -> pl.Expr:
    """The first reason of ``where`` that holds; null where none does."""
    return pl.coalesce(pl.when(holds).then(pl.lit(reason)) for reason, holds in where.items())


def _unpaused(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows without the times that hold a pause: they say nothing of whether the pace has settled."""
    paused = (pl.col("excluded_reason") == HOLDS_EVALUATION) | (pl.col("excluded_reason") == HOLDS_SAVE)
    return rows.with_columns(step_time_ms=pl.when(~paused.fill_null(value=False)).then("step_time_ms"))


def _holds(rows: pl.DataFrame, pauses: Sequence[int], shared: bool) -> pl.Expr:
    """Rows whose time holds a pause; with ``shared`` also those that have the mean of a span with it."""
    if not pauses:
        return pl.lit(value=False)
    held = _first_row_after(pauses)
    # The mean of a whole start is all there is.
    if not shared or rows["step_time_ms"].drop_nulls().n_unique() < 2:
        return held
    span = pl.struct("segment", "step_time_ms").rle_id()
    marked = rows.select("segment", "step_time_ms", held=held)
    return pl.lit(marked.select(pl.col("held").any().over(span)).to_series())


def _first_row_after(pauses: Sequence[int]) -> pl.Expr:
    """Rows whose interval holds a pause: at or after the step of the row before, and before their own.

    The time of a row after rows without one is of all of them, and after missing lines of its own steps alone.
    """
    marks = pl.lit(pl.Series(pauses, dtype=pl.Int64))
    earlier = marks.search_sorted(pl.col("step"), "left").cast(pl.Int64)
    last = pl.when(earlier > 0).then(marks.gather(earlier - 1))
    timed = pl.col("step_time_ms").is_not_null()
    before, printed = (
        pl.when(rows_before).then("step").forward_fill().shift(1).over("segment") for rows_before in (OWN & timed, OWN)
    )
    begun = pl.col("step") - pl.col("iterations")
    return (last >= pl.when(begun > printed).then(begun).otherwise(before)).fill_null(False)


def _mark_times_out_of_line(rows: pl.DataFrame) -> pl.DataFrame:
    """Slow and fast rows out of line with those of a start that have no other reason."""
    paced = add_pace(rows["excluded_reason", "mean_batch", *READ], pl.col("excluded_reason").is_null()).with_row_index(
        "at"
    )
    clean = paced.filter(pl.col("excluded_reason").is_null())["at", "segment", "pace"]
    places = pl.int_range(pl.len(), dtype=pl.UInt32)
    for reason, outliers in find_outlier_times(clean) if len(clean) >= 5 else ():
        if len(outliers):
            where = places.is_in(pl.lit(outliers["at"]).implode())
            marked = _first_reason({reason: where & ~borne_out() if reason == TIME_DAMAGED else where})
            rows = rows.with_columns(excluded_reason=pl.coalesce("excluded_reason", marked))
    return rows


def describe_warm_up(steps: pl.DataFrame, asked: int | None) -> Iterator[Note]:
    """What was taken for warm-up, with its evidence: the first rows of a start against its settled ones."""
    if asked is not None:
        yield info("warm_up_as_asked", n=asked)
        return
    time, warm = pl.col("step_time_ms"), pl.col("excluded_reason") == WARM_UP
    starts = steps.group_by("segment", maintain_order=True).agg(
        warm.sum().alias("n"), time.filter(warm).max().alias("slowest"), time.filter("counted").median()
    )
    slow = [row for row in starts.iter_rows() if row[1]]
    of_starts = [_warm_up_of_start(*row) for row in slow[:STARTS_SHOWN]]
    more = [info("warm_up_more_starts", n=len(slow) - STARTS_SHOWN)] if len(slow) > STARTS_SHOWN else []
    if of_starts:
        yield info("warm_up_found", starts=[*of_starts, *more])


def _warm_up_of_start(segment: int, rows: int, slowest_ms: float | None, settled_ms: float | None) -> Note:
    code = "warm_up_of_start" if settled_ms else "warm_up_never_settled"
    if settled_ms and (slowest_ms or 0.0) < settled_ms * SLOWER:
        code = "warm_up_as_fast"
    return info(code, start=segment + 1, n=rows, slowest_ms=slowest_ms or 0.0, settled_ms=settled_ms)
