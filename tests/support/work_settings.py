"""Which settings that change the work of a step each framework prints, and what its format does with them."""

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from helpers import ROOT

from logparse.formats import find_format
from logparse.formats._base import LogFormat

DATA = tomllib.loads((ROOT / "fixtures" / "work-settings.toml").read_text(encoding="utf-8"))
TOPICS: Mapping[str, list[str]] = DATA["topics"]
HARMLESS: Mapping[str, str] = DATA["harmless"]
VERSIONS: list[dict[str, Any]] = DATA["version"]
# Quantities without which MFU is null.
NULL = ("uncounted", "mixed_step")
KINDS = {"maxtext": "config", "megatron": "arguments", "hf-trainer": "model"}


def names_of(settings: Iterator[str], kind: str) -> set[str]:
    """Names of the settings of a kind."""
    return {setting.removeprefix(f"{kind}:") for setting in settings if setting.startswith(f"{kind}:")}


def null_names(fmt: LogFormat, kind: str) -> set[str]:
    """Names that can make MFU null."""
    return names_of((setting for one in fmt.choices if one.quantity in NULL for setting in one.when), kind)


def read_names(fmt: LogFormat, kind: str) -> set[str]:
    """Names that give a quantity, or decide whether another one does."""
    given = names_of((name.setting for name in fmt.names), kind)
    deciding = (setting for name in fmt.names for setting in name.when)
    chosen = (setting for one in fmt.choices if one.quantity not in NULL for setting in one.when)
    return given | names_of(deciding, kind) | names_of(chosen, kind)


def unhandled(version: Mapping[str, Any]) -> list[str]:
    """Names of a version that are neither read nor null nor harmless."""
    fmt = find_format(version["format"])
    known = read_names(fmt, version["kind"]) | null_names(fmt, version["kind"]) | set(HARMLESS)
    return [name for name in version["arguments"] if name not in known]


def _cell(printed: list[str], read: set[str], null: set[str]) -> str:
    """What becomes of the names of a topic that a version prints."""
    words = [word for word, names in (("read", read), ("null", null)) if names & set(printed)]
    return ", ".join(words) if words or not printed else "no effect"


def work_table() -> list[str]:
    """A row per framework and version, a column per topic."""
    rows = ["| framework | version | " + " | ".join(TOPICS) + " |", "| --- " * (len(TOPICS) + 2) + "|"]
    for version in VERSIONS:
        fmt, kind = find_format(version["format"]), version["kind"]
        read, null = read_names(fmt, kind), null_names(fmt, kind)
        printed = [[name for name in names if name in version["arguments"]] for names in TOPICS.values()]
        cells = [_cell(names, read, null) or "-" for names in printed]
        rows.append("| " + " | ".join((version["framework"], version["version"], *cells)) + " |")
    return rows
