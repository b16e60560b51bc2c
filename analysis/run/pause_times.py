"""What saves and evaluations took where a gap, or a row, holds more than steps.

Comes in: the rows of a start, events, pauses. Goes out: seconds by part. A gap that holds both is split by what the log
prints of either: a timer, or the stamps around a save. Where it prints nothing, one part names both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, cast

import polars as pl

from analysis.run.frame_filters import stamps_of
from analysis.run.interruptions import Pauses, count_between

SAVES, EVALUATION, UNDIVIDED = "saves", "evaluation", "saves_and_evaluation"
BETWEEN = "_between"
# Events after the last step line of a process that show that it still ran.
ENDINGS = ("save starts", "save ends", "training ends", "process exits")
BEGINNINGS = ("log begins", "process starts", "training starts")


def share_out(
    seconds: float, after: int, to: int, pauses: Pauses, save_seconds: Callable[[], float | None] = lambda: None
) -> dict[str, float]:
    """``seconds`` by part, for pauses after step ``after`` or a later one and before ``to``; empty without a pause.

    ``save_seconds`` may know the time of the saves without a timer. It is called where both kinds of pause lie there.
    """
    saved = [step for step in pauses.saved if after <= step < to]
    evaluated = [step for step in pauses.evaluated if after <= step < to]
    if not saved or not evaluated:
        return {SAVES: seconds} if saved else {EVALUATION: seconds} if evaluated else {}
    stamped = save_seconds()
    of_saves = _together(saved, pauses.save_seconds) if stamped is None else stamped
    of_evaluations = _together(evaluated, pauses.evaluation_seconds)
    if of_saves is not None:
        saving = min(of_saves, seconds)
    elif of_evaluations is not None:
        saving = max(seconds - of_evaluations, 0.0)
    else:
        return {UNDIVIDED: seconds}
    return {SAVES: saving, EVALUATION: seconds - saving}


def _together(steps: list[int], seconds: Mapping[int, float]) -> float | None:
    return sum(seconds[step] for step in steps) if all(step in seconds for step in steps) else None


def between_lines(start: pl.DataFrame, events: pl.DataFrame, pauses: Pauses) -> list[dict[str, float]]:
    """Parts of each gap between rows that holds a save or an evaluation line, beyond the rows' own time."""
    read = start["step", "timestamp", "time_ms"].with_columns(
        after=pl.col("step").shift(1),
        begin=pl.col("timestamp").shift(1),
        seconds=pl.col("timestamp").diff().dt.total_microseconds() / 1e6 - pl.col("time_ms") / 1000,
    )
    paused = holds(pauses.saved, to="step") | holds(pauses.evaluated, to="step")
    held = read.filter(paused & (pl.col("seconds") > 0))
    return [
        share_out(seconds, after, to, pauses, partial(_stamped_save, events, begin, end))
        for to, end, _, after, begin, seconds in held.iter_rows()
    ]


def after_the_last(start: pl.DataFrame, events: pl.DataFrame, pauses: Pauses, until: Any) -> dict[str, float]:
    """Parts of the pause after the last row of a start, as far as stamps bound it or its time is printed.

    ``until`` is when the next start begins; None after the last start, whose clock ends with its stamps.
    """
    step, stamp = start["step"][-1], start["timestamp"][-1]
    begins, ends = stamps_of(events, *BEGINNINGS), stamps_of(events, *ENDINGS)
    begin = begins.filter(begins > stamp).min()
    bound: Any = min((time for time in (until, begin) if time is not None), default=datetime.max)
    end: Any = ends.filter(ends.is_between(stamp, bound)).max() or stamp
    stamped = (end - stamp).total_seconds()
    printed = sum(times.get(step, 0.0) for times in (pauses.save_seconds, pauses.evaluation_seconds))
    room = stamped if until is None else (until - stamp).total_seconds()
    seconds = max(stamped, min(printed, room))
    return share_out(seconds, step, step + 1, pauses, partial(_stamped_save, events, stamp, end)) if seconds > 0 else {}


def ends_after(start: pl.DataFrame, events: pl.DataFrame) -> float:
    """Seconds from the last row of a start, the last of its log, to the last line that shows that it still ran."""
    stamp: Any = start["timestamp"][-1]
    end: Any = stamps_of(events, *ENDINGS).max()
    return max(0.0, float((end - stamp).total_seconds())) if end is not None else 0.0


def printed_after(start: pl.DataFrame, pauses: Pauses) -> dict[str, float]:
    """Parts of the pause after the last row of a start, of which no line has a stamp, as far as its time is printed."""
    step: Any = start["step"].last()
    printed = {SAVES: pauses.save_seconds.get(step), EVALUATION: pauses.evaluation_seconds.get(step)}
    return {part: seconds for part, seconds in printed.items() if seconds is not None}


def _stamped_save(events: pl.DataFrame, begin: datetime, end: datetime) -> float | None:
    """Seconds from the first line that begins a save to the last that ends one; None where one has no stamp there."""
    saves = (stamps_of(events, kind) for kind in ("save starts", "save ends"))
    begun, ended = (stamps.filter(stamps.is_between(begin, end)) for stamps in saves)
    first, last = cast("Any", begun.min()), cast("Any", ended.max())
    return None if first is None or last is None or last < first else (last - first).total_seconds()


def holds(pauses: tuple[int, ...], after: str = "after", to: str = "to") -> pl.Expr:
    """Whether a pause lies after step ``after`` of a span or a later one, and before its step ``to``."""
    return count_between(pauses, pl.col(after), pl.col(to)) > 0
