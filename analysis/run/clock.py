"""The clock of a run: from its first stamp to its last, and what to make of one that runs back.

Comes in: rows that ``restarts`` has traced, events. Goes out: stamps on one clock, and the seconds that passed. A clock
runs back where summer time ends, or where a restart prints in another time zone. Within a start the times of the steps
prove how far; between two starts nothing does, and then no figure by the clock is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import polars as pl

from analysis.run.exclusion_reasons import TIMED
from analysis.run.interruptions import NO_PAUSES, Pauses, count_between
from analysis.run.restarts import OWN
from logparse.findings import Note, warning

# A clock that is this far behind the steps was set back; by a multiple of the quarter where it is near one, as zones
# differ by. One that is set back more often than so is no clock.
SET_BACK_S, QUARTER_S, NEAR_S, MOST_JUMPS = 60.0, 900.0, 30.0, 3
# Stamps are cut to seconds, times rounded: a clock may be shorter than the steps by this.
CUT_S, ROUNDED = 1.0, 0.02


@dataclass(frozen=True)
class Mended:
    """Rows and events by one clock. ``trusted`` is False where a jump of unknown size lies between two stamps."""

    steps: pl.DataFrame
    events: pl.DataFrame
    notes: tuple[Note, ...] = ()
    trusted: bool = True


@dataclass(frozen=True)
class Clock:
    """Seconds from the first stamp to the last, None where unknown; a note where the stamps contradict the steps."""

    seconds: float | None
    notes: tuple[Note, ...] = ()


def mend_clock(steps: pl.DataFrame, events: pl.DataFrame, pauses: Pauses = NO_PAUSES) -> Mended:
    """Bring the stamps behind a jump back to the clock before it, where the times of the steps prove the jump."""
    if steps["timestamp"].null_count() == len(steps):
        return Mended(steps, events)
    jumps = _jumps(steps, pauses)
    if jumps.is_empty():
        return Mended(steps, events)
    unknown = jumps.filter(pl.col("back").is_null())
    if len(unknown) or len(jumps) > MOST_JUMPS:
        at = (unknown if len(unknown) else jumps).row(0, named=True)
        note = warning("clock_unknown", source=at["source"], line=at["line_number"], n=len(jumps))
        return Mended(steps, events, (note,), trusted=False)
    notes = [
        warning("clock_set_back", seconds=back, source=source, line=line)
        for source, line, back in jumps.select("source", "line_number", "back").iter_rows()
    ]
    behind = steps.select("source", "line_number", "timestamp").with_row_index("at")
    behind = behind.join(jumps.select("at", "back"), on="at", how="left", maintain_order="left")
    behind = behind.with_columns(later=pl.col("back").fill_null(0.0).cum_sum())
    mended = steps.with_columns(pl.col("timestamp") + _seconds(behind["later"]))
    return Mended(mended, _events_by(events, behind), tuple(notes))


def _jumps(steps: pl.DataFrame, pauses: Pauses) -> pl.DataFrame:
    """Rows (at, source, line_number) before which the clock was set ``back``, in seconds; null where unknown."""
    own = steps.with_row_index("at").filter(OWN & pl.col("iterations").is_not_null())
    took = (pl.col("step_time_ms") * pl.col("iterations")).fill_null(0).cum_sum() / 1000
    known = (pl.col("step_time_ms") > 0).fill_null(value=False)
    read = own.select("at", "source", "line_number", "segment", "lineage", "step", "timestamp", known=known, took=took)
    gap, steps_s = pl.col("timestamp").diff().dt.total_microseconds() / 1e6, pl.col("took").diff()
    same, goes_on = (pl.col(name) == pl.col(name).shift(1) for name in ("segment", "lineage"))
    read = read.drop_nulls("timestamp")
    steps_of_pauses = sorted({*pauses.saved, *pauses.evaluated})
    stamped = read.with_columns(
        paused=count_between(steps_of_pauses, read["step"].shift(1), read["step"]) > 0,
        same=same,
        goes_on=goes_on,
        gap=gap,
        steps_s=steps_s,
        short=steps_s - gap,
    )
    # What passes between two lines beside the steps passed there too, and may have been a pause as long as others.
    beside = stamped.filter("same", pl.col("gap") >= 0).select(usual=-pl.col("short"))["usual"]
    usual, longest = (max(0.0, float(value or 0.0)) for value in (beside.median(), beside.max()))  # type: ignore[arg-type]
    near_s = pl.max_horizontal(pl.lit(NEAR_S), 0.02 * pl.col("steps_s"))
    back = pl.col("short") + usual
    quarters = ((pl.col("short") - near_s) / QUARTER_S).ceil() * QUARTER_S
    # Where a save or an evaluation is printed, none need have shown how long it is.
    longest_s = pl.when("paused").then(QUARTER_S / 2).otherwise(min(longest + CUT_S, QUARTER_S / 2))
    pause = pl.max_horizontal(near_s, longest_s)
    near = (quarters - pl.col("short") <= pause) & (quarters > 0)
    ran_back = pl.col("gap") < -SET_BACK_S
    told = stamped.with_columns(
        ran_back=ran_back, back=pl.when(near).then(quarters).otherwise(pl.when(ran_back).then(back))
    )
    # Long steps can be set back without the stamps falling; where many are, it is the times that are wrong.
    slow = told.filter(pl.col("same") & ~pl.col("ran_back") & pl.col("back").is_not_null() & (pl.col("gap") > 0))
    fell = told.filter("ran_back", pl.col("same") | pl.col("goes_on"))
    found = pl.concat([fell, slow] if len(slow) <= MOST_JUMPS else [fell]).sort("at")
    return found.select("at", "source", "line_number", back=pl.when(pl.col("same") & pl.col("known")).then("back"))


def _events_by(events: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """The events by the clock of the rows before them; those behind which the next row's was set back, by that one."""
    read = events.select("source", "line_number", "timestamp").with_row_index("event").sort("line_number")
    places = rows.select("source", "line_number", "later", stamp="timestamp").sort("line_number")
    near = {
        side: read.join_asof(places, on="line_number", by="source", strategy=side, check_sortedness=False).sort("event")
        for side in ("backward", "forward")
    }
    before, behind = near["backward"], near["forward"]
    fell = (events["timestamp"] < before["stamp"] - timedelta(seconds=SET_BACK_S)) & (behind["later"] > before["later"])
    later = pl.select(
        pl.when(fell.fill_null(value=False)).then(behind["later"]).otherwise(before["later"].fill_null(behind["later"]))
    ).to_series()
    return events.with_columns(pl.col("timestamp") + _seconds(later.fill_null(0.0)))


def _seconds(values: pl.Series) -> pl.Series:
    return (values * 1e6).round().cast(pl.Int64).cast(pl.Duration("us"))


def read_clock(steps: pl.DataFrame, events: pl.DataFrame) -> Clock:
    """The time from the first stamp to the last; a step line counts from the beginning of its first step.

    None where fewer than two step lines carry a stamp, and where the steps took longer than the clock, which cannot be.
    """
    own = steps.filter(~pl.col("copied"))
    held = pl.when(TIMED).then(pl.col("step_time_ms") * pl.col("iterations")).fill_null(0)
    stamped = own.drop_nulls("timestamp")
    if len(stamped) < 2:
        return Clock(None)
    begin = stamped.select(pl.col("timestamp") - pl.duration(milliseconds=held)).to_series().min()
    stamps: list[Any] = [begin, stamped["timestamp"].max(), *events["timestamp"].drop_nulls()]
    seconds: float = (max(stamps) - min(stamps)).total_seconds()
    steps_s = float(own.filter(pl.col("step_time_ms").is_finite()).select(held.sum()).item() or 0.0) / 1000
    if steps_s > seconds * (1 + ROUNDED) + CUT_S:
        return Clock(None, (warning("clock_shorter_than_steps", seconds=seconds, steps_seconds=steps_s),))
    return Clock(max(seconds, steps_s))


def time_to_train(steps: pl.DataFrame, events: pl.DataFrame) -> float | None:
    """Seconds from the first line that training starts to the last that it ends, which stands behind all ``steps``."""
    stamps = {kind: events.filter(pl.col("kind") == kind)["timestamp"] for kind in ("training starts", "training ends")}
    begin: Any = stamps["training starts"].min()
    end: Any = stamps["training ends"].max()
    last: Any = steps["timestamp"].max()
    if begin is None or end is None or (last is not None and end < last):
        return None
    return float((end - begin).total_seconds())
