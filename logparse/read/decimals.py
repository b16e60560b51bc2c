"""Decimals to the nearest floats, many at once: what no float holds exactly is divided as a sum of two floats.

So a float has twice as many digits; T. J. Dekker, A floating-point technique for extending the available precision,
Numerische Mathematik 18 (1971). What even these leave open is said to be, and is for its text to decide.
"""

from __future__ import annotations

import io
from functools import cache
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The most digits that an unsigned whole number of 64 bits surely holds; what stands for a count of more.
MOST_DIGITS, MANY = 19, 2**64 - 1
# The least power of ten that is known as two floats; and the highest that is one, as are whole numbers below 2**53.
LEAST_POWER, EXACT_POWER, EXACT = -60, 22, 2**53
# Splits a float into halves of 26 bits, whose products are exact.
_SPLIT = float(2**27 + 1)
# How near to the middle between two floats, as a share of what parts them, a quotient says nothing of which is nearer.
# The quotient itself is right to 2**-48 of that.
_UNSURE = 2**-30


def floats_of(digits: NDArray[np.uint64], power: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The floats nearest to ``digits`` times ten to the ``power``, and which of them may not be."""
    import numpy as np

    ten = _tens()[0][np.minimum(abs(power), -LEAST_POWER)]
    high = digits.astype("float64")
    found: NDArray[np.float64] = np.where(power < 0, high / ten, high * ten)
    inexact = (digits >= EXACT) | (abs(power) > EXACT_POWER)
    if not inexact.any():
        return found, inexact
    hard = np.flatnonzero(inexact & (power < 0) & (digits < 10**MOST_DIGITS))
    found[hard], unsure = _divided(digits[hard], -power[hard])
    inexact[hard] = unsure
    return found, inexact


def _divided(digits: NDArray[np.uint64], tens: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The floats nearest to ``digits`` over powers of ten, and which of them may not be."""
    import numpy as np

    known = tens <= -LEAST_POWER
    ten, rest_of_ten = (some[np.where(known, tens, 0)] for some in _tens())
    high = digits.astype("float64")
    low = (digits - high.astype("uint64")).astype("int64").astype("float64")
    first = high / ten
    product = first * ten
    left = (high - product) - _error(first, ten, product) + low - first * rest_of_ten
    second = left / ten
    found: NDArray[np.float64] = first + second
    off, gap = abs(second - (found - first)), np.spacing(found)
    # Below a power of two floats stand twice as close.
    unsure = (abs(off - gap / 2) <= gap * _UNSURE) | (abs(off - gap / 4) <= gap * _UNSURE)
    return found, unsure | ~known


def _error(one: NDArray[np.float64], other: NDArray[np.float64], product: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the ``product`` of two floats lacks, exactly."""
    (high, low), (other_high, other_low) = _halves(one), _halves(other)
    return low * other_low - (((product - high * other_high) - low * other_high) - high * other_low)


def _halves(some: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    split = some * _SPLIT
    high = split - (split - some)
    return high, some - high


@cache
def _tens() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The powers of ten, and what these floats lack."""
    import numpy as np

    powers = [10**n for n in range(1 - LEAST_POWER)]
    return np.array([float(ten) for ten in powers]), np.array([float(ten - int(float(ten))) for ten in powers])


def floats_in(texts: NDArray[np.uint8]) -> NDArray[np.float64]:
    """The floats nearest to what is written in ``texts`` (texts by bytes), without the commas between thousands."""
    import numpy as np

    lines = np.pad(texts, ((0, 0), (0, 1)), constant_values=ord("\n"))
    read = pl.read_lines(io.BytesIO(lines.tobytes()), name="text")["text"]
    return read.str.replace_all(",", "", literal=True).cast(pl.Float64).to_numpy()
