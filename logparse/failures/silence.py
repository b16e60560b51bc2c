"""How long a run printed nothing before it was stopped: it may have hung."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from logparse.inputs.writers import clock_of

# Lines above that are read, and characters of a line in which its clock begins.
LINES_READ, CLOCK_AT = 100, 48
# The shortest silence in seconds, and how much longer it is than every pause before it.
SHORTEST, LONGER = 60.0, 3.0
# Zones of time differ by multiples of this; a silence of the scheduler's clock so near to one may be none.
ZONE, NEAR_ZONE = 1800.0, 120.0


def silent_seconds(texts: Sequence[str], clock: float, by_scheduler: bool = False) -> float | None:
    """Seconds between the last of ``texts`` and ``clock``, if no pause between earlier lines was nearly as long.

    None where the last line has no clock, or is a bar that is drawn again and again, where too few lines have a clock
    to compare, and where the clock of a scheduler may be of another zone.
    """
    read = [text for text in texts[-LINES_READ:] if text.strip()]
    clocks = [None if "\r" in text else clock_of(text[:CLOCK_AT]) for text in read]
    if not clocks or clocks[-1] is None:
        return None
    known = sorted(one for one in clocks if one is not None)
    pauses = [after - before for before, after in pairwise(known)]
    silent = clock - known[-1]
    if len(pauses) < 2 or silent < max(SHORTEST, LONGER * max(pauses)):
        return None
    zones = round(silent / ZONE)
    if by_scheduler and zones and abs(silent - zones * ZONE) < NEAR_ZONE:
        return None
    return round(silent, 3)
