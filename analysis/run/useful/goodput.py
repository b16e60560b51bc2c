"""Goodput as the field counts it: badput by its named types, ETTR, interruptions, and the longest dead stretch.

Comes in: priced rows, the time breakdown, starts, events. Goes out: a ``Reliability``. The types are those of Google's
goodput library (AI-Hypercomputer/ml-goodput-measurement 57092cfc, goodput_utils.py); ETTR is productive time over wall
time of all starts, as a whole (arXiv 2410.21680) and over a sliding hour (arXiv 2509.16293). A log does not show
queueing and set-up before its first line, nor asynchronous saves, nor a slow rank's share of a step. After its last
line it shows only saves and evaluations.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import polars as pl

from analysis.run.clock.pause_times import time_first_rows
from analysis.run.rows.exclusion_reasons import REPLAYED
from analysis.run.rows.frame_filters import in_order, with_known
from analysis.run.rows.updates import lost_updates
from analysis.run.tables import BADPUT_COLUMNS, GOODPUT_COLUMNS
from analysis.run.useful.useful_time import PRICED_BY, value_rows
from logparse.light_dataclass import dataclass
from logparse.schema import conform

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The parts of the time breakdown by the library's types; what is in none is OTHER.
TYPES: Mapping[str, tuple[str, ...]] = {
    "PROGRAM_STARTUP": ("start_up", "warm_up"),
    "UNPRODUCTIVE_CHECKPOINT_SAVE_TIME": ("saves", "saves_between"),
    "WASTED_PROGRESS_FROM_DISRUPTION": ("replayed",),
    "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION": ("restarts",),
    "CUSTOM_BADPUT_EVENTS": ("evaluation", "evaluation_between"),
    "OTHER": ("stalls", "skipped", "saves_and_evaluation", "saves_and_evaluation_between", "not_explained"),
}
# Events that say that a process was meant to end.
MEANT_TO_END = ("training ends", "process exits")
HOUR_S, MOST_POINTS = 3600.0, 1000


@dataclass(frozen=True)
class Stretch:
    """A stretch of the clock: ``seconds`` from ``begins`` on; ``share`` of it was productive, where that is asked.

    ``begins`` is null in JSON where the log prints no year.
    """

    begins: datetime | None
    seconds: float
    share: float | None = None


@dataclass(frozen=True)
class Reliability:
    """Interruptions of a run, and its goodput over time.

    ``ettr`` is goodput, ``worst_hour`` the sliding hour of the least ETTR; None where the clock is unknown or short.
    ``interruptions`` are ends of a start that a later one goes on from, ``planned_stops`` those that a line announced.
    These, and the ``lost_steps``, are None of runs that are mixed in one file.
    ``seconds_between`` interruptions is a lower bound where there was none. ``badput`` has a row for each type that the
    log shows, ``curve`` the course of ETTR.
    """

    ettr: float | None
    worst_hour: Stretch | None
    interruptions: int | None
    planned_stops: int | None
    seconds_between: float | None
    lost_steps: int | None
    longest_dead: Stretch | None
    badput: pl.DataFrame
    curve: pl.DataFrame


def count_goodput(
    steps: pl.DataFrame,
    priced: pl.DataFrame,
    time_breakdown: pl.DataFrame,
    segments: pl.DataFrame,
    events: pl.DataFrame,
    ettr: float | None,
) -> Reliability:
    """Measure a run by the field's terms; ``ettr`` is its goodput by the clock, None where that is unknown.

    ``steps`` have their baseline; ``priced`` are the ``value_rows`` of them.
    """
    stops, planned = _stops(segments, events)
    total = float(time_breakdown["seconds"].sum())
    rows = _by_the_clock(steps, events, priced) if ettr is not None else steps.clear()
    course = _Course.of(rows, total) if len(rows) > 1 else None
    return Reliability(
        ettr=ettr,
        worst_hour=course.worst_hour() if course else None,
        interruptions=stops - planned,
        planned_stops=planned,
        seconds_between=total / max(1, stops - planned) if total else None,
        lost_steps=int(segments["lost_steps"].sum()),
        longest_dead=_longest_dead(rows) if course else None,
        badput=_badput(time_breakdown),
        curve=conform(course.curve(steps["run"][0]) if course else pl.DataFrame(), GOODPUT_COLUMNS),
    )


def _badput(time_breakdown: pl.DataFrame) -> pl.DataFrame:
    types = {part: kind for kind, parts in TYPES.items() for part in parts}
    kind = pl.col("part").replace_strict(types, default="OTHER", return_dtype=pl.String)
    lost = time_breakdown.filter(pl.col("part") != "useful").group_by("run", type=kind, maintain_order=True)
    totals = lost.agg(pl.col("seconds", "share").sum()).filter(pl.col("seconds") > 0)
    return conform(totals.sort("seconds", descending=True), BADPUT_COLUMNS)


def _stops(segments: pl.DataFrame, events: pl.DataFrame) -> tuple[int, int]:
    """How often a start ended and a later one of its lineage went on, and how many of these ends were announced."""
    if len(segments) < 2:
        return 0, 0
    goes_on = (pl.col("lineage") == pl.col("lineage").shift(-1)).fill_null(value=False)
    next_line = pl.col("line_number").shift(-1).over("source")
    starts = segments.select("segment", "source", "line_number", goes_on=goes_on, next_line=next_line)
    ends = events.filter(pl.col("kind").is_in(MEANT_TO_END)).select("source", end="line_number").sort("end")
    # The start before each end, which is no end of it if the next one begins there.
    ended = ends.join_asof(
        starts.sort("line_number"),
        left_on="end",
        right_on="line_number",
        by="source",
        allow_exact_matches=False,
        check_sortedness=False,
    ).filter("goes_on", (pl.col("end") < pl.col("next_line")).fill_null(value=True))
    return int(starts["goes_on"].sum()), ended["segment"].n_unique()


def _by_the_clock(steps: pl.DataFrame, events: pl.DataFrame, priced: pl.DataFrame) -> pl.DataFrame:
    """Stamped rows in order, with seconds since the first stamp at which they ``end``, and what was productive in them.

    A step that a later start did again was lost: it is productive when it was done for good. ``priced`` are the
    ``value_rows`` of ``steps``.
    """
    timed = time_first_rows(steps, events)
    if timed is not steps or timed["replayed"].any() or (timed["replayed_steps"] > 0).any():
        read = timed.select(*PRICED_BY, "baseline_ms", "lineage", "timestamp")
        made = pl.col("iterations") - lost_updates()
        priced = value_rows(read.with_columns(useful_steps=made, excluded_reason=_unless_replayed()))
    share_kept = pl.lit(1.0)
    if timed["segment"].n_unique() > 1:
        priced = priced.join(_lost_from(timed), on="segment", how="left")
        before = pl.col("lost_from") - pl.col("step") + pl.col("iterations")
        share_kept = (before / pl.col("iterations")).clip(0, 1).fill_null(1)
    rows = in_order(with_known(priced, "timestamp"), "timestamp")
    began = (pl.col("timestamp") - pl.duration(milliseconds="time_ms")).min()
    first = pl.min_horizontal(began, pl.lit(events["timestamp"].min(), pl.Datetime("us")))
    return rows.with_columns(
        productive_s=pl.col("useful_ms") / 1000 * share_kept,
        first=first,
        end=(pl.col("timestamp") - first).dt.total_microseconds() / 1e6,
    )


def _lost_from(rows: pl.DataFrame) -> pl.DataFrame:
    """By ``segment``, the first step that a later start of its lineage did again; null where none did."""
    resumes = (pl.col("step") - pl.col("iterations")).first().over("segment")
    read = with_known(rows["lineage", "segment", "step", "iterations"], "iterations")
    begun = read.select("lineage", "segment", resumes=resumes)
    heads = begun.group_by("lineage", "segment", maintain_order=True).agg(pl.col("resumes").first())
    return heads.select("segment", lost_from=pl.col("resumes").shift(-1).cum_min(reverse=True).over("lineage"))


def _unless_replayed() -> pl.Expr:
    reason = pl.col("excluded_reason")
    return pl.when(reason != REPLAYED).then(reason)


@dataclass(frozen=True)
class _Course:
    """Productive seconds up to moments of the clock, on straight lines between them."""

    first: datetime
    at: NDArray[np.float64]
    productive: NDArray[np.float64]

    @classmethod
    def of(cls, rows: pl.DataFrame, total_s: float) -> _Course:
        """A row is productive evenly over its time, which ends at its stamp; nothing after the last row is."""
        import numpy as np

        end, time, worth = (rows[name].to_numpy() for name in ("end", "time_ms", "productive_s"))
        done = np.cumsum(worth)
        begin = np.maximum.accumulate(np.maximum(np.concatenate([[0.0], end[:-1]]), end - time / 1000))
        at = np.stack([begin, np.maximum(begin, end)], axis=1).ravel()
        productive = np.stack([done - worth, done], axis=1).ravel()
        ends = max(total_s, float(at[-1]))
        return cls(
            rows["first"][0],
            np.concatenate([[0.0], at, [ends]]),
            np.concatenate([[0.0], productive, [done[-1]]]),
        )

    def _hour(self, moments: NDArray[np.float64]) -> NDArray[np.float64]:
        """ETTR over the hour up to each of ``moments``; over all that passed where that is less."""
        import numpy as np

        since = np.maximum(moments - HOUR_S, 0.0)
        done, before = (np.interp(x, self.at, self.productive) for x in (moments, since))
        shares: NDArray[np.float64] = ((done - before) / np.maximum(moments - since, 1e-9)).clip(0, 1)
        return shares

    def worst_hour(self) -> Stretch | None:
        """The hour that was the least productive; None of a run that is shorter than an hour."""
        # An hour is the least where it begins or ends at a moment; both ascend, so that nothing need be sorted.
        least = (self._least_of(moments) for moments in (self.at, self.at + HOUR_S))
        hours = [hour for hour in least if hour]
        if not hours:
            return None
        share, end = min(hours)
        return Stretch(self.first + timedelta(seconds=end - HOUR_S), HOUR_S, share)

    def _least_of(self, moments: NDArray[np.float64]) -> tuple[float, float] | None:
        """The least ETTR of the hours up to ``moments``, and the first at which it is; None where none lies within."""
        within = moments[(moments >= HOUR_S) & (moments <= self.at[-1])]
        if not len(within):
            return None
        shares = self._hour(within)
        least = int(shares.argmin())
        return float(shares[least]), float(within[least])

    def curve(self, run: str) -> pl.DataFrame:
        """ETTR since the beginning and over the last hour, at up to MOST_POINTS moments."""
        import numpy as np

        moments = np.linspace(0, self.at[-1], min(MOST_POINTS, len(self.at)) + 1)[1:]
        whole = (np.interp(moments, self.at, self.productive) / np.maximum(moments, 1e-9)).clip(0, 1)
        return pl.DataFrame({"run": run, "hours": moments / HOUR_S, "ettr": whole, "ettr_of_hour": self._hour(moments)})


def _longest_dead(rows: pl.DataFrame) -> Stretch:
    """The longest stretch in which no step was done: between lines, less the steps of the line but for its first."""
    time_of_others = (pl.col("time_ms") - pl.col("step_time_ms")) / 1000
    before = pl.col("end").shift(1).fill_null(0.0)
    stretches = rows.select("first", before=before, dead=pl.col("end") - before - time_of_others)
    first, begin, seconds = stretches.row(stretches["dead"].arg_max() or 0)
    return Stretch(first + timedelta(seconds=begin), seconds)
