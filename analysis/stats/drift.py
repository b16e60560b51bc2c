"""The drift of a series: the slope of a straight line through it, with its interval.

Comes in: places and values. Goes out: a Drift. The line is fitted to medians of blocks of neighbours, so that single
outliers do not move it and the correlation of neighbours is inside the blocks.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from analysis.stats.incomplete_beta import t_quantile
from logparse.light_dataclass import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# Fewer places show no drift. So many blocks at most give the line, of at least so many places.
FEWEST, MOST_BLOCKS, OF_BLOCK = 20, 40, 2
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Drift:
    """The change of the value for each unit of the place, and its interval of CONFIDENCE."""

    slope: float
    low: float
    high: float

    @property
    def is_significant(self) -> bool:
        """Whether the interval excludes no drift at all."""
        return self.low > 0 or self.high < 0


def fit_drift(places: Floats, values: Floats) -> Drift | None:
    """The drift of ``values`` along ``places``; None for fewer than FEWEST of them."""
    import numpy as np

    if len(values) < FEWEST:
        return None
    blocks = min(MOST_BLOCKS, len(values) // OF_BLOCK)
    parts = zip(np.array_split(places, blocks), np.array_split(values, blocks), strict=True)
    middles = np.array([(np.median(at), np.median(value)) for at, value in parts])
    at, value = (middles - middles.mean(axis=0)).T
    squares = float((at**2).sum())
    slope = float((at * value).sum()) / squares
    error = math.sqrt(float(((value - slope * at) ** 2).sum()) / (blocks - 2) / squares)
    reach = t_quantile(blocks - 2, (1 + CONFIDENCE) / 2) * error
    return Drift(slope, slope - reach, slope + reach)
