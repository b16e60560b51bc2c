"""The last digit that a log prints of a value, so that values are equal where the log cannot show a difference.

Comes in: values as read from a log. Goes out: for each the unit of its last printed digit. A log prints a fixed number
of decimals or of significant digits. A value may end in zeros, but hardly all of them: the most of each count.
"""

from __future__ import annotations

import polars as pl

# The share of the values that print no more digits than is taken: a summary may print one value in full.
OF_VALUES = 0.99
# Fewer different values may all end in zeros.
FEWEST = 5
# Digits of a float of 64 bits.
MOST_DIGITS = 17


def last_digits(values: pl.Series) -> pl.Series:
    """The unit of the last printed digit of each of ``values``, finite numbers; 0 of too few of them."""
    if values.n_unique() < FEWEST:
        return values * 0.0
    shown = values.abs().cast(pl.String)
    mantissa = shown.str.extract(r"^([\d.]+)").str.strip_suffix(".0")
    exponent = shown.str.extract(r"e([+-]?\d+)$").cast(pl.Int64).fill_null(0)
    places = mantissa.str.extract(r"\.(\d+)$").str.len_chars().cast(pl.Int64).fill_null(0)
    digits = mantissa.str.replace(".", "", literal=True).str.strip_chars_start("0").str.len_chars().cast(pl.Int64)
    decimals, significant = (int(_most(most)) for most in ((places - exponent).clip(0), digits.clip(1, MOST_DIGITS)))
    magnitude = pl.when(pl.col("value") > 0).then(pl.col("value").log10().floor()).otherwise(-decimals)
    by_digits = 10.0 ** (magnitude + 1 - significant)
    return pl.DataFrame({"value": values.abs()}).select(pl.max_horizontal(by_digits, 10.0**-decimals)).to_series()


def _most(counts: pl.Series) -> float:
    return float(counts.quantile(OF_VALUES, "higher") or 0)
