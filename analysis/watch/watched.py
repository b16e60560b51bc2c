"""What the rules of alarms read: a run at one moment, and what the watcher saw of it before. No figure is new here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import polars as pl

from analysis.run.rows.exclusion_reasons import COPY, OF_THE_RUN, OTHER_JOB, ROW_MS, STALL, TIMED
from analysis.run.run import Run
from analysis.watch.alarm_limits import Limits
from analysis.watch.moment import FileGrowth, Moment
from logparse.findings import Origin
from logparse.light_dataclass import dataclass, field

# Lines of the present pace.
RECENT = 50
# A gap between two lines that is this many typical ones is a pause.
PAUSE_GAPS = 2.0
# Events of a process that has not made a step yet.
STARTS = ("log begins", "process starts", "training starts", "checkpoint loaded", "initialized", "model setup")
PACED = pl.col("excluded_reason").is_null() | (pl.col("excluded_reason") == STALL)
# Silences of each file that are kept.
KEPT_OF_FILE = 3


@dataclass(frozen=True)
class Writes:
    """When a file last grew, and ``quiet``: the seconds that the watcher saw it not grow, before the last growths."""

    grown_at: float
    quiet: tuple[float, ...] = ()


@dataclass(frozen=True)
class LastStep:
    """What the watcher saw of a run.

    ``mark`` is the last step line, or the last start after it, ``seen_at`` when it was first there; ``begun_at`` is
    when the watcher first saw the run. ``quiet`` are the seconds that it saw pass without a new line, before each of
    the last ones: a trainer that writes through a buffer prints many lines at once. ``writes`` are those of each file,
    where there are several. ``bar`` is how far a bar at the end of the log is; one that moves is no silence.
    """

    mark: str
    seen_at: float
    begun_at: float
    quiet: tuple[float, ...] = ()
    writes: Mapping[str, Writes] = field(default_factory=dict)
    bar: str = ""


@dataclass(frozen=True)
class Watched:
    """One run of a moment, its ``progress`` and the limits; ``between_looks`` are the seconds since the last look."""

    run: Run
    moment: Moment
    progress: LastStep
    limits: Limits
    between_looks: float = 0.0

    @cached_property
    def own(self) -> pl.DataFrame:
        """The run's own step lines, without copies of other ranks."""
        return self.run.steps.filter(OF_THE_RUN)

    @cached_property
    def last(self) -> dict[str, Any]:
        """The last step line."""
        return self.own.row(-1, named=True)

    @cached_property
    def start(self) -> pl.DataFrame:
        """The step lines of the last start."""
        return self.own.filter(pl.col("segment") == self.last["segment"])

    @cached_property
    def paced(self) -> pl.DataFrame:
        """Lines of the last start that show its pace, with a time, the batch of the last line and no pause."""
        rows = self.start.filter(PACED & TIMED & (pl.col("step_time_ms") > 0))
        batch = rows["global_batch_size"].tail(1)
        return rows.filter(pl.col("global_batch_size").eq_missing(pl.lit(batch.item() if len(batch) else None)))

    @cached_property
    def line_seconds(self) -> float | None:
        """Typical seconds from one step line to the next: as printed, or by the clock where that is longer."""
        recent = self.start.tail(RECENT)
        printed: Any = recent.filter(TIMED).select(ROW_MS.median() / 1000).item()
        by_clock: Any = self.gaps["gap"].tail(RECENT).median()
        known = [float(value) for value in (printed, by_clock) if value is not None and value > 0]
        return max(known, default=None)

    @cached_property
    def gaps(self) -> pl.DataFrame:
        """Of each line of the last start but the first: the ``step`` before, and the seconds since by the clock."""
        seconds = pl.col("timestamp").diff().dt.total_microseconds() / 1e6
        gaps = self.start.select(pl.col("step").shift(1), gap=seconds)
        return gaps.drop_nulls().filter(pl.col("gap") >= 0)

    @cached_property
    def starting(self) -> bool:
        """Whether a process has begun after the last step line and made no step."""
        return self.started_after_last is not None

    @cached_property
    def started_after_last(self) -> int | None:
        """The line on which a process begins after the last step line."""
        here = (pl.col("source") == self.last["source"]) & (pl.col("line_number") > self.last["line_number"])
        begun = self.run.log.starts.filter(here)["line_number"]
        events = self.run.records["events"].filter(here & pl.col("kind").is_in(STARTS))["line_number"]
        return max([*begun.tail(1), *events.tail(1)], default=None)

    @property
    def finished(self) -> bool:
        """Whether all planned steps are done, or the log shows that the training ended as planned, and all is saved."""
        ending, planned = self.run.ending, self.run.title.planned_steps
        from_zero = self.run.title.first_step == 0
        done = planned is not None and planned - from_zero <= (self.last["step"] or 0) <= planned
        return (done or (ending is not None and ending.state == "completed")) and not self.saving

    @property
    def over(self) -> bool:
        """Whether the run is finished, or failed."""
        ending = self.run.ending
        wrong = ending is not None and (ending.failed or ending.error_after_end is not None)
        return wrong or self.finished

    @cached_property
    def saves(self) -> pl.DataFrame:
        """The saves of the run, a row each: where it begins, its step, and whether the log shows that it ``ended``."""
        events = self.run.records["events"].drop_nulls("step")
        begun = events.filter(pl.col("kind") == "save starts")
        over = events.filter(pl.col("kind") == "save ends")
        rows = begun if len(begun) else over
        done = over["step"].implode()
        saves = rows.select("source", "line_number", "timestamp", "step", ended=pl.col("step").is_in(done))
        return saves.unique("step", keep="last", maintain_order=True).sort("step")

    @cached_property
    def saving(self) -> bool:
        """Whether the save after the last step goes on, by a trainer that prints the end of a save.

        Until one has ended it is not sure that this trainer does: then a save goes on for ``pause_minutes``. Some
        trainers print no end of the last one, but that of the training.
        """
        prints_ends = any(record.fixed.get("kind") == "save ends" for record in self.run.log.format.records)
        end = 0 if self.run.ending is None else self.run.ending.line or 0
        begun = self.saves.filter(~pl.col("ended") & (pl.col("step") >= self.last["step"]))
        if not prints_ends or begun.filter(pl.col("line_number") > end).is_empty():
            return False
        return bool(self.saves["ended"].any()) or self.waited <= 60 * self.limits.pause_minutes

    @cached_property
    def waited(self) -> float:
        """Seconds since the last step line, the start after it, or the last time that a bar after it moved."""
        return max(0.0, self.moment.at - self.progress.seen_at)

    def growth(self, source: str) -> FileGrowth | None:
        """What is known of a file that grows."""
        return next((file for file in self.moment.files if file.name == source), None)

    def at(self, row: dict[str, Any]) -> Origin:
        """The place of a step line or a record."""
        return Origin("log", row["source"], row["line_number"])


def writes_of(before: Mapping[str, Writes], moment: Moment, looked_at: float | None) -> dict[str, Writes]:
    """How each of several files grew until ``moment``; the moment ``before`` it was at ``looked_at``."""
    if len(moment.files) < 2:
        return {}
    return {file.name: _written(before.get(file.name), file.grown_at, looked_at) for file in moment.files}


def _written(before: Writes | None, grown_at: float, looked_at: float | None) -> Writes:
    if before is None or looked_at is None:
        return Writes(grown_at)
    if grown_at == before.grown_at:
        return before
    return Writes(grown_at, (*before.quiet, max(0.0, looked_at - before.grown_at))[-KEPT_OF_FILE:])


def mark_of(run: Run) -> str:
    """The last step line of all ranks and the last start after it: what changes where a run goes on."""
    if run.steps.is_empty():
        return "-"
    source, line = _last_line(run)
    starts: Any = run.log.starts.filter((pl.col("source") == source) & (pl.col("line_number") > line))
    return f"{source}:{line}:{len(starts)}"


def _last_line(run: Run) -> tuple[str, int]:
    """File and line of the last step line of all ranks."""
    own = run.steps.filter(~pl.col("excluded_reason").is_in([COPY, OTHER_JOB]).fill_null(value=False))
    source, line = (own if len(own) else run.steps).select("source", "line_number").row(-1)
    return source, line


def last_written_at(moment: Moment) -> float:
    """When the last step line was written: when its file last grew, less the time of the lines after it."""
    run = moment.runs[-1]
    source = "" if run.steps.is_empty() else _last_line(run)[0]
    grown = [file.grown_at for file in moment.files if file.name == source] or [one.grown_at for one in moment.files]
    return min(moment.at, max(grown, default=moment.at)) - seconds_after_last(moment.runs, source)


def seconds_after_last(runs: Sequence[Run], source: str) -> float:
    """Seconds of the log's clock from the last step line in a file to the last stamp of any line that is read there."""
    in_file = pl.col("source") == source
    steps = (
        runs[-1].steps.filter(in_file).select("line_number", step_stamp="timestamp").drop_nulls().sort("line_number")
    )
    frames = [frame for run in runs for frame in (run.steps, *run.records.values()) if "timestamp" in frame.columns]
    rows = [frame.filter(in_file).drop_nulls("timestamp").sort("line_number") for frame in frames]
    found = (_seconds_after(part, steps) for frame in rows for part in _of_one_kind(frame))
    return max(found, default=0.0)


def _of_one_kind(frame: pl.DataFrame) -> list[pl.DataFrame]:
    return frame.partition_by("kind", maintain_order=True) if "kind" in frame.columns else [frame]


def _seconds_after(rows: pl.DataFrame, steps: pl.DataFrame) -> float:
    """Seconds from the last of ``steps`` to the last of ``rows``, whose clock may be ahead of that of the steps.

    It is ahead by as much as a row is after the step line that follows it, as if a zone differs. Without such a row
    time counts from the first one after the last step.
    """
    if steps.is_empty():
        return 0.0
    stamps = rows.join_asof(steps, on="line_number", strategy="forward").select("timestamp", "step_stamp")
    after: Any = stamps.filter(pl.col("step_stamp").is_null())["timestamp"]
    if after.is_empty():
        return 0.0
    ahead: Any = stamps.select((pl.col("timestamp") - pl.col("step_stamp")).max()).item()
    last: datetime = steps["step_stamp"][-1]
    offset = after[0] - last if ahead is None else max(timedelta(), ahead)
    seconds: float = (after.max() - last - offset).total_seconds()
    return max(0.0, seconds)
