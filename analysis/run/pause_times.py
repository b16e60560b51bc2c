"""What saves and evaluations took where a gap, or a row, holds more than steps.

Comes in: the rows of a start, events, pauses. Goes out: seconds by part. A gap that holds both is split by what the log
prints of either: a timer, or the stamps around a save. Where it prints nothing, one part names both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

import polars as pl

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
    gaps = start.select(
        after=pl.col("step").shift(1),
        to="step",
        begin=pl.col("timestamp").shift(1),
        end="timestamp",
        seconds=pl.col("timestamp").diff().dt.total_microseconds() / 1e6 - pl.col("time_ms") / 1000,
    ).drop_nulls()
    held = gaps.filter((holds(gaps, pauses.saved) | holds(gaps, pauses.evaluated)) & (pl.col("seconds") > 0))
    return [
        share_out(seconds, after, to, pauses, partial(_stamped_save, events, begin, end))
        for after, to, begin, end, seconds in held.iter_rows()
    ]


def after_the_last(start: pl.DataFrame, events: pl.DataFrame, pauses: Pauses, until: Any) -> dict[str, float]:
    """Parts of the pause after the last row of a start, as far as stamps bound it or its time is printed.

    ``until`` is when the next start begins; None after the last start, whose clock ends with its stamps.
    """
    last = start.row(-1, named=True)
    step, stamp = last["step"], last["timestamp"]
    later = events.filter(pl.col("timestamp") >= stamp)
    begins = later.filter(pl.col("kind").is_in(BEGINNINGS) & (pl.col("timestamp") > stamp))["timestamp"].min()
    bound: Any = min((time for time in (until, begins) if time is not None), default=datetime.max)
    ends = later.filter(pl.col("kind").is_in(ENDINGS) & (pl.col("timestamp") <= bound))
    end: Any = ends["timestamp"].max() or stamp
    stamped = (end - stamp).total_seconds()
    printed = sum(times.get(step, 0.0) for times in (pauses.save_seconds, pauses.evaluation_seconds))
    room = stamped if until is None else (until - stamp).total_seconds()
    seconds = max(stamped, min(printed, room))
    return share_out(seconds, step, step + 1, pauses, partial(_stamped_save, events, stamp, end)) if seconds > 0 else {}


def ends_after(start: pl.DataFrame, events: pl.DataFrame) -> float:
    """Seconds from the last row of a start, the last of its log, to the last line that shows that it still ran."""
    stamp: Any = start["timestamp"][-1]
    end: Any = events.filter(pl.col("kind").is_in(ENDINGS), pl.col("timestamp") >= stamp)["timestamp"].max()
    return float((end - stamp).total_seconds()) if end is not None else 0.0


def printed_after(start: pl.DataFrame, pauses: Pauses) -> dict[str, float]:
    """Parts of the pause after the last row of a start, of which no line has a stamp, as far as its time is printed."""
    step = start.select(pl.col("step").last()).item()
    printed = {SAVES: pauses.save_seconds.get(step), EVALUATION: pauses.evaluation_seconds.get(step)}
    return {part: seconds for part, seconds in printed.items() if seconds is not None}


def _stamped_save(events: pl.DataFrame, begin: datetime, end: datetime) -> float | None:
    """Seconds from the first line that begins a save to the last that ends one; None where one has no stamp there."""
    there = events.filter(pl.col("timestamp").is_between(begin, end))
    starts: Any = there.filter(pl.col("kind") == "save starts")["timestamp"].min()
    ends: Any = there.filter(pl.col("kind") == "save ends")["timestamp"].max()
    return None if starts is None or ends is None or ends < starts else (ends - starts).total_seconds()


def holds(spans: pl.DataFrame, pauses: tuple[int, ...]) -> pl.Series:
    """Whether a pause lies after step ``after`` of a span or a later one, and before its step ``to``."""
    return count_between(pauses, spans["after"], spans["to"]) > 0
