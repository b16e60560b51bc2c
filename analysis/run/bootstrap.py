"""How sure a figure is for the run itself: the moving-block bootstrap.

Neighbouring steps resemble each other, so blocks of neighbours are drawn, not single steps (Kuensch 1989). The interval
says how much the figure would move if the same run went on; other runs of the same job differ by more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEVEL = 0.95
RESAMPLES, MOST_DRAWN = 2000, 20_000_000
FEWEST = 8


def block_interval(
    rows: NDArray[np.float64], figure: Callable[[NDArray[np.float64]], NDArray[np.float64]], seed: int = 0
) -> tuple[float, float] | None:
    """The 95 % interval of ``figure`` over ``rows`` (n x columns); None for fewer than FEWEST rows.

    ``figure`` takes (resamples x n x columns) and gives one value per resample. The same rows give the same interval.
    """
    import numpy as np

    n = len(rows)
    if n < FEWEST:
        return None
    length = max(2, round(n ** (1 / 3)))
    blocks = -(-n // length)
    draws = int(min(RESAMPLES, max(200, MOST_DRAWN // n)))
    generator = np.random.default_rng(seed)
    values = []
    for _ in range(0, draws, 50):
        begins = generator.integers(0, n - length + 1, size=(50, blocks))
        index = (begins[:, :, None] + np.arange(length)).reshape(50, -1)[:, :n]
        values.append(figure(rows[index]))
    low, high = np.quantile(np.concatenate(values), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
