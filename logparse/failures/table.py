"""The one table of failures, as data: ``rules/<subject>.toml``. ``rules/README.md`` explains each field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from logparse.package_tables import fields_of, read_table

# The files, in the order in which their rows count.
SUBJECTS = ("end", "launchers", "memory", "devices", "cann", "collectives", "data", "files", "arguments")
# Fields of a row that say nothing of what it fits.
_FOR_READERS = ("source", "case", "text")
# What the key of a row is, by kind.
_KEYS = {"signature": "id", "detail": "code", "exit": "code"}


@cache
def failures() -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """The code of each failure and what a file says of it. Rows of one failure may be in several files."""
    tables = (read_table(Path(__file__).parent / "rules" / f"{subject}.toml") for subject in SUBJECTS)
    return tuple(item for table in tables for item in table.items())


def rows(kind: str) -> list[dict[str, Any]]:
    """The fields of every row of a kind, with its key, failure and family: the narrow ones first, then by ``wide``."""
    return sorted(_rows(kind), key=lambda row: row.pop("wide", 0))


def _rows(kind: str) -> Iterator[dict[str, Any]]:
    family_of = {code: failure.get("family", code) for code, failure in reversed(failures())}
    for code, failure in failures():
        of_failure = {"remedy": code} if kind == "detail" else {"remedy": code, "family": family_of[code]}
        of_kind: Mapping[str, Any] | Sequence[Mapping[str, Any]] = failure.get(kind, ())
        keyed = of_kind.items() if isinstance(of_kind, Mapping) else ((None, row) for row in of_kind)
        for key, row in keyed:
            fields = {name: value for name, value in fields_of(row).items() if name not in _FOR_READERS}
            yield of_failure | ({} if key is None else {_KEYS[kind]: key}) | fields


@cache
def narrow_failures() -> frozenset[str]:
    """The codes of failures that fit only a part of their family, and have a cause of their own."""
    return frozenset(code for code, failure in failures() if "cause" in failure and "name" not in failure)


def failure_words(language: str) -> dict[str, dict[str, str]]:
    """The words of failures in a language, by the table that a view looks them up in."""
    tables = ("failures", "failures_by_remedy", "failure_names", "remedies", "details")
    words: dict[str, dict[str, str]] = {table: {} for table in tables}
    for code, failure in failures():
        for table, field in (("failures", "cause"), ("failure_names", "name"), ("remedies", "step")):
            if field in failure:
                words[table][code] = failure[field][language]
        if code in narrow_failures():
            words["failures_by_remedy"][code] = failure["cause"][language]
        for key, row in failure.get("detail", {}).items():
            if "text" in row:
                words["details"][row.get("code", key)] = row["text"][language]
    return words
