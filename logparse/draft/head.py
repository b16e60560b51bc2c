"""The pattern of the head: the step of a line and the text around it.

Comes in: lines of one family. Goes out: a pattern for a format. ``layout`` reads the text after the head.
"""

from __future__ import annotations

from collections.abc import Sequence

import regex

from logparse.draft.families import Occurrence, StepFamily
from logparse.draft.labels import scale_of
from logparse.draft.words_and_units import RUNTIME, columns_of, unit_of
from logparse.formats._base import BAR_RATE, NUMBER
from logparse.lazy_regex import lazy_regex

_EPOCH = lazy_regex(r"(?i)\bepochs?[\s:=#\[(]{0,4}(\d+)(?:\s*/\s*(\d+))?[\s,|;:\])-]{1,6}$")
_TOTAL = lazy_regex(r"(\s*(?:/|of)\s*)(\d+)")
# A row of a table has at least so many cells; the pattern of one cell.
MOST_NARROW, _CELL = 3, r"[^\s,|]+"
TOTAL = "train_steps"
# The pattern between two cells, by the first of these signs in the row; every row contains "".
_SEPARATORS = {",": r"\s*,\s*", "|": r"\s*\|\s*", "": r"\s+"}


def head_of(family: StepFamily, places: Sequence[Occurrence]) -> tuple[str, bool]:
    """The pattern of the head; and whether it ends where the pairs begin, with the step as one of them."""
    if record := regex.search(r"\{\s*[\"'][\w ./-]+[\"']\s*: ", places[0].text[: places[0].end + 1]):
        nested = any(place.text.count("{") > 1 for place in places)
        return r"^[^{]*(\{)" if nested else r"^(\{)" if record.start() == 0 else r"(\{)", True
    before = family.before
    label = regex.search(r"(?:[A-Za-z_]+ )?[A-Za-z_]*[\s:=\[(#\"']*$", before)
    word = label[0] if label and regex.search("[A-Za-z]", label[0]) else ""
    word = regex.sub(r"^[A-Z]{2,} (?=.*[A-Za-z])", "", word)
    start = _pattern(word) if word else _start(before)
    # Another word may end in the same letters.
    if word[:1].isalpha() and not any(regex.search(r"\w$", _before(place, word)) for place in places):
        start = r"\b" + start
    epoch, epochs = _epoch(places, word)
    # A step that falls with each epoch is one within it; so is one that is not where the epoch is in its own plan.
    falls = family.falls and min(epochs, default=0) > 0 and family.falls == len(set(epochs)) - 1
    in_epoch = bool(falls or ("(?P<epochs>" in epoch and _is_within_epoch(places, word)))
    # Without a word the sign before the step is the one after the epoch.
    start = start if word or not epoch else ""
    return f"{epoch}{start}{_step_and_total(places, in_epoch)}", False


def _before(place: Occurrence, word: str) -> str:
    """The character before ``word``, which is in front of the step, but for its blanks."""
    front = place.text[: place.begin].rstrip()
    at = len(front) - len(word.rstrip())
    return front[max(0, at - 1) : max(0, at)]


def _start(before: str) -> str:
    """The pattern before a step without a word: the beginning of the line, or a sign."""
    sign = regex.search(r"[^\w\s]\s*$", before)
    return _pattern(sign[0]) if sign else r"^\s*"


def _pattern(literal: str) -> str:
    """A pattern for ``literal`` with any number of blanks."""
    return r"\s*".join(regex.escape(part, special_only=True) for part in regex.split(r"\s+", literal))


def _epoch(places: Sequence[Occurrence], word: str) -> tuple[str, list[int]]:
    """The pattern of an epoch right before the step, and the epochs, if it is there on every line."""
    epochs = [_EPOCH.search(place.text[: place.begin].removesuffix(word)) for place in places]
    first = epochs[0]
    if first is None or not all(epochs):
        return "", []
    number = first.end(2) if first[2] else first.end(1)
    before, after = first.string[first.start() : first.start(1)], first.string[number : first.end()]
    total = r"\s*/\s*(?P<epochs>\d+)" if first[2] else ""
    pattern = _pattern(before) + r"(?P<epoch>\d+)" + total + _pattern(after)
    return pattern, [int(epoch[1]) for epoch in epochs if epoch]


def _is_within_epoch(places: Sequence[Occurrence], word: str) -> bool:
    """Whether the step and its number of steps are of an epoch: steps of a training are as far as its epochs are."""
    for place in places:
        total, epoch = _TOTAL.match(place.text, place.end), _EPOCH.search(place.text[: place.begin].removesuffix(word))
        if total is None or epoch is None:
            return False
        per_epoch, rest = divmod(int(total[2]), max(int(epoch[2]), 1))
        if rest or not (int(epoch[1]) - 1) * per_epoch <= place.value <= (int(epoch[1]) + 1) * per_epoch:
            return True
    return False


def _step_and_total(places: Sequence[Occurrence], in_epoch: bool) -> str:
    """The pattern of the step, of the number of steps, and of the clock of a bar."""
    total, rest = _total([place.text[place.end :] for place in places], "steps_per_epoch" if in_epoch else TOTAL)
    step = "step_in_epoch" if in_epoch else "step"
    return rf"(?P<{step}>\d+)" + total + _clock_of_bar(rest)


def _total(texts: Sequence[str], column: str) -> tuple[str, Sequence[str]]:
    """The pattern of the number of steps, "" where a line does not print it; and the texts after it."""
    totals = [total for text in texts if (total := _TOTAL.match(text))]
    if len(totals) < len(texts):
        return "", texts
    one = len({total[2] for total in totals}) == 1
    pattern = _pattern(totals[0][1]) + (rf"(?P<{column}>\d+)" if one else r"\d+")
    return pattern, [text[total.end() :] for text, total in zip(texts, totals, strict=True)]


def _clock_of_bar(texts: Sequence[str]) -> str:
    """The pattern of the clock of a bar, or of closing brackets and a colon; "" where ``texts`` differ there."""
    if all(regex.match(r"\s*\[[\d:]+<", text) for text in texts):
        return rf"\s*\[(?P<runtime_seconds>[\d:]+)<{BAR_RATE}[^,\]]*"
    closing = [regex.match(r"\s?[\])]*\s?:?", text) for text in texts]
    literal = closing[0][0] if closing[0] else ""
    same = literal.strip() and all(match and match[0] == literal for match in closing)
    return _pattern(literal) if same else ""


def bodies_after(places: Sequence[Occurrence], head: str) -> list[str]:
    """The texts after the head; for a bar, up to its closing bracket."""
    matches = ((place.text, regex.search(head, place.text)) for place in places)
    bodies = [text[match.end() :] for text, match in matches if match]
    return [body.partition("]")[0] for body in bodies] if RUNTIME in head else bodies


def table_head(places: Sequence[Occurrence], lines: Sequence[tuple[int, str]]) -> tuple[str, str]:
    """The head of a table, which holds all values, and its first heading; "" where the lines are no rows of one.

    A line of words above the rows has one word for each value, in the same order.
    """
    rows, first = [_cells(place.text) for place in places], places[0]
    headings = _headings(lines, first.line_number, len(rows[0])) if _is_table(rows) else None
    if headings is None:
        return "", ""
    separator = next(pattern for sign, pattern in _SEPARATORS.items() if sign in first.text)
    columns = list(map(_column_of_table, headings, zip(*rows, strict=True)))
    cells = [f"(?P<{c}>{_CELL})" if c and c not in columns[:i] else _CELL for i, c in enumerate(columns) if i]
    return r"^[\s|]*(?P<step>\d+)" + separator + separator.join(cells), headings[0]


def _is_table(rows: Sequence[Sequence[str]]) -> bool:
    """Whether all rows have the same number of cells, and begin with a whole number."""
    wide = len(rows[0])
    return wide >= MOST_NARROW and all(len(row) == wide and row[0].isdigit() for row in rows)


def _headings(lines: Sequence[tuple[int, str]], below: int, wide: int) -> list[str] | None:
    """The nearest line above line ``below`` with ``wide`` words and no number; None where there is none."""
    above = [_cells(text) for number, text in lines if number < below]
    return next((row for row in reversed(above) if len(row) == wide and not any(c.isdigit() for c in row)), None)


def _cells(line: str) -> list[str]:
    return [cell for cell in regex.split(r"[\s,|]+", line) if cell]


def _column_of_table(heading: str, values: Sequence[str]) -> str | None:
    """The column of ``heading``, if its numbers are in the unit of the column, as nothing can scale them here."""
    columns = columns_of(heading)
    if len(columns) != 1 or not all(regex.fullmatch(NUMBER, value) for value in values):
        return None
    return columns[0] if scale_of(columns[0], unit_of(heading)[1], [1.0], None) == 1.0 else None
