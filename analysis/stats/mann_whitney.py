"""The one-sided Mann-Whitney test of two sides, exact or by permutation, and the interval that goes with it.

Comes in: logarithms, one per run. Hollander, Wolfe, Chicken, Nonparametric Statistical Methods, 3rd ed., 4.1 to 4.3.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Literal

from analysis.stats.noise import LEVEL, Z_LEVEL

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Pairs of runs above which the sides are thinned to their quantiles, and exact counting gives way to the normal limit.
MOST_PAIRS, MOST_EXACT = 1_000_000, 2_500
# Orders of tied values that are tried: all of them where there are no more.
RESAMPLES = 9_999


def mann_whitney(
    old: NDArray[np.float64], new: NDArray[np.float64]
) -> tuple[float, float, Literal["exact", "permutation", "normal"]]:
    """p of ``new`` being greater, of its being less, and how: by all orders, some of them, or the normal limit.

    Both ascend.
    """
    import numpy as np

    both = np.concatenate([old, new])
    if len(old) * len(new) > MOST_EXACT:
        return *_by_normal_limit(both, len(new)), "normal"
    if len(np.unique(both)) == len(both):
        return *_by_ways(old, new), "exact"
    if math.comb(len(both), len(old)) <= RESAMPLES:
        return *_by_orders(both, len(new)), "exact"
    return *_by_permutations(both, len(new)), "permutation"


def _by_ways(old: NDArray[np.float64], new: NDArray[np.float64]) -> tuple[float, float]:
    """p if no two runs are equal, from the number of orders with each U."""
    ways, u = _ways(len(new), len(old)), int(old.searchsorted(new).sum())
    return sum(ways[u:]) / sum(ways), sum(ways[: u + 1]) / sum(ways)


def _by_orders(both: NDArray[np.float64], new: int) -> tuple[float, float]:
    """p if some runs are equal, from the ranks of every order; the last ``new`` of ``both`` are the new ones."""
    import numpy as np

    ranks = _double_ranks(both)
    sums = np.array([sum(order) for order in combinations(ranks.tolist(), new)])
    observed = ranks[-new:].sum()
    return float((sums >= observed).mean()), float((sums <= observed).mean())


def _by_permutations(both: NDArray[np.float64], new: int) -> tuple[float, float]:
    """The same from RESAMPLES orders, always the same; the observed one counts too (Phipson, Smyth 2010)."""
    import numpy as np

    ranks, draw = _double_ranks(both), np.random.default_rng(0)
    sums = np.array([draw.permutation(ranks)[:new].sum() for _ in range(RESAMPLES)])
    observed = ranks[-new:].sum()
    greater, less = int((sums >= observed).sum()), int((sums <= observed).sum())
    return (1 + greater) / (1 + RESAMPLES), (1 + less) / (1 + RESAMPLES)


def _by_normal_limit(both: NDArray[np.float64], new: int) -> tuple[float, float]:
    """The same from the normal limit of U, with the corrections for ties and continuity (Hollander et al., 4.1)."""
    import numpy as np

    n, old = len(both), len(both) - new
    ties = np.unique(both, return_counts=True)[1].astype(np.float64)
    spread = math.sqrt(new * old / 12 * (n + 1 - float((ties**3 - ties).sum()) / (n * (n - 1))))
    u = float(_double_ranks(both)[-new:].sum()) / 2 - new * (new + 1) / 2
    above = u - new * old / 2
    if not spread:
        return 1.0, 1.0
    greater, less = (math.erfc((side - 0.5) / spread / math.sqrt(2)) / 2 for side in (above, -above))
    return greater, less


def _double_ranks(both: NDArray[np.float64]) -> NDArray[np.int64]:
    """Twice the rank of each value, which is a whole number: equal values share their mean rank."""
    import numpy as np

    _, place, times = np.unique(both, return_inverse=True, return_counts=True)
    ranks: NDArray[np.int64] = (2 * times.cumsum() - times + 1)[place]
    return ranks


@cache
def interval_cut(n: int, m: int) -> tuple[int, float]:
    """How many differences lie outside each end of the interval, and its confidence (Hollander et al., 4.3)."""
    if n * m > MOST_EXACT:
        spread = math.sqrt(n * m * (n + m + 1) / 12)
        return max(0, int(n * m / 2 - Z_LEVEL * spread)), 1 - 2 * LEVEL
    ways = _ways(n, m)
    total, below = sum(ways), 0
    cut = 0
    while below + ways[cut] <= LEVEL * total:
        below += ways[cut]
        cut += 1
    # ``cut`` values of U, 0 to cut - 1, are rejected: the interval begins at the difference of that rank.
    return max(0, cut - 1), 1 - 2 * below / total


@cache
def _ways(n: int, m: int) -> list[int]:
    """How many orders of n and m runs have each U from 0 to n m: the Gaussian binomial coefficient of n + m over n."""
    ways = [1] + [0] * (n * m)
    for i in range(1, n + 1):
        for u in range(n * m, m + i - 1, -1):
            ways[u] -= ways[u - m - i]
        for u in range(i, n * m + 1):
            ways[u] += ways[u - i]
    return ways


def thinned(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """At most as many values as keep the pairs below MOST_PAIRS; quantiles replace more of them."""
    import numpy as np

    most = math.isqrt(MOST_PAIRS)
    if len(values) <= most:
        return values
    thinned: NDArray[np.float64] = np.quantile(values, (np.arange(most) + 0.5) / most)
    return thinned


def fisher_p(hits: int, of: int, other_hits: int, other: int) -> float:
    """The chance of ``hits`` or more among ``of`` if all hits are spread at random: Fisher's exact test, one-sided."""
    every, drawn = of + other, hits + other_hits
    ways = sum(math.comb(drawn, k) * math.comb(every - drawn, of - k) for k in range(hits, min(drawn, of) + 1))
    return ways / math.comb(every, of)
