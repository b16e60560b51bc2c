"""Where the level of a series of runs changed, in noise that may be correlated, and which single runs are off.

Comes in: positive numbers in the order of the runs. Goes out: the places before which the level changed, each with its
p, and the places of runs that are off. One run alone is never a change: only the next run shows whether the newest one
begins a level.

The noise is autoregressive of order 1. As in Chakar, Lebarbier, Levy-Leduc, Robin (Bernoulli 23(2), 2017) its
correlation is estimated from differences of runs, which levels hardly affect. Candidates are found in the decorrelated
series, here by optimal partitioning (Jackson et al., IEEE Signal Processing Letters 12(2), 2005). Then, as in Hunter
(Fleming et al., ICPE 2023, doi 10.1145/3578244.3583719), the weakest is dropped until every one that is left is
significant, by generalized least squares over the whole series.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING

from analysis.stats.incomplete_beta import t_tail
from logparse.light_dataclass import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# Logarithms closer than this are equal.
LEAST = 1e-12
# Hunter's significance of a change.
MOST_P = 0.001
# A change must gain more than p asks, because its place is chosen as well as its size and the correlation is estimated:
# t squared, by simulation of 60 to 300 runs. It is about the modified BIC of 100 (Zhang, Siegmund, Biometrics 2007).
GAIN = 14.0
# Candidates may gain less: t squared of so many times log n.
CANDIDATE_GAIN = 0.7
# Runs of a level at an end of the series, and between two changes: fewer there are runs that are off.
FEWEST_RUNS, FEWEST_BETWEEN = 2, 3
# A run is off that is more than so many standard deviations from its neighbours, and from the medians of so many
# neighbours on both sides.
OFF, NEIGHBOURS = 5.0, 3
# In fewer runs noise and runs that are off look the same.
FEWEST_TO_CLEAR = 5
# By how much the BIC of levels must be better than that of a straight line: slow drift is no change.
BETTER_THAN_DRIFT = 5.0
# The largest correlation of neighbours that is used; it cannot be estimated from fewer runs.
MOST_CORRELATION, FEWEST_TO_CORRELATE = 0.9, 8
# Places around a candidate that are tried.
AROUND = 3
# Of a normal distribution 75 % lie within this many standard deviations.
WITHIN_SIGMAS = 1.1503


def find_changes_or_drift(values: Sequence[float]) -> tuple[list[tuple[int, float]], float | None]:
    """Places before which the level of positive numbers changed, and the p of each.

    Then the relative change along a straight line, where that fits better.
    """
    series, _ = clear(values)
    places = _candidates(series)
    moving = range(len(places))
    while places:
        fit = _refined(series, places, moving)
        weakest = _weakest(fit)
        if weakest is None:
            if _is_drift(fit):
                return [], _along_line(series)
            return list(zip(fit.places, fit.tests, strict=True)), None
        places = [place for at, place in enumerate(fit.places) if at != weakest]
        # Only its neighbours can have moved because of it.
        moving = range(max(weakest - 1, 0), min(weakest + 1, len(places)))
    return [], None


def find_off(values: Sequence[float]) -> list[int]:
    """Places of runs that are off: one or two alone between others, or the last one."""
    return clear(values)[1]


def clear(values: Sequence[float]) -> tuple[Floats, list[int]]:
    """Logarithms of the numbers, with runs that are off moved to the median of their neighbours, and their places."""
    import numpy as np

    series = np.log(np.asarray(values, np.float64))
    if len(series) < FEWEST_TO_CLEAR:
        return series, []
    far = OFF * max(_noise(series), LEAST)
    # Of three numbers Python finds the median in a tenth of the time of numpy.
    levels: list[float] = series.tolist()
    off: set[int] = set()
    for runs in (1, 2):
        # Two at the end agree that something began.
        for at in range(len(levels) - runs + (runs == 1)):
            some = range(at, at + runs)
            both = (levels[max(0, at - NEIGHBOURS) : at][::-1], levels[at + runs :][:NEIGHBOURS])
            sides = [side for side in both if side]
            medians = [median(side) for side in sides]
            away = [levels[place] - near for place in some for near in (*medians, *(side[0] for side in sides))]
            if off.isdisjoint(some) and (min(away) > far or max(away) < -far):
                off.update(some)
                levels[at : at + runs] = [sum(medians) / len(medians)] * runs
    return np.array(levels), sorted(off)


def _noise(series: Floats, lag: int = 1) -> float:
    """Standard deviation by differences at ``lag``: up to a quarter of them may be changes and runs that are off."""
    import numpy as np

    differences = np.abs(series[lag:] - series[:-lag]) if len(series) > lag else np.zeros(1)
    return float(np.quantile(differences, 0.75) / (WITHIN_SIGMAS * math.sqrt(2)))


def _correlation(series: Floats) -> float:
    """Correlation of neighbours: differences at a distance of 2 grow with it, and levels hardly touch either."""
    near, far = _noise(series), _noise(series, 2)
    if len(series) < FEWEST_TO_CORRELATE or near == 0:
        return 0.0
    return min(max((far / near) ** 2 - 1, 0.0), MOST_CORRELATION)


def _candidates(series: Floats) -> list[int]:
    """Places by optimal partitioning of the series, decorrelated and as it is; every step if there is no noise.

    Few runs give a poor estimate of the correlation: if it is too large, only the series as it is shows the levels.
    """
    import numpy as np

    runs, noise, correlation = len(series), _noise(series), _correlation(series)
    if runs <= 2 * FEWEST_RUNS:
        return []
    if noise == 0:
        return [int(at) + 1 for at in np.flatnonzero(np.abs(np.diff(series)) > LEAST)]
    places = {
        place for share in {correlation, 0.0} for place in _partition(series, share, noise / math.sqrt(1 - correlation))
    }
    return sorted(place for place in places if FEWEST_RUNS <= place <= runs - FEWEST_RUNS)


def _partition(series: Floats, correlation: float, noise: float) -> list[int]:
    """Places in the runs minus their expectation from the run before, in units of ``noise``."""
    added = series[1:] - correlation * series[:-1]
    unit = noise * math.sqrt(1 - correlation**2)
    return [at + 1 for at in partition((added - added.mean()) / unit, CANDIDATE_GAIN * math.log(len(series)))]


def partition(values: Floats, penalty: float) -> list[int]:
    """The places between levels of at least FEWEST_RUNS with the least sum of squares, plus ``penalty`` a place."""
    import numpy as np

    sums, squares = (np.append(0.0, np.cumsum(part)) for part in (values, values**2))
    # What is left over up to each end, and where the last level before it begins.
    least, begins = np.full(len(values) + 1, np.inf), np.zeros(len(values) + 1, np.int64)
    least[0] = -penalty
    for end in range(FEWEST_RUNS, len(values) + 1):
        starts = np.arange(end - FEWEST_RUNS + 1)
        left = squares[end] - squares[starts] - (sums[end] - sums[starts]) ** 2 / (end - starts)
        total = least[starts] + left + penalty
        begins[end] = total.argmin()
        least[end] = total[begins[end]]
    places, end = [], int(begins[-1])
    while end > 0:
        places.append(end)
        end = int(begins[end])
    return places[::-1]


@dataclass(frozen=True)
class _Fit:
    """Levels between ``places``, fitted to the series in noise with this ``correlation`` of neighbours."""

    series: Floats
    places: tuple[int, ...]
    correlation: float

    @cached_property
    def _design(self) -> Floats:
        import numpy as np

        after = np.arange(len(self.series))[:, None] >= np.array([0, *self.places])
        return after.astype(np.float64)

    @cached_property
    def left(self) -> tuple[Floats, Floats]:
        """What the fit leaves over of each run, decorrelated and as it is."""
        return _fitted(self.series, self._design, self.correlation)

    @cached_property
    def cost(self) -> float:
        """Sum of squares of what is left over, decorrelated."""
        return float((self.left[0] ** 2).sum())

    @cached_property
    def freedom(self) -> int:
        return max(len(self.series) - len(self.places) - 1, 1)

    @cached_property
    def sizes(self) -> Floats:
        """t of each change: its size in units of its error."""
        import numpy as np

        design = _decorrelated(self._design, self.correlation)
        spread = np.diag(np.linalg.inv(design.T @ design)) * max(self.cost / self.freedom, LEAST**2)
        levels = np.linalg.lstsq(design, _decorrelated(self.series, self.correlation), rcond=None)[0]
        sizes: Floats = (np.abs(levels) / np.sqrt(spread))[1:]
        return sizes

    @cached_property
    def tests(self) -> list[float]:
        """p of each change."""
        return [2 * t_tail(self.freedom, size) for size in self.sizes.tolist()]

    def fitted_correlation(self) -> float:
        """The correlation of neighbours in the residuals, corrected for the fit of the levels."""
        rest = self.left[1]
        runs, levels, square = len(rest), len(self.places) + 1, float((rest[:-1] ** 2).sum())
        if runs < FEWEST_TO_CORRELATE or square <= LEAST**2:
            return 0.0
        raw = float((rest[1:] * rest[:-1]).sum()) / square
        # Each fitted mean takes about (1 + correlation) / runs (Marriott, Pope, Biometrika 1954).
        return min(max(raw + (levels + (2 + levels) * max(raw, 0.0)) / runs, 0.0), MOST_CORRELATION)


def _decorrelated(values: Floats, correlation: float) -> Floats:
    """Each row minus its expectation from the row before, in units of one noise."""
    import numpy as np

    return np.concatenate([values[:1] * math.sqrt(1 - correlation**2), values[1:] - correlation * values[:-1]])


def _fitted(series: Floats, design: Floats, correlation: float) -> tuple[Floats, Floats]:
    """What generalized least squares leave over, decorrelated and as it is."""
    import numpy as np

    known, seen = _decorrelated(design, correlation), _decorrelated(series, correlation)
    levels = np.linalg.lstsq(known, seen, rcond=None)[0]
    return seen - known @ levels, series - design @ levels


def _refined(series: Floats, places: Sequence[int], moving: range) -> _Fit:
    """The fit with each of the ``moving`` places where it costs least near by, in the noise that this leaves."""
    correlation, moved = _correlation(series), list(places)
    for at in moving:
        before = moved[at - 1] if at else 0
        after = moved[at + 1] if at + 1 < len(moved) else len(series)
        least = max(before + FEWEST_RUNS, moved[at] - AROUND)
        tried = [[*moved[:at], place, *moved[at + 1 :]] for place in range(least, moved[at] + AROUND + 1)]
        free = [some for some in tried if some[at] <= after - FEWEST_RUNS]
        moved = min(free, key=lambda some: _Fit(series, tuple(some), correlation).cost, default=moved)
    fit = _Fit(series, tuple(moved), correlation)
    return _Fit(series, fit.places, fit.fitted_correlation())


def _weakest(fit: _Fit) -> int | None:
    """The change to drop first; None if all are significant."""
    import numpy as np

    short = np.flatnonzero(np.diff(fit.places) < FEWEST_BETWEEN)
    doubtful = sorted({at for first in short for at in (int(first), int(first) + 1)}) or range(len(fit.places))
    weakest = max(doubtful, key=fit.tests.__getitem__)
    is_significant = fit.tests[weakest] < MOST_P and fit.sizes[weakest] ** 2 > GAIN
    return None if is_significant and not len(short) else weakest


def _along_line(series: Floats) -> float:
    """The relative change from the first run to the last along the straight line with the least squares."""
    import numpy as np

    return math.expm1(float(np.polyfit(np.linspace(0, 1, len(series)), series, 1)[0]))


def _is_drift(fit: _Fit) -> bool:
    """Whether a straight line fits the series nearly as well as levels do, by the BIC."""
    import numpy as np

    runs = len(fit.series)
    line = np.stack([np.ones(runs), np.linspace(-1, 1, runs)], axis=1)
    cost = float((_fitted(fit.series, line, fit.correlation)[0] ** 2).sum())

    def criterion(left: float, numbers: int) -> float:
        return runs * math.log(max(left, LEAST**2) / runs) + numbers * math.log(runs)

    return criterion(cost, 2) < criterion(fit.cost, 1 + 2 * len(fit.places)) + BETTER_THAN_DRIFT
