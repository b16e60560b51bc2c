"""Files and lines that a finding names, as an editor opens them: to be copied from a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from logparse.findings import Note, Origin


def place_of(origin: Origin, sources: Sequence[str]) -> str:
    """File and line of a log; empty for any other origin. The only file of ``sources`` is one that needs no name."""
    file = origin.file or (sources[0] if len(sources) == 1 else None)
    return f"{file}:{origin.line}" if origin.kind == "log" and file and origin.line is not None else ""


def places_of(note: Note, sources: Sequence[str]) -> tuple[str, ...]:
    """Every place that the sentence of ``note`` names, once."""
    return tuple(dict.fromkeys(place for place in _places(note.fields, sources) if place))


def _places(fields: Any, sources: Sequence[str]) -> Iterator[str]:
    if "line" in fields:
        yield place_of(Origin("log", fields.get("source"), fields["line"]), sources)
    for value in fields.values():
        for part in value if isinstance(value, list | tuple) else (value,):
            if isinstance(part, Origin):
                yield place_of(part, sources)
            elif isinstance(part, Note):
                yield from places_of(part, sources)
