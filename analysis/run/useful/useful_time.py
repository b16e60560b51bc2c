"""What of each row's time was useful: the price of its steps.

Comes in: rows marked by ``row_selection``. Goes out: the rows with a time, with their useful steps and useful time.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from analysis.model.shape import ROLLOUTS
from analysis.run.rates.baseline_step_time import with_baseline
from analysis.run.rates.throughput import Computation
from analysis.run.rows.exclusion_reasons import (
    BATCH_CHANGES,
    COPY,
    HOLDS_EVALUATION,
    HOLDS_PAUSE,
    HOLDS_SAVE,
    NAN,
    OF_THE_RUN,
    REPLAYED,
    ROW_MS,
    SKIPPED,
    STALL,
    TIMED,
    WARM_UP,
    has_untimed,
)
from analysis.run.rows.frame_filters import only
from analysis.run.rows.updates import is_infinite, is_skipped, lost_updates
from logparse.findings import Note, warning
from logparse.light_dataclass import dataclass

# Rows of these reasons took what their steps took: they are useful as far as their steps were kept.
WHOLE = (BATCH_CHANGES, SKIPPED, NAN)
PAUSED = (HOLDS_EVALUATION, HOLDS_SAVE, HOLDS_PAUSE)
# What the rate including stalls leaves out.
NOT_STEADY = (WARM_UP, REPLAYED, *PAUSED)
# Columns that give the price of a row, along with its baseline.
PRICED_BY = (
    *("segment", "step", "iterations", "step_time_ms", "global_batch_size", "counted", "excluded_reason"),
    *("useful_steps", "skipped_iterations", "nan_iterations", "overflow", "update_is_nan"),
    "grad_norm",
)
# Slow rows are stalls where they are few; from the second share of a start's rows to the third they become its pace.
MANY_STALLS, FEW_STALLS, MOST_STALLS = 0.3, 0.4, 0.5


@dataclass(frozen=True)
class LostUpdates:
    """Of the updates of ``steps``: those ``lost``, and the ones of them that are ``nan``; others were skipped.

    ``at_least``: rows of several steps print whether their last update was skipped, not how many were. ``about``: all
    steps of such a row count as NaN, though only one may be.
    """

    lost: int
    nan: int
    steps: int
    at_least: bool = False
    about: bool = False


def count_lost_updates(steps: pl.DataFrame) -> LostUpdates:
    """The updates of the run's own steps that were left out or are NaN."""
    nan = (
        pl.when("update_is_nan")
        .then("iterations")
        .otherwise(pl.min_horizontal(pl.col("nan_iterations").fill_null(0), "iterations"))
    )
    flags_only = (pl.col("iterations") > 1) & pl.col("skipped_iterations").is_null() & pl.col("overflow").is_not_null()
    whole_rows = (pl.col("iterations") > 1) & pl.col("update_is_nan")
    is_own = OF_THE_RUN & pl.col("iterations").is_not_null()
    lost, of_nan, done, at_least, about = steps.select(
        lost_updates().filter(is_own).sum(),
        nan=nan.filter(is_own).sum(),
        steps=pl.col("iterations").filter(is_own).sum(),
        at_least=flags_only.filter(is_own).any(),
        about=whole_rows.filter(is_own).any(),
    ).row(0)
    return LostUpdates(int(lost), int(of_nan), int(done), at_least=bool(at_least), about=bool(about))


def skips_left_out(steps: pl.DataFrame) -> bool:
    """Whether updates were lost in rows that the rate including stalls leaves out."""
    counted = steps.filter(pl.col("excluded_reason").is_in(NOT_STEADY).not_().fill_null(value=True))
    return count_lost_updates(counted).lost < count_lost_updates(steps).lost


def value_rows(steps: pl.DataFrame) -> pl.DataFrame:
    """Add ``time_ms``, ``useful`` steps and ``useful_ms`` to the rows with a time that can be, copies left out.

    All are totals of a row over its iterations. A settled row is worth what it took, whatever the pace. A row with more
    than steps (warm-up, a stall, a pause) is worth at most the baseline of the rows around it. So no row is worth
    more than it took, and the sum moves as little as the times do.
    """
    priced = TIMED & pl.col("excluded_reason").ne_missing(COPY) & pl.col("iterations").is_not_null()
    rows = only(with_baseline(steps), priced)
    reason, time = pl.col("excluded_reason"), ROW_MS
    baseline = pl.min_horizontal(time, pl.col("baseline_ms") * pl.col("iterations"))
    stall = reason.eq_missing(STALL)
    worth = (
        pl.when(pl.col("counted") | reason.is_in(WHOLE))
        .then(time)
        .when(stall)
        .then(time - (time - baseline) * _as_stall(stall))
        .otherwise(baseline)
    )
    timed = rows.with_columns(time_ms=time, useful="useful_steps", worth=worth / pl.col("iterations"))
    of_a_step = pl.col("worth")
    return timed.with_columns(
        useful_ms=(of_a_step * pl.col("useful")).fill_null(0),
        # Steps that were done but whose update was not kept take the time of a step, in a slow row too.
        skipped_ms=pl.when(reason.is_in(WHOLE).fill_null(False))
        .then(0.0)
        .otherwise((of_a_step * lost_updates()).fill_null(0)),
    )


def longest_stall(steps: pl.DataFrame) -> tuple[float, int | None]:
    """The longest time that a stall took beyond its baseline, in ms, and its step; 0 of a run without stalls."""
    stalls = value_rows(steps).filter(pl.col("excluded_reason") == STALL)
    longest = pl.col("time_ms") - pl.col("baseline_ms") * pl.col("iterations")
    row = stalls.select("step", ms=longest).drop_nulls("ms").sort("ms").tail(1).rows()
    return (float(row[0][1]), row[0][0]) if row else (0.0, None)


def _as_stall(stall: pl.Expr) -> pl.Expr:
    """How much of a slow row is a stall: 1 where such rows are few, 0 where they are half of those that could count.

    Where there are many, the rows around no longer show all of them, so that rows as slow are counted too.
    """
    able = stall | pl.col("counted")
    pace = pl.col("step_time_ms") / pl.col("global_batch_size").fill_null(1)
    marked = stall.sum() / able.sum()
    as_slow = (able & (pace >= pace.filter(stall).min())).sum() / able.sum()
    share = pl.when(marked > MANY_STALLS).then(pl.max_horizontal(marked, as_slow)).otherwise(marked)
    return ((MOST_STALLS - share) / (MOST_STALLS - FEW_STALLS)).clip(0, 1).over("segment")


def untimed_seconds(steps: pl.DataFrame) -> float:
    """Baseline time of the useful steps of rows whose time is missing or damaged."""
    if not has_untimed(steps):
        return 0.0
    seconds = (
        with_baseline(steps).select((pl.col("baseline_ms") * pl.col("useful_steps")).filter(~TIMED).sum() / 1000).item()
    )
    return float(seconds or 0.0)


def describe_nan_updates(steps: pl.DataFrame) -> Iterator[Note]:
    """A warning that says how many rows are NaN or infinite, and where the first one is."""
    nan = steps.filter(~pl.col("copied"), pl.col("update_is_nan") | (is_infinite("grad_norm") & ~is_skipped()))
    if len(nan):
        # A loss that is no longer printed is null.
        of_gradient = nan["loss"].is_finite().fill_null(value=False).all()
        yield _of_rows("not_a_number", steps, nan, what="gradient norm" if of_gradient else "loss")


def describe_zero_losses(steps: pl.DataFrame, how: Computation) -> Iterator[Note]:
    """A warning where losses are exactly 0. In reinforcement learning the loss of a policy often is."""
    if (steps["loss"] == 0).any() and how.shape.mixed_step != ROLLOUTS:
        zero = steps.filter(~pl.col("copied"), pl.col("loss") == 0)
        if len(zero):
            yield _of_rows("loss_is_zero", steps, zero)


def _of_rows(code: str, steps: pl.DataFrame, rows: pl.DataFrame, **fields: str) -> Note:
    """A warning on some of the run's own ``rows``: how many of all they are, and where the first one is."""
    source, line = rows["source", "line_number"].row(0)
    return warning(code, n=len(rows), of=int((~steps["copied"]).sum()), **fields, source=source, line=line)
