"""What saves and evaluations took where a gap, or a row, holds more than steps.

Comes in: the rows of a start, events, pauses. Goes out: seconds by part. A gap that holds both is split by what the log
prints of either: a timer, or the stamps around a save; else by the median of those that are alone. Else one
part names both.

The first rows of a start may have no time, where times come from the stamps of lines. They get that of their steps at
the baseline, at most what passed since the line before them. So these steps are no start-up.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, Self

import polars as pl

from analysis.run.clock.interruptions import Pauses, count_between
from analysis.run.rates.baseline_step_time import with_baseline
from analysis.run.rows.exclusion_reasons import COPY, OTHER_JOB, TIMED, has_untimed
from analysis.run.rows.frame_filters import stamps_of
from analysis.run.useful.useful_time import PAUSED
from logparse.light_dataclass import replace

SAVES, EVALUATION, UNDIVIDED = "saves", "evaluation", "saves_and_evaluation"
BETWEEN = "_between"
# One pause alone may be unlike the others.
FEWEST = 2
# Events after the last step line of a process that show that it still ran.
ENDINGS = ("save starts", "save ends", "training ends", "process exits")
BEGINNINGS = ("log begins", "process starts", "training starts")


def share_out(
    seconds: float, after: int, to: int, pauses: Pauses, save_seconds: Callable[[], float | None] = lambda: None
) -> dict[str, float]:
    """``seconds`` by part, for pauses after step ``after`` or a later one and before ``to``; empty without a pause.

    ``save_seconds`` may know the time of the saves without a timer. It is called where both kinds of pause lie there.
    """
    saved, evaluated = (
        steps[bisect_left(steps, after) : bisect_left(steps, to)] for steps in (pauses.saved, pauses.evaluated)
    )
    if not saved or not evaluated:
        return {SAVES: seconds} if saved else {EVALUATION: seconds} if evaluated else {}
    stamped = save_seconds()
    of_saves = _together(saved, pauses.save_seconds) if stamped is None else stamped
    of_evaluations = _together(evaluated, pauses.evaluation_seconds)
    if of_saves is None and of_evaluations is None:
        save, evaluation = pauses.alone
        of_evaluations = None if evaluation is None else evaluation * len(evaluated)
        of_saves = None if save is None or evaluation is not None else save * len(saved)
    if of_saves is not None:
        saving = min(of_saves, seconds)
    elif of_evaluations is not None:
        saving = max(seconds - of_evaluations, 0.0)
    else:
        return {UNDIVIDED: seconds}
    return {SAVES: saving, EVALUATION: seconds - saving}


def _together(steps: Sequence[int], seconds: Mapping[int, float]) -> float | None:
    return sum(seconds[step] for step in steps) if all(step in seconds for step in steps) else None


def with_seconds_alone(pauses: Pauses, rows: pl.DataFrame) -> Pauses:
    """``pauses`` with ``alone``, by the ``value_rows``: what a row, and the gap before it, hold beyond its steps."""
    if not pauses.saved or not pauses.evaluated:
        return pauses
    begun, step, time = pl.col("step") - pl.col("iterations"), pl.col("step"), pl.col("time_ms")
    held = pl.when(pl.col("excluded_reason").is_in(PAUSED)).then(time - pl.col("useful_ms")).otherwise(0.0)
    saved, evaluated = (count_between(steps, begun, step) for steps in (pauses.saved, pauses.evaluated))
    spans = (
        _with_gaps(rows)
        .group_by("span")
        .agg(
            ms=pl.col("gap_ms").first().clip(0) + held.sum(),
            saved=saved.sum(),
            evaluated=evaluated.sum(),
        )
    )
    each_s = pl.col("ms") / 1000
    save, evaluation = (
        spans.filter(pl.col(one) > 0, pl.col(other) == 0)
        .select(pl.when(pl.len() >= FEWEST).then((each_s / pl.col(one)).median()))
        .item()
        for one, other in (("saved", "evaluated"), ("evaluated", "saved"))
    )
    return replace(pauses, alone=(save, evaluation))


class EventStamps(NamedTuple):
    """The stamps, in order, of events that begin a process or show that it still ran, and of those around saves."""

    begins: Sequence[datetime]
    ends: Sequence[datetime]
    saves_begin: Sequence[datetime]
    saves_end: Sequence[datetime]

    @classmethod
    def of(cls, events: pl.DataFrame) -> Self:
        """Find the stamps of ``events``."""
        kinds = (BEGINNINGS, ENDINGS, ("save starts",), ("save ends",))
        return cls(*(stamps_of(events, *some).drop_nulls().sort().to_list() for some in kinds))

    def save_seconds(self, begin: datetime, end: datetime) -> float | None:
        """Seconds from the first line there that begins a save to the last that ends one; None where one is missing."""
        first = next(iter(stamps_within(self.saves_begin, begin, end)), None)
        last = max(stamps_within(self.saves_end, begin, end), default=None)
        return None if first is None or last is None or last < first else (last - first).total_seconds()


def stamps_within(stamps: Sequence[datetime], begin: datetime, end: datetime) -> Sequence[datetime]:
    """The ordered ``stamps`` from ``begin`` to ``end``, both included."""
    return stamps[bisect_left(stamps, begin) : bisect_right(stamps, end)]


def _with_gaps(rows: pl.DataFrame) -> pl.DataFrame:
    """Add ``gap_ms``: the time since the line before in the same start, beyond that of the row.

    It is that of a ``span``: the rows to which a coarse clock gives one time together, or a row.
    """
    row = pl.when(pl.col("time_resolution_ms") > 0).then(-1).otherwise(pl.int_range(pl.len()))
    gap = pl.col("timestamp").diff().over("segment").dt.total_microseconds() / 1000 - pl.col("time_ms")
    spans = rows.with_columns(gap_ms=gap, span=pl.struct("segment", "step_time_ms", row=row).rle_id())
    return spans.with_columns(pl.col("gap_ms").sum().over("span"))


def between_lines(rows: pl.DataFrame, stamps: EventStamps, pauses: Pauses) -> Mapping[int, list[dict[str, float]]]:
    """By start, parts of each gap between rows that holds a save or an evaluation line, beyond the rows' own time."""
    read = _with_gaps(rows)["segment", "step", "timestamp", "gap_ms"].with_columns(
        after=pl.col("step").shift(1),
        begin=pl.col("timestamp").shift(1),
        seconds=pl.col("gap_ms") / 1000,
    )
    paused = holds(pauses.saved, to="step") | holds(pauses.evaluated, to="step")
    parts = defaultdict(list)
    for segment, to, end, _, after, begin, seconds in read.filter(
        paused, pl.col("seconds") > 0, pl.col("after").is_not_null()
    ).iter_rows():
        parts[segment].append(share_out(seconds, after, to, pauses, partial(stamps.save_seconds, begin, end)))
    return parts


def after_the_last(start: Mapping[str, Any], stamps: EventStamps, pauses: Pauses, until: Any) -> dict[str, float]:
    """Parts of the pause after the last row of a start, as far as stamps bound it or its time is printed.

    ``until`` is when the next start begins; None after the last start, whose clock ends with its stamps.
    """
    step, stamp = start["last_step"], start["last_stamp"]
    begin = stamps.begins[bisect_right(stamps.begins, stamp) :][:1]
    bound = min((time for time in (until, *begin) if time is not None), default=datetime.max)
    end = max(stamps_within(stamps.ends, stamp, bound), default=stamp)
    stamped = (end - stamp).total_seconds()
    printed = sum(times.get(step, 0.0) for times in (pauses.save_seconds, pauses.evaluation_seconds))
    room = stamped if until is None else (until - stamp).total_seconds()
    seconds = max(stamped, min(printed, room))
    return share_out(seconds, step, step + 1, pauses, partial(stamps.save_seconds, stamp, end)) if seconds > 0 else {}


def ends_after(start: Mapping[str, Any], stamps: EventStamps) -> float:
    """Seconds from the last row of a start, the last of its log, to the last line that shows that it still ran."""
    return max(0.0, (stamps.ends[-1] - start["last_stamp"]).total_seconds()) if stamps.ends else 0.0


def printed_after(start: pl.DataFrame, pauses: Pauses) -> dict[str, float]:
    """Parts of the pause after the last row of a start, of which no line has a stamp, as far as its time is printed."""
    step: Any = start["step"].last()
    printed = {SAVES: pauses.save_seconds.get(step), EVALUATION: pauses.evaluation_seconds.get(step)}
    return {part: seconds for part, seconds in printed.items() if seconds is not None}


def holds(pauses: tuple[int, ...], after: str = "after", to: str = "to") -> pl.Expr:
    """Whether a pause lies after step ``after`` of a span or a later one, and before its step ``to``."""
    return count_between(pauses, pl.col(after), pl.col(to)) > 0


def time_first_rows(steps: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """``steps``, of which the stamped rows before the first row with a time in each start have one; the frame itself
    where there are none.
    """
    if not has_untimed(steps):
        return steps
    is_own = pl.col("excluded_reason").ne_missing(COPY) & pl.col("excluded_reason").ne_missing(OTHER_JOB)
    timed = (TIMED & is_own).cum_sum().over("segment")
    first = is_own & (timed == 0) & pl.col("timestamp").is_not_null() & pl.col("iterations").is_not_null()
    if not steps.select(first.any()).item():
        return steps
    rows = with_baseline(steps).with_columns(
        first=first, since=pl.max_horizontal(pl.col("timestamp").shift(1), _begun(steps, events))
    )
    room_ms = (pl.col("timestamp") - pl.col("since")).dt.total_microseconds() / 1000
    time = pl.min_horizontal("baseline_ms", room_ms / pl.col("iterations"))
    can_be_timed = pl.col("first") & pl.col("baseline_ms").is_not_null() & (room_ms > 0)
    return rows.with_columns(
        step_time_ms=pl.when(can_be_timed).then(time).otherwise("step_time_ms"),
        # A row without a reason is useful as far as its steps were kept.
        excluded_reason=pl.when(can_be_timed).then(None).otherwise("excluded_reason"),
    ).drop("first", "since")


def _begun(steps: pl.DataFrame, events: pl.DataFrame) -> pl.Series:
    """For each row the last stamp up to its own at which a log, a process or a training began."""
    begins = events.filter(pl.col("kind").is_in(BEGINNINGS)).select(begun="timestamp").drop_nulls().sort("begun")
    stamps = steps.select("timestamp").with_row_index("at").sort("timestamp", nulls_last=True)
    joined = stamps.filter(pl.col("timestamp").is_not_null()).join_asof(begins, left_on="timestamp", right_on="begun")
    return stamps.join(joined.select("at", "begun"), on="at", how="left").sort("at")["begun"]
