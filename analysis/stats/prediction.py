"""One run against those before it: what a night should bring, and whether one that is off is confirmed by the next.

Comes in: positive numbers, one per run in the order of time. Goes out: a Night for each. All work is on logarithms.

The runs before give a level and a spread that a few runs that are off do not move (winsorized at three deviations of
the median, Tukey 1962), and Student's t the distance that a further run of the same kind stays within. A run beyond it
is off: one night, which proves nothing. It is confirmed where as many nights in a row are off to the same side as are
asked for, two more where two of the runs before were as far away, and their mean is farther away than chance takes it.
Runs that are off join the level only when a night within it shows that they were nights alone. A level that is
confirmed to be better is the new one; one that is worse never is, unless somebody accepts it.

No allowance is made for neighbours that are alike: their correlation cannot be told from thirty runs, and guessing it
costs a fifth of the findings. benchmarks/nights.py says what that means in false alarms.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# learning: too few runs before it. accepted: confirmed, and somebody said that it is known.
State = Literal["learning", "expected", "off", "confirmed", "accepted"]
# Chance of a run to be off to one side, and of the mean of those in a row to be where it is, in runs that are alike.
OFF, CONFIRMED = 0.007, 0.0002
# What as many of the runs before did is nothing new, whatever their spread: some noise has long tails. It takes as many
# nights more to be confirmed.
SEEN = 2
# Fewer tell no spread.
FEWEST = 5
# The newest runs of a level that tell what to expect, and the nights that confirm.
KEPT, CONFIRM = 30, 2
# A change that nobody looks for, however certain.
LEAST_CHANGE = 0.005
# Deviations of the median beyond which a run is taken for one at this distance; of a normal distribution half lie
# within 1 / 1.4826 deviations, and of few runs a little less (Croux, Rousseeuw 1992: n / (n - 0.8)).
WINSORIZED, TO_DEVIATIONS, FEW = 3.0, 1.4826, 0.8
# Logarithms closer than this are equal.
LEAST = 1e-9


@dataclass(frozen=True)
class Expectation:
    """What runs tell of the next: ``level`` and ``spread`` of the logarithms of so many ``runs``."""

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
    """A run as those before it have it. ``level``, ``low`` and ``high`` are where it was expected.

    ``change`` is that of the mean of the ``nights`` that are off in a row, or of the run itself, from the level, and
    ``own_change`` that of the run itself in any case. ``p`` is the chance of ``change``, to its own side, in runs that
    are alike. ``runs`` are those before that tell. Numbers that too few runs tell are None.
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

    ``worse`` is 1 where more is worse. A change below ``least`` is none. The newest ``kept`` runs of the level tell
    what to expect; where the first ``fixed`` runs are the baseline, these alone do. Runs of one of ``blocks``, such as
    a node, are expected to be as those of the same. ``accepted`` are places of runs whose change is known: from there
    on it is the level.
    """
    watcher = _Watcher(worse, least, confirm, kept, fixed)
    found = enumerate(zip(values, blocks or [None] * len(values), strict=True))
    return [watcher.see(math.log(value), block, place, place in accepted) for place, (value, block) in found]


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
        usual = expect(before)
        distance = log - usual.level
        is_off = abs(distance) > max(usual.reach(OFF), math.log1p(self.least))
        if self.away and not (is_off and distance * self.away[0][2] > 0):
            self._end()
        if not is_off:
            self._keep(log, block)
            return self._night(usual, "expected", [distance])
        self.away.append((log, block, distance))
        self.seen += not _is_news(distance, usual, before)
        if known and self.known_from is None:
            self.known_from = len(self.away) - 1
        return self._off(usual)

    def _off(self, usual: Expectation) -> Night:
        """The newest of the runs that are away, and what is made of them."""
        distances = [distance for _, _, distance in self.away]
        night = self._night(usual, "off", distances)
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

    def _night(self, usual: Expectation, state: State, distances: Sequence[float]) -> Night:
        mean, reach = _mean(distances), usual.reach(OFF)
        level, low, high = (math.exp(usual.level + by) for by in (0.0, -reach, reach))
        p = usual.p(abs(mean), len(distances))
        own = math.expm1(distances[-1])
        return Night(state, usual.runs, level, low, high, math.expm1(mean), p, len(self.away), own)

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
        """Those that were off are the level from now on, of every block; the runs before tell its spread.

        Of those that are accepted, the ones from the accepted run on.
        """
        away = self.away[self.known_from or 0 :]
        by = _mean([distance for _, _, distance in away])
        for block, logs in self.levels.items():
            new = [log for log, theirs, _ in away if theirs == block]
            logs[:] = [*(log + by for log in logs[len(new) :]), *new]
        self._forget()


def _is_news(distance: float, usual: Expectation, before: Sequence[float]) -> bool:
    """Whether fewer than SEEN of the runs before were as far away to the same side."""
    return sum((log - usual.level) * distance >= distance**2 for log in before) < SEEN


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
