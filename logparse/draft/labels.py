"""What the labels of a line mean, by their spelling, their units and their numbers.

Comes in: each label with its values. Goes out: its column, or the columns that it may be of and why that is not sure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import regex

from logparse.draft.spellings import (
    RUNTIME,
    TIME,
    UNITS_OF,
    VALUE,
    bare_column,
    columns_of,
    is_doubtful,
    unit_of,
)
from logparse.formats._base import NUMBER, Reading

LabelDoubt = Literal["unit", "factor", "column", "unknown", "grows", "bare"]
UNIX_TIME = 1e8
# How far the unit of a time may be from the clock of the lines.
NEAR = 0.35


@dataclass(frozen=True)
class DraftLabel:
    """A label of the log, ``n`` times there, with a ``value``. ``reading`` is None where it is doubtful.

    ``may_be`` are the columns that it may fill.
    """

    label: str
    n: int
    value: str
    reading: Reading | None
    doubt: LabelDoubt | None = None
    may_be: tuple[str, ...] = ()
    scale: float = 1.0
    suffix: str = ""


def draft_labels(values: Mapping[str, Sequence[str]], seconds: float | None) -> list[DraftLabel]:
    """Each label with its ``values``; ``seconds`` are those of a step by the clock of the lines."""
    return list(_once_each([_label(label, found, seconds) for label, found in values.items()]))


def _once_each(labels: Sequence[DraftLabel]) -> Iterator[DraftLabel]:
    """``labels``, of which one reads each column, the one that stands on most lines."""
    taken: set[str] = set()
    for label in sorted(labels, key=lambda found: -found.n):
        if label.reading and label.reading.column in taken:
            column = label.reading.column
            yield DraftLabel(label.label, label.n, label.value, None, "column", (column,), label.scale, label.suffix)
            continue
        taken |= {label.reading.column} if label.reading else set()
        yield label


def _label(label: str, values: Sequence[str], seconds: float | None) -> DraftLabel:
    first, n = values[0], len(values)
    if not label:
        return _bare(values)
    columns = columns_of(label)
    numbers = [VALUE.fullmatch(value) for value in values]
    if not columns:
        return DraftLabel(label, n, first, None, "unknown")
    if RUNTIME in columns or not all(numbers):
        return _clock_or_none(label, values, columns)
    units = {number[2] or "" for number in numbers if number}
    floats = [float(number[1].replace(",", "")) for number in numbers if number]
    if columns == (TIME,) and _grows(floats):
        return DraftLabel(label, n, first, None, "grows", (RUNTIME, TIME))
    suffix = _suffix(units)
    known = None if len(units) > 1 else scale_of(columns[0], min(units) or unit_of(label)[1], floats, seconds)
    if columns == ("epoch",) and not all(value.is_integer() for value in floats):
        columns = ("epochs_done",)
    if len(columns) > 1 or is_doubtful(label):
        return DraftLabel(label, n, first, None, "column", columns, known or 1.0, suffix)
    if known is None:
        return DraftLabel(label, n, first, None, "factor" if units - {""} else "unit", columns, 1.0, suffix)
    return DraftLabel(label, n, first, Reading(columns[0], scale=known, suffix=suffix), scale=known, suffix=suffix)


def _clock_or_none(label: str, values: Sequence[str], columns: tuple[str, ...]) -> DraftLabel:
    """A label with other values than plain numbers, such as a clock."""
    column, n, first = columns[0], len(values), values[0]
    words = rf"(?:{NUMBER}|[Nn]one|N/A)(?:\s*[%A-Za-z/]+)?"
    if column == RUNTIME and all(
        regex.fullmatch(r"(?:\d+:)+\d\d(?:\.\d+)?|\d+(?:\.\d+)?s?", value) for value in values
    ):
        return DraftLabel(label, n, first, Reading(column, suffix="s" if first.endswith("s") else ""))
    if column == "overflow" and all(value.lower() in ("true", "false") for value in values):
        return DraftLabel(label, n, first, Reading(column))
    if column == "step" or not all(regex.fullmatch(words, value) for value in values):
        return DraftLabel(label, n, first, None, "unit", columns)
    return DraftLabel(label, n, first, Reading(column, absent="None|none|N/A"))


def _bare(values: Sequence[str]) -> DraftLabel:
    """The value without a label whose unit tells its column: the one of a time rather than that of a rate."""
    told = [(column, value) for value in values if (column := bare_column(value))]
    column = TIME if any(column == TIME for column, _ in told) else told[0][0] if told else None
    if column is None:
        return DraftLabel("", len(values), values[0], None, "unknown")
    units = {VALUE.fullmatch(value)[2] for c, value in told if c == column}  # type: ignore[index]
    scale = UNITS_OF.get(column, {}).get(min(units).lower(), 1.0)
    one = len(units) == 1 and len(told) == len(values)
    reading = Reading(column, scale=scale, suffix=_suffix(units)) if one else None
    return DraftLabel("", len(values), told[0][1], reading, None if one else "bare", (column,), scale, _suffix(units))


def _suffix(units: set[str]) -> str:
    """The pattern of what stands behind the number."""
    if units <= {""}:
        return ""
    named = "|".join(regex.escape(unit, special_only=True) for unit in sorted(units - {""}))
    return rf"\s*(?:{named})" if len(units) > 1 else rf"\s*{named}"


def scale_of(column: str, unit: str, values: Sequence[float], seconds: float | None) -> float | None:
    """The factor to the unit of ``column``; None where neither a unit nor the clock of the lines tells it."""
    units = UNITS_OF.get(column, {"": 1.0})
    if unit.lower() in units:
        return units[unit.lower()]
    # A K or M behind a number would be lost.
    if unit and column not in (TIME, RUNTIME):
        return None
    if column in ("logged_mfu", "logged_hfu"):
        return 0.01 if max(values) > 1 else 1.0
    if column == TIME and seconds:
        typical = sorted(values)[len(values) // 2]
        fits = [scale for scale in (1000.0, 1.0) if abs(typical * scale / 1000 / seconds - 1) < NEAR]
        return fits[0] if fits else None
    return None


def _grows(values: Sequence[float]) -> bool:
    """Whether they are of a clock: those of a Unix time hardly grow beside what they are."""
    far = values[-1] > 2 * values[0] or values[0] > UNIX_TIME
    return len(values) >= 3 and list(values) == sorted(values) and far and len(set(values)) > 2
