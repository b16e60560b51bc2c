"""What is known about a run: every quantity with its value and where the value is from.

Comes in: the settings frame and what the user gave. Goes out: a RunContext. Flags beat --model, which beats the
config file, which beats the log. What follows from known quantities is derived by a named rule; what does
not stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import polars as pl
import regex

from logparse.derivations import Fact, broken_identities, derive
from logparse.formats._base import LogFormat
from logparse.schema import QUANTITY, Quantity

__all__ = ["Fact", "RunContext", "build_context", "read_value"]

NOTHING = ("None", "null", "")


@dataclass(frozen=True)
class RunContext:
    """Facts by quantity name, and the notes on what contradicts what."""

    facts: Mapping[str, Fact] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def get(self, name: str) -> Any:
        """The value of a quantity; None where it is unknown."""
        fact = self.facts.get(name)
        return fact.value if fact else None

    def origin(self, name: str) -> str | None:
        """Where the value of a quantity is from."""
        fact = self.facts.get(name)
        return fact.origin if fact else None

    def values(self) -> dict[str, Any]:
        """Quantity to value, known ones only."""
        return {name: fact.value for name, fact in self.facts.items()}


def build_context(
    settings: pl.DataFrame,
    fmt: LogFormat,
    given: Sequence[Mapping[str, Fact]] = (),
    several: bool = False,
    lines: Mapping[str, Fact] | None = None,
) -> RunContext:
    """Put together what ``given`` (strongest first) and the log's ``settings`` say, and derive the rest.

    ``several``: the run has several files, so an origin names its file. ``lines`` are facts that the step lines print;
    they stand in where no setting does.
    Raises UsageError where quantities given by the user contradict each other.
    """
    log, notes = _facts_of_log(settings, fmt, several)
    facts: dict[str, Fact] = {}
    for layer in (*given, log):
        notes += _overridden(facts, layer)
        facts = {**layer, **facts}
    facts = {**(lines or {}), **facts}
    derived = derive(facts)
    notes += broken_identities(derived, [name for layer in given for name in layer])
    return RunContext({n: derived[n] for n in QUANTITY if n in derived}, tuple(notes))


def read_value(quantity: Quantity, text: str) -> Any:
    """The value of ``quantity`` as written in ``text``; None where the text gives none.

    Raises ValueError where the text is not of the quantity's kind.
    """
    if text in NOTHING:
        return None
    if quantity.kind == "text":
        return text
    if quantity.kind == "bool":
        return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
    number = regex.fullmatch(r"\[?\s*(-?\d+(?:\.\d+)?)\s*\]?", text)
    if number is None:
        raise ValueError(text)
    value = float(number.group(1))
    if quantity.kind == "float":
        return value
    if not value.is_integer() or abs(value) >= 2**53:
        raise ValueError(text)
    return int(value)


def _facts_of_log(settings: pl.DataFrame, fmt: LogFormat, several: bool) -> tuple[dict[str, Fact], list[str]]:
    """For each quantity the first name or choice of the format that applies."""
    printed, notes = _first_and_changed(settings)
    facts: dict[str, Fact] = {}
    for name in fmt.names:
        if name.quantity not in facts and name.setting in printed and _holds(name.when, printed):
            fact = _fact(QUANTITY[name.quantity], printed[name.setting], several)
            if fact is not None:
                facts[name.quantity] = fact
    for choice in fmt.choices:
        if choice.quantity not in facts and _holds(choice.when, printed):
            setting = next(iter(choice.when))
            origin = f"{_where(printed[setting], several)}: {setting.split(':')[1]} {printed[setting]['value']}"
            facts[choice.quantity] = Fact(read_value(QUANTITY[choice.quantity], choice.value), origin)
    return facts, notes


def _first_and_changed(settings: pl.DataFrame) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The first printing of each setting, and a note where a later start of the same log changed it."""
    printed: dict[str, dict[str, Any]] = {}
    changed: dict[str, dict[str, Any]] = {}
    for row in settings.iter_rows(named=True):
        key = f"{row['kind']}:{row['name']}"
        first = printed.setdefault(key, row)
        if row["value"] != first["value"] and row["name"] in QUANTITY and row["kind"] != "microbatches":
            changed.setdefault(key, row)
    notes = [
        f"{row['name']} is {printed[key]['value']} on line {printed[key]['line_number']} and {row['value']} on line "
        f"{row['line_number']}; the first is used for the whole run"
        for key, row in changed.items()
    ]
    return printed, notes


def _holds(when: Mapping[str, str], printed: Mapping[str, Mapping[str, Any]]) -> bool:
    return all(key in printed and regex.fullmatch(pattern, printed[key]["value"]) for key, pattern in when.items())


def _fact(quantity: Quantity, row: Mapping[str, Any], several: bool) -> Fact | None:
    try:
        value = read_value(quantity, row["value"])
    except (ValueError, KeyError):
        return None
    # A mixture of one expert is a dense model; Megatron-DeepSpeed prints [1] for it.
    if value is None or (quantity.name == "num_experts" and value <= 1):
        return None
    # A size of 0 is a placeholder of the framework.
    if quantity.kind == "int" and quantity.flag and value < 1:
        return None
    return Fact(value, _where(row, several))


def _where(row: Mapping[str, Any], several: bool) -> str:
    return f"log line {row['line_number']}" + (f" of {PurePath(row['source']).name}" if several else "")


def _overridden(stronger: Mapping[str, Fact], weaker: Mapping[str, Fact]) -> Iterator[str]:
    for name, fact in weaker.items():
        if name in stronger and stronger[name].value != fact.value:
            first = stronger[name]
            yield f"{name} {first.value} ({first.origin}) is used; {fact.origin} says {fact.value}"
