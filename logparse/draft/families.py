"""Which lines of an unknown log are its step lines? Those that repeat with a number that grows by a constant.

Comes in: lines. Goes out: the words before that number, and the lines with it. ``layout`` reads the rest of the lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import regex

from logparse.draft.words_and_units import columns_of, plain, step_words
from logparse.formats._base import TIMESTAMP
from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass

# The fewest lines of one kind that show that a number grows; the share of its growth that must be the same, and the
# share in which it may fall, as a step within an epoch does.
FEWEST, SAME, MOST_FALLS = 3, 0.6, 0.34
# Integers of a line that are tried, and the characters at its start that are searched for them.
MOST_TRIED, MOST_LOOKED_AT = 16, 2000
# Kinds of lines that are worth a draft.
MOST_FAMILIES = 8
# A step may be glued to its word: ``iteration100``.
_INTEGER = lazy_regex(
    r"(?:(?<![\w.\-+:,])|(?<=\b(?i:step|iter|iteration)))\d{1,12}(?![\w.]|[,:]\d| ?%)"
    r"|(?:(?<==)|(?<=[^\d:]:)) ?\d{1,12}(?![\w.]|[,:]\d| ?%)"
)
_NUMBER = lazy_regex(r"\d+(?:[.,:]\d+)*(?:[eE][-+]?\d+)?")
_BAR = lazy_regex(r"%\|[^|]*\|")
# After the step of a bar: the number of steps and the clock.
_OF_BAR = lazy_regex(r"\s*/\s*\d+\s*\[[\d:]+<")
# A bar that has done all its steps, as one of an epoch at its end.
_DONE = lazy_regex(r"\b(\d+)/\1 \[[\d:]+<")
_LOSS = lazy_regex(r"(?i)loss[\"']?[\s:=]{1,3}[-+]?\d")
_STEP_KEYS = [[word] for word in ("step", "steps", "iter", "iteration")]
_STAMP = lazy_regex(TIMESTAMP)
# What grows with the steps and is none.
_OTHERS = frozenset(
    {"epoch", "epochs", "tokens", "samples", "time", "elapsed", "eta", "rank", "pid", "line", "seconds"}
)


@dataclass(frozen=True)
class Occurrence:
    """A number on one line, and its position in ``text``."""

    line_number: int
    text: str
    begin: int
    end: int

    @property
    def value(self) -> int:
        """The number."""
        return int(self.text[self.begin : self.end])


@dataclass(frozen=True)
class StepFamily:
    """Lines with the same words before a number that grows; ``interval`` is by how much it does, mostly."""

    before: str
    places: Sequence[Occurrence]
    interval: int
    falls: int


def find_families(lines: Iterable[tuple[int, str]]) -> list[StepFamily]:
    """The kinds of lines with a number that grows, those first that are most like step lines."""
    places_by_words: dict[str, list[Occurrence]] = {}
    for number, line in lines:
        for text in line.split("\r"):
            # A line may be a million characters long.
            for key, place in _integers(number, text[:MOST_LOOKED_AT]):
                places_by_words.setdefault(key, []).append(place)
    families = (_family(key, places) for key, places in places_by_words.items() if not _is_other(key))
    return sorted((family for family in families if family), key=_likeness, reverse=True)[:MOST_FAMILIES]


def has_two_counters(family: StepFamily, others: Sequence[StepFamily]) -> bool:
    """Whether another counter of steps on the same lines grows by another interval, such as one of micro-batches."""
    lines = {place.line_number for place in family.places}
    return any(
        plain(other.before).split()[-1:] in _STEP_KEYS
        and other.interval != family.interval
        and 2 * len(lines.intersection(place.line_number for place in other.places)) > len(lines)
        for other in others
        if other.before != family.before
    )


def may_hold_step(text: str) -> bool:
    """Whether ``text`` has a whole number that may be a step: none of epochs, of tokens or of seconds."""
    words = (plain(key).split() for key, _ in _integers(0, text[:MOST_LOOKED_AT]) if not _is_other(key))
    return any(not word or word[-1] not in _OTHERS for word in words)


def _is_other(before: str) -> bool:
    """Whether the word before a number says that it is no step, such as tokens that were seen."""
    label = before.strip(" :=\"'")
    columns = columns_of(label)
    return bool(columns) and not {"step", "epoch"} & set(columns) and plain(label) not in step_words()


def _integers(number: int, text: str) -> Iterator[tuple[str, Occurrence]]:
    """Each of the first integers of a line, with the words between the number before it and itself."""
    stamp = _STAMP.search(text)
    begin = stamp.end() if stamp else 0
    seen: Counter[str] = Counter()
    for match in list(_INTEGER.finditer(text, begin))[:MOST_TRIED]:
        at = match.end() - len(match[0].lstrip())
        key = words_before(text, at, begin)
        seen[key] += 1
        if seen[key] == 1:
            yield key, Occurrence(number, text, at, match.end())


def words_before(text: str, at: int, begin: int = 0) -> str:
    """The text before ``at``, back to the number before it, with the drawing of a bar left out."""
    front = _BAR.sub("%||", text[begin:at])
    return regex.sub(r"\s+", " ", _NUMBER.split(front)[-1])


def _family(key: str, places: Sequence[Occurrence]) -> StepFamily | None:
    first = places[0]
    # The step of a bar with a clock and a loss: no other lines are needed to know it.
    if len(places) < FEWEST and all(_OF_BAR.match(p.text, p.end) and _LOSS.search(p.text) for p in places):
        return StepFamily(key, places, 0, 0)
    if len(places) < FEWEST or not regex.search(r"\d", first.text[: first.begin] + first.text[first.end :]):
        return None
    changes = [b.value - a.value for a, b in pairwise(places) if a.value != b.value]
    grown = Counter(change for change in changes if change > 0)
    falls = len(changes) - grown.total()
    if grown.total() < FEWEST - 1 or falls > MOST_FALLS * len(changes):
        return None
    interval, n = grown.most_common(1)[0]
    # A step by its word or in a bar may be printed at any time.
    named = plain(key).split()[-1:] in _STEP_KEYS or all(_OF_BAR.match(p.text, p.end) for p in places[:FEWEST])
    return StepFamily(key, places, interval, falls) if named or n >= SAME * grown.total() else None


def _likeness(family: StepFamily) -> tuple[float, int]:
    """How much they look like step lines: by the word before the number, a loss or time on the line, the line count."""
    words = plain(family.before).split()
    last = words[-1] if words else ""
    word = 4.0 if last in step_words() else 0.2 if last in _OTHERS else 1.0
    text = family.places[len(family.places) // 2].text.lower()
    # A counter that grows by the length of the bar at its end counts the steps of the bar.
    bar = _DONE.search(text)
    word *= 4.0 if bar and int(bar[1]) == family.interval > 1 else 1.0
    metrics = 2.0 * ("loss" in text) + bool(regex.search(r"time|/s|s/it|\blr\b|learning", text)) + 0.5
    others = 1.0 if "val" not in text else 0.5 if "val" not in family.before.lower() else 0.1
    return word * metrics * others * len(family.places), len(family.places)
