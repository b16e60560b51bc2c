"""All runs that are watched: follows their files, keeps the state of each, and says what is new.

Comes in: a way to list the runs, since files may appear later, and one to follow each. Goes out: at each look the runs
and the news.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from analysis.watch.alarm_limits import Limits
from analysis.watch.alarm_state import News, RunState, advance
from analysis.watch.moment import Moment
from analysis.watch.snapshot import WatchedRun, snapshot_of
from logparse.findings import Note, info
from logparse.light_dataclass import replace

# Seconds between two searches for new runs.
SEARCH_EVERY = 30.0
# Seconds after the end of a run in which its other files grow too: all ranks print why they end.
AFTER_END = 60.0
# Notes on the files of a run that are shown.
NOTES = 3


class Following(Protocol):
    """What follows the files of one run."""

    def refresh(self, at: float) -> Moment:
        """What is known at that time."""

    def seconds_to_wait(self, every: float) -> float:
        """Seconds until the next refresh."""


Listing = Callable[[], Sequence[tuple[str, Sequence[str]]]]


class Watcher:
    """Runs that are watched."""

    def __init__(
        self,
        listing: Listing,
        follow: Callable[[str, Sequence[str]], Following],
        limits: Limits,
        states: Mapping[str, RunState] | None = None,
    ) -> None:
        self._listing, self._follow, self._limits = listing, follow, limits
        self._followed: dict[str, tuple[Sequence[str], Following]] = {}
        self._notes: dict[str, tuple[Note, ...]] = {}
        self._gone_on: set[str] = set()
        self._searched_at = -SEARCH_EVERY
        self.states = dict(states or {})

    def look(self, at: float) -> tuple[list[WatchedRun], list[News]]:
        """The runs as they are ``at`` this time, and what is new since the last look."""
        if at - self._searched_at >= SEARCH_EVERY:
            self._search(at)
        runs: list[WatchedRun] = []
        news: list[News] = []
        moments = (followed.refresh(at) for _, followed in self._followed.values())
        for moment in (one for of_files in moments for one in of_files.of_each_run()):
            name = moment.name
            moment = self._with_note_on_next_run(moment)
            self._notes[name] = (*self._notes.get(name, ()), *moment.notes)[-NOTES:]
            state, new = advance(name, self.states.get(name, RunState()), moment, self._limits)
            self.states[name] = state
            shown = snapshot_of(moment, state, self._limits)
            runs.append(WatchedRun(name, moment, shown, state.alarms, self._notes[name]))
            news += new
        return runs, news

    def _with_note_on_next_run(self, moment: Moment) -> Moment:
        """``moment`` with a note, once, on files that go on after the end of the run: those of a next one, perhaps."""
        names, is_known = files_after_end(moment), moment.name in self._gone_on
        self._gone_on = self._gone_on | {moment.name} if names else self._gone_on - {moment.name}
        if not names or is_known:
            return moment
        return replace(moment, notes=(*moment.notes, info("files_of_next_run", names=names)))

    def seconds_to_wait(self, every: float) -> float:
        """Seconds until the next look: ``every``, or more where the runs together would take too much of a core."""
        return max(every, sum(followed.seconds_to_wait(0.0) for _, followed in self._followed.values()))

    def _search(self, at: float) -> None:
        """Follow the runs that were not there before, and those that have other files now, such as of more ranks."""
        self._searched_at = at
        for name, logs in self._listing():
            if name not in self._followed or self._followed[name][0] != logs:
                self._followed[name] = (logs, self._follow(name, logs))


def files_after_end(moment: Moment) -> list[str]:
    """The files that grow long after the one that shows how the run ended."""
    ending = moment.runs[-1].ending if moment.runs else None
    source = ending.source if ending is not None and (ending.failed or ending.state == "completed") else None
    at = next((file.grown_at for file in moment.files if file.name == source), None)
    return [] if at is None else sorted(file.name for file in moment.files if file.grown_at > at + AFTER_END)


def is_over(run: WatchedRun) -> bool:
    """Whether the run ended, or its input cannot grow any more, or no later line can make it acceptable."""
    return run.moment.ended or run.status in ("failed", "completed", "refused")


def is_unknown(run: WatchedRun) -> bool:
    """Whether neither a step nor a failure is known of the run."""
    return run.snapshot is None and not run.alarms
