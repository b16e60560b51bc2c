"""The fields of a run that ``--fields`` asks for, under the names of the full JSON; a null keeps its reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from analysis.metrics import OF_ROWS
from analysis.present.document_parts import Document, has_path, schema_paths, select, tree_of, value_at
from analysis.present.views.compact import NOTE, causes_of_null
from logparse.errors import UsageError, unknown_name
from logparse.language import msg, tr
from logparse.schema import QUANTITY

RUNS = "runs."


def parse_fields(text: str) -> tuple[str, ...]:
    """The paths in the document of ``analyze`` that ``text`` names, separated by commas.

    A metric and a setting go by their name alone, a key of a run by its path there.

    Raises UsageError for a name of none of these.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UsageError(tr("--fields names no field"), remedy=tr("give names, such as --fields mfu,hfu"))
    return tuple(dict.fromkeys(_path(name) for name in names))


def _path(name: str) -> str:
    paths = schema_paths("analyze")
    inside = name.removeprefix(RUNS)
    if has_path(paths, f"{RUNS}{inside}"):
        return f"{RUNS}{inside}"
    if inside in short_names():
        return f"{RUNS}{short_names()[inside]}"
    if name in paths:
        return name
    known = [*short_names(), *(path.removeprefix(RUNS) for path in sorted(paths))]
    raise unknown_name(msg("field"), name, known, tr("--json prints all fields"))


@cache
def short_names() -> dict[str, str]:
    """Paths in a run by the names of metrics and settings."""
    settings = {name: f"context.{name}" for name in QUANTITY}
    return settings | {metric.column: f"metrics.{metric.column}" for metric in OF_ROWS}


def select_fields(document: Document, paths: Sequence[str]) -> Document:
    """The ``document`` of ``analyze`` with the name of each run and the values at ``paths`` alone.

    A run with a null among them keeps the notes that say why.
    """
    kept: Document = select(document, tree_of(("schema_version", f"{RUNS}name", *paths)))
    inside = [path.removeprefix(RUNS) for path in paths if path.startswith(RUNS)]
    runs = [_with_nulls(short, run, inside) for short, run in zip(kept["runs"], document["runs"], strict=True)]
    return kept | {"runs": runs}


def _with_nulls(short: Document, run: Document, paths: Sequence[str]) -> Document:
    nulls = [path for path in paths if _is_null(run, path)]
    for path in nulls:
        _set_null(short, path.split("."))
    why = {code for path in paths for null in _nulls(value_at(run, path), path) for code in causes_of_null(null)}
    notes = [note for note in run["notes"] if note["code"] in why]
    return short if "notes" in short or not notes else short | {"notes": select(notes, tree_of(NOTE.split()))}


def _nulls(value: Any, path: str) -> Iterator[str]:
    """The paths of nulls at or below ``path``, which has ``value``."""
    if value is None:
        yield path
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from _nulls(part, f"{path}.{name}")


def _is_null(run: Document, path: str) -> bool:
    """Whether no value is at ``path``, which leads through no list."""
    return value_at(run, path) is None and not any(isinstance(part, list) for part in _along(run, path))


def _along(run: Document, path: str) -> Iterator[Any]:
    part: Any = run
    for name in path.split("."):
        part = part.get(name) if isinstance(part, dict) else None
        yield part


def _set_null(short: Document, names: Sequence[str]) -> None:
    """Put a null at the path ``names``, or at the object on the way that is null."""
    for name in names[:-1]:
        below = short.setdefault(name, {})
        if below is None:
            return
        short = below
    short[names[-1]] = None
