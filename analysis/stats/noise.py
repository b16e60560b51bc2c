"""How much runs of one release differ, and how many runs show a change in that noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from logparse.light_dataclass import dataclass

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
