"""Rules on the process: how it ended, starts without progress, memory that fills up, saves that are late or slow."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import Any

import polars as pl

from analysis.hardware.devices import find_device
from analysis.watch.watched import Watched
from logparse.errors import UsageError
from logparse.failures.ending import Ending
from logparse.findings import Origin

# Points of memory that show a trend, the share of the device by which it must grow, and those that are read.
FEWEST_POINTS, LEAST_GROWTH, POINTS = 12, 0.002, 45
# The share of that growth within the last third: half of one that goes on evenly.
STILL_GROWS = 0.1
# Saves without which no interval and no time of a save is typical.
FEWEST_SAVES = 2
# An interval of saves differs from the next by less than this share; others are planned by time.
EVEN = 0.5
# A save that takes no more than so many seconds longer delays nobody.
LEAST_EXCESS = 10.0
MEMORY = ("reserved_bytes", "allocated_bytes", "max_reserved_bytes", "max_allocated_bytes")
OF_STEPS = ("max_memory_reserved_bytes", "max_memory_allocated_bytes")


def ended(watched: Watched) -> dict[str, Any] | None:
    """The run failed, or an error after its last step puts its last save in doubt."""
    ending = watched.run.ending
    return None if ending is None else fields_of_ending(ending)


def fields_of_ending(ending: Ending) -> dict[str, Any] | None:
    """What the alarm of a failed run says; None of any other."""
    shown = ending.error_after_end or (ending if ending.failed else None)
    if shown is None:
        return None
    origin = None if shown.line is None else Origin("log", shown.source, shown.line)
    fields = {"family": shown.family, "state": ending.state, "step": ending.step, "remedy": ending.remedy}
    return {**fields, "origin": origin}


def starts_again_and_again(watched: Watched) -> dict[str, Any] | None:
    """The last starts came no further than the one before them."""
    fewest = int(watched.limits.restarts)
    starts = _starts(watched)
    last = starts[-fewest:]
    if len(last) < fewest:
        return None
    reached = [step or 0 for _, _, step in last[:-1]]
    if any(after > before for before, after in pairwise(reached)):
        return None
    furthest = max(step or 0 for _, _, step in starts[:-1])
    if not watched.starting and (watched.last["step"] or 0) > furthest:
        return None
    source, line, _ = last[-1]
    return {"n": len(starts), "step": furthest, "origin": Origin("log", source, line)}


def _starts(watched: Watched) -> list[tuple[str, int, int | None]]:
    """File, line and furthest step of each start; that of one that made no step is None."""
    ending = watched.run.ending
    attempts = ending.attempts if ending is not None else ()
    segments = watched.run.segments
    source = str(watched.last["source"])
    if len(attempts) > len(segments):
        found = [(source, attempt.first_line, attempt.step) for attempt in attempts]
    else:
        rows = segments.select("source", "line_number", "last_step").iter_rows()
        found = [(file, line, step) for file, line, step in rows]
    if watched.started_after_last is not None and found and found[-1][1] < watched.started_after_last:
        found.append((source, watched.started_after_last, None))
    return found


def runs_out_of_memory(watched: Watched) -> dict[str, Any] | None:
    """Memory grows and is near that of the device, or will be soon: of the last points, or of the whole start."""
    size, points = device_bytes(watched), memory_of(watched)
    if size is None:
        return None
    spread = points.gather_every(max(1, len(points) // POINTS))
    found = (_fills_up(watched, size, some) for some in (points.tail(POINTS), spread.tail(POINTS)))
    return next((fields for fields in found if fields is not None), None)


def _fills_up(watched: Watched, size: float, points: pl.DataFrame) -> dict[str, Any] | None:
    if len(points) < FEWEST_POINTS:
        return None
    steps, used = points["step"].to_list(), points["bytes"].to_list()
    third = len(used) // 3
    first, last = used[:third], used[-third:]
    growth, between = median(last) - median(first), median(steps[-third:]) - median(steps[:third])
    # What grew once and stays is no leak: each of the last points is above each of the first, and they grow too.
    stays = min(last) <= max(first) or last[-1] - last[0] <= STILL_GROWS * growth
    if growth <= LEAST_GROWTH * size or stays or between <= 0:
        return None
    seconds = _seconds_of(watched, max(0.0, size - used[-1]) * between / growth)
    soon = seconds is not None and seconds < 3600 * watched.limits.memory_hours
    if used[-1] < watched.limits.memory_share * size and not soon:
        return None
    return {"now": used[-1], "device": size, "seconds": seconds, "origin": watched.at(points.row(-1, named=True))}


def _seconds_of(watched: Watched, steps: float) -> float | None:
    one = watched.run.step_time_seconds
    return None if one is None else steps * one


def device_bytes(watched: Watched) -> float | None:
    """The memory of the device of the run; None where it is unknown."""
    try:
        known = None if watched.run.device is None else find_device(watched.run.device).hbm_gb
    except UsageError:
        return None
    # The gigabytes that makers name are GiB, and a process sees some 98 % of them: 79.15 GiB of an H100 of 80 GB.
    return None if known is None else known * 2**30


def memory_of(watched: Watched) -> pl.DataFrame:
    """Memory of the last start by step, of the rank with the most: of the step lines, else of lines of their own."""
    for column in OF_STEPS:
        rows = watched.start.filter(pl.col(column) > 0)
        if len(rows) >= FEWEST_POINTS:
            return rows.select("source", "line_number", "step", bytes=column).drop_nulls("step")
    measured = watched.run.records["memory"].filter(pl.col("kind") == "measured").drop_nulls("step")
    here = measured.filter(pl.col("step") >= (watched.start["step"].min() or 0))
    # One kind for all: what is reserved differs from what is allocated.
    kind = next((name for name in MEMORY if here[name].count() >= FEWEST_POINTS), MEMORY[0])
    used = here.with_columns(bytes=kind).drop_nulls("bytes")
    most = used.sort("bytes").unique("step", keep="last").sort("step")
    return most.select("source", "line_number", "step", "bytes")


def save_is_late(watched: Watched) -> dict[str, Any] | None:
    """No save has ended for longer than the typical interval between two saves."""
    saves = watched.saves
    done = saves.filter(pl.col("ended")) if saves["ended"].any() else saves
    steps, last = done["step"].to_list(), watched.last["step"]
    if len(steps) < FEWEST_SAVES or last is None:
        return None
    intervals = [after - before for before, after in pairwise(steps)]
    every = median(intervals)
    if max(intervals) - min(intervals) > EVEN * every or last - steps[-1] <= watched.limits.save_interval * every:
        return None
    # A start goes on from a save: what it has not reached is not late.
    first: Any = watched.start["step"].min()
    if last - max(steps[-1], (first or 0) - 1) <= watched.limits.save_interval * every:
        return None
    return {"step": last, "saved": steps[-1], "every": every, "origin": watched.at(done.row(-1, named=True))}


def save_is_slow(watched: Watched) -> dict[str, Any] | None:
    """The last save took several times as long as those before."""
    seconds = _save_seconds(watched)
    if len(seconds) <= FEWEST_SAVES:
        return None
    *before, (step, last) = seconds
    typical = median(value for _, value in before)
    least = max(LEAST_EXCESS, watched.line_seconds or 0.0)
    if last <= watched.limits.save_time * typical or last - typical <= least:
        return None
    row = watched.saves.filter(pl.col("step") == step)
    origin = watched.at(row.row(-1, named=True)) if len(row) else None
    return {"step": step, "seconds": last, "typical": typical, "origin": origin}


def _save_seconds(watched: Watched) -> list[tuple[int, float]]:
    """Step and seconds of each save: of its timer, else from the line on which it begins to that on which it ends."""
    timed = watched.run.analysis.pauses.save_seconds
    if timed:
        return sorted(timed.items())
    events = watched.run.records["events"].drop_nulls(["step", "timestamp"])
    begun = events.filter(pl.col("kind") == "save starts").group_by("step").agg(begun=pl.col("timestamp").min())
    over = events.filter(pl.col("kind") == "save ends").group_by("step").agg(over=pl.col("timestamp").max())
    seconds = (pl.col("over") - pl.col("begun")).dt.total_microseconds() / 1e6
    found = begun.join(over, on="step").select("step", seconds=seconds).filter(pl.col("seconds") >= 0).sort("step")
    return list(found.iter_rows())
