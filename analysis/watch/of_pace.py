"""Rules on time: no step line, a slower pace, a rank that lags, and rates below what was to be expected."""

from __future__ import annotations

from collections.abc import Sequence
from io import DEFAULT_BUFFER_SIZE
from itertools import pairwise
from math import ceil
from statistics import median
from typing import TYPE_CHECKING, Any

import polars as pl

from analysis.run.checks.target_verdicts import judge
from analysis.run.checks.targets import COMPLETED, STEPS
from analysis.run.rates.changepoints import ROBUST
from analysis.watch.watched import PAUSE_GAPS, Watched
from logparse.findings import Origin

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Lines of a window of the pace, and how many times the least share it must be slower.
WINDOWS = ((5, 4.0), (10, 2.0), (30, 1.0))
# Lines that took less together show no pace: a machine is busy with something else now and then.
LEAST_MS = 10_000.0
# Windows before the present one without which no pace is settled; the noise is no less than a share of the pace.
FEWEST_WINDOWS, LEAST_NOISE = 3, 0.005
# The share of the present lines that says how slow a line of a slow pace is, and that of ``sigmas`` for their mean.
MOST_OF_WINDOW, SIGMAS_OF_MEAN = 0.75, 0.5
# Lines of the history of a pace that are read.
MOST_LINES = 3000
# Lines without which no typical time is known.
FEWEST_LINES = 3
# Until the watcher has seen a new line, those of a buffer may wait so many times as long.
BEFORE_FIRST = 3.0
# Pauses of a run that come at no regular step, before as long a silence is typical of it.
FEWEST_PAUSES = 3
# Looks without a line before which nothing hangs, of at most so many seconds each.
LOOKS, LONGEST_LOOK = 2.5, 4.0
# How much longer than the longest before it a pause may be.
LONGER_PAUSE = 1.5
# Figures that only the last step shows.
AT_END = (COMPLETED, STEPS, "final_loss")
# The share of lines on which a slow rank lags, of so many.
LAGGING_SHARE, FEWEST_SHARED = 0.5, 10


def waits_to_start(watched: Watched) -> dict[str, Any] | None:
    """A process that began has made no step for longer than a start takes."""
    limit = 60 * watched.limits.startup_minutes
    if not watched.starting or watched.finished or watched.waited <= limit:
        return None
    origin = Origin("log", watched.last["source"], watched.started_after_last)
    return {"waited": watched.waited, "limit": limit, "origin": origin}


def hangs(watched: Watched) -> dict[str, Any] | None:
    """No step line for several times the typical time, and no pause is in its place."""
    typical = watched.line_seconds
    if typical is None or watched.starting or watched.finished or watched.run.analysis.streams:
        return None
    limit = hang_limit(watched, typical)
    if watched.waited <= limit:
        return None
    fields = {"waited": watched.waited, "typical": typical, "limit": limit, "step": watched.last["step"]}
    return {**fields, "origin": watched.at(watched.last)}


def hang_limit(watched: Watched, typical: float) -> float:
    """Seconds without a step line from which on a run hangs."""
    limits, quiet = watched.limits, watched.progress.quiet
    if len(watched.start) < FEWEST_LINES:
        return 60 * limits.startup_minutes
    expected = max(typical, median(quiet) if quiet else 0.0)
    patience = 1.0 if quiet else BEFORE_FIRST
    irregular = LONGER_PAUSE * _irregular_pause(watched, typical)
    # Between two looks nothing can be seen; from cron they are far apart, and each sees when a file grew.
    looks = LOOKS * min(watched.between_looks, LONGEST_LOOK)
    return max(limits.hang_steps * expected * patience, irregular, looks) + pause_in_place(watched, typical)


def _irregular_pause(watched: Watched, typical: float) -> float:
    """How long a run has paused now and then, at no save, no evaluation and no regular step; 0 where it did not."""
    own = _own_pauses(watched, typical)
    if len(own) < FEWEST_PAUSES or _are_regular([mark for mark, _ in own], watched.last["iterations"] or 1):
        return 0.0
    return sorted(gap for _, gap in own)[int(0.9 * (len(own) - 1))]


def _own_pauses(watched: Watched, typical: float) -> list[tuple[int, float]]:
    """The step before each long gap that no save and no evaluation explains, and its seconds."""
    pauses, steps = watched.run.analysis.pauses, watched.last["iterations"] or 1
    known = [*pauses.saved, *pauses.evaluated]
    long = watched.gaps.filter(pl.col("gap") > PAUSE_GAPS * typical)
    return [(mark, gap) for mark, gap in long.iter_rows() if not any(mark <= at < mark + steps for at in known)]


def _are_regular(marks: Sequence[int], steps: int) -> bool:
    """Whether pauses come at every so many steps."""
    return all(_is_due(marks[:n], marks[n], steps) for n in range(2, len(marks)))


def pause_in_place(watched: Watched, typical: float) -> float:
    """Seconds that a save or an evaluation may take that is due after the last line; 0 where none is."""
    pauses, step, steps = watched.run.analysis.pauses, watched.last["step"], watched.last["iterations"] or 1
    if step is None:
        return 0.0
    own = [mark for mark, _ in _own_pauses(watched, typical)]
    kinds = [pauses.saved, pauses.evaluated]
    if len(own) >= FEWEST_PAUSES and _are_regular(own, steps):
        kinds.append(tuple(own))
    places = {mark for marks in kinds if _is_due(marks, step, steps) for mark in marks}
    planned = watched.run.context.get("evaluation_interval")
    if not places and (not planned or step % planned >= steps):
        return 0.0
    timed = [*pauses.save_seconds.values(), *pauses.evaluation_seconds.values()]
    seen = [float(gap) for mark, gap in watched.gaps.iter_rows() if any(mark <= at < mark + steps for at in places)]
    longest = max([*timed, *seen], default=None)
    return 60 * watched.limits.pause_minutes if longest is None else LONGER_PAUSE * longest


def _is_due(marks: Sequence[int], step: int, steps: int) -> bool:
    """Whether a pause that lies after the steps ``marks`` is due between ``step`` and the ``steps`` after it."""
    if any(step <= mark < step + steps for mark in marks):
        return True
    before = [mark for mark in marks if mark < step]
    if len(before) < 2:
        return False
    period = min(b - a for a, b in pairwise(before) if b > a)
    return (step - before[-1]) % period < steps


def is_slow(watched: Watched) -> dict[str, Any] | None:
    """The present lines are slower than the settled pace of the run, by more than it varies."""
    if watched.run.analysis.streams or watched.finished:
        return None
    rows = watched.paced.tail(MOST_LINES)
    times = rows["step_time_ms"].to_numpy()
    typical: Any = rows["step_time_ms"].median()
    for fewest, times_share in WINDOWS:
        lines = max(fewest, ceil(LEAST_MS / typical)) if typical else fewest
        if (found := _slower(times, lines, times_share * watched.limits.slow_share, watched.limits.sigmas)) is not None:
            now, before = found
            origin = watched.at(rows.row(-lines, named=True))
            return {"now_ms": now, "before_ms": before, "share": now / before - 1, "lines": lines, "origin": origin}
    return None


def _slower(times: NDArray[np.float64], lines: int, share: float, sigmas: float) -> tuple[float, float] | None:
    """The median of the last ``lines`` and that of the windows before them, where it is slower by ``share``."""
    import numpy as np

    whole = len(times) // lines
    if whole <= FEWEST_WINDOWS:
        return None
    windows = np.median(times[len(times) - whole * lines :].reshape(whole, lines), axis=1)
    before, now = windows[:-1], float(windows[-1])
    settled = float(np.median(before))
    rows = times[: len(times) - lines]
    # The noise of windows, and that of lines as it is in a window: few windows show little.
    of_windows = ROBUST * float(np.median(np.abs(before - settled)))
    of_lines = ROBUST * float(np.median(np.abs(rows - np.median(rows)))) * 1.25 / lines**0.5
    noise = max(of_windows, of_lines, LEAST_NOISE * settled)
    is_slower = now > (1 + share) * settled and now - settled > sigmas * noise
    return (now, settled) if is_slower and _mean_rose(rows, times[len(rows) :], SIGMAS_OF_MEAN * sigmas) else None


def _mean_rose(before: NDArray[np.float64], now: NDArray[np.float64], errors: float) -> bool:
    """Whether the mean of lines rose too, by so many standard errors.

    Where lines are slow and fast in turn, a median jumps by chance. A line counts as no slower than most present ones
    are: a pause says nothing about the pace.
    """
    import numpy as np

    most = np.quantile(now, MOST_OF_WINDOW)
    earlier, present = before.clip(max=most), now.clip(max=most)
    return bool(present.mean() - earlier.mean() > errors * earlier.std() / len(now) ** 0.5)


def misses_target(watched: Watched) -> dict[str, Any] | None:
    """A figure is not what --require asks for; until the run is over, of those that the steps so far can show."""
    if watched.run.short and not watched.over:
        return None
    failed = [one for one in judge(watched.run) if one.outcome == "fail"]
    missed = next((one for one in failed if watched.over or one.requirement.figure.column not in AT_END), None)
    if missed is None:
        return None
    return {"required": missed.requirement.text, "now": missed.value, "origin": watched.at(watched.last)}


def below_plan(watched: Watched) -> dict[str, Any] | None:
    """The utilization is below the planned one."""
    run = watched.run
    row = next((row for row in run.expectations.plan.rows if row.name == "utilisation"), None)
    if row is None or not row.planned or row.planned_to is not None or row.measured is None or run.short:
        return None
    if row.measured >= (1 - watched.limits.plan_share) * row.planned:
        return None
    return {"now": row.measured, "planned": row.planned, "origin": watched.at(watched.last)}


def below_history(watched: Watched) -> dict[str, Any] | None:
    """The rate is below that of a run that ``record`` kept."""
    return _below(watched, watched.limits.history_share, recorded=True)


def below_published(watched: Watched) -> dict[str, Any] | None:
    """The rate is below a published one."""
    return _below(watched, watched.limits.published_share, recorded=False)


def _below(watched: Watched, share: float, recorded: bool) -> dict[str, Any] | None:
    run = watched.run
    rows = [against for against in run.expectations.published.matches if against.row.recorded is recorded]
    # The nearest of several: a rate that one of them has too is no news. A published row is of a device.
    nearest = max(rows, key=lambda against: against.share, default=None)
    if nearest is None or run.short or nearest.share >= 1 - share or not (recorded or run.device):
        return None
    row = nearest.row
    fields = {"now": run.tokens_per_second, "rate": row.tokens_per_second_per_device, "row": row.name}
    return {**fields, "share": 1 - nearest.share, "origin": watched.at(watched.last)}


def rank_lags(watched: Watched) -> dict[str, Any] | None:
    """A rank prints no more steps while others go on."""
    steps = watched.run.steps.filter(pl.col("step").is_not_null())
    ranks = [source for source in watched.run.ranks["source"] if source is not None]
    if not ranks:
        # Ranks that print the same times have no row of their own.
        ranks = steps.filter("copied")["source"].unique().to_list()
    if not ranks:
        return None
    ends = (
        steps.filter(pl.col("segment") == steps["segment"].max())
        .group_by("source")
        .agg(pl.col("step").max(), pl.col("line_number").max(), pl.col("iterations").max())
        .filter(pl.col("source").is_in([*ranks, watched.last["source"]]))
        .sort("step", "source")
    )
    if len(ends) < 2:
        return None
    last, furthest = ends.row(0, named=True), ends["step"][-1]
    lag = furthest - last["step"]
    limit = watched.limits.rank_lines * (last["iterations"] or 1)
    if lag < limit or _may_be_in_a_buffer(watched, last["source"]):
        return None
    return {"source": last["source"], "step": last["step"], "others": furthest, "origin": watched.at(last)}


def _may_be_in_a_buffer(watched: Watched, source: str) -> bool:
    """Whether the silence of a file may be that of a buffer: it is below several times that between two writes.

    Until the watcher has seen two writes, that is as long as the lines of the file take to fill a buffer.
    """
    growth, typical, seen = watched.growth(source), watched.line_seconds, watched.progress.writes.get(source)
    if growth is None or typical is None:
        return False
    in_buffer = max(1.0, DEFAULT_BUFFER_SIZE * growth.lines / max(1, growth.size))
    expected = max(typical, median(seen.quiet)) if seen is not None and seen.quiet else typical * in_buffer
    return watched.moment.at - growth.grown_at <= watched.limits.rank_lines * expected


def rank_is_slow(watched: Watched) -> dict[str, Any] | None:
    """A rank takes longer than the others on more steps than not."""
    ranks = watched.run.ranks
    if len(ranks) < 2:
        return None
    slowest, typical = ranks.row(0, named=True), float(ranks["step_time_ms"].median() or 0.0)  # type: ignore[arg-type]
    slower = slowest["step_time_ms"] / typical - 1 if typical else 0.0
    if slowest["behind_share"] <= LAGGING_SHARE or slowest["steps"] < FEWEST_SHARED:
        return None
    if slower <= watched.limits.rank_share:
        return None
    origin = Origin("log", slowest["source"])
    return {"source": slowest["source"], "share": slower, "now_ms": slowest["step_time_ms"], "origin": origin}
