"""Where the runs of two sides are, and how far a further run of either may be from it.

Comes in: the values of each side. Goes out: a SideLevel for each, on logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from analysis.stats.incomplete_beta import t_quantile
from analysis.stats.prediction import expect
from logparse.errors import UsageError
from logparse.language import tr
from logparse.light_dataclass import dataclass

# Chance of a further run to be out of reach of its side, above it or below.
BEYOND = 0.005
# So far from a side, of the way to the other, a run is as this side, however small the noise seems to be. A candidate
# that is excluded so explains no more than this share of the change.
PART_OF_THE_WAY = 1 / 10


@dataclass(frozen=True)
class SideLevel:
    """Where the runs of a side are: ``log`` of their metric, and how far 99 of 100 further runs may be, at most.

    A run within ``near`` of it is as the side, if it can be none of the other: within reach, or a tenth of the way to
    the other side, since few runs may seem to be closer to each other than they are. All are logarithms.
    """

    log: float
    reach: float
    near: float
    runs: int

    @property
    def value(self) -> float:
        """The metric itself."""
        return math.exp(self.log)

    def holds(self, log: float) -> bool:
        """Whether a run may be one of them."""
        return abs(log - self.log) <= self.reach


def levels(good: Sequence[float], bad: Sequence[float]) -> tuple[SideLevel, SideLevel]:
    """The level of each side. The spread of runs of one kind is pooled over both sides, each about its own level.

    Raises UsageError if a side has no run, or neither has two.
    """
    sides = [_expected([math.log(value) for value in values]) for values in (good, bad)]
    free = sum(runs - 1 for _, _, runs in sides)
    if min(len(good), len(bad)) < 1 or free < 1:
        raise UsageError(
            tr("{good} + {bad} runs are too few to estimate the noise between runs", good=len(good), bad=len(bad)),
            remedy=tr("give more runs of a side; three per side are enough"),
        )
    spread = math.sqrt(sum((runs - 1) * spread**2 for _, spread, runs in sides) / free)
    reach = t_quantile(free, 1 - BEYOND) * spread
    reaches = [reach * math.sqrt(1 + 1 / runs) for _, _, runs in sides]
    way = abs(sides[0][0] - sides[1][0]) * PART_OF_THE_WAY
    first, second = (SideLevel(log, r, max(r, way), runs) for r, (log, _, runs) in zip(reaches, sides, strict=True))
    return first, second


def _expected(logs: Sequence[float]) -> tuple[float, float, int]:
    """Level, spread and number of the runs of one side; a single run has no spread."""
    if len(logs) < 2:
        return (logs[0] if logs else 0.0), 0.0, len(logs)
    expectation = expect(logs)
    return expectation.level, expectation.spread, expectation.runs


def are_apart(good: SideLevel, bad: SideLevel) -> bool:
    """Whether a run at one level cannot be of the other."""
    return not (good.holds(bad.log) or bad.holds(good.log))
