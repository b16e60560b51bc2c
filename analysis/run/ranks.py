"""What the ranks of a job printed each by itself: which are missing, which are slow.

Comes in: step rows of several files, whose names tell ranks. Goes out: one row per rank, and notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from logparse.findings import Note, info
from logparse.read.ranks import missing_ranks, place_of


def describe_missing(sources: Sequence[str], world_size: int | None) -> Iterator[Note]:
    """A note on ranks of which there is no file."""
    missing = missing_ranks(sources, world_size)
    if missing:
        there = {place.rank for source in sources if (place := place_of(source)) and place.rank is not None}
        yield info("ranks_missing", ranks=missing, n=len(missing), of=len(missing) + len(there))
