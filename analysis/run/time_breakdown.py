"""Where the time went.

Comes in: rows marked by ``window``, events, pauses. Goes out: the frame ``account``, whose parts add up to the clock,
or to the step lines where there is no clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from analysis.run.batches import mean_batch
from analysis.run.interruptions import Pauses
from analysis.run.rates import Tally
from analysis.run.reasons import (
    BATCH_CHANGES,
    HOLDS_EVALUATION,
    HOLDS_SAVE,
    NAN,
    REPLAYED,
    SKIPPED,
    STALL,
    TIMED,
    WARM_UP,
)
from analysis.tables import ACCOUNT_COLUMNS
from logparse.findings import Note, info
from logparse.schema import conform

# Codes of ``part``: what the time was spent on. Warm-up goes by the reason of its rows.
USEFUL = "useful"
START_UP, RESTARTS = "start_up", "restarts"
SAVES_BETWEEN, EVALUATION_BETWEEN = "saves_between", "evaluation_between"
READ = (
    *("step", "segment", "timestamp", "step_time_ms", "iterations", "global_batch_size", "loss", "overflow"),
    *("skipped_iterations", "nan_iterations", "replayed", "excluded_reason", "counted"),
)


def wall_clock(steps: pl.DataFrame, events: pl.DataFrame) -> float | None:
    """Seconds from the first time stamp to the last; a step line counts from the beginning of its first step.

    None where step lines carry no time stamp.
    """
    stamped = steps.filter(~pl.col("copied")).drop_nulls("timestamp")
    if len(stamped) < 2:
        return None
    held = pl.col("step_time_ms") * pl.col("iterations")
    known = pl.when(TIMED).then(held).fill_null(0)
    begin = stamped.select(pl.col("timestamp") - pl.duration(milliseconds=known)).to_series().min()
    stamps: list[Any] = [begin, stamped["timestamp"].max(), *events["timestamp"].drop_nulls()]
    seconds: float = (max(stamps) - min(stamps)).total_seconds()
    return seconds


def describe_clock(steps: pl.DataFrame) -> Iterator[Note]:
    """Say why there is no all-in rate."""
    if len(steps.drop_nulls("timestamp")) < 2:
        yield info("all_in_not_computed")


def account_time(steps: pl.DataFrame, events: pl.DataFrame, pauses: Pauses) -> pl.DataFrame:
    """Where the time went, in seconds and as a share of the clock (of the step lines where there is no clock)."""
    tally = Tally.of(steps.with_columns(global_batch_size=mean_batch()).select(READ))
    wall = wall_clock(steps, events)
    parts = _inside(tally)
    if wall is not None:
        parts |= _outside(tally.rows, events, pauses)
    in_lines = float(tally.rows["time_ms"].sum()) / 1000
    total = wall if wall is not None else in_lines
    parts["not_explained"] = total - sum(parts.values())
    rows = [
        {"part": part, "seconds": seconds, "share": seconds / total if total else None}
        for part, seconds in parts.items()
    ]
    frame = pl.DataFrame(rows, schema={"part": pl.String, "seconds": pl.Float64, "share": pl.Float64}, orient="row")
    return conform(frame.with_columns(run=pl.lit(steps["run"].first())), ACCOUNT_COLUMNS)


def _inside(tally: Tally) -> dict[str, float]:
    """What the step lines hold. Useful work is priced at the steady pace of its start; the rest has a reason."""
    rows = tally.rows.with_columns(samples=pl.col("global_batch_size").fill_null(1))
    per_sample = pl.when("counted").then(pl.col("step_time_ms") / pl.col("samples")).median()
    anywhere = rows.select(per_sample).item()
    if anywhere is None:
        return {}
    # A start none of whose rows counts takes the pace of all.
    rows = rows.with_columns(pace=per_sample.over("segment").fill_null(anywhere))
    fair = pl.col("samples") * pl.col("pace") * pl.col("useful")
    reason = pl.col("excluded_reason")

    def above(some: pl.DataFrame) -> float:
        return float(some.select((pl.col("time_ms") - fair).sum()).item()) / 1000

    def excess(*reasons: str) -> float:
        return above(rows.filter(reason.is_in(reasons).fill_null(False)))

    parts = {
        USEFUL: float(rows.select(fair.sum()).item()) / 1000,
        WARM_UP: excess(WARM_UP),
        "replayed": excess(REPLAYED),
        "saves": excess(HOLDS_SAVE),
        "evaluation": excess(HOLDS_EVALUATION),
        "stalls": excess(STALL),
        "skipped": excess(SKIPPED, NAN),
        "variation": excess(BATCH_CHANGES) + above(rows.filter("counted")),
    }
    return {part: seconds for part, seconds in parts.items() if abs(seconds) > 1e-9}


def _outside(rows: pl.DataFrame, events: pl.DataFrame, pauses: Pauses) -> dict[str, float]:
    """What lies between the step lines by their time stamps."""
    parts = {
        START_UP: 0.0,
        RESTARTS: 0.0,
        SAVES_BETWEEN: 0.0,
        EVALUATION_BETWEEN: 0.0,
    }
    previous_end = None
    for _, start in rows.drop_nulls(["timestamp", "iterations"]).group_by("segment", maintain_order=True):
        first = start.row(0, named=True)
        began = first["timestamp"] - pl.Series([first["time_ms"] * 1000]).cast(pl.Duration("us"))[0]
        known = min(_process_begin(events, first, previous_end) or began, began)
        parts[START_UP] += (began - known).total_seconds()
        if previous_end is not None:
            parts[RESTARTS] += max(0.0, (known - previous_end).total_seconds())
        for part, seconds in _gaps(start, pauses).items():
            parts[part] += seconds
        previous_end = start["timestamp"].max()
    return {part: seconds for part, seconds in parts.items() if seconds}


def _process_begin(events: pl.DataFrame, first: dict[str, Any], after: Any) -> Any:
    """The earliest stamped event of the process that printed ``first``."""
    mine = events.filter(
        (pl.col("timestamp") <= first["timestamp"]) & pl.col("kind").is_in(["process starts", "training starts"])
    )
    if after is not None:
        mine = mine.filter(pl.col("timestamp") >= after)
    return mine["timestamp"].min()


def _gaps(start: pl.DataFrame, pauses: Pauses) -> dict[str, float]:
    """Gaps between rows that hold a save or an evaluation line, beyond the rows' own time."""
    gaps = start.select(
        after=pl.col("step").shift(1),
        to="step",
        seconds=pl.col("timestamp").diff().dt.total_microseconds() / 1e6 - pl.col("time_ms") / 1000,
    ).drop_nulls()
    evaluated, saved = _holds(gaps, pauses.evaluated), _holds(gaps, pauses.saved)
    found = {SAVES_BETWEEN: 0.0, EVALUATION_BETWEEN: 0.0}
    for part, held in ((EVALUATION_BETWEEN, evaluated), (SAVES_BETWEEN, saved & ~evaluated)):
        for seconds in gaps["seconds"].filter(held):
            found[part] += max(0.0, seconds)
    return found


def _holds(gaps: pl.DataFrame, pauses: tuple[int, ...]) -> pl.Series:
    """Whether a pause lies between the rows of two steps."""
    marks = pl.Series(pauses, dtype=pl.Int64)
    return marks.search_sorted(gaps["to"], "left") > marks.search_sorted(gaps["after"], "left")
