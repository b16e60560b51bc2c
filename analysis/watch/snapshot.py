"""What a person on duty looks at, as values of the Run: how far, how fast now and before, what is lost and saved.

Comes in: a run, its moment, its alarms. Goes out: a ``Snapshot``. Every figure is one that the Run has.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from math import isfinite
from typing import Any, Literal

import polars as pl

from analysis.run.useful.overheads import Overhead
from analysis.watch.alarm_limits import Limits
from analysis.watch.alarm_state import RunState
from analysis.watch.alarms import Alarm
from analysis.watch.moment import Moment
from analysis.watch.of_process import device_bytes, ended, memory_of
from analysis.watch.watched import Watched
from logparse.findings import Note
from logparse.light_dataclass import dataclass

# Lines of the present figures, and losses of the sparkline.
NOW, LOSSES = 10, 400
# Figures that are shown now and as a rule.
FIGURES = ("step_time_ms", "tokens_per_second_per_device", "mfu")
RunStatus = Literal["waiting", "starting", "running", "completed", "failed", "stopped", "refused"]


@dataclass(frozen=True)
class NowAndSteady:
    """A figure of the last lines, and the steady one of the whole run; None is unknown."""

    name: str
    now: float | None
    steady: float | None


@dataclass(frozen=True)
class TimeLeft:
    """Steps and seconds to the end, the range of the seconds, and when that is by the watcher's clock."""

    steps: int
    seconds: float | None
    low: float | None
    high: float | None
    ends_at: float | None


@dataclass(frozen=True)
class Snapshot:
    """One run at one moment. ``waited`` are the seconds since its last step line.

    ``redoing_to`` is the step that an earlier start had reached, while the steps up to it are done again.
    ``saved_step`` is the step of the last save, ``saved_seconds`` its age by the log's clock. None is unknown.
    """

    status: RunStatus
    step: int | None
    redoing_to: int | None
    planned: int | None
    left: TimeLeft | None
    figures: tuple[NowAndSteady, ...]
    goodput: float | None
    largest: Overhead | None
    losses: tuple[float, ...]
    loss: float | None
    lowest: float | None
    saved_step: int | None
    saved_seconds: float | None
    memory_bytes: float | None
    device_bytes: float | None
    waited: float


@dataclass(frozen=True)
class WatchedRun:
    """One run as it is shown: the name that the user knows, the moment, its values and its alarms.

    Without a ``snapshot`` no step has been read. ``notes`` are the last ones on its files.
    """

    name: str
    moment: Moment
    snapshot: Snapshot | None
    alarms: tuple[Alarm, ...]
    notes: tuple[Note, ...] = ()

    @property
    def status(self) -> RunStatus:
        """The code of what the run does."""
        if self.snapshot is not None:
            return self.snapshot.status
        codes = [alarm.code for alarm in self.alarms]
        return "refused" if "refused" in codes else "failed" if "ending" in codes else "waiting"


def snapshot_of(moment: Moment, state: RunState, limits: Limits) -> Snapshot | None:
    """What is to be seen of the newest run of ``moment``; None before its first step line."""
    if not moment.runs or moment.runs[-1].steps.is_empty() or state.progress is None:
        return None
    watched = Watched(moment.runs[-1], moment, state.progress, limits)
    run, title, memory = watched.run, watched.run.title, memory_of(watched)
    saved_step, saved_seconds = _last_save(watched)
    again = bool(watched.last["replayed"])
    printed = watched.own["loss"].drop_nulls()
    finite = printed.filter(printed.is_finite())
    return Snapshot(
        status=_status(watched, state.present),
        step=watched.last["step"] if again else title.last_step,
        redoing_to=title.last_step if again else None,
        planned=title.planned_steps,
        left=_left(watched),
        figures=tuple(_figure(watched, name) for name in FIGURES),
        goodput=None if run.short else run.goodput,
        largest=next((one for one in run.overheads if not one.in_steps), None),
        losses=tuple(finite.tail(LOSSES)),
        loss=_loss(watched, printed),
        lowest=None if run.loss is None else run.loss.lowest,
        saved_step=saved_step,
        saved_seconds=saved_seconds,
        memory_bytes=memory["bytes"][-1] if len(memory) else None,
        device_bytes=device_bytes(watched),
        waited=watched.waited,
    )


def _status(watched: Watched, present: Collection[str]) -> RunStatus:
    ending = watched.run.ending
    if ended(watched) is not None:
        return "failed"
    # Of runs that write to one file the ending of none is known.
    if watched.finished and (ending is None or ending.state == "completed"):
        return "completed"
    if "hang" in present or "startup" in present:
        return "stopped"
    return "starting" if watched.starting else "running"


def _figure(watched: Watched, name: str) -> NowAndSteady:
    """The median of the last lines that show the pace, and the steady figure."""
    recent = watched.paced.tail(NOW)
    now: Any = recent[name].median() if name in recent.columns else None
    return NowAndSteady(name, now, watched.run.analysis.rate("steady")[name])


def _loss(watched: Watched, printed: pl.Series) -> float | None:
    """The last loss, also one that is not finite."""
    if len(printed) and not isfinite(printed[-1]):
        return float(printed[-1])
    return None if watched.run.loss is None else watched.run.loss.last


def _left(watched: Watched) -> TimeLeft | None:
    left = watched.run.expectations.plan.left
    if left is None or watched.run.short:
        return None
    passed = watched.waited
    ends_at = None if left.seconds is None else watched.moment.at + max(0.0, left.seconds - passed)
    return TimeLeft(left.steps, left.seconds, left.seconds_low, left.seconds_high, ends_at)


def _last_save(watched: Watched) -> tuple[int | None, float | None]:
    """The step of the last save, and its age: since its stamp by the log's clock, and since then by the watcher's."""
    saves = watched.saves
    done = saves.filter("ended") if len(saves) and saves["ended"].any() else saves
    if done.is_empty():
        return None, None
    row, last = done.row(-1, named=True), watched.last
    stamp = row["timestamp"] or _stamp_of(watched, row["step"])
    if stamp is None or last["timestamp"] is None:
        return row["step"], None
    return row["step"], max(0.0, (last["timestamp"] - stamp).total_seconds()) + watched.waited


def _stamp_of(watched: Watched, step: int) -> datetime | None:
    """The stamp of the last line of a step up to ``step``."""
    stamp: Any = watched.own.filter(pl.col("step") <= step)["timestamp"].drop_nulls().last() if step else None
    return stamp if isinstance(stamp, datetime) else None


def clock_of(seconds: float) -> datetime:
    """A time of the watcher's clock in the zone of this machine."""
    return datetime.fromtimestamp(0).astimezone() + timedelta(seconds=seconds)
