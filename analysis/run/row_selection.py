"""Which rows count: each rule marks rows with a reason; nothing is deleted, and the first reason stays.

Comes in: rows that ``restarts`` has traced, pauses, and what the dialect says of the time on a line. Goes out:
``excluded_reason`` and ``counted``, and notes on what was found. What counts is the settled window: the steady pace of
the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from analysis.run.baseline_step_time import READ, add_pace
from analysis.run.batch_sizes import batch_changes
from analysis.run.exclusion_reasons import (
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
from analysis.run.interruptions import NO_PAUSES, Pauses
from analysis.run.nan_updates import is_infinite, mark_nan_updates
from analysis.run.outlier_times import borne_out, find_outlier_times
from analysis.run.restarts import OWN
from analysis.run.step_time_patterns import find_period
from analysis.run.warm_up import FROM_THE_DATA, WarmUpRule
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
    ``pauses_are_printed``: each has a line, so that no stall is one.
    """

    warm_up: WarmUpRule = FROM_THE_DATA
    time_holds_pauses: bool = False
    pauses_are_silent: bool = False
    pauses_are_printed: bool = False


DEFAULT_RULES = RowRules()


def select_rows(steps: pl.DataFrame, pauses: Pauses = NO_PAUSES, rules: RowRules = DEFAULT_RULES) -> pl.DataFrame:
    """Add ``update_is_nan``, ``counted`` and ``excluded_reason`` to rows that ``restarts`` has traced."""
    rows = mark_nan_updates(steps).with_columns(excluded_reason=pl.lit(None, pl.String))
    timed = (pl.col("step_time_ms") > 0) & pl.col("step_time_ms").is_finite()
    known = {COPY: pl.col("copied"), DAMAGED: pl.col("damaged"), OTHER_JOB: pl.col("other_job")}
    rows = _mark(rows, known | {NO_TIME: ~timed.fill_null(False), REPLAYED: pl.col("replayed")})
    if rules.time_holds_pauses:
        shared = rules.warm_up.times_are_shared
        held = [_rows_with(rows, steps, shared) for steps in (pauses.evaluated, pauses.saved)]
        rows = _mark(rows, dict(zip((HOLDS_EVALUATION, HOLDS_SAVE), held, strict=True)))
    place = OWN.cum_sum().over("segment")
    warm_up = rules.warm_up.rows_of(_unpaused(rows))
    nan = (pl.col("nan_iterations").fill_null(0) > 0) | pl.col("loss").is_nan().fill_null(False)
    skipped = (pl.col("skipped_iterations").fill_null(0) > 0) | pl.col("overflow").fill_null(False)
    nan |= is_infinite("loss") & ~skipped
    rows = _mark(rows, {WARM_UP: place <= warm_up, BATCH_CHANGES: batch_changes(), NAN: nan})
    # A skipped update runs forward and backward too: where there is no other row, its time is the pace.
    if rows.select((pl.col("excluded_reason").is_null() & ~skipped).any()).item():
        rows = _mark(rows, {SKIPPED: skipped})
    rows = _mark_times_out_of_line(rows)
    if rules.pauses_are_silent and pauses == NO_PAUSES:
        rows = _as_pauses(rows)
    return rows.with_columns(counted=pl.col("excluded_reason").is_null())


def _as_pauses(rows: pl.DataFrame) -> pl.DataFrame:
    """The stalls that come again and again, at one distance, as pauses."""
    stall = pl.col("excluded_reason") == STALL
    places = rows.filter(stall)["step"].to_list()
    period = find_period(places)
    if period is None:
        return rows
    grid = Counter(step % period for step in places).most_common(1)[0][0]
    reason = pl.when(stall & (pl.col("step") % period == grid)).then(pl.lit(HOLDS_PAUSE)).otherwise("excluded_reason")
    return rows.with_columns(excluded_reason=reason)


def _mark(rows: pl.DataFrame, where: Mapping[str, pl.Expr]) -> pl.DataFrame:
    """Give the rows ``where`` a reason holds that reason, unless they have one: the first stays."""
    held = rows.select(**where)
    first = [pl.when(held[reason]).then(pl.lit(reason)) for reason in where if held[reason].any()]
    return rows.with_columns(excluded_reason=pl.coalesce("excluded_reason", *first)) if first else rows


def _unpaused(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows without the times that hold a pause: they say nothing of whether the pace has settled."""
    paused = pl.col("excluded_reason").is_in([HOLDS_EVALUATION, HOLDS_SAVE]).fill_null(False)
    return rows.with_columns(step_time_ms=pl.when(~paused).then("step_time_ms"))


def _rows_with(rows: pl.DataFrame, pauses: Sequence[int], shared: bool) -> pl.Expr:
    """Rows whose time holds a pause; with ``shared`` also those that have the mean of a span with it."""
    held = rows.select("segment", "step_time_ms", held=_first_row_after(rows, pauses))
    # The mean of a whole start is all there is.
    if shared and held["step_time_ms"].drop_nulls().n_unique() > 1:
        span = pl.struct("segment", "step_time_ms").rle_id()
        held = held.with_columns(held=pl.col("held").any().over(span))
    return pl.lit(held["held"])


def _first_row_after(rows: pl.DataFrame, pauses: Sequence[int]) -> pl.Expr:
    """Rows whose interval holds a pause: at or after the step of the row before, and before their own.

    The time of a row after rows without one is of all of them, and after missing lines of its own steps alone.
    """
    if not pauses:
        return pl.lit(False)
    marks = pl.DataFrame({"step": pauses, "pause": pauses}, schema={"step": pl.Int64, "pause": pl.Int64})
    last = (
        rows.select("step")
        .with_row_index()
        .sort("step")
        .join_asof(marks, on="step", strategy="backward", allow_exact_matches=False)
        .sort("index")["pause"]
    )
    timed = pl.col("step_time_ms").is_not_null()
    before, printed = (
        pl.when(rows_before).then("step").forward_fill().shift(1).over("segment") for rows_before in (OWN & timed, OWN)
    )
    begun = pl.col("step") - pl.col("iterations")
    return (pl.lit(last) >= pl.when(begun > printed).then(begun).otherwise(before)).fill_null(False)


def _mark_times_out_of_line(rows: pl.DataFrame) -> pl.DataFrame:
    """Slow and fast rows out of line with those of a start that have no other reason."""
    paced = add_pace(rows.select("excluded_reason", *READ), pl.col("excluded_reason").is_null())
    marked = paced.select("segment", "excluded_reason", "pace").with_row_index("at")
    clean = marked.filter(pl.col("excluded_reason").is_null()).drop("excluded_reason")
    places = pl.int_range(pl.len(), dtype=pl.UInt32)
    for reason, outliers in find_outlier_times(clean) if len(clean) >= 5 else ():
        where = places.is_in(outliers["at"].implode())
        rows = _mark(rows, {reason: where & ~borne_out() if reason == TIME_DAMAGED and len(outliers) else where})
    return rows


def describe_warm_up(steps: pl.DataFrame, asked: int | None) -> Iterator[Note]:
    """What was taken for warm-up, with its evidence: the first rows of a start against its settled ones."""
    if asked is not None:
        yield info("warm_up_as_asked", n=asked)
        return
    time, warm = pl.col("step_time_ms"), pl.col("excluded_reason") == WARM_UP
    starts = (
        steps.group_by("segment", maintain_order=True)
        .agg(warm.sum().alias("n"), time.filter(warm).max().alias("slowest"), time.filter("counted").median())
        .filter(pl.col("n") > 0)
    )
    of_starts = [_warm_up_of_start(*row) for row in starts.head(STARTS_SHOWN).rows()]
    more = [info("warm_up_more_starts", n=len(starts) - STARTS_SHOWN)] if len(starts) > STARTS_SHOWN else []
    if of_starts:
        yield info("warm_up_found", starts=[*of_starts, *more])


def _warm_up_of_start(segment: int, rows: int, slowest_ms: float | None, settled_ms: float | None) -> Note:
    code = "warm_up_of_start" if settled_ms else "warm_up_never_settled"
    if settled_ms and (slowest_ms or 0.0) < settled_ms * SLOWER:
        code = "warm_up_as_fast"
    return info(code, start=segment + 1, n=rows, slowest_ms=slowest_ms or 0.0, settled_ms=settled_ms)
