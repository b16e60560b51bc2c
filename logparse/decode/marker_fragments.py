"""Fewer words for many: parts that several literals share and a log hardly holds.

Comes in: literals, and text of the log in which they are looked for. Goes out: parts of them. The engine of regexes
compares some dozens of words with 16 bytes at once; of a hundred it looks at every byte by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from heapq import heapify, heappop, heappush

import regex

# Letters of a part: shorter parts are in almost any text.
SHORTEST, LONGEST = 4, 8
# A part may occur without its literals once in this many bytes of text.
SELDOM = 2**14
# Bytes of the sample that shows how often a part occurs.
ENOUGH = 2**17


@dataclass
class Sieve:
    """A regex that matches wherever one of ``literals`` is, and now and then elsewhere; threads may share it."""

    literals: Sequence[str]
    _pattern: str = ""

    def pattern(self, text: bytes) -> str:
        """The regex, which the first ``text`` decides that is asked for."""
        if not self._pattern:
            parts = fragments_of(self.literals, text[:ENOUGH])
            self._pattern = "|".join(regex.escape(part, special_only=True) for part in parts)
        return self._pattern


def fragments_of(literals: Sequence[str], text: bytes) -> list[str]:
    """Parts of ``literals``, of each at least one, as few as a greedy choice finds that are seldom in ``text``."""
    counts = {literal: text.count(literal.encode()) for literal in literals}
    shared = {part: holders for part, holders in _holders(tuple(literals)).items() if len(holders) > 1}
    chosen, left = [], set(literals)
    # What a part is good for only falls while others are chosen, so that only the first needs to be counted again.
    queue = [(-len(holders), at, part) for at, (part, holders) in enumerate(shared.items())]
    heapify(queue)
    while queue:
        most, at, part = heappop(queue)
        holders = shared[part] & left
        if len(holders) < -most:
            if len(holders) > 1:
                heappush(queue, (-len(holders), at, part))
        elif text.count(part.encode()) <= len(text) // SELDOM + max(counts[literal] for literal in holders):
            chosen.append(part)
            left -= holders
    return chosen + [literal for literal in literals if literal in left]


@cache
def _holders(literals: tuple[str, ...]) -> dict[str, set[str]]:
    """Every part of the ``literals``, and those that hold it."""
    holders: dict[str, set[str]] = defaultdict(set)
    for literal in literals:
        for size in range(SHORTEST, LONGEST + 1):
            for begin in range(len(literal) - size + 1):
                holders[literal[begin : begin + size]].add(literal)
    return holders
