"""What the line of a cause says beyond its kind, as data: ``details.toml``, whose comment explains each field."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import regex

from logparse.masking import mask_text


@dataclass(frozen=True)
class DetailPattern:
    """One entry of details.toml."""

    code: str
    remedies: tuple[str, ...]
    pattern: str
    sample: tuple[str, ...]
    below: bool = False
    complete: bool = False

    @cached_property
    def compiled(self) -> regex.Pattern[str]:
        """The pattern."""
        return regex.compile(self.pattern)


@cache
def detail_patterns() -> tuple[DetailPattern, ...]:
    """All entries, in the order in which they count."""
    path = Path(__file__).parent / "details.toml"
    return tuple(map(_read, tomllib.loads(path.read_text(encoding="utf-8"))["detail"]))


def detail_of(remedy: str, text: str, below: str = "") -> tuple[str, dict[str, str]] | None:
    """The code and the figures of the first entry for ``remedy`` that fits ``text``, or the lines ``below`` it."""
    for entry in detail_patterns():
        if remedy in entry.remedies and (match := _search(entry, text, below)):
            figures = {name: mask_text(value) for name, value in match.groupdict().items() if value is not None}
            return entry.code, figures
    return None


@cache
def complete_details() -> frozenset[str]:
    """Codes whose words say the whole next step."""
    return frozenset(entry.code for entry in detail_patterns() if entry.complete)


def _search(entry: DetailPattern, text: str, below: str) -> regex.Match[str] | None:
    return entry.compiled.search(f"{text}\n{below}" if entry.below else text)


def _read(entry: Mapping[str, Any]) -> DetailPattern:
    sample = entry["sample"]
    samples = (sample,) if isinstance(sample, str) else tuple(sample)
    return DetailPattern(**{**entry, "remedies": tuple(entry["remedies"]), "sample": samples})
