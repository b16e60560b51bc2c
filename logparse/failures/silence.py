"""How long a run printed nothing before it was stopped: it may have hung."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from logparse.failures.prefixes import clock_of

# Lines above that are read, and those without a clock just above: more of them show that the run printed on.
LINES_READ, MOST_WITHOUT_CLOCK = 200, 3
# The shortest silence in seconds, and how much longer it is than every pause before it.
SHORTEST, LONGER = 30.0, 3.0


def silent_seconds(texts: Sequence[str], clock: float) -> float | None:
    """Seconds between the last of ``texts`` and ``clock``, if no pause between earlier lines was nearly as long.

    None where lines just before have no clock, or too few have one to compare.
    """
    clocks = [clock_of(text) for text in texts[-LINES_READ:]]
    if all(one is None for one in clocks[-1 - MOST_WITHOUT_CLOCK :]):
        return None
    known = [one for one in clocks if one is not None]
    pauses = [after - before for before, after in pairwise(known)]
    silent = clock - known[-1]
    if len(pauses) < 2 or silent < max(SHORTEST, LONGER * max(pauses)):
        return None
    return round(silent, 3)
