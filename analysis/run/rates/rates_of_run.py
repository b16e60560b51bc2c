"""The named rates: steady, delivered, all steps, all-in.

Comes in: rows marked by ``row_selection``. Goes out: the frame ``rates``. A step is useful when its update was made and
kept: not skipped, not NaN, not done again after a restart, not another rank's copy.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from analysis.identify.matching import LOGGED
from analysis.identify.printed_precision import FINE_UNITS, printed_unit
from analysis.metrics import RATED
from analysis.run.rates.baseline_step_time import middle
from analysis.run.rates.intervals import median_interval, ratio_interval
from analysis.run.rows.exclusion_reasons import TIMED, has_untimed
from analysis.run.rows.frame_filters import known, only, with_known
from analysis.run.rows.updates import thrown_away
from analysis.run.tables import RATE_COLUMNS
from analysis.run.useful.useful_time import NOT_STEADY, PRICED_BY, value_rows
from logparse.schema import conform

# Work per step by which the per-device rates scale; each column is a rate, so work is rate times time.
SCALED = (*(metric.column for metric in RATED), LOGGED)
# A small model may print 0.0, and a damaged line anything: that is no rate.
PRINTED = pl.when(pl.col(LOGGED) > 0).then(LOGGED).alias(LOGGED)


def name_rates(
    steps: pl.DataFrame,
    wall_seconds: float | None,
    priced: pl.DataFrame | None = None,
    unprinted: int = 0,
    of_one_size: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Steady, delivered, all steps, all-in: ms per useful step with its 95 % interval, and the rates that follow.

    ``priced`` are the ``value_rows`` of ``steps``, where the caller has them at hand. So many steps were done by the
    same clock ``unprinted``. The steady rate is that of the rows ``of_one_size``.
    """
    valued = value_rows(steps) if priced is None else priced
    everything = valued[(*PRICED_BY, "time_ms", "useful", *SCALED)].with_columns(PRINTED)
    counted = (
        (steps if of_one_size is None else of_one_size)[
            "counted", "iterations", "step_time_ms", "time_resolution_ms", *SCALED
        ]
        .filter("counted")
        .with_columns(PRINTED)
    )
    steady: dict[str, Any] = {
        "step_time_ms": middle(counted["step_time_ms"]),
        **{name: middle(counted[name], "lower") for name in SCALED},
        "interval": _of_median(known(counted["step_time_ms"])),
        "steps": counted["iterations"].sum(),
    }
    work = _work(everything)
    in_lines_ms = float(everything["time_ms"].sum())
    all_steps = _in_lines(everything, work)
    delivered = _without_replay(everything)
    wall_ms = wall_seconds * 1000 if wall_seconds else None
    untimed = _within(_untimed(steps) + unprinted, in_lines_ms, wall_ms, steady["step_time_ms"])
    wall_clock = _wall_clock(work, in_lines_ms, untimed, wall_ms, all_steps.get("interval"))
    rows = [
        _row("steady", steady),
        _row("with_stalls", _in_lines(delivered, _work(delivered))),
        _row("all_steps", all_steps),
        _row("wall_clock", wall_clock),
    ]
    rounding, run = _middle_of(counted["time_resolution_ms"]), steps["run"].first()
    frame = pl.DataFrame(
        [{"run": run} | _widened(row, rounding) for row in rows],
        schema_overrides={c.name: c.dtype for c in RATE_COLUMNS},
        infer_schema_length=None,
    )
    return conform(frame, RATE_COLUMNS)


def _without_replay(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of delivered; one of which some steps were replayed counts with the others alone."""
    left = only(rows, ~pl.col("excluded_reason").is_in(NOT_STEADY).fill_null(False))
    new = pl.col("iterations") - thrown_away()
    return left.with_columns(time_ms=pl.col("time_ms") * new / pl.col("iterations"), iterations=new)


def _in_lines(rows: pl.DataFrame, work: dict[str, float]) -> dict[str, Any]:
    """Rates over the time of the step lines."""
    figures = _over(work, float(rows["time_ms"].sum()))
    if "step_time_ms" in figures:
        figures["interval"] = _interval(rows)
    return figures


def _work(rows: pl.DataFrame) -> dict[str, float]:
    """The useful steps of ``rows``, and the useful work by the rates that are known.

    Steps of a row without a rate count as those of the other rows do on average.
    """
    share = pl.when(pl.col("iterations") > 0).then(pl.col("useful") / pl.col("iterations")).otherwise(0)
    useful = pl.col("useful")
    rated = {name: useful.filter(pl.col(name).is_not_null() & pl.col("time_ms").is_not_null()).sum() for name in SCALED}
    # A rate of replayed steps alone says nothing of the useful ones.
    rates = [
        ((pl.col(name) * pl.col("time_ms") * share).sum() * pl.when(n > 0).then(useful.sum() / n)).alias(name)
        for name, n in rated.items()
    ]
    work = rows.select(useful.sum().alias("steps"), *rates).row(0, named=True)
    return {name: value for name, value in work.items() if value is not None}


def _over(work: dict[str, float], time_ms: float | None) -> dict[str, Any]:
    """Rates of the useful ``work`` of rows over ``time_ms``."""
    useful = int(work["steps"])
    if not time_ms or not useful:
        return {"steps": useful}
    rates = {name: value / time_ms for name, value in work.items() if name in SCALED}
    return {"step_time_ms": time_ms / useful, "steps": useful, **rates}


def _untimed(steps: pl.DataFrame) -> int:
    """Useful steps of rows whose time is missing or damaged."""
    if not has_untimed(steps):
        return 0
    return int(
        steps.select(pl.col("useful_steps").filter(~TIMED, pl.col("iterations").is_not_null()).sum()).item() or 0
    )


def _within(untimed: int, in_lines_ms: float, wall_ms: float | None, baseline_ms: float | None) -> int:
    """How many of the steps without a time the clock has room for: those of the first line may lie before it."""
    if not untimed or not wall_ms or not baseline_ms:
        return untimed
    return min(untimed, max(0, round((wall_ms - in_lines_ms) / baseline_ms)))


def _wall_clock(
    work: dict[str, float], in_lines_ms: float, untimed: int, wall_ms: float | None, bounds: tuple[float, float] | None
) -> dict[str, Any]:
    """Rates over the clock. Its interval is ``bounds`` of the step lines, with what lies outside them as it was.

    Steps whose line has no time that can be were done by the same clock, and count as the others did.
    """
    figures = _over(work, wall_ms)
    timed = figures["steps"]
    if wall_ms and "step_time_ms" in figures and untimed:
        more = 1 + untimed / timed
        rates = {name: value * more for name, value in figures.items() if name in SCALED}
        steps = timed + untimed
        figures = {"step_time_ms": wall_ms / steps, "steps": steps, **rates}
    if wall_ms and bounds:
        outside = wall_ms - in_lines_ms
        low, high = ((bound * timed + outside) / figures["steps"] for bound in bounds)
        figures["interval"] = (low, high)
    return figures


def _row(name: str, figures: dict[str, Any]) -> dict[str, Any]:
    low, high = figures.pop("interval", None) or (None, None)
    # The draws of a skewed run can all be on one side of its figure.
    if low is not None and (value := figures.get("step_time_ms")) is not None:
        low, high = min(low, value), max(high, value)
    empty = dict.fromkeys(("step_time_ms", *SCALED))
    return {
        "rate": name,
        **empty,
        **figures,
        "step_time_low_ms": low,
        "step_time_high_ms": high,
    }


def _widened(row: dict[str, Any], rounding_ms: float) -> dict[str, Any]:
    """The interval with what rounding leaves open of each time: it can be the same way on all rows."""
    ends = {"step_time_low_ms": -rounding_ms, "step_time_high_ms": rounding_ms}
    return row | {name: row[name] + by for name, by in ends.items() if row[name] is not None}


def _middle_of(values: pl.Series) -> float:
    """The median; 0 where there is none."""
    return float(values.median() or 0.0)  # type: ignore[arg-type]


def _of_median(times: pl.Series) -> tuple[float, float] | None:
    """The interval of the median; where most rows print one value, no finer than its rounding.

    None where all rows have one time that is too fine to be printed: it was computed once for all of them.
    """
    interval = median_interval(times.to_numpy())
    if interval is None or interval[0] < interval[1]:
        return interval
    half = printed_unit(times, FINE_UNITS) / 2
    if not half and times.n_unique() == 1:
        return None
    return interval[0] - half, interval[1] + half


def _interval(rows: pl.DataFrame) -> tuple[float, float] | None:
    timed = with_known(rows["time_ms", "useful"], "time_ms", "useful")
    return ratio_interval(timed["time_ms"].to_numpy(), timed["useful"].cast(pl.Float64).to_numpy())
