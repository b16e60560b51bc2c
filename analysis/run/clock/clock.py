"""The clock of a run: from its first stamp to its last, and what to make of one that was set.

Comes in: rows that ``restarts`` has traced, events. Goes out: stamps on one clock, and the seconds that passed. A clock
runs back where summer time ends, or where a restart prints in another time zone. Within a start the times of the steps
prove how far; between two starts nothing does, and then no figure by the clock is known. A clock that is set forward
shows a gap in which nothing happened: only a whole number of quarters of an hour, between steps at their typical pace
and without any event, is taken for one.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import polars as pl

from analysis.run.clock.interruptions import NO_PAUSES, Pauses, count_between
from analysis.run.rows.exclusion_reasons import ROW_MS, TIMED
from analysis.run.rows.frame_filters import stamps_of, with_known
from analysis.run.rows.restarts import OWN
from logparse.findings import Note, warning
from logparse.light_dataclass import dataclass

# A clock that misses SET_BACK_S was set back. Zones differ by quarters of an hour, so a jump near a multiple is one.
# A clock with more than MOST_JUMPS is no clock.
SET_BACK_S, QUARTER_S, NEAR_S, MOST_JUMPS = 60.0, 900.0, 30.0, 3
# A jump forward is this near to quarters of an hour, or by this share of the steps' time. Rows around it take at most
# TYPICAL times their median, of so many rows. A run that pauses for OTHER_GAPS of the jump elsewhere may pause here.
NEAR_FORWARD_S, NEAR_FORWARD, TYPICAL, ROWS_AROUND, OTHER_GAPS = 2.5, 0.02, 1.25, 7, 0.5
# Stamps are cut to seconds, times rounded: a clock may be shorter than the steps by this.
CUT_S, ROUNDED = 1.0, 0.02
# Steps that take less than this share of nearly every gap between stamps contradict the clock, if the gaps are similar.
PART_OF_GAP, NEARLY_ALL, SIMILAR, FEWEST_GAPS, LEAST_GAP_S = 0.75, 0.8, 0.15, 20, 2.0
# No clock is set back by more than the years that stamps can be of.
MOST_S = 230 * 365.25 * 86_400


@dataclass(frozen=True)
class RepairedClock:
    """Rows, events and ``gaps`` by one clock. ``trusted`` is False where a jump of unknown size lies between stamps."""

    steps: pl.DataFrame
    events: pl.DataFrame
    gaps: pl.DataFrame
    notes: tuple[Note, ...] = ()
    trusted: bool = True


@dataclass(frozen=True)
class Clock:
    """Seconds from the first stamp to the last, None where unknown; a note where the stamps contradict the steps."""

    seconds: float | None
    notes: tuple[Note, ...] = ()


def repair_clock(steps: pl.DataFrame, events: pl.DataFrame, pauses: Pauses = NO_PAUSES) -> RepairedClock:
    """Move the stamps after a jump to the clock before it, where the times of the steps prove the jump."""
    gaps = _gaps(steps, pauses)
    jumps = _jumps(gaps, events)
    if jumps.is_empty():
        return RepairedClock(steps, events, gaps)
    unknown = jumps.filter(pl.col("back").is_null())
    if len(unknown) or len(jumps) > MOST_JUMPS:
        at = (unknown if len(unknown) else jumps).row(0, named=True)
        note = warning("clock_unknown", source=at["source"], line=at["line_number"], n=len(jumps))
        return RepairedClock(steps, events, gaps, (note,), trusted=False)
    notes = [
        warning("clock_set_back" if back > 0 else "clock_set_forward", seconds=abs(back), source=source, line=line)
        for source, line, back in jumps.select("source", "line_number", "back").iter_rows()
    ]
    shifts = steps.select("source", "line_number", "timestamp").with_row_index("at")
    shifts = shifts.join(jumps.select("at", "back"), on="at", how="left", maintain_order="left")
    shifts = shifts.with_columns(later=pl.col("back").fill_null(0.0).cum_sum())
    repaired = steps.with_columns(pl.col("timestamp") + _seconds(shifts["later"]))
    return RepairedClock(repaired, _events_by(events, shifts), _gaps(repaired, pauses), tuple(notes))


def _jumps(gaps: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Rows (at, source, line_number) before which the clock was set ``back``, in seconds; null where unknown.

    Below 0 where it was set forward.
    """
    # No clock is set by less.
    if (gaps["gap"] >= -SET_BACK_S).all() and gaps["short"].is_between(-QUARTER_S / 2, NEAR_S).all():
        return gaps.clear()
    # Time outside the steps also passes at a jump: at least the typical one, at most as long as the longest.
    outside = gaps.select((-pl.col("short")).filter("same", pl.col("gap") >= 0)).to_series()
    typical, longest = (max(0.0, float(value or 0.0)) for value in (outside.median(), outside.max()))  # type: ignore[arg-type]
    back, ran_back = _set_back(typical, longest), pl.col("gap") < -SET_BACK_S
    judged = gaps.with_columns(
        fell=ran_back & (pl.col("same") | pl.col("goes_on")),
        # Long steps can be set back without the stamps falling; where many are, it is the times that are wrong.
        slow=pl.col("same") & ~ran_back & back.is_not_null() & (pl.col("gap") > 0),
        back=pl.when(pl.col("same") & pl.col("known")).then(back),
        forward=_set_forward(typical),
    )
    set_back = pl.col("fell") | pl.col("slow") if judged["slow"].sum() <= MOST_JUMPS else pl.col("fell")
    columns = ("at", "source", "line_number", "back")
    return pl.concat([judged.filter(set_back)[columns], _alone(judged, events)[columns]]).sort("at")


def _set_forward(typical: float) -> pl.Expr:
    """Seconds, below 0, by which the clock may have been set forward before a row of gaps, if no pause is as long."""
    over, quarter, time = -pl.col("short"), pl.lit(QUARTER_S), pl.col("step_time_ms")
    around = time.rolling_median(ROWS_AROUND, min_samples=1, center=True).over("segment")
    at_pace = (time <= TYPICAL * around).fill_null(value=False)
    goes_on = (pl.col("segment").shift(-1) == pl.col("segment")).fill_null(value=False)
    quarters = (over / quarter).round() * quarter
    near = pl.max_horizontal(pl.lit(NEAR_FORWARD_S), NEAR_FORWARD * pl.col("steps_s")).clip(upper_bound=NEAR_S)
    jump = (quarters > 0) & ((over - typical - quarters).abs() <= near)
    alone = pl.col("same") & pl.col("known") & pl.col("same_file") & ~pl.col("paused")
    return pl.when(alone & jump & at_pace & at_pace.shift(1) & goes_on).then(-quarters)


def _alone(gaps: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """The rows of ``gaps`` before which the clock was set forward; ``back`` is below 0.

    A pause of as long is none: a save, a restart or any other event lies in it, a step is slow, or there are others.
    """
    forward = gaps.filter(pl.col("forward").is_not_null()).with_columns(back="forward")
    if not 0 < len(forward) <= MOST_JUMPS:
        return forward.clear()
    least_short = gaps.filter("same", pl.col("gap") >= 0, ~pl.col("paused"), pl.col("forward").is_null())["short"].min()
    if -float(least_short or 0.0) > -OTHER_GAPS * float(forward["back"].max()):  # type: ignore[arg-type]
        return forward.clear()
    return forward.filter(
        [not _eventful(events, *row) for row in forward.select("source", "before", "line_number").rows()]
    )


def _eventful(events: pl.DataFrame, source: str, after: int, before: int) -> bool:
    """Whether an event lies between two lines of a file."""
    lines = pl.col("line_number")
    return not events.filter((pl.col("source") == source) & (lines > after) & (lines < before)).is_empty()


def _gaps(steps: pl.DataFrame, pauses: Pauses) -> pl.DataFrame:
    """The stamped rows, each with what lies between it and the stamped row before.

    ``gap`` is by the stamps and ``steps_s`` by the times of the steps, in seconds; ``short`` is how much less the first
    is. ``same`` start, ``goes_on`` of one lineage, ``paused`` by a save or an evaluation; ``before`` is its line.
    """
    columns = ("source", "line_number", "segment", "lineage", "step", "step_time_ms", "timestamp")
    read = steps[(*columns, "iterations", *OWN.meta.root_names())].with_row_index("at")
    took = (pl.col("step_time_ms") * pl.col("iterations")).fill_null(0).cum_sum() / 1000
    # Of a gap in which lines are missing it is unknown what was done.
    whole = (pl.col("step").diff() <= pl.col("iterations")) | (pl.col("segment") != pl.col("segment").shift(1))
    has_time = ((pl.col("step_time_ms") > 0) & whole.fill_null(value=True)).fill_null(value=False)
    own_rows = read.filter(OWN & pl.col("iterations").is_not_null()).select("at", *columns, known=has_time, took=took)
    gap, steps_s = pl.col("timestamp").diff().dt.total_microseconds() / 1e6, pl.col("took").diff()
    same, goes_on, same_file = (pl.col(name) == pl.col(name).shift(1) for name in ("segment", "lineage", "source"))
    steps_of_pauses = sorted({*pauses.saved, *pauses.evaluated})
    return with_known(own_rows, "timestamp").with_columns(
        paused=count_between(steps_of_pauses, pl.col("step").shift(1), pl.col("step")) > 0,
        same=same,
        goes_on=goes_on,
        same_file=same_file,
        before=pl.col("line_number").shift(1),
        gap=gap,
        steps_s=steps_s,
        short=steps_s - gap,
    )


def _set_back(typical: float, longest: float) -> pl.Expr:
    """Seconds by which the clock was set back before a row of gaps: quarters of an hour, else where it ran back.

    ``typical`` and ``longest`` are the seconds of a gap outside its steps.
    """
    near_s = pl.max_horizontal(pl.lit(NEAR_S), 0.02 * pl.col("steps_s"))
    quarters = ((pl.col("short") - near_s) / QUARTER_S).ceil() * QUARTER_S
    # Where a save or an evaluation is printed, none need have shown how long it is.
    longest_s = pl.when("paused").then(QUARTER_S / 2).otherwise(min(longest + CUT_S, QUARTER_S / 2))
    near = (quarters - pl.col("short") <= pl.max_horizontal(near_s, longest_s)) & (quarters > 0)
    return pl.when(near).then(quarters).when(pl.col("gap") < -SET_BACK_S).then(pl.col("short") + typical)


def _events_by(events: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """The events by the clock of the row before; by that of the row after where the clock was set back before them."""
    read = events.select("source", "line_number", "timestamp").with_row_index("event").sort("line_number")
    places = rows.select("source", "line_number", "later", stamp="timestamp").sort("line_number")
    near = {
        side: read.join_asof(places, on="line_number", by="source", strategy=side, check_sortedness=False).sort("event")
        for side in ("backward", "forward")
    }
    before, after = near["backward"], near["forward"]
    fell = (events["timestamp"] < before["stamp"] - timedelta(seconds=SET_BACK_S)) & (after["later"] > before["later"])
    later = pl.select(
        pl.when(fell.fill_null(value=False)).then(after["later"]).otherwise(before["later"].fill_null(after["later"]))
    ).to_series()
    return events.with_columns(pl.col("timestamp") + _seconds(later.fill_null(0.0)))


def _seconds(values: pl.Series) -> pl.Series:
    return (values.clip(-MOST_S, MOST_S) * 1e6).round().cast(pl.Int64).cast(pl.Duration("us"))


@dataclass(frozen=True)
class StepLoop:
    """The loop of steps between two lines with a stamp: its seconds, and those of the start-up before it."""

    seconds: float
    start_up: float


def step_loop(steps: pl.DataFrame, events: pl.DataFrame) -> StepLoop | None:
    """The loop of a run of one start whose step lines have no stamp; None where its two ends are not printed."""
    if steps.is_empty() or steps["segment"].n_unique() > 1 or steps["source"].n_unique() > 1:
        return None
    ends: Any = (steps["line_number"].min(), steps["line_number"].max())
    mine = events.filter(pl.col("source") == steps["source"][0]).drop_nulls("timestamp")
    before, after = mine.filter(pl.col("line_number") < ends[0]), mine.filter(pl.col("line_number") > ends[1])
    begins: Any = stamps_of(before, "training starts").max()
    stops: Any = stamps_of(after, "training ends").min()
    first: Any = before["timestamp"].min()
    if begins is None or stops is None:
        return None
    seconds = (stops - begins).total_seconds()
    steps_s = float(steps.select(ROW_MS.filter(TIMED).sum()).item() or 0) / 1000
    # Else the two lines are of another loop, or of two clocks.
    fits = steps_s <= seconds * (1 + ROUNDED) + 2 * CUT_S
    return StepLoop(seconds, (begins - first).total_seconds()) if fits else None


def read_clock(steps: pl.DataFrame, events: pl.DataFrame) -> Clock:
    """The time from the first stamp to the last; a step line counts from the beginning of its first step.

    None where fewer than two step lines carry a stamp, and where the steps took longer than the clock, which cannot be.
    """
    own, stamp = ~pl.col("copied"), pl.col("timestamp")
    held = pl.when(TIMED).then(ROW_MS).fill_null(0)
    n, begin, last, in_loop, in_lines = steps.select(
        stamp.filter(own).count(),
        begin=(stamp - pl.duration(milliseconds=held)).filter(own).min(),
        last=stamp.filter(own).max(),
        in_loop=held.filter(own, TIMED).sum(),
        in_lines=held.filter(own, pl.col("step_time_ms").is_finite()).sum(),
    ).row(0)
    if not n and (loop := step_loop(steps.filter(own), events)):
        return Clock(max(loop.start_up + loop.seconds, loop.start_up + in_loop / 1000))
    if n < 2:
        return Clock(None)
    stamps: list[Any] = [begin, last, events["timestamp"].min(), events["timestamp"].max()]
    dated = [stamp for stamp in stamps if stamp is not None]
    seconds, steps_s = (max(dated) - min(dated)).total_seconds(), in_lines / 1000
    if steps_s > seconds * (1 + ROUNDED) + 2 * CUT_S:
        return Clock(None, (warning("clock_shorter_than_steps", seconds=seconds, steps_seconds=steps_s),))
    return Clock(max(seconds, steps_s))


def describe_long_gaps(gaps: pl.DataFrame) -> Iterator[Note]:
    """A warning where nearly every gap between two stamps is similar, and much longer than its steps."""
    timed = gaps.filter("same", "known", ~pl.col("paused"), pl.col("gap") > 0)
    typical = float(timed["gap"].median() or 0.0)  # type: ignore[arg-type]
    if len(timed) < FEWEST_GAPS or typical < LEAST_GAP_S:
        return
    # Stamps are cut to seconds.
    similar = ((pl.col("gap") - typical).abs() <= SIMILAR * typical + CUT_S).mean()
    short = (pl.col("steps_s") < PART_OF_GAP * pl.col("gap")).mean()
    if min(timed.select(similar=similar, short=short).row(0)) > NEARLY_ALL:
        took: Any = timed["steps_s"].median()
        yield warning("clock_longer_than_steps", steps_seconds=took, seconds=typical, share=took / typical)


def time_to_train(steps: pl.DataFrame, events: pl.DataFrame) -> float | None:
    """Seconds from the first start line of the training to its last end line; None where a step follows that."""
    begin: Any = stamps_of(events, "training starts").min()
    end: Any = stamps_of(events, "training ends").max()
    last: Any = steps["timestamp"].max()
    if begin is None or end is None or (last is not None and end < last):
        return None
    return float((end - begin).total_seconds())
