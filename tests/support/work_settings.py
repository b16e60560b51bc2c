"""Which settings that change the work of a step each framework prints, and what its format does with them."""

import tomllib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from helpers import ROOT

from logparse.formats import find_format
from logparse.formats._base import LogFormat

DATA = tomllib.loads((ROOT / "fixtures" / "work-settings.toml").read_text(encoding="utf-8"))
TOPICS: Mapping[str, list[str]] = DATA["topics"]
NAMES = frozenset(name for names in TOPICS.values() for name in names)
HARMLESS: Mapping[str, str] = DATA["harmless"]
VERSIONS: list[dict[str, Any]] = DATA["version"]
# Quantities without which MFU is null.
NULL = ("uncounted", "mixed_step")
KINDS = {"maxtext": "config", "megatron": "arguments", "hf-trainer": "model"}


def names_of(settings: Iterable[str], kind: str) -> set[str]:
    """Names of the settings of a kind."""
    return {setting.removeprefix(f"{kind}:") for setting in settings if setting.startswith(f"{kind}:")}


def null_names(fmt: LogFormat, kind: str, printed: Collection[str] | None = None) -> set[str]:
    """Names that can make MFU null, in a version that prints the names ``printed`` of those in the topics."""
    rules = [one.when for one in fmt.choices if one.quantity in NULL and _possible(one.when, kind, printed)]
    # The first setting of a rule is the one that is named; others are its conditions.
    return names_of((next(iter(rule)) for rule in rules), kind)


def read_names(fmt: LogFormat, kind: str, printed: Collection[str] | None = None) -> set[str]:
    """Names that give a quantity, or decide whether another one does."""
    rules = [(name.setting, *name.when) for name in fmt.names]
    rules += [tuple(one.when) for one in fmt.choices if one.quantity not in NULL]
    return set().union(*(names_of(rule, kind) for rule in rules if _possible(rule, kind, printed)))


def _possible(rule: Iterable[str], kind: str, printed: Collection[str] | None) -> bool:
    """Whether a version prints all settings of a rule, as far as these are in the topics."""
    return printed is None or names_of(rule, kind) & NAMES <= set(printed)


def unhandled(version: Mapping[str, Any]) -> list[str]:
    """Names of a version that are neither read nor null nor harmless."""
    fmt = find_format(version["format"])
    kind, printed = version["kind"], version["arguments"]
    known = read_names(fmt, kind, printed) | null_names(fmt, kind, printed) | set(HARMLESS)
    return [name for name in printed if name not in known]
