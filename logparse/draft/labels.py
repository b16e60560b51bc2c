"""What the labels of a line mean, by their spelling, their units and their numbers.

Comes in: each label with its values. Goes out: its column, or the possible columns and the reason for the doubt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Literal

import regex

from logparse.draft.words_and_units import (
    LONGEST_LABEL,
    PACE,
    RUNTIME,
    TIME,
    UNITS_OF,
    VALUE,
    columns_of,
    is_doubtful,
    plain,
    unit_columns,
    unit_of,
    unit_scale,
)
from logparse.formats._base import MULTIPLES, NUMBER, Reading
from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass, replace

LabelDoubt = Literal["unit", "factor", "column", "unknown", "grows"]
UNIX_TIME = 1e8
# How far the unit of a time may be from the clock of the lines.
NEAR = 0.35
_OF_ALL, _OF_ONE = "logged_tokens_per_second", "logged_tokens_per_second_per_device"
_CLOCK = lazy_regex(
    r"(?:\d+ days?, )?(?:\d+:)+\d\d(?:\.\d+)?|\d+(?:\.\d+)?s?|(?:\d+d ?)?(?:\d+h ?)?(?:\d+m ?)?(?:\d+(?:\.\d+)?s)?"
)
# A value and its mean, or a step and the number of steps.
_TWO_NUMBERS, SECOND_NUMBER = lazy_regex(rf"({NUMBER})/{NUMBER}"), r"/[\d.,]+"
# So many values of a clock grow, and hardly those of a time.
SURE_CLOCK = 8
_NUMBER_OR_NONE = lazy_regex(rf"(?:{NUMBER}|[Nn]one|N/A)(?:\s*[%A-Za-z/]+)?")


@dataclass(frozen=True)
class DraftLabel:
    """A label that the log prints ``n`` times, with its first ``value``. ``reading`` is None where it is doubtful.

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


def draft_labels(
    values: Mapping[str, Sequence[str]], seconds: float | None, units: Mapping[str, str], paced: bool = False
) -> list[DraftLabel]:
    """Each label with its ``values``; ``seconds`` are those of a step by the clock of the lines.

    ``units`` are the labels that are units of numbers without a label, and the label before each. ``paced``: the lines
    hold a bar, whose time of a step is a moving mean.
    """
    labels = [
        _of_unit(label, texts, units[label], paced) if label in units else _label(label, texts, seconds)
        for label, texts in values.items()
    ]
    return list(_once_each(list(_of_all_devices(labels))))


def _of_all_devices(labels: Sequence[DraftLabel]) -> Iterator[DraftLabel]:
    """Yield ``labels``. Where one is the rate of a device, another rate of tokens is that of all devices."""
    of_one = any(label.reading and label.reading.column == _OF_ONE for label in labels)
    for label in labels:
        if of_one and label.reading is None and label.doubt == "column" and label.may_be == (_OF_ALL, _OF_ONE):
            reading = Reading(_OF_ALL, scale=label.scale, suffix=label.suffix)
            yield DraftLabel(label.label, label.n, label.value, reading, scale=label.scale, suffix=label.suffix)
        else:
            yield label


def _once_each(labels: Sequence[DraftLabel]) -> Iterator[DraftLabel]:
    """Yield ``labels``. Only one label reads each column: the one on most lines."""
    taken: set[str] = set()
    for label in sorted(labels, key=lambda label: -label.n):
        if label.reading and label.reading.column in taken:
            column = label.reading.column
            yield DraftLabel(label.label, label.n, label.value, None, "column", (column,), label.scale, label.suffix)
            continue
        taken |= {label.reading.column} if label.reading else set()
        yield label


def _label(label: str, values: Sequence[str], seconds: float | None) -> DraftLabel:
    # The value of a line that was cut is empty.
    values = [value for value in values if value] or values
    if all(_TWO_NUMBERS.fullmatch(value[:LONGEST_LABEL]) for value in values):
        return _of_first_numbers(label, values, seconds)
    numbers = [number for value in values if (number := VALUE.fullmatch(value[:LONGEST_LABEL]))]
    columns = columns_of(label) or _by_unit(numbers)
    if not columns:
        return DraftLabel(label, len(values), values[0], None, "unknown")
    if RUNTIME in columns or len(numbers) < len(values):
        return _clock_or_none(label, values, columns)
    return _of_numbers(label, numbers, columns, seconds)


def _of_first_numbers(label: str, values: Sequence[str], seconds: float | None) -> DraftLabel:
    """A label whose values are two numbers with a slash: the first counts."""
    draft = _label(label, [value.partition("/")[0] for value in values], seconds)
    reading = replace(draft.reading, suffix=SECOND_NUMBER) if draft.reading else None
    return replace(draft, value=values[0], reading=reading, suffix=SECOND_NUMBER)


def _by_unit(numbers: Sequence[regex.Match[str]]) -> tuple[str, ...]:
    """The columns of a rate that its unit alone names, as in ``Throughput: 4175 tokens/s``."""
    units = {number[2] or "" for number in numbers}
    unit = units.pop() if len(units) == 1 else ""
    columns = unit_columns(unit) if "/" in unit[1:] else ()
    return columns if all("per_second" in column for column in columns) else ()


def _of_unit(unit: str, values: Sequence[str], before: str, paced: bool) -> DraftLabel:
    """A number without a label, by its ``unit``."""
    columns, draft = unit_columns(unit, before), partial(DraftLabel, unit, len(values), values[0])
    numbers = [float(value.replace(",", "")) for value in values]
    # What no device reaches, such as -100 % of its peak, is no measurement.
    if not columns or any(number < 0 for number in numbers):
        return draft(None, "unknown")
    scale = unit_scale(unit, columns[0])
    if columns == (TIME,) and paced and "/" in unit:
        return draft(Reading(PACE, scale=scale / 1000), scale=scale / 1000)
    if columns == (TIME,) and _grows(numbers):
        return draft(Reading(RUNTIME, scale=scale / 1000), scale=scale / 1000)
    if len(columns) > 1 or is_doubtful(unit):
        return draft(None, "column", columns, scale)
    return draft(Reading(columns[0], scale=scale), scale=scale)


def _of_numbers(
    label: str, numbers: Sequence[regex.Match[str]], columns: tuple[str, ...], seconds: float | None
) -> DraftLabel:
    """A label whose values are all plain numbers, with or without a unit after them."""
    draft = partial(DraftLabel, label, len(numbers), numbers[0].string)
    units = {number[2] or "" for number in numbers}
    values = [float(number[1].replace(",", "")) for number in numbers]
    if columns == (TIME,) and _grows(values):
        scale = _scale_of_clock(label, units, values)
        return (
            draft(Reading(RUNTIME, scale=scale, suffix=_suffix(units)))
            if scale
            else draft(None, "grows", (RUNTIME, TIME))
        )
    if (multiples := _multiples(label, units, columns)) is not None:
        return draft(multiples, scale=multiples.scale)
    known = None if len(units) > 1 else scale_of(columns[0], min(units) or unit_of(label)[1], values, seconds)
    columns = _by_fractions(columns, values)
    suffix, scale = _suffix(units), known or 1.0
    if doubt := _doubt(label, columns, units, known):
        return draft(None, doubt, columns, scale, suffix)
    return draft(Reading(columns[0], scale=scale, suffix=suffix), scale=scale, suffix=suffix)


def _multiples(label: str, units: set[str], columns: tuple[str, ...]) -> Reading | None:
    """How ``11.5K`` is read: by its letter, and by the unit in ``label`` if it is a time; None for other numbers."""
    letters = units - {""}
    if not letters or not letters <= set(MULTIPLES) or len(columns) > 1 or is_doubtful(label):
        return None
    known = UNITS_OF.get(columns[0], {"": 1.0})
    scale = known.get(unit_of(label)[1].lower())
    return (
        None
        if scale is None or (letters & {"M"} and columns[0] == TIME)
        else Reading(columns[0], scale=scale, multiples=True)
    )


def _scale_of_clock(label: str, units: set[str], values: Sequence[float]) -> float | None:
    """The factor of a clock to seconds; None where a time that grows is as likely, or its unit is not printed."""
    # A Unix time is none of a run, and its lines may be of any event.
    if plain(unit_of(label)[0]) != "time" or values[0] > UNIX_TIME:
        return None
    unit = (min(units) if len(units) == 1 else "") or unit_of(label)[1]
    known = UNITS_OF[RUNTIME].get(unit.lower())
    return known if len(set(values)) >= SURE_CLOCK else None


def _doubt(label: str, columns: tuple[str, ...], units: set[str], scale: float | None) -> LabelDoubt | None:
    """Why the column or the scale of ``label`` is not sure; None where both are."""
    if len(columns) > 1 or is_doubtful(label):
        return "column"
    if scale is None:
        return "factor" if units - {""} else "unit"
    return None


def _by_fractions(columns: tuple[str, ...], values: Sequence[float]) -> tuple[str, ...]:
    """``columns``; an epoch that has a fraction is the epochs done."""
    fraction = columns == ("epoch",) and not all(value.is_integer() for value in values)
    return ("epochs_done",) if fraction else columns


def _clock_or_none(label: str, values: Sequence[str], columns: tuple[str, ...]) -> DraftLabel:
    """A label with other values than plain numbers, such as a clock."""
    column, draft = columns[0], partial(DraftLabel, label, len(values), values[0])
    if column == RUNTIME:
        return _of_clock(label, values)
    # A clock with colons is no time of a step; when it was 0 is not printed.
    if column == TIME and all(":" in value for value in values) and _all_match(_CLOCK, values):
        return draft(None, "grows", (RUNTIME,))
    if column == "overflow" and all(value.lower() in ("true", "false") for value in values):
        return draft(Reading(column))
    if column == "step" or not _all_match(_NUMBER_OR_NONE, values):
        return draft(None, "unit", columns)
    return draft(Reading(column, absent="None|none|N/A"))


def _of_clock(label: str, values: Sequence[str]) -> DraftLabel:
    """A label with the time since the start: as a clock, in words, or a number with one unit."""
    draft = partial(DraftLabel, label, len(values), values[0])
    if _all_match(_CLOCK, values):
        return draft(Reading(RUNTIME))
    numbers = [VALUE.fullmatch(value) for value in values]
    units = {number[2] or "" if number else "" for number in numbers}
    scale = UNITS_OF[RUNTIME].get(min(units).lower()) if len(units) == 1 else None
    if scale is None:
        return draft(None, "unit", (RUNTIME,))
    return draft(Reading(RUNTIME, scale=scale, suffix=_suffix(units)), scale=scale, suffix=_suffix(units))


def _all_match(pattern: regex.Pattern[str], values: Sequence[str]) -> bool:
    return all(pattern.fullmatch(value) for value in values)


def _suffix(units: set[str]) -> str:
    """The pattern of the unit after the number."""
    if units <= {""}:
        return ""
    named = "|".join(regex.escape(unit, special_only=True) for unit in sorted(units - {""}))
    return rf"\s*(?:{named})" if len(units) > 1 else rf"\s*{named}"


def scale_of(column: str, unit: str, values: Sequence[float], seconds: float | None) -> float | None:
    """The factor to the unit of ``column``; None where neither the unit nor the clock of the lines gives it."""
    units = UNITS_OF.get(column, {"": 1.0})
    if unit.lower() in units:
        return units[unit.lower()]
    if "/" in unit and "per_second" in column:
        return 1.0
    # A K or M after a number would be lost.
    if unit and column not in (TIME, RUNTIME):
        return None
    if column in ("logged_mfu", "logged_hfu"):
        return 0.01 if max(values) > 1 else 1.0
    return _scale_by_clock(values, seconds) if column == TIME and seconds else None


def _scale_by_clock(times: Sequence[float], seconds: float) -> float | None:
    """The factor from ``times`` to ms by which their median takes about ``seconds``: that of s, or of ms."""
    typical = sorted(times)[len(times) // 2]
    return next((scale for scale in (1000.0, 1.0) if abs(typical * scale / 1000 / seconds - 1) < NEAR), None)


def _grows(values: Sequence[float]) -> bool:
    """Whether ``values`` are those of a clock. A Unix time hardly grows relative to its value."""
    far = values[-1] > 2 * values[0] or values[0] > UNIX_TIME
    return len(values) >= 3 and list(values) == sorted(values) and far and len(set(values)) > 2
