"""Where the time went.

Comes in: rows marked by ``row_selection``, events, pauses. Goes out: the frame ``time_breakdown``; its parts add up to
the clock, or to the step lines where there is no clock. No part is below 0, so that no share is above 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from math import isclose
from typing import Any

import polars as pl

from analysis.run.clock.clock import Clock, read_clock, step_loop
from analysis.run.clock.interruptions import Pauses
from analysis.run.clock.pause_times import (
    BETWEEN,
    EVALUATION,
    SAVES,
    UNDIVIDED,
    EventStamps,
    after_the_last,
    between_lines,
    ends_after,
    holds,
    printed_after,
    share_out,
    stamps_within,
    time_first_rows,
    with_seconds_alone,
)
from analysis.run.clock.start_up import start_up_beyond_clock
from analysis.run.rows.exclusion_reasons import (
    BATCH_CHANGES,
    HOLDS_EVALUATION,
    HOLDS_PAUSE,
    HOLDS_SAVE,
    NAN,
    OF_THE_RUN,
    OTHER_JOB,
    REPLAYED,
    SKIPPED,
    STALL,
    WARM_UP,
)
from analysis.run.rows.unprinted_steps import last_done, outline_starts, stamped, unprinted_seconds, unprinted_within
from analysis.run.rows.updates import thrown_away
from analysis.run.tables import TIME_BREAKDOWN_COLUMNS
from analysis.run.useful.useful_time import PAUSED, untimed_seconds, value_rows
from logparse.findings import Note, info

# Codes of ``part``: what the time was spent on. Warm-up goes by the reason of its rows.
USEFUL = "useful"
START_UP, RESTARTS = "start_up", "restarts"
# Useful work of steps that no line prints.
UNPRINTED = "unprinted"
SAVES_BETWEEN, EVALUATION_BETWEEN, UNDIVIDED_BETWEEN = SAVES + BETWEEN, EVALUATION + BETWEEN, UNDIVIDED + BETWEEN
# Parts by the reasons of their rows: the time of these rows that is not useful.
PARTS = {
    WARM_UP: (WARM_UP,),
    "replayed": (REPLAYED,),
    SAVES: (HOLDS_SAVE,),
    EVALUATION: (HOLDS_EVALUATION,),
    UNDIVIDED: (HOLDS_PAUSE,),
    "stalls": (STALL,),
    "skipped": (SKIPPED, NAN, BATCH_CHANGES),
}
LEAST_S, CUT = 1e-9, timedelta(seconds=1)


def describe_clock(steps: pl.DataFrame, events: pl.DataFrame) -> Iterator[Note]:
    """Say why there is no all-in rate."""
    if steps["timestamp"].count() < 2 and read_clock(steps, events).seconds is None:
        yield info("wall_clock_not_computed")


def break_down_time(
    steps: pl.DataFrame,
    events: pl.DataFrame,
    pauses: Pauses,
    clock: Clock | None = None,
    priced: pl.DataFrame | None = None,
    taken_out: Mapping[str, float] | None = None,
) -> pl.DataFrame:
    """Where the time went, in seconds and as a share of the clock; of the step lines where there is none.

    No part is below 0. Empty where no row counts, because then the time of a step is unknown. ``clock`` and
    ``priced``, the ``value_rows`` of ``steps``, are those that the caller has at hand. ``taken_out`` of the step lines
    are seconds of pauses, by the reason that their rows had.
    """
    wall = (clock or read_clock(steps, events)).seconds
    timed = steps if wall is None else time_first_rows(steps, events)
    rows = value_rows(timed) if priced is None or timed is not steps else priced
    in_lines = float(rows["time_ms"].sum()) / 1000
    pauses = with_seconds_alone(pauses, rows)
    parts = _inside(rows, pauses)
    at_end = printed_after(rows.filter(OF_THE_RUN), pauses) if wall is None else {}
    if wall is None:
        pause_of = {reason: part for part, reasons in PARTS.items() for reason in reasons}
        for reason, seconds in (taken_out or {}).items():
            at_end[pause_of[reason]] = at_end.get(pause_of[reason], 0.0) + seconds
    at_begin = start_up_beyond_clock(steps, events, wall is not None) if parts else 0.0
    covered = (in_lines if wall is None else max(wall, in_lines)) + sum(at_end.values())
    total = covered + at_begin
    if wall is not None and parts:
        loop = step_loop(steps.filter(~pl.col("copied")), events) if not rows["timestamp"].count() else None
        outside = (
            {START_UP: loop.start_up} | _left_of_loop(rows, events, loop.seconds - in_lines, pauses)
            if loop
            else _outside(rows, events, pauses, _trial_begins(steps))
        )
        fitted = _within(outside, covered - in_lines)
        parts[USEFUL] += fitted.pop(UNPRINTED, 0.0)
        parts |= fitted
        # Steps whose time is not printed were done all the same, in what is left.
        room = covered - in_lines - sum(outside.values())
        parts[USEFUL] += min(max(room, 0.0), untimed_seconds(timed))
    if parts:
        _add(parts, [at_end])
        if at_begin:
            parts[START_UP] = parts.get(START_UP, 0.0) + at_begin
        parts["not_explained"] = max(total - sum(parts.values()), 0.0)
    run = steps["run"].first()
    shares = [(run, part, seconds, _share(seconds, total)) for part, seconds in parts.items()]
    return pl.DataFrame(shares, {column.name: column.dtype for column in TIME_BREAKDOWN_COLUMNS}, orient="row")


def _share(seconds: float, total: float) -> float | None:
    """The share of ``seconds``; a sum of the same lines in another order differs from the total in its last digit."""
    return 1.0 if total and isclose(seconds, total) else seconds / total if total else None


def _left_of_loop(rows: pl.DataFrame, events: pl.DataFrame, seconds: float, pauses: Pauses) -> dict[str, float]:
    """Parts of the ``seconds`` of a loop that are outside its rows, none of which has a stamp.

    Where rows hold the pauses before them, only those after the last row are outside.
    """
    own_rows = rows.filter(OF_THE_RUN)
    unprinted = unprinted_seconds(outline_starts(own_rows).row(-1, named=True), last_done(own_rows, events), seconds)
    seconds -= unprinted
    last: int = own_rows["step"][-1]
    first: int = last if own_rows["excluded_reason"].is_in(PAUSED).any() else own_rows["step"][0]
    held = share_out(seconds, first, last + 1, pauses) if seconds > CUT.total_seconds() else {}
    return {UNPRINTED: unprinted} | {part + BETWEEN: value for part, value in held.items()}


def _within(parts: dict[str, float], room: float) -> dict[str, float]:
    """The parts, made smaller together where stamps cut to seconds say more than there is ``room`` for."""
    together = sum(parts.values())
    share = min(1.0, max(room, 0.0) / together) if together else 0.0
    return {part: seconds * share for part, seconds in parts.items() if seconds * share > LEAST_S}


def _inside(rows: pl.DataFrame, pauses: Pauses) -> dict[str, float]:
    """What the step lines hold: useful work, and the rest by the reason of its row."""
    if not rows["counted"].any():
        return {}
    lost = pl.col("time_ms") - pl.col("useful_ms")
    # Replayed steps can share a row with new ones, which then has another reason or none.
    again = pl.min_horizontal(lost, pl.col("time_ms") * thrown_away() / pl.col("iterations"))
    partly = pl.when(pl.col("excluded_reason").ne_missing(REPLAYED)).then(again).otherwise(0.0)
    began = pl.col("step") - pl.col("iterations")
    skipped = pl.min_horizontal(pl.col("skipped_ms"), lost - partly).clip(0)
    losses = rows.select(
        "excluded_reason", after=began, to="step", lost=lost - partly - skipped, again=partly, skipped=skipped
    )
    by_reason = dict(
        losses.group_by("excluded_reason", maintain_order=True).agg(pl.col("lost").sum() / 1000).iter_rows()
    )
    parts = {part: sum(by_reason.get(reason) or 0.0 for reason in reasons) for part, reasons in PARTS.items()}
    for after, to, ms in _holding_both(losses, pauses):
        parts[EVALUATION] -= ms / 1000
        for part, share in share_out(ms / 1000, after, to, pauses).items():
            parts[part] += share
    parts["replayed"] += float(losses["again"].sum()) / 1000
    parts["skipped"] += float(losses["skipped"].sum()) / 1000
    useful = {USEFUL: float(rows["useful_ms"].sum()) / 1000}
    return useful | {part: seconds for part, seconds in parts.items() if seconds > LEAST_S}


def _holding_both(rows: pl.DataFrame, pauses: Pauses) -> Iterable[tuple[int, int, float]]:
    """Steps and ms of rows whose time holds an evaluation and a save."""
    if not (pauses.saved and pauses.evaluated):
        return ()
    held = (pl.col("excluded_reason") == HOLDS_EVALUATION) & (pl.col("lost") > 0)
    return rows.filter(held & holds(pauses.saved) & holds(pauses.evaluated))["after", "to", "lost"].iter_rows()


def _trial_begins(steps: pl.DataFrame) -> Any:
    """The first stamp of a job that ended before the run began; None where there was none."""
    return steps["timestamp"].filter(steps["excluded_reason"] == OTHER_JOB).min()


def _outside(rows: pl.DataFrame, events: pl.DataFrame, pauses: Pauses, trial: Any) -> dict[str, float]:
    """Time between the step lines by their stamps, and after the last of a start; ``trial`` began before them."""
    names = (START_UP, RESTARTS, UNPRINTED, SAVES_BETWEEN, EVALUATION_BETWEEN, UNDIVIDED_BETWEEN)
    parts = dict.fromkeys(names, 0.0)
    rows, stamps, before = stamped(rows), EventStamps.of(events), None
    starts, between = outline_starts(rows), between_lines(rows, stamps, pauses)
    within = unprinted_within(rows, starts)
    for start in starts.iter_rows(named=True):
        began = start["begin"] - timedelta(microseconds=int(start["row_ms"] * 1000))
        end = None if before is None else before["end"]
        known = min(_process_begin(stamps, start["begin"], end) or began, began)
        known = min(trial, known) if trial and before is None else known
        parts[START_UP] += (began - known).total_seconds()
        parts[UNPRINTED] += within[start["segment"]][1] if start["segment"] in within else 0.0
        paused = between.get(start["segment"], [])
        if before is not None:
            # The pause after a step that is done again may be that of its second time.
            goes_on = start["begun_after"] >= before["last_step"]
            held = after_the_last(before, stamps, pauses, known) if goes_on else {}
            idle = max(0.0, (known - end).total_seconds() - sum(held.values()))
            same = before["lineage"] == start["lineage"]
            unprinted = unprinted_seconds(before, start["begun_after"], idle) if same else 0.0
            parts[UNPRINTED] += unprinted
            parts[RESTARTS] += idle - unprinted
            paused.append(held)
        _add(parts, paused)
        before = start
    if before is not None:
        held = after_the_last(before, stamps, pauses, None)
        room = sum(held.values()) or ends_after(before, stamps)
        unprinted = unprinted_seconds(
            before, last_done(rows.filter(pl.col("segment") == before["segment"]), events), room
        )
        parts[UNPRINTED] += unprinted
        _add(parts, [_less(held, unprinted)])
    return {part: seconds for part, seconds in parts.items() if seconds}


def _less(held: dict[str, float], seconds: float) -> dict[str, float]:
    """``held`` without ``seconds`` of it, in proportion."""
    together = sum(held.values())
    return {part: value * (1 - seconds / together) for part, value in held.items()} if together else held


def _add(parts: dict[str, float], paused: Iterable[dict[str, float]]) -> None:
    for held in paused:
        for part, seconds in held.items():
            parts[part + BETWEEN] = parts.get(part + BETWEEN, 0.0) + seconds


def _process_begin(stamps: EventStamps, begin: datetime, after: datetime | None) -> datetime | None:
    """The earliest stamp of an event of the process whose first line has the stamp ``begin``."""
    # A stamp cut to seconds can lie before the one it follows.
    first = next(iter(stamps_within(stamps.begins, datetime.min if after is None else after - CUT, begin)), None)
    return first if after is None or first is None else max(first, after)
