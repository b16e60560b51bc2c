"""Patterns in what was left out and in the settled window: periods of stalls, drift, shifts of the level.

Comes in: marked rows and the pauses. Goes out: notes. Nothing is excluded here.
Stamps are cut to seconds and steps vary, so only gaps far above rounding and late lines are reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl

from analysis.run.clock.interruptions import Pauses, count_between
from analysis.run.rates.baseline_step_time import READ, add_pace, middle, stalled
from analysis.run.rates.changepoints import ENOUGH_ROWS, Level, find_levels, two_modes
from analysis.run.rows.corrupt_rows import name_first
from analysis.run.rows.exclusion_reasons import ROW_MS, STALL, TIME_DAMAGED, TIMED
from analysis.run.rows.frame_filters import only
from logparse.findings import Note, info, warning

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Levels further apart than this make one steady pace misleading; the first LEVELS_SHOWN are reported one by one.
LEVELS_APART, LEVELS_SHOWN = 0.10, 4
# So few rows at other levels do not change the pace of a run.
FEW_OTHERS = 0.02


def describe_pace(steps: pl.DataFrame, pauses: Pauses) -> Iterator[Note]:
    """Notes on times that lost digits, stalls and their period, and a level that shifts or drifts."""
    damaged = steps["excluded_reason"] == TIME_DAMAGED
    if damaged.any():
        damaged_notes = name_first("step_time_ms", steps.filter(damaged), "time_damaged", "more_times_damaged")
        yield from map(_as_info, damaged_notes)
    yield from _stalls(steps, pauses)
    if steps["counted"].sum() < ENOUGH_ROWS:
        return
    read = steps[(*READ, "counted", "excluded_reason")]
    placed = read.with_columns(place=(pl.col("iterations").is_not_null().cum_sum() - 1).over("segment"))
    yield from _levels(placed.filter(pl.col("counted") | (pl.col("excluded_reason") == STALL)))


def _as_info(note: Note) -> Note:
    return replace(note, level="info")


def _stalls(steps: pl.DataFrame, pauses: Pauses) -> Iterator[Note]:
    stalls = stalled(steps)
    if stalls.is_empty():
        return
    longer = stalls["longer_ms"].median()
    positions = stalls["step"].to_list()
    number = "one" if len(positions) == 1 else "several"
    if period := find_period(positions):
        yield info(f"stalls_{_cause(period, pauses)}", n=len(positions), longer_ms=longer, period=period)
    else:
        yield info(f"stalls_{number}", n=len(positions), longer_ms=longer, steps=positions)


def find_period(positions: Sequence[int]) -> int | None:
    """The distance at which most of ``positions`` follow each other; None where there is none.

    At least three, of which at least 60 % must lie on one grid of the most frequent distance.
    """
    if len(positions) < 3:
        return None
    distances = Counter(b - a for a, b in pairwise(positions) if b > a)
    if not distances:
        return None
    period = min(distances, key=lambda distance: (-distances[distance], distance))
    on_grid = Counter(p % period for p in positions).most_common(1)[0][1]
    return period if period > 1 and on_grid >= 0.6 * len(positions) else None


def explain_stalls(positions: Sequence[int], pauses: Pauses) -> list[tuple[str, int | None]]:
    """A code for what each of ``positions`` may have come from, with the period of the stalls where it is on its grid.

    ``behind_save`` and ``behind_evaluation``: in the step before; ``not_told``: the log shows no cause.
    """
    period = find_period(positions)
    grid = Counter(p % period for p in positions).most_common(1)[0][0] if period else None
    return [_explain(at, period if period and at % period == grid else None, pauses) for at in positions]


def _explain(at: int, period: int | None, pauses: Pauses) -> tuple[str, int | None]:
    if at - 1 in pauses.saved:
        return "behind_save", period
    if at - 1 in pauses.evaluated:
        return "behind_evaluation", period
    return (_cause(period, pauses), period) if period else ("not_told", None)


def _cause(period: int, pauses: Pauses) -> str:
    """What happens as often as the stalls do."""
    if find_period(pauses.saved) == period:
        return "as_often_as_saves"
    return "as_often_as_evaluations" if find_period(pauses.evaluated) == period else "periodic"


def _levels(rows: pl.DataFrame) -> Iterator[Note]:
    """The levels of the pace over the whole run, where they differ by much and for sure."""
    counted = only(rows, rows["counted"])
    levels = find_levels(_pace(counted))
    if len(levels) < 2:
        yield from _mixed(rows)
        return
    apart = max(level.pace for level in levels) / min(level.pace for level in levels) - 1
    before, after = levels[0], levels[1]
    share_elsewhere = 1 - max(len(level) for level in levels) / len(counted)
    if apart > LEVELS_APART and share_elsewhere > FEW_OTHERS:
        yield _note_on_levels(counted, levels, apart)
    elif len(levels) == 2:
        yield info("pace_changes", change=after.pace / before.pace - 1, step=counted["step"][after.begin])
    else:
        yield info("pace_wanders", n=len(levels), apart=apart)


def _pace(rows: pl.DataFrame) -> NDArray[np.float64]:
    """Over all starts, so that a start at another pace is a level too."""
    return add_pace(rows.with_columns(segment=pl.lit(0)), pl.lit(value=True))["pace"].to_numpy()


def _note_on_levels(counted: pl.DataFrame, levels: Sequence[Level], apart: float) -> Note:
    shown = [_level(counted.slice(level.begin, len(level))) for level in levels[:LEVELS_SHOWN]]
    more = [info("more_levels", n=len(levels) - LEVELS_SHOWN)] if len(levels) > LEVELS_SHOWN else []
    steady = middle(counted["step_time_ms"])
    fields = {"levels": [*shown, *more], "apart": apart, "steady_ms": steady}
    place = counted["place"][levels[1].begin]
    # --warmup is of each start.
    one = counted["segment"].n_unique() == 1
    return warning("pace_has_levels", **fields, rows=place) if one else warning("pace_has_levels_over_starts", **fields)


def _level(rows: pl.DataFrame) -> Note:
    ms = middle(rows["step_time_ms"])
    return info("level_of_pace", first=rows["step"][0], last=rows["step"][-1], ms=ms)


def _mixed(rows: pl.DataFrame) -> Iterator[Note]:
    """Two paces that take turns: neither a change nor stalls."""
    pace = _pace(rows)
    if between := two_modes(pace):
        slow = rows.filter(pl.Series(pace > between))
        fast = rows.filter(pl.Series(pace <= between))
        ms = [middle(part["step_time_ms"]) for part in (fast, slow)]
        steady = middle(rows["step_time_ms"].filter(rows["counted"]))
        share = len(slow) / len(rows)
        yield warning("pace_is_mixed", fast_ms=ms[0], slow_ms=ms[1], share=share, steady_ms=steady)


# A gap is reported from here on, in seconds and as a share of the time of the row after it.
LEAST_S, LEAST_SHARE = 3.0, 0.5


def describe_gaps(steps: pl.DataFrame, pauses: Pauses) -> Note | None:
    """The gaps within starts that hold neither a save nor an evaluation, nor missing lines; None without any."""
    row_s = ROW_MS / 1000
    read = steps["step", "iterations", "segment", "timestamp", "step_time_ms", "excluded_reason", "copied"]
    rows = read.filter(TIMED & ~pl.col("copied") & pl.col("timestamp").is_not_null() & row_s.is_not_null())
    after = pl.col("step").shift(1)
    gaps = rows.select(
        "step",
        same=(pl.col("segment") == pl.col("segment").shift(1)) & (pl.col("step").diff() <= pl.col("iterations")),
        paused=(count_between(pauses.saved, after, pl.col("step")) > 0)
        | (count_between(pauses.evaluated, after, pl.col("step")) > 0),
        seconds=pl.col("timestamp").diff().dt.total_microseconds() / 1e6 - row_s,
        least=pl.max_horizontal(LEAST_S, row_s * LEAST_SHARE),
    )
    unexplained = gaps.filter("same", ~pl.col("paused"), pl.col("seconds") > pl.col("least"))
    if unexplained.is_empty():
        return None
    before = unexplained["step"].to_list()
    fields = {"n": len(unexplained), "each": unexplained["seconds"].median(), "steps": before}
    period = find_period(before)
    return info("gaps_periodic", **fields, period=period) if period else info("gaps_not_explained", **fields)
