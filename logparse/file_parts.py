"""Which lines of a text that was joined from several files are of which file, and each place as one in its own file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, TypeVar

import polars as pl

from logparse.light_dataclass import dataclass, replace
from logparse.texts import map_parts

Whole = TypeVar("Whole")
# Fields of notes, origins and lines of failures that hold the number of a line.
_LINES = ("line", "line_number", "reported_on")


@dataclass(frozen=True)
class FilePart:
    """Lines of the text ``joined`` from ``first`` on are of ``source``, where their numbers are less by ``before``."""

    joined: str
    first: int
    before: int
    source: str


def own_place(parts: Iterable[FilePart], source: str, line: int) -> tuple[str, int]:
    """The file of a line of a text, and the number of the line in it."""
    mine = [part for part in parts if part.joined == source and part.first <= line]
    return (mine[-1].source, line - mine[-1].before) if mine else (source, line)


def with_own_places(whole: Whole, parts: Sequence[FilePart], without: Collection[type] = ()) -> Whole:
    """``whole`` with each place in its own file: of frames, notes, origins and lines of failures."""
    return map_parts(whole, _change(parts), without) if parts else whole


def _change(parts: Sequence[FilePart]) -> Callable[[Any], Any]:
    def changed(part: Any) -> Any:
        if isinstance(part, pl.DataFrame):
            return _of_frame(part, parts)
        if isinstance(part, Mapping):
            return {**part, **_own(part, parts)}
        return replace(part, **_own(vars(part), parts)) if is_dataclass(part) and not isinstance(part, type) else part

    return changed


def _own(fields: Mapping[Any, Any], parts: Sequence[FilePart]) -> dict[str, Any]:
    """Those of ``fields`` that hold a place, as one in its own file."""
    name = "source" if isinstance(fields.get("source"), str) else "file"
    lines = {field: fields[field] for field in _LINES if isinstance(fields.get(field), int)}
    if not lines or not isinstance(fields.get(name), str):
        return {}
    places = {field: own_place(parts, fields[name], line) for field, line in lines.items()}
    return {name: next(iter(places.values()))[0], **{field: line for field, (_, line) in places.items()}}


def _of_frame(frame: pl.DataFrame, parts: Sequence[FilePart]) -> pl.DataFrame:
    if not {"source", "line_number"} <= set(frame.columns):
        return frame
    line, source, own = pl.col("line_number"), pl.col("source"), pl.col("source")
    before = pl.lit(0, frame["line_number"].dtype)
    for part in parts:
        mine = (source == part.joined) & (line >= part.first)
        own = pl.when(mine).then(pl.lit(part.source)).otherwise(own)
        before = pl.when(mine).then(pl.lit(part.before, frame["line_number"].dtype)).otherwise(before)
    return frame.with_columns(source=own, line_number=line - before)
