"""To which unit the values of a column were rounded, told from the values themselves."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

# Arithmetic in doubles, where nothing was rounded.
EXACT = 1e-9
# Units that frameworks round times to, in ms: 0.01 s or finer.
TIME_UNITS = tuple(10.0**-digits for digits in range(-1, 7))


def printed_unit(values: pl.Series, units: Sequence[float]) -> float:
    """The largest of ``units`` (largest first) that all values are multiples of; 0 for values printed in full."""
    known = values.drop_nulls()
    # A unit that is not theirs shows in the first already.
    return next((unit for unit in units if all(_are_multiples(some, unit) for some in (known.head(100), known))), 0.0)


def _are_multiples(values: pl.Series, unit: float) -> bool:
    counts = values / unit
    return bool(((counts - counts.round()).abs() <= EXACT * counts.abs()).all())
