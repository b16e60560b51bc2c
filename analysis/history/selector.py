"""The grammar of selectors: ``release=CANN 8.0.RC2,world_size>=64,name~*nightly*,last 10``.

Comes in: what the user wrote. Goes out: a Selector. A value ends at the next comma that is followed by another
condition. In quotes it may hold commas; a quote within them is written twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Literal, cast

import regex

from logparse.errors import UsageError
from logparse.language import tr
from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "~", "in"]

KEY = lazy_regex(r"[\w.-]+")
SIGN = r"(?P<operator>!=|<=|>=|=|<|>|~)"
QUOTED = r""""(?:[^"]|"")*"|'(?:[^']|'')*'"""
LAST = r"last\s+(?P<last>\d+)"
# What follows a comma that parts two conditions; once there was only the first.
EQUALITY = rf"{KEY.pattern}\s*="
ANY = rf"(?:{KEY.pattern}\s*(?:[=<>~]|!=)|{KEY.pattern}\s+in\s|last\s+\d+\s*(?:,|$))"
# A run by its id alone, without a key.
BARE_ID = lazy_regex(r"[0-9a-f]{4,32}")


def _one(sign: str) -> str:
    return rf"(?P<key>{KEY.pattern})\s*{sign}\s*(?P<value>{QUOTED}|.*?)"


def _pattern(forms: str, next_one: str) -> regex.Pattern[str]:
    return regex.compile(rf"\s*(?P<text>{forms})\s*(?:,(?=\s*{next_one})|,?$)", regex.DOTALL)


ITEM = rf"(?P<value>{QUOTED}|[^|]*?)"
LISTED = rf"(?P<key>{KEY.pattern})\s+(?P<operator>in)\s+{ITEM}(?:\s*\|\s*{ITEM})*"
CONDITION = _pattern(f"{_one(SIGN)}|{LISTED}|{LAST}", ANY)
# None of its texts is a number of newest runs.
CONDITION_OF_OLD = _pattern(f"{_one('(?P<operator>=)')}|(?!)(?P<last>)", EQUALITY)


@dataclass(frozen=True)
class RunCondition:
    """What must hold of a run. ``key`` is in lower case; only ``in`` has several values.

    ``text`` is its text, which begins at the character ``at`` of the selector, counted from 1.
    """

    key: str
    operator: Operator
    values: tuple[str, ...]
    text: str = ""
    at: int = 1

    @property
    def names_runs(self) -> bool:
        """Whether it names runs by their ids."""
        return self.key in ("id", "run_id") and self.operator in ("=", "in")


@dataclass(frozen=True)
class Selector:
    """Runs of which all ``conditions`` hold, and of these the ``last`` so many by their clocks."""

    text: str
    conditions: tuple[RunCondition, ...]
    last: int | None = None

    @property
    def names_runs(self) -> bool:
        """Whether it names runs by their ids."""
        return any(condition.names_runs for condition in self.conditions)

    @property
    def equalities(self) -> Mapping[str, str]:
        """The values of its conditions that are ``key=value``, by key."""
        return {c.key: c.values[0] for c in self.conditions if c.operator == "="}

    def place(self, condition: RunCondition) -> str:
        """The place of ``condition``, for an error."""
        return _place(self.text, condition.at, condition.text)


def is_selector(text: str) -> bool:
    """Whether ``text`` is of the form of a condition, such as key=value. The beginning of an id alone is not."""
    return CONDITION.match(text) is not None


def is_equality(text: str) -> bool:
    """Whether ``text`` begins as key=value: other conditions look like names of files, such as run.log~."""
    return CONDITION_OF_OLD.match(text) is not None


def parse_selector(text: str) -> Selector:
    """Raises UsageError where ``text`` is no selector, or says twice what a key is equal to."""
    bare = text.strip()
    if BARE_ID.fullmatch(bare):
        return Selector(text, (RunCondition("id", "=", (bare,), bare),))
    return _parsed(text, CONDITION)


def parse_selector_of_old(text: str) -> Selector | None:
    """What ``text`` was when all that there was is ``key=value``; None where it means the same now."""
    try:
        then = _parsed(text, CONDITION_OF_OLD)
    except UsageError:
        return None
    with suppress(UsageError):
        return None if then == _parsed(text, CONDITION) else then
    return then


def _parsed(text: str, pattern: regex.Pattern[str]) -> Selector:
    conditions: list[RunCondition] = []
    last: int | None = None
    at = 0
    while at < len(text) or not at:
        match = pattern.match(text, at)
        if match is None or match.end() == at:
            raise _no_condition(text, at)
        if match["last"] is None:
            conditions.append(_made(match))
            _check_once(text, conditions)
        elif last is None:
            last = int(match["last"])
        else:
            raise _twice(text, "last", match.start("text") + 1, match["text"])
        at = match.end()
    return Selector(text, tuple(conditions), last)


def _made(match: regex.Match[str]) -> RunCondition:
    values = tuple(_unquoted(value) for value in match.captures("value"))
    operator = cast("Operator", match["operator"])
    return RunCondition(match["key"].lower(), operator, values, match["text"], match.start("text") + 1)


def _unquoted(value: str) -> str:
    quote = value[:1]
    return value[1:-1].replace(quote * 2, quote) if regex.fullmatch(QUOTED, value) else value


def _check_once(text: str, conditions: list[RunCondition]) -> None:
    new = conditions[-1]
    equal = ("=", "in")
    if new.operator in equal and any(c.key == new.key and c.operator in equal for c in conditions[:-1]):
        raise _twice(text, new.key, new.at, new.text)


def _twice(text: str, key: str, at: int, part: str) -> UsageError:
    remedy = tr("give one value for each key, or several as in {key} in A|B", key=key)
    return UsageError(tr("{key} is given twice", key=key), where=_place(text, at, part), remedy=remedy)


def _no_condition(text: str, at: int) -> UsageError:
    rest = text[at:].strip()
    remedy = tr("write key=value, as in release=CANN 8.0.RC2; for other forms see `logparse history list --help`")
    place = _place(text, at + 1, rest) if at else None
    return UsageError(tr("{text!r} is not a selector", text=rest), where=place, remedy=remedy)


def _place(text: str, at: int, part: str) -> str:
    if part == text.strip():
        return part
    return tr("{said}, character {at} of {text}", said=part, at=at, text=text)
