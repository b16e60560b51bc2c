"""How much runs of one release differ, and how many runs show a change in that noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from logparse.light_dataclass import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# One-sided level of the tests, and the fewest runs a side of which one order is that share of all.
LEVEL, FEWEST_RUNS = 0.05, 3
# Quantiles of the normal distribution: one-sided 5 %, and 80 % power. A rank test needs 5 % more runs than a t test
# (asymptotic relative efficiency 3/pi, Hodges and Lehmann 1956).
Z_LEVEL, Z_POWER, EFFICIENCY = 1.6449, 0.8416, 3 / math.pi


@dataclass(frozen=True)
class Noise:
    """How much runs of one release differ: ``spread`` is the standard deviation of the logarithm, pooled."""

    spread: float
    runs: int
    releases: int

    def visible(self, n: int, m: int) -> float:
        """The change that ``n`` runs against ``m`` show in 80 of 100 cases (normal approximation)."""
        return math.expm1((Z_LEVEL + Z_POWER) * self.spread * math.sqrt((1 / n + 1 / m) / EFFICIENCY))

    def needed(self, change: float) -> int:
        """Runs a side that show ``change`` in 80 of 100 cases."""
        ratio = (Z_LEVEL + Z_POWER) * self.spread / math.log1p(change)
        return max(FEWEST_RUNS, math.ceil(2 * ratio**2 / EFFICIENCY))


def noise_floor(groups: Iterable[Sequence[float]]) -> Noise | None:
    """The noise within ``groups``, each the values of runs that should be equal; None if no group has two."""
    import numpy as np

    logs = [np.log(np.asarray(group, np.float64)) for group in groups if len(group) > 1]
    freedom = sum(len(group) - 1 for group in logs)
    if not freedom:
        return None
    squares = sum(float(((group - group.mean()) ** 2).sum()) for group in logs)
    return Noise(math.sqrt(squares / freedom), sum(map(len, logs)), len(logs))


# Of two runs neither is the outlier.
FEWEST = 3
# An outlier is so many standard deviations of all other runs from the median of the others of its side, and at least
# so far: a few runs alone may have a small spread by chance, and a tenth of pairs of equal sides had an outlier then.
OUTLIER, LEAST_OFF = 5.0, 0.05


@dataclass(frozen=True)
class Outlier:
    """A run that is off: the place among those of its side, and the distance from the median of the others, a ratio."""

    side: Literal["baseline", "candidate"]
    place: int
    off: float


def find_outliers(baseline: Sequence[float], candidate: Sequence[float], threshold: float) -> tuple[Outlier, ...]:
    """The run of each side that is off by more than ``threshold``, and by more than the others' spread explains."""
    import numpy as np

    sides = [np.log(np.asarray(side, np.float64)) for side in (baseline, candidate)]
    places = [int(np.abs(side - np.median(side)).argmax()) for side in sides]
    rests = [np.delete(s, at) if len(s) >= FEWEST else s for s, at in zip(sides, places, strict=True)]
    most = max(math.log1p(max(threshold, LEAST_OFF)), OUTLIER * _spread(rests))
    named = zip(("baseline", "candidate"), sides, places, rests, strict=True)
    off = ((name, at, float(s[at] - np.median(rest))) for name, s, at, rest in named if len(s) >= FEWEST)
    return tuple(Outlier(name, at, math.expm1(by)) for name, at, by in off if abs(by) > most)  # type: ignore[arg-type]


def without(values: Sequence[float], outliers: Sequence[Outlier], side: str) -> list[float]:
    """``values`` of ``side`` without its outliers."""
    gone = {outlier.place for outlier in outliers if outlier.side == side}
    return [value for place, value in enumerate(values) if place not in gone]


def _spread(sides: Sequence[NDArray[np.float64]]) -> float:
    """Standard deviation within the sides, pooled; 0 where none has two runs."""
    freedom = sum(len(side) - 1 for side in sides)
    squares = sum(float(((side - side.mean()) ** 2).sum()) for side in sides)
    return math.sqrt(squares / freedom) if freedom else 0.0
