"""JSON from what was computed. The names of its keys are kept: users script against them. Adding is free.

Findings are codes and fields for programs, and what they say in English, whatever the language in use.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from analysis.present.words import describe_origin, say
from logparse.findings import Note, Origin
from logparse.language import speaking
from logparse.schema import is_dated

if TYPE_CHECKING:
    from logparse.context.run_context import Fact


def pick(thing: object, names: str, **values: Any) -> dict[str, Any]:
    """An object with the keys ``names``, in this order: of ``values``, else the attribute of ``thing`` of that name."""
    return {name: plain(values[name] if name in values else getattr(thing, name)) for name in names.split()}


def note_document(note: Note) -> dict[str, Any]:
    """``code``, ``level``, ``fields``, and the English ``text``."""
    with speaking("en"):
        return {"code": note.code, "level": note.level, "fields": plain(note.fields), "text": say(note)}


def fact_document(fact: Fact) -> dict[str, Any]:
    """``value``, the English ``origin``, and the same as data."""
    return {"value": fact.value, "origin": origin_text(fact.origin), "from": asdict(fact.origin)}


def origin_text(origin: Origin) -> str:
    """Where a value is from, in English."""
    with speaking("en"):
        return describe_origin(origin)


def plain(value: Any) -> Any:
    """``value`` as JSON has it: findings and dataclasses as objects, times as text; null for no number or no year."""
    # A finding may list many thousand steps.
    if isinstance(value, (str, int)):
        return value
    if isinstance(value, Note):
        return {"code": value.code, "fields": plain(value.fields)}
    if isinstance(value, Origin):
        return asdict(value)
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, Sequence):
        return [plain(part) for part in value]
    if isinstance(value, datetime):
        return value.isoformat() if is_dated(value) else None
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return None if isinstance(value, float) and not math.isfinite(value) else value
