"""One run against those before it: what a night should bring, and whether one that is off is confirmed by the next.

Comes in: positive numbers, one per run in the order of time. Goes out: a Night for each. All work is on logarithms.

The runs before give a level and a spread that a few runs that are off do not move (winsorized at three deviations of
the median, Tukey 1962), and Student's t the distance that a further run of the same kind stays within. A run beyond it
is off: one night, which proves nothing. It is confirmed where as many nights in a row are off to the same side as are
asked for, two more where two of the runs before were as far away, and their mean is farther away than chance takes it.
Runs that are off join the level only when a night within it shows that they were nights alone. A level that is
confirmed to be better is the new one; one that is worse never is, unless somebody accepts it.

The model ignores the correlation of neighbours: thirty runs are too few to estimate it, and a guess costs a fifth of
the findings. benchmarks/nights.py shows the effect on false alarms.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# learning: too few runs before it. accepted: confirmed, and a user accepted it as known.
State = Literal["learning", "expected", "off", "confirmed", "accepted"]
# Chance of a run to be off to one side, and of the mean of those in a row to be as far, in runs of one level.
OFF, CONFIRMED = 0.007, 0.0002
# A distance that so many of the runs before had is not new, whatever their spread: some noise has long tails. It takes
# so many more nights to be confirmed.
SEEN = 2
# Fewer runs show no spread.
FEWEST = 5
# The newest runs of a level that give the expectation, and the nights that confirm.
KEPT, CONFIRM = 30, 2
# A smaller change is not reported, however certain.
LEAST_CHANGE = 0.005
# Deviations of the median beyond which a run is taken for one at this distance; of a normal distribution half lie
# within 1 / 1.4826 deviations, and of few runs a little less (Croux, Rousseeuw 1992: n / (n - 0.8)).
WINSORIZED, TO_DEVIATIONS, FEW = 3.0, 1.4826, 0.8
# Logarithms closer than this are equal.
LEAST = 1e-9


@dataclass(frozen=True)
class Expectation:
    """The expectation for the next run: ``level`` and ``spread`` of the logarithms of so many ``runs``."""

    level: float
    spread: float
    runs: int

    def reach(self, p: float, nights: int = 1) -> float:
        """The distance from the level that the mean of so many nights exceeds to one side with the chance ``p``."""
        from scipy.special import stdtrit

        return float(stdtrit(self.runs - 1, 1 - p)) * self._error(nights)

    def p(self, distance: float, nights: int = 1) -> float:
        """The chance of their mean to be so far above the level."""
        from scipy.special import stdtr

        return float(stdtr(self.runs - 1, -distance / self._error(nights)))

    def _error(self, nights: int) -> float:
        return max(self.spread, LEAST) * math.sqrt(1 / nights + 1 / self.runs)


def expect(logs: Sequence[float]) -> Expectation:
    """The expectation of at least two logarithms."""
    import numpy as np

    values: NDArray[np.float64] = np.asarray(logs, np.float64)
    runs, middle = len(values), float(np.median(values))
    deviation = float(np.median(np.abs(values - middle))) * TO_DEVIATIONS * runs / (runs - FEW)
    if deviation > 0:
        values = np.clip(values, middle - WINSORIZED * deviation, middle + WINSORIZED * deviation)
    return Expectation(float(values.mean()), float(values.std(ddof=1)), runs)


@dataclass(frozen=True)
class Night:
    """A run against the runs before it. ``level``, ``low`` and ``high`` are its expectation.

    ``change`` is the relative distance from the level: of the mean of the ``nights`` that are off in a row, or of the
    run itself. ``own_change`` is always that of the run itself. ``p`` is the chance of ``change``, to its own side, in
    runs of one level. ``runs`` are the number of runs in the expectation. Numbers are None if these are too few.
    """

    state: State
    runs: int
    level: float | None = None
    low: float | None = None
    high: float | None = None
    change: float | None = None
    p: float | None = None
    nights: int = 0
    own_change: float | None = None


def watch(
    values: Sequence[float],
    worse: Literal[1, -1],
    least: float = LEAST_CHANGE,
    confirm: int = CONFIRM,
    kept: int = KEPT,
    fixed: int = 0,
    blocks: Sequence[Hashable] | None = None,
    accepted: Collection[int] = (),
) -> list[Night]:
    """A Night for each of ``values``, positive numbers in the order of time.

    ``worse`` is 1 where more is worse. A change below ``least`` is none. The newest ``kept`` runs of the level give the
    expectation; if ``fixed`` is set, only the first ``fixed`` runs, the baseline, do. Runs of one of ``blocks``, such
    as a node, are compared with those of the same block. ``accepted`` are places of runs whose change is accepted: from
    there on it is the level.
    """
    watcher = _Watcher(worse, least, confirm, kept, fixed)
    placed = enumerate(zip(values, blocks or [None] * len(values), strict=True))
    return [watcher.see(math.log(value), block, place, place in accepted) for place, (value, block) in placed]


@dataclass
class _Watcher:
    """Sees one run after the other. ``levels`` are logarithms by block; ``away`` those off in a row, and how far.

    ``confirmed`` says that these are no nights alone, ``seen`` how many are no news, ``known_from`` which is accepted.
    """

    worse: int
    least: float
    confirm: int
    kept: int
    fixed: int
    levels: dict[Hashable, list[float]] = field(default_factory=dict)
    away: list[tuple[float, Hashable, float]] = field(default_factory=list)
    confirmed: bool = False
    seen: int = 0
    known_from: int | None = None

    def see(self, log: float, block: Hashable, place: int, known: bool) -> Night:
        level = self.levels.setdefault(block, [])
        if len(level) < FEWEST or place < self.fixed:
            level.append(log)
            return Night("learning", len(level) - 1)
        before = level if self.fixed else level[-self.kept :]
        expectation = expect(before)
        distance = log - expectation.level
        is_off = abs(distance) > max(expectation.reach(OFF), math.log1p(self.least))
        if self.away and not (is_off and distance * self.away[0][2] > 0):
            self._end()
        if not is_off:
            self._keep(log, block)
            return self._night(expectation, "expected", [distance])
        self.away.append((log, block, distance))
        self.seen += not _is_news(distance, expectation, before)
        if known and self.known_from is None:
            self.known_from = len(self.away) - 1
        return self._off(expectation)

    def _off(self, expectation: Expectation) -> Night:
        """The newest of the runs that are away, and what is made of them."""
        distances = [distance for _, _, distance in self.away]
        night = self._night(expectation, "off", distances)
        better = _mean(distances) * self.worse < 0
        known = self.known_from is not None and not better
        nights = self.confirm + (SEEN if self.seen else 0)
        enough = len(distances) >= nights and abs(_mean(distances)) > math.log1p(self.least)
        if not enough or (night.p or 0.0) > CONFIRMED:
            return replace(night, state="accepted") if known else night
        self.confirmed = True
        if known or (better and not self.fixed):
            self._restart()
        return replace(night, state="accepted" if known else "confirmed")

    def _night(self, expectation: Expectation, state: State, distances: Sequence[float]) -> Night:
        mean, reach = _mean(distances), expectation.reach(OFF)
        level, low, high = (math.exp(expectation.level + by) for by in (0.0, -reach, reach))
        p = expectation.p(abs(mean), len(distances))
        own = math.expm1(distances[-1])
        return Night(state, expectation.runs, level, low, high, math.expm1(mean), p, len(self.away), own)

    def _keep(self, log: float, block: Hashable) -> None:
        if not self.fixed:
            self.levels[block].append(log)

    def _end(self) -> None:
        """Those that were off are runs of the level as any other if they were nights alone, and else of none."""
        if not self.confirmed:
            for log, block, _ in self.away:
                self._keep(log, block)
        self._forget()

    def _forget(self) -> None:
        self.away.clear()
        self.confirmed, self.seen, self.known_from = False, 0, None

    def _restart(self) -> None:
        """Make the runs that were off the level, of every block; the runs before it still give the spread.

        If the change is accepted, only the runs from the accepted one on.
        """
        away = self.away[self.known_from or 0 :]
        by = _mean([distance for _, _, distance in away])
        for block, logs in self.levels.items():
            new = [log for log, theirs, _ in away if theirs == block]
            logs[:] = [*(log + by for log in logs[len(new) :]), *new]
        self._forget()


def _is_news(distance: float, expectation: Expectation, before: Sequence[float]) -> bool:
    """Whether fewer than SEEN of the runs before were as far away to the same side."""
    return sum((log - expectation.level) * distance >= distance**2 for log in before) < SEEN


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
