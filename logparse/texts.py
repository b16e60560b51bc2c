"""Change every text of a structure: of dataclasses, mappings, lists and frames, however deep it is.

This is how a text of a log becomes one that may be shown, in one place for all outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import polars as pl

Whole = TypeVar("Whole")


def map_texts(whole: Whole, change: Callable[[str], str], without: Collection[type] = ()) -> Whole:
    """``whole`` with ``change`` of each text in it, the keys of mappings included; itself where none changes.

    What is of a type in ``without``, or of a type that is none of those above, stays as it is.
    """

    def changed(part: Any) -> Any:
        if isinstance(part, str):
            return change(part)
        return _of_frame(part, change) if isinstance(part, pl.DataFrame) else part

    return map_parts(whole, changed, without)


def map_parts(whole: Whole, change: Callable[[Any], Any], without: Collection[type] = ()) -> Whole:
    """``whole`` with ``change`` of each part of it and of itself, what is within a part before the part."""
    changed: Any = _mapped(whole, change, tuple(without))
    return changed  # type: ignore[no-any-return]


def _mapped(whole: Any, change: Callable[[Any], Any], without: tuple[type, ...]) -> Any:
    return whole if isinstance(whole, (*without, type)) else change(_within(whole, change, without))


def _within(whole: Any, change: Callable[[Any], Any], without: tuple[type, ...]) -> Any:
    if isinstance(whole, str):
        return whole
    if isinstance(whole, Mapping):
        new = {_mapped(key, change, without): _mapped(value, change, without) for key, value in whole.items()}
        return new if any(a is not b for a, b in zip(_parts(new), _parts(whole), strict=False)) else whole
    if isinstance(whole, list | tuple):
        return _of_list(whole, change, without)
    if is_dataclass(whole):
        values = {one.name: getattr(whole, one.name) for one in fields(whole) if one.init}
        new = {name: _mapped(value, change, without) for name, value in values.items()}
        changed = {name: value for name, value in new.items() if value is not values[name]}
        return replace(whole, **changed) if changed else whole  # type: ignore[type-var]
    return whole


def _parts(mapping: Mapping[Any, Any]) -> list[Any]:
    return [part for pair in mapping.items() for part in pair]


def _of_list(whole: Any, change: Callable[[Any], Any], without: tuple[type, ...]) -> Any:
    new = [_mapped(part, change, without) for part in whole]
    if all(part is old for part, old in zip(new, whole, strict=True)):
        return whole
    if isinstance(whole, list):
        return new
    return type(whole)(*new) if hasattr(whole, "_fields") else tuple(new)


def _of_frame(frame: pl.DataFrame, change: Callable[[str], str]) -> pl.DataFrame:
    """``frame`` with each text in it changed; each distinct one is looked at once."""
    columns = []
    for name, dtype in frame.schema.items():
        if dtype != pl.String:
            continue
        old = frame[name].drop_nulls().unique().to_list()
        new = {text: shown for text in old if (shown := change(text)) is not text and shown != text}
        if new:
            columns.append(pl.col(name).replace(new))
    return frame.with_columns(columns) if columns else frame


def texts_of(whole: Any) -> list[str]:
    """Every text in ``whole``, as ``map_texts`` finds them."""
    texts: list[str] = []

    def keep(text: str) -> str:
        texts.append(text)
        return text

    map_texts(whole, keep)
    return texts
