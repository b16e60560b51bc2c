"""The steps of a metric: each change of its level is one of its own, also where an earlier one is still open.

Comes in: how the runs are watched with some of them accepted. Goes out: the nights, and the steps in the order of time.
The watch of all runs finds each change against the level before it. While one is open, the runs are watched again as if
it were accepted: what is confirmed then is a further step, with a size of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby

from analysis.stats.prediction import Night
from logparse.light_dataclass import dataclass, replace

# An acceptance of a run so near to the beginning of a step is of that step: its place may move as nights are added.
AROUND = 2
# By the places of runs from which on the level is accepted, a night for each run.
Watched = Callable[[Collection[int]], list[Night]]


@dataclass(frozen=True)
class Step:
    """A change of the level of a metric, relative, with its ``p``.

    ``begins``, ``found`` and ``ended`` are places of runs: the first of the change, that which confirmed it, and that
    which showed that it ended, None where it lasts. ``until`` is the place of the next step or of the end, whichever
    comes first. ``is_drift`` says that it came slowly, ``accepted`` that one of its runs is accepted.
    """

    begins: int
    found: int
    ended: int | None
    until: int
    change: float | None
    p: float | None
    is_worse: bool
    is_drift: bool = False
    accepted: bool = False

    @property
    def is_open(self) -> bool:
        """Whether it is worse, lasts, and nobody accepted it."""
        return self.is_worse and self.ended is None and not self.accepted


@dataclass(frozen=True)
class StepFinder:
    """Finds the steps of runs that are ``watched``; ``worse`` is 1 where more is worse, else -1.

    ``is_accepted`` says whether the run at a place is accepted. Of steps that ended before the place ``horizon`` no
    further steps are looked for.
    """

    watched: Watched
    worse: int
    is_accepted: Callable[[int], bool]
    horizon: int = 0

    def find(self) -> tuple[list[Night], list[Step]]:
        """A night for each run, by the level before it or the newest that is accepted, and the steps."""
        nights, steps = self._follow((), 0, None)
        return nights, sorted(steps, key=lambda step: step.begins)

    def _follow(self, levels: tuple[int, ...], first: int, last: int | None) -> tuple[list[Night], list[Step]]:
        """The same where the runs at ``levels`` are accepted, with the steps found from ``first`` on."""
        nights = self.watched(levels)
        span = range(first, len(nights) if last is None else last)
        if alone := self._accepted_alone(nights, span):
            levels = (*levels, *alone)
            nights = self.watched(levels)
        shown, steps = list(nights), list[Step]()
        for change in _changes(nights, self.worse, span):
            if not is_worse(nights[change.start], self.worse):
                steps.append(_step(nights, change, change.stop, self.worse))
                continue
            begins = _begin(nights, change.start)
            accepted = [at for at in range(max(0, begins - AROUND), change.stop) if self.is_accepted(at)]
            inside, further = nights, list[Step]()
            if accepted or change.stop > self.horizon:
                inside, further = self._follow(
                    (*levels, *range(begins, change.start + 1)), change.start + 1, change.stop
                )
            until = min((step.begins for step in further if step.is_worse), default=change.stop)
            mine = [at for at in accepted if until == change.stop or at < max(until - AROUND, begins + 1)]
            if begins >= first:
                steps.append(replace(_step(nights, change, until, self.worse), accepted=bool(mine)))
            if mine or begins < first:
                shown[begins : change.stop] = inside[begins : change.stop]
            steps += further
        return shown, steps

    def _accepted_alone(self, nights: Sequence[Night], span: range) -> list[int]:
        """The runs that are accepted and part of no change, such as one that is off on its night alone."""
        changes = _changes(nights, self.worse, span)
        worse = [change for change in changes if is_worse(nights[change.start], self.worse)]
        covered = {at for one in worse for at in range(_begin(nights, one.start) - AROUND, one.stop)}
        return [at for at in span if at not in covered and self.is_accepted(at)]


def is_worse(night: Night, worse: int) -> bool:
    """Whether a night is worse than expected, or came to be so slowly."""
    return night.state == "drifted" or worse * (night.change or 0.0) > 0


def _changes(nights: Sequence[Night], worse: int, span: range) -> Iterator[range]:
    """The places in ``span`` of the nights in a row on which the same change is confirmed."""

    def sign(at: int) -> int:
        confirmed = nights[at].state in ("confirmed", "drifted")
        return (1 if is_worse(nights[at], worse) else -1) if confirmed else 0

    for value, places in groupby(span, sign):
        if value:
            found = list(places)
            yield range(found[0], found[-1] + 1)


def _begin(nights: Sequence[Night], found: int) -> int:
    """The place of the first run of the change that the night at ``found`` confirms."""
    night = nights[found]
    return found - night.nights + 1 if night.state == "confirmed" and night.nights else found


def _step(nights: Sequence[Night], change: range, until: int, worse: int) -> Step:
    found, last = nights[change.start], nights[change.stop - 1]
    ended = change.stop if change.stop < len(nights) and is_worse(found, worse) else None
    begins, is_drift = _begin(nights, change.start), found.state == "drifted"
    return Step(
        begins, change.start, ended, until, _size(nights, change, until), last.p, is_worse(found, worse), is_drift
    )


def _size(nights: Sequence[Night], change: range, until: int) -> float | None:
    """How large a change is: of a drift its total, of a step that another one follows that of the runs between."""
    drifts = [nights[at].drift for at in change if nights[at].drift is not None]
    if drifts:
        return drifts[-1]
    if until < change.stop:
        own = [nights[at].own_change for at in range(_begin(nights, change.start), until)]
        logs = [math.log1p(one) for one in own if one is not None]
        return math.expm1(math.fsum(logs) / len(logs)) if logs else None
    return nights[change.stop - 1].change
