"""A record of several lines: a step line, then a line for each value.

Comes in: the head of a step line, and the lines. Goes out: the pattern of the lines with values, and their values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import regex

from logparse.draft.words_and_units import columns_of
from logparse.formats._base import NUMBER, PairLines
from logparse.lazy_regex import lazy_regex

# Lines after a step line that are looked at, characters of each, and the share of the records that print a label.
MOST_AFTER, LONGEST_LINE, SHARE = 40, 200, 0.6
_LINE = lazy_regex(rf"([A-Za-z][\w ./()%-]{{0,40}}?)\s*([:=])\s*({NUMBER}(?: ?[A-Za-z/%]{{1,10}})?)[\s|]*$")
# What a logger prints before a label: a level, a dash, a column of a table.
_BEFORE_LABEL = lazy_regex(r"^(?:.*(?:\s{2,}|[-\])]\s))?(?:[A-Z]{4,}\s+)?")


def find_pair_lines(
    head: str, markers: Sequence[str], texts: Sequence[str]
) -> tuple[PairLines, dict[str, list[str]]] | None:
    """The lines with values after each step line, and the values of each label; None where there are none."""
    values: dict[str, list[str]] = {}
    signs: dict[str, str] = {}
    records = 0
    for fields in _records(regex.compile(head), markers, texts):
        records += 1
        for label, (sign, value) in fields.items():
            values.setdefault(label, []).append(value)
            signs.setdefault(label, sign)
    kept = {label: found for label, found in values.items() if len(found) >= SHARE * records}
    if not any(columns_of(label) for label in kept):
        return None
    names = "|".join(r"\s+".join(regex.escape(word, special_only=True) for word in label.split()) for label in kept)
    pair = rf"(?:^|\W)({names})\s*[:=]\s*(\S+(?: ?[A-Za-z/%]+)?)[\s|]*$"
    return PairLines(tuple(dict.fromkeys(signs[label] for label in kept)), pair), kept


def _records(
    head: regex.Pattern[str], markers: Sequence[str], texts: Sequence[str]
) -> Iterator[dict[str, tuple[str, str]]]:
    """For each step line the values of the lines after it, each with the literal before it."""
    fields: dict[str, tuple[str, str]] | None = None
    left = 0
    for text in texts:
        line = text[:LONGEST_LINE]
        if any(marker in line for marker in markers) and head.search(line):
            if fields is not None:
                yield fields
            fields, left = {}, MOST_AFTER
        elif fields is not None and left:
            left -= 1
            if len(text) <= LONGEST_LINE and (match := _LINE.search(line)):
                label = " ".join(match[1][_BEFORE_LABEL.match(match[1]).end() :].split())  # type: ignore[union-attr]
                sign = line[match.start() : match.start(3)].rstrip()
                if label:
                    fields.setdefault(label, (sign[sign.find(label.split()[-1]) :], match[3]))
    if fields is not None:
        yield fields
