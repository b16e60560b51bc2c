"""The unit that the values of a column were rounded to, measured from the values themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Arithmetic in doubles, where nothing was rounded.
EXACT = 1e-9
# Units that frameworks round times to, in ms: 0.01 s or finer.
TIME_UNITS = tuple(10.0**-digits for digits in range(-1, 7))
# Where all values are equal, no coarser unit than 1 ms is accepted.
FINE_UNITS = TIME_UNITS[1:]


def printed_unit(values: pl.Series, units: Sequence[float]) -> float:
    """The largest of ``units`` (largest first) that all values are multiples of; 0 for values printed in full."""
    printed = (values.drop_nulls() if values.null_count() else values).to_numpy()
    # A unit that is not theirs shows in the first already.
    return next((unit for unit in units if all(_are_multiples(some, unit) for some in (printed[:100], printed))), 0.0)


def _are_multiples(values: NDArray[np.float64], unit: float) -> bool:
    counts = values / unit
    return bool((abs(counts - counts.round()) <= EXACT * abs(counts)).all())
