"""What the watcher remembers from one moment to the next, in a file too, so that it can be stopped and started again.

Comes in: the moments of a run, one after the other. Goes out: the alarms that are on, and what is news: an alarm that
begins, and one that ends. An alarm ends once its condition has been absent for a while. The last message of an alarm
holds: after its end was sent, its next beginning is sent too. If it came back soon, the next end is sent late.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Literal

from analysis.watch.alarm_limits import Limits
from analysis.watch.alarms import KINDS, Alarm, alarms_before_steps, find_alarms
from analysis.watch.moment import Moment
from analysis.watch.watched import LastStep, Watched, Writes, last_written_at, mark_of, writes_of
from logparse.findings import Origin
from logparse.light_dataclass import dataclass, field, replace

VERSION = 1
# Silences before new lines that are kept.
KEPT = 8
NO_LINE = "-"


@dataclass(frozen=True)
class OpenAlarm:
    """An alarm whose beginning was sent and whose end was not: when its condition was last there, whether it is ``on``.

    ``came_back``: it was sent within the cooldown of the message before, so that it may come and go.
    """

    alarm: Alarm
    held_at: float
    on: bool = True
    came_back: bool = False


@dataclass(frozen=True)
class News:
    """What a moment brings: an alarm that ``begins`` or ``ends``."""

    kind: Literal["begins", "ends"]
    alarm: Alarm


@dataclass(frozen=True)
class RunState:
    """What is remembered of one run. ``sent`` is when an alarm of each code was last sent."""

    progress: LastStep | None = None
    open: tuple[OpenAlarm, ...] = ()
    sent: Mapping[str, float] = field(default_factory=dict)
    looked_at: float | None = None

    @property
    def present(self) -> frozenset[str]:
        """The codes of the alarms whose condition held at the last look."""
        return frozenset(one.alarm.code for one in self.open if one.held_at == self.looked_at)

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The alarms that are on, the most urgent first, then the newest."""
        order = list(KINDS)
        alarms = [one.alarm for one in self.open if one.on]
        return tuple(sorted(alarms, key=lambda a: (a.level != "critical", -a.since, order.index(a.code))))


def advance(name: str, state: RunState, moment: Moment, limits: Limits) -> tuple[RunState, tuple[News, ...]]:
    """The state after ``moment`` of the run ``name``, and what is new."""
    progress = _progress(state, moment)
    between = 0.0 if state.looked_at is None else moment.at - state.looked_at
    present = {alarm.code: alarm for alarm in _alarms(name, progress, moment, limits, between)}
    opened = {one.alarm.code: one for one in state.open}
    sent = dict(state.sent)
    news: list[News] = []
    still: list[OpenAlarm] = []
    for code, alarm in present.items():
        before, sent_at = opened.get(code), sent.get(code, -float("inf"))
        begun = alarm if before is None or not before.on else replace(alarm, since=before.alarm.since)
        cooled = moment.at - sent_at >= 60 * limits.cooldown_minutes
        if before is None or (cooled and sent_at < begun.since):
            sent[code] = moment.at
            news.append(News("begins", begun))
        still.append(OpenAlarm(begun, moment.at, came_back=not cooled if before is None else before.came_back))
    # Where nothing is read, nothing shows that a condition is gone.
    unread = moment.is_blind or not any(file.size for file in moment.files)
    for code, one in opened.items():
        absent = moment.at - one.held_at
        if code in present:
            continue
        if unread or absent < 60 * limits.clear_minutes:
            still.append(one)
        elif one.came_back and absent < 60 * limits.cooldown_minutes:
            still.append(replace(one, on=False))
        else:
            news.append(News("ends", one.alarm))
    return RunState(progress, tuple(still), sent, moment.at), tuple(news)


def _alarms(name: str, progress: LastStep, moment: Moment, limits: Limits, between: float) -> Iterator[Alarm]:
    """The alarms whose condition holds now, under the name that the user knows the run by."""
    if moment.runs and len(moment.runs[-1].steps):
        found = find_alarms(Watched(moment.runs[-1], moment, progress, limits, between))
        return (replace(alarm, run=name) for alarm in found)
    waited = moment.at - progress.begun_at if moment.files else 0.0
    return alarms_before_steps(name, moment, waited, limits)


def _progress(state: RunState, moment: Moment) -> LastStep:
    """What was seen of the run, with this moment."""
    run = moment.runs[-1] if moment.runs else None
    mark, before = NO_LINE if run is None else mark_of(run), state.progress
    bar = "" if run is None or run.ending is None else run.ending.last_bar
    grown = min(moment.at, max((file.grown_at for file in moment.files), default=moment.at))
    writes = writes_of({} if before is None else before.writes, moment, state.looked_at)
    if before is None:
        seen_at = grown if run is None else last_written_at(moment)
        return LastStep(mark, seen_at, moment.at, writes=writes, bar=bar)
    looked_at = before.seen_at if state.looked_at is None else state.looked_at
    seen_at = max(looked_at, grown)
    if mark == before.mark:
        moved = bar not in ("", before.bar)
        return replace(before, seen_at=seen_at if moved else before.seen_at, writes=writes, bar=bar or before.bar)
    # It was silent at least until the moment before this one.
    silent = max(0.0, looked_at - before.seen_at)
    quiet = before.quiet if before.mark == NO_LINE else (*before.quiet, silent)[-KEPT:]
    return LastStep(mark, seen_at, before.begun_at, quiet, writes, bar)


@dataclass(frozen=True)
class KeptStates:
    """What a state file keeps: the states of all runs by their names, and the key of the pseudonyms in them."""

    states: Mapping[str, RunState] = field(default_factory=dict)
    key: bytes | None = None


def state_document(memory: KeptStates) -> dict[str, Any]:
    """What is remembered, as JSON."""
    runs = {name: asdict(state) for name, state in memory.states.items()}
    return {"version": VERSION, "key": None if memory.key is None else memory.key.hex(), "runs": runs}


def memory_of_document(document: Any) -> KeptStates:
    """What ``state_document`` was made of. Raises ValueError for anything else."""
    try:
        if document["version"] != VERSION:
            raise ValueError(document["version"])
        key = document.get("key")
        states = {str(name): _state(state) for name, state in document["runs"].items()}
        return KeptStates(states, None if key is None else bytes.fromhex(key))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(str(error)) from error


def _state(document: Mapping[str, Any]) -> RunState:
    progress = document["progress"]
    return RunState(
        None if progress is None else _last_step(progress),
        tuple(_open_alarm(one) for one in document["open"]),
        dict(document["sent"]),
        document["looked_at"],
    )


def _open_alarm(document: Mapping[str, Any]) -> OpenAlarm:
    # Files of earlier versions do not have all of it.
    more = {name: document[name] for name in ("on", "came_back") if name in document}
    return OpenAlarm(_alarm(document["alarm"]), document["held_at"], **more)


def _last_step(document: Mapping[str, Any]) -> LastStep:
    writes = {name: Writes(one["grown_at"], tuple(one["quiet"])) for name, one in document.get("writes", {}).items()}
    return LastStep(**{**document, "quiet": tuple(document["quiet"]), "writes": writes})


def _alarm(document: Mapping[str, Any]) -> Alarm:
    origin = document["origin"]
    return Alarm(**{**document, "origin": None if origin is None else Origin(**origin)})
