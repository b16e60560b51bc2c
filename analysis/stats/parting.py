"""Where two series part for good: a lasting difference that their noise does not explain.

Comes in: the differences of two series at their common places, in order, and the rounding of each. Goes out: a Parting.

The noise is that of the differences, not of the series: two trainings on the same data share most of theirs. Its
spread is estimated from differences of neighbours, which hardly see a level, a slope or a jump. So it holds also for
series that part at the first place. The spread itself may change; it is piecewise constant. Neighbours may be
correlated: means of longer and longer blocks give the long-run spread.

Levels are found by binary segmentation (Scott and Knott, Biometrics 30, 1974) of differences in units of the spread.
These are cut off at CUT, so that no single outlier makes a level. The series part at the first of the last levels
that are all different from zero, or cross it. A step or a straight line from zero is fitted there by least squares. A
step parts at its place, a line at the first place where it exceeds REACH spreads.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from logparse.light_dataclass import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# within_noise: no lasting difference. offset: from the first place on. jump: from a place on. growing: along a line
# from zero. scatter: no lasting difference, but from a place on a much larger noise.
Shape = Literal["within_noise", "offset", "jump", "growing", "scatter"]
# A growing difference is beyond the noise where it exceeds so many spreads.
REACH = 3.0
# Fewer common places show no noise.
FEWEST = 20
# Differences in units of the spread are cut off here.
CUT = 6.0
# A level must gain more than so much, and twice the logarithm of the number of places: t squared.
GAIN = 14.0
# Places of a level at least.
SHORTEST = 4
# Blocks that give the spread of a block mean at least, by which the long-run spread is estimated.
BLOCKS = 20
# Places so far apart are hardly correlated. The largest correlation of neighbours that is used.
FAR, MOST_CORRELATION = 8, 0.9
# By how much the correlation may be larger than estimated, times the root of the number of places.
UNSURE = 1.5
# Of a normal distribution cut off at so many deviations, the root of its variance.
TRIM, TRIMMED = 3.0, 0.9866
# A scatter is so many times as large as before, over so many places on both sides.
SCATTER, AROUND = 5.0, 16
# Of a normal distribution half lie within so many standard deviations; a uniform error of 1 has this deviation.
HALF_WITHIN, UNIFORM = 0.6745, 1 / math.sqrt(12)
# The standard deviation of the logarithm of a normal variable's size.
LOG_SPREAD = 1.11
# A difference smaller than this part of the last printed digit is none.
PART_OF_DIGIT = 0.5


@dataclass(frozen=True)
class Parting:
    """How two series part, ``at`` which of the common places, and the ``spread`` of the noise before that.

    ``level`` is the lasting difference at the end, 0 where there is none; a scatter has the spread after it as its
    ``level``. ``at`` is None where they do not part, and where a growing difference does not exceed the noise yet.
    """

    shape: Shape
    at: int | None
    spread: float
    level: float = 0.0


def find_parting(differences: Floats, rounding: Floats, allowance: float = 0.0) -> Parting | None:
    """How and where the series part; None where they have too few common places.

    ``rounding`` is the last printed digit of each difference. ``allowance`` is a difference that repeats of one series
    have too.
    """
    import numpy as np

    if len(differences) < FEWEST:
        return None
    spread, changes = _spreads(differences, rounding)
    units = np.clip(differences / spread, -CUT, CUT)
    long_run = long_run_spread(units)
    bounds = [0, *_levels(units / long_run), len(units)]
    least = np.maximum(allowance, PART_OF_DIGIT * rounding)
    first = _last_levels(differences, units / long_run, bounds, least)
    if first is None:
        return _scatter(differences, spread, changes, allowance)
    start = max((bound for bound in bounds if bound < first), default=0)
    lasting = float(np.median(differences[bounds[-2] :]))
    found = _fitted(differences, spread, start, first, lasting, allowance)
    scattered = _scatter(differences, spread, changes, allowance)
    early = scattered.at is not None and found.at is not None and scattered.at < found.at
    return Parting("jump", scattered.at, scattered.spread, found.level) if early else found


def long_run_spread(values: Floats) -> float:
    """The deviation of a mean of neighbours times the root of their number; that of single values is 1.

    The largest of those by blocks of several lengths and by the correlation of neighbours, as of autoregressive noise.
    Each comes from differences about their median, so that a slope or few jumps hardly count.
    """
    largest, size = 0.0, 1
    while len(values) // size >= BLOCKS or size == 1:
        blocks = values[: len(values) // size * size].reshape(-1, size).mean(axis=1)
        largest = max(largest, _spread_apart(blocks, 1) * math.sqrt(size))
        size *= 2
    near = _spread_apart(values, 1)
    correlation = max((_spread_apart(values, 2) / near) ** 2 - 1, 0) if near else 0.0
    correlation = min(correlation + UNSURE / math.sqrt(len(values)), MOST_CORRELATION)
    return max(largest, math.sqrt((1 + correlation) / (1 - correlation)), 1.0)


def _spread_apart(values: Floats, lag: int) -> float:
    """The deviation of ``values`` by the typical difference of two that are ``lag`` apart."""
    import numpy as np

    steps = values[lag:] - values[:-lag]
    return float(np.median(np.abs(steps - np.median(steps)))) / HALF_WITHIN / math.sqrt(2)


def _spreads(differences: Floats, rounding: Floats) -> tuple[Floats, list[int]]:
    """The spread of the noise at each place, at least that of rounding, and the places where it changes."""
    import numpy as np

    least = np.maximum(rounding * UNIFORM * math.sqrt(2), np.finfo(np.float64).tiny)
    pairs = len(differences) // 2
    apart = np.abs(differences[1 : 2 * pairs : 2] - differences[0 : 2 * pairs : 2]) / math.sqrt(2)
    size = np.log(np.maximum(apart, least[: 2 * pairs : 2] * HALF_WITHIN))
    changes = [2 * at for at in _levels(size / LOG_SPREAD)]
    spread = np.empty(len(differences))
    for begin, end in zip([0, *changes], [*changes, len(differences)], strict=True):
        spread[begin:end] = np.maximum(_spread_of(differences[begin:end]), least[begin:end])
    return spread, changes


def _spread_of(values: Floats) -> float:
    """The deviation of noise whose neighbours may be correlated, without outliers, slope and jumps."""
    import numpy as np

    deviation = _trimmed(np.diff(values)) / math.sqrt(2)
    if len(values) <= BLOCKS * FAR or not deviation:
        return deviation
    return deviation * max(1.0, _spread_apart(values, FAR) / _spread_apart(values, 1))


def _trimmed(values: Floats) -> float:
    """The deviation of ``values`` about their median, without those that are far beyond it."""
    import numpy as np

    sizes = np.abs(values - np.median(values))
    near = sizes[sizes <= TRIM * float(np.median(sizes)) / HALF_WITHIN]
    return float(np.sqrt((near**2).mean())) / TRIMMED


def _levels(values: Floats) -> list[int]:
    """The places before which the mean of ``values`` changes, whose noise has the deviation 1."""
    import numpy as np

    sums = np.concatenate([[0.0], np.cumsum(values)])
    gain = GAIN + 2 * math.log(len(values))
    found, open_parts = [], [(0, len(values))]
    while open_parts:
        begin, end = open_parts.pop()
        if end - begin < 2 * SHORTEST:
            continue
        places = np.arange(begin + SHORTEST, end - SHORTEST + 1)
        before, after = places - begin, end - places
        apart = (sums[places] - sums[begin]) / before - (sums[end] - sums[places]) / after
        gains = apart**2 * before * after / (end - begin)
        best = int(gains.argmax())
        if gains[best] > gain:
            at = int(places[best])
            found.append(at)
            open_parts += [(begin, at), (at, end)]
    return sorted(found)


def _last_levels(differences: Floats, units: Floats, bounds: list[int], least: Floats) -> int | None:
    """The place where the last levels begin that are all different from zero; None where the last one is not.

    A level near zero between two of opposite signs is where the difference crosses zero, not where it ends.
    """
    import numpy as np

    first, sign, crossing = None, 0.0, False
    gain = GAIN + 2 * math.log(len(units))
    for begin, end in reversed(list(pairwise(bounds))):
        level = float(units[begin:end].mean())
        size = abs(float(np.median(differences[begin:end])))
        if level**2 * (end - begin) <= gain or size <= float(least[begin:end].mean()):
            if first is None or crossing:
                break
            crossing = True
        elif crossing and level * sign > 0:
            break
        else:
            first, sign, crossing = begin, level, False
    return first


def _fitted(differences: Floats, spread: Floats, start: int, first: int, lasting: float, allowance: float) -> Parting:
    """A step or a line from zero, whichever explains the difference better until it is far beyond the noise."""
    import numpy as np

    noise = float(spread[max(first - 1, 0)])
    beyond = max(REACH * noise, allowance)
    values = differences / noise
    end = _far_beyond(values, first, 2 * beyond / noise)
    values = np.clip(values[start:end], -2 * CUT, 2 * CUT)
    places = np.arange(len(values), dtype=np.float64)
    # Sums from each place to the end, and of the products with the distance from it.
    sums = np.cumsum(values[::-1])[::-1]
    left = len(values) - places
    ramps = np.cumsum(sums[::-1])[::-1] - sums
    squares = (left - 1) * left * (2 * left - 1) / 6
    steps, lines = sums**2 / left, np.divide(ramps**2, squares, out=np.zeros_like(ramps), where=squares > 0)
    # Both need so many places after them, but for a difference that is there from the first one.
    allowed = left >= min(SHORTEST, len(values))
    step, line = int(np.where(allowed, steps, 0).argmax()), int(np.where(allowed, lines, 0).argmax())
    if steps[step] >= lines[line]:
        at = start + step
        return Parting("offset" if at < SHORTEST else "jump", 0 if at < SHORTEST else at, noise, lasting)
    slope = float(ramps[line] / squares[line])
    # About the line the noise is better known than from neighbours.
    about = noise * _trimmed(values - slope * np.maximum(places - line, 0))
    reached = start + line + math.ceil(max(REACH * about, allowance) / noise / abs(slope))
    return Parting("growing", reached if reached < len(differences) else None, about, lasting)


def _far_beyond(values: Floats, first: int, far: float) -> int:
    """The place after ``first`` where the mean of neighbours is so ``far`` from zero; the end where none is."""
    import numpy as np

    window = min(AROUND, len(values))
    means = np.convolve(values, np.full(window, 1 / window), mode="valid")
    beyond = np.flatnonzero(np.abs(means[first:]) > far)
    return min(first + int(beyond[0]) + window, len(values)) if len(beyond) else len(values)


def _scatter(differences: Floats, spread: Floats, changes: list[int], allowance: float) -> Parting:
    """The last place from which on the noise is much larger than just before it, for good."""
    import numpy as np

    for at in changes:
        if at < AROUND or at > len(differences) - AROUND:
            continue
        before, noise = float(spread[at - 1]), float(spread[at:].min())
        near = [_size(differences[at - AROUND : at]), _size(differences[at : at + AROUND])]
        if noise > SCATTER * before and near[1] > SCATTER * max(near[0], before) and noise > allowance:
            around = np.arange(max(at - AROUND, 0), at + AROUND)
            out = around[np.abs(differences[around]) > (REACH + 1) * before]
            return Parting("scatter", int(out[0]), before, float(spread[-1]))
    return Parting("within_noise", None, float(np.median(spread)))


def _size(values: Floats) -> float:
    import numpy as np

    return float(np.median(np.abs(values - np.median(values)))) / HALF_WITHIN
