"""How sure a figure is for the run itself: the moving-block bootstrap.

Neighbouring steps resemble each other, so blocks of neighbours are drawn, not single steps (Kuensch 1989). The interval
says how much the figure would move if the same run went on; other runs of the same job differ by more.

No row is gathered: the sum of a block is a difference of running sums, and so is how often a row was drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    # One value per resample, from where its blocks begin and end (both resamples x blocks).
    Figure = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]]

LEVEL = 0.95
RESAMPLES, FEWEST_RESAMPLES, MOST_DRAWN = 2000, 200, 20_000_000
# Resamples drawn at once; of a short run so many more as come to so many rows.
AT_ONCE, ROWS_AT_ONCE = 50, 20_000
FEWEST = 8
# By Hoeffding's inequality less than one median in 2,900 is so many times sqrt(rows x block length) above the middle
# rank. The interval asks for the fifth largest of 200 or more, which one run in 90 million would find there.
MIDDLE = 2


def median_interval(values: NDArray[np.float64], seed: int = 0) -> tuple[float, float] | None:
    """The 95 % interval of the median; None for fewer than FEWEST values. The same values give the same interval."""
    return _interval(len(values), _medians(values), seed) if len(values) >= FEWEST else None


def ratio_interval(
    dividends: NDArray[np.float64], divisors: NDArray[np.float64], seed: int = 0
) -> tuple[float, float] | None:
    """The 95 % interval of the sum of ``dividends`` over that of ``divisors``, both of the same rows; else as above."""
    return _interval(len(dividends), _ratios(dividends, divisors), seed) if len(dividends) >= FEWEST else None


def _interval(n: int, figure: Figure, seed: int) -> tuple[float, float]:
    import numpy as np

    values = np.sort(np.concatenate([figure(begins, ends) for begins, ends in _draw(n, seed)]))
    return _quantile(values, (1 - LEVEL) / 2), _quantile(values, (1 + LEVEL) / 2)


def _quantile(ascending: NDArray[np.float64], share: float) -> float:
    """The number of numpy.quantile, which loads masked arrays first: a twentieth of the time a small log takes."""
    at = share * (len(ascending) - 1)
    lower = math.floor(at)
    low, high = (float(value) for value in ascending[[lower, math.ceil(at)]])
    part = at - lower
    return low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)


def _draw(n: int, seed: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Where the blocks of some resamples begin and end; the last block of each is cut to make ``n`` rows."""
    import numpy as np

    length = _block_length(n)
    lengths = np.full(-(-n // length), length)
    lengths[-1] -= lengths.sum() - n
    generator = np.random.default_rng(seed)
    left = -(-min(RESAMPLES, max(FEWEST_RESAMPLES, MOST_DRAWN // n)) // AT_ONCE) * AT_ONCE
    while left:
        # How many are drawn at once changes no draw.
        some = min(left, max(AT_ONCE, ROWS_AT_ONCE // n))
        begins = generator.integers(0, n - length + 1, size=(some, len(lengths)))
        yield begins, begins + lengths
        left -= some


def _block_length(n: int) -> int:
    return max(2, round(math.cbrt(n)))


def _ratios(dividends: NDArray[np.float64], divisors: NDArray[np.float64]) -> Figure:
    """The ratio of each resample whose divisors are above 0."""
    above, below = _running(dividends), _running(divisors)

    def ratios(begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.float64]:
        over, under = ((sums[ends] - sums[begins]).sum(axis=1) for sums in (above, below))
        ratio: NDArray[np.float64] = over[under > 0] / under[under > 0]
        return ratio

    return ratios


def _medians(values: NDArray[np.float64]) -> Figure:
    """The median of each resample among the values of middle rank; one further out is taken for the last of them."""
    import numpy as np

    n = len(values)
    reach = math.ceil(MIDDLE * math.sqrt(n * _block_length(n))) + _block_length(n)
    first, last = max(0, n // 2 - reach), min(n, n // 2 + reach)
    order = np.argpartition(values, (first, last - 1))
    smaller, middle = order[:first], order[first:last]
    middle = middle[np.argsort(values[middle])]
    smaller_before, middle_before = _running(_marks(n, smaller)), _running(_marks(n, middle))
    places, ascending = middle_before[middle], values[middle]

    def medians(begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.float64]:
        times_drawn = _times_drawn(middle_before[begins], middle_before[ends], len(middle))
        up_to = times_drawn.take(places, axis=1).cumsum(axis=1)
        up_to += (smaller_before[ends] - smaller_before[begins]).sum(axis=1, keepdims=True)
        ranks = ((up_to <= rank).sum(axis=1).clip(max=len(middle) - 1) for rank in ((n - 1) // 2, n // 2))
        lower, upper = (ascending[rank] for rank in ranks)
        return np.asarray((lower + upper) / 2)

    return medians


def _times_drawn(begins: NDArray[np.int64], ends: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """How often each of ``n`` rows lies in a block of a resample (resamples x n)."""
    import numpy as np

    resample, cells = np.arange(len(begins))[:, None] * (n + 1), len(begins) * (n + 1)
    entered, left = (np.bincount((resample + at).ravel(), minlength=cells) for at in (begins, ends))
    return (entered - left).reshape(len(begins), n + 1)[:, :n].cumsum(axis=1)


def _marks(n: int, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """1 at each of ``places`` among ``n``, 0 elsewhere."""
    import numpy as np

    marks = np.zeros(n, np.int64)
    marks[places] = 1
    return marks


def _running(values: NDArray[Any]) -> NDArray[Any]:
    """The sum of the values before each place, and after the last one."""
    import numpy as np

    return np.concatenate([[0], np.cumsum(values)])
