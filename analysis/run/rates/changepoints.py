"""Levels of the pace: spans of rows at one pace, and stretches that were slow for a while.

Comes in: the pace of rows in order. Goes out: spans, one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from logparse.light_dataclass import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROBUST = 1.4826  # median absolute deviation to standard deviation of a normal distribution
# Fewer rows than ENOUGH_ROWS show no levels; a level has at least FEWEST rows.
ENOUGH_ROWS, FEWEST = 40, 10
# A change is at least this share of the pace, and so many standard errors of the two medians.
SHIFT_SHARE, SHIFT_ERRORS = 0.02, 8.0
MOST_CHANGES, PIECE = 20, 1000
# Two paces that take turns: the share of each, and how far they are apart.
MODE_SHARE, MODES_APART = 0.2, 0.10
# A slow stretch lies between two levels that agree to SAME_LEVEL, and is at most MOST_SLOW of the three.
SAME_LEVEL, SLOW_SHARE, MOST_SLOW = 0.10, 0.25, 0.4


@dataclass(frozen=True)
class Level:
    """Rows ``begin`` to before ``end`` at a median ``pace``."""

    begin: int
    end: int
    pace: float

    def __len__(self) -> int:
        return self.end - self.begin


def find_levels(pace: NDArray[np.float64]) -> list[Level]:
    """The spans of ``pace``, one after the other; a single one where the level never changes."""
    changes = _placed(pace, _changes(pace)) if len(pace) >= ENOUGH_ROWS else []
    while weak := [c for c in _judged(pace, changes) if c[0] <= 1]:
        changes.remove(min(weak)[1])
    return _spans(pace, changes)


def present_pace(pace: NDArray[np.float64]) -> float | None:
    """The pace at the end: that of the last level, or where its drift ends; None of a pace that never changes."""
    import numpy as np

    if len(pace) < ENOUGH_ROWS:
        return None
    levels = find_levels(pace)
    last = pace[levels[-1].begin :]
    rows = np.arange(len(last)) - (len(last) - 1) / 2
    slope = float(rows @ last) / float(rows @ rows)
    noise = float(np.std(last - last.mean() - slope * rows)) / math.sqrt(float(rows @ rows))
    drifts = abs(slope) > max(SHIFT_SHARE * levels[-1].pace / len(last), SHIFT_ERRORS * noise)
    if drifts:
        return float(last.mean() + slope * rows[-1])
    return levels[-1].pace if len(levels) > 1 else None


def slow_stretches(levels: Sequence[Level]) -> Iterator[Level]:
    """Levels that the run came back from: slower than the level before and the one after, which agree."""
    for before, here, after in zip(levels, levels[1:], levels[2:], strict=False):
        baseline = max(before.pace, after.pace)
        comparable = baseline <= (1 + SAME_LEVEL) * min(before.pace, after.pace)
        few = len(here) <= MOST_SLOW * (len(before) + len(here) + len(after))
        if comparable and few and here.pace > (1 + SLOW_SHARE) * baseline:
            yield here


def two_modes(pace: NDArray[np.float64]) -> float | None:
    """The pace between two that take turns; None where there is one.

    Each is of at least MODE_SHARE of the rows, and they lie further apart than each of them spreads.
    """
    import numpy as np

    ordered = np.sort(pace)
    least = max(1, round(MODE_SHARE * len(ordered)))
    gaps = np.diff(ordered)[least - 1 : -least]
    if not len(gaps):
        return None
    at = least + int(gaps.argmax())
    fast, slow = ordered[:at], ordered[at:]
    spread = max(float(np.abs(part - median(part)).mean()) for part in (fast, slow))
    apart = median(slow) - median(fast)
    between = float(ordered[at - 1] + ordered[at]) / 2
    return between if apart > max(MODES_APART * median(fast), SHIFT_ERRORS * spread) else None


def _spans(pace: NDArray[np.float64], changes: Sequence[int]) -> list[Level]:
    return [Level(a, b, median(pace[a:b])) for a, b in pairwise([0, *sorted(changes), len(pace)]) if a < b]


def _judged(pace: NDArray[np.float64], changes: Sequence[int]) -> Iterator[tuple[float, int]]:
    """Each change with how many times it is as large as it must be."""
    import numpy as np

    for before, after in pairwise(_spans(pace, changes)):
        apart = abs(after.pace - before.pace)
        # Around each level of its own: around the common median the shift itself would look like noise.
        parts = [np.abs(pace[level.begin : level.end] - level.pace) for level in (before, after)]
        spread = ROBUST * median(np.concatenate(parts))
        # The standard error of a median is 1.25 times that of a mean.
        error = 1.25 * spread * math.sqrt(1 / len(before) + 1 / len(after))
        least = max(SHIFT_SHARE * min(before.pace, after.pace), SHIFT_ERRORS * error)
        yield apart / least if least else math.inf, after.begin


def _changes(pace: NDArray[np.float64]) -> list[int]:
    """Rows before which the level may change.

    The sum of what rows are above the mean falls along a fast stretch and rises along a slow one: between its ends lies
    the stretch that differs most. Each part is looked at again.
    """
    changes: list[int] = []
    waiting = [(0, len(pace)), *_with_slow_rows(pace)]
    while waiting and len(changes) < MOST_CHANGES:
        begin, end = waiting.pop(0)
        part = pace[begin:end]
        edges = [begin + at for at in _edges(part)]
        if edges and any(times > 1 for times, _ in _judged(part, [at - begin for at in edges])):
            changes += [at for at in edges if all(abs(at - other) >= FEWEST for other in changes)]
            waiting += [(a, b) for a, b in pairwise([begin, *edges, end]) if b - a >= 2 * FEWEST]
    return sorted(changes)


def _placed(pace: NDArray[np.float64], changes: Sequence[int]) -> list[int]:
    """Each change where the rows between its neighbours differ most."""
    import numpy as np

    places = [0, *changes, len(pace)]
    for i in range(1, len(places) - 1):
        part = pace[places[i - 1] : places[i + 1]]
        rows = np.arange(1, len(part))
        apart = np.abs(np.cumsum(part - part.mean())[:-1]) / np.sqrt(rows * (len(part) - rows))
        at = places[i - 1] + 1 + int(apart.argmax())
        places[i] = min(max(at, places[i - 1] + FEWEST), places[i + 1] - FEWEST)
    return places[1:-1]


def _with_slow_rows(pace: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """Pieces of a long run in which a slow stretch may lie, which is lost in the noise of the whole."""
    import numpy as np

    if len(pace) <= PIECE:
        return
    groups = np.median(pace[: len(pace) // FEWEST * FEWEST].reshape(-1, FEWEST), axis=1)
    slow = np.flatnonzero(groups > (1 + SLOW_SHARE) * median(groups)) * FEWEST
    for begin in np.unique(slow // PIECE).tolist():
        yield max(0, begin * PIECE - PIECE // 2), min(len(pace), (begin + 1) * PIECE + PIECE // 2)


def _edges(part: NDArray[np.float64]) -> list[int]:
    """The ends of the stretch of ``part`` that differs most from the rest; those at an end of ``part`` are none."""
    import numpy as np

    above = np.cumsum(part - part.mean())
    edges = sorted({int(above.argmin()) + 1, int(above.argmax()) + 1})
    far = [at for at in edges if FEWEST <= at <= len(part) - FEWEST]
    return far[:1] if len(far) == 2 and far[1] - far[0] < FEWEST else far


def median(values: NDArray[np.float64]) -> float:
    """The number of numpy.median, which loads masked arrays first: a twentieth of the time a small log takes."""
    import numpy as np

    middle = (len(values) - 1) // 2, len(values) // 2
    ordered = np.partition(values, middle)
    return float((ordered[middle[0]] + ordered[middle[1]]) / 2)
