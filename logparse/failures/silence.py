"""How long a run printed nothing before it was stopped: it may have hung."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from logparse.inputs.writers import clock_of

# Lines above that are read, and characters of a line in which its clock begins.
LINES_READ, CLOCK_AT = 100, 48
# The shortest silence in seconds, and how much longer it is than every pause before it.
SHORTEST, LONGER = 60.0, 3.0
# Zones of time differ by hours, those that are far apart by half ones too; a silence so near to one may be none.
ZONE, NEAR_ZONE, LEAST_HALVES = 1800.0, 120.0, 7
# What the scheduler itself prints.
_OF_SCHEDULER = ("slurm", "srun", "CANCELLED")


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
    is_zone = zones and (zones % 2 == 0 or zones >= LEAST_HALVES) and abs(silent - zones * ZONE) < NEAR_ZONE
    return None if by_scheduler and is_zone else round(silent, 3)


def same_zone(texts: Sequence[str], clock: float) -> bool:
    """Whether a process prints one of ``texts`` about when the scheduler's ``clock`` stops it: their zone is one."""
    own = (clock_of(text[:CLOCK_AT]) for text in texts if not any(name in text for name in _OF_SCHEDULER))
    return any(one is not None and abs(one - clock) < NEAR_ZONE for one in own)
