"""A part of a JSON document: the values at chosen paths, under the same names, and the paths that a schema has.

Only the key ``omitted`` of a short object is not in the full document: how many items of each list were left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from logparse.light_dataclass import dataclass

# Keys that are kept, by name; "*" is any name. An empty tree keeps the whole value.
Tree = dict[str, "Tree"]
ANY = "*"
Document = dict[str, Any]
# The most bytes of a short object, without what it says of itself.
MOST_BYTES = 5750
# The wheel holds the schemas in this folder.
_IN_WHEEL, _IN_REPOSITORY = Path(__file__).parent / "schema", Path(__file__).parents[2] / "docs/schema"


def tree_of(paths: Iterable[str]) -> Tree:
    """The tree of dotted ``paths``; a path to a value keeps all below it."""
    tree: Tree = {}
    # The longest come last: one that is below another is kept by that one.
    for path in sorted(paths, key=lambda path: path.count(".")):
        inner, new = tree, True
        for name in path.split("."):
            if not new and not inner:
                break
            new = name not in inner
            inner = inner.setdefault(name, {})
    return tree


def select(value: Any, tree: Tree) -> Any:
    """``value`` with the keys of ``tree`` alone, and so each item of a list."""
    if isinstance(value, list):
        return [select(one, tree) for one in value]
    if not tree or not isinstance(value, dict):
        return value
    return {
        name: select(part, tree[name if name in tree else ANY])
        for name, part in value.items()
        if name in tree or ANY in tree
    }


def value_at(document: Any, path: str) -> Any:
    """The value at a dotted ``path`` through objects alone; None where there is none."""
    for name in path.split("."):
        document = document.get(name) if isinstance(document, Mapping) else None
    return document


@dataclass(frozen=True)
class Short:
    """The ``keys`` that are kept, by the path of their object, and the lists and objects that are cut at their end.

    The first that ``gives_way`` is missed least.
    """

    keys: Mapping[str, str]
    gives_way: tuple[str, ...]

    def tree(self) -> Tree:
        """What is kept."""
        return tree_of(
            ".".join(filter(None, (path, name))) for path, names in self.keys.items() for name in names.split()
        )


def cut(short: Short, document: Document, full: Document | None = None) -> Document:
    """The short form of ``document``, and in ``omitted`` how many items of ``full`` are not in it, by their list."""
    kept: Document = select(document, short.tree())
    for name in short.gives_way:
        if (excess := _bytes(kept) - MOST_BYTES) > 0 and (part := value_at(kept, name)):
            kept = _with(kept, name, _shorter(part, excess))
    lost = {name: n for name in short.gives_way if (n := _size(full or document, name) - _size(kept, name))}
    return kept | {"omitted": lost}


def _shorter(part: Any, excess: int) -> Any:
    """``part`` without as many of its last items, or keys, as take ``excess`` bytes."""
    items = [{key: value} for key, value in part.items()] if isinstance(part, dict) else list(part)
    while items and excess > 0:
        excess -= _bytes(items.pop())
    return items if isinstance(part, list) else {key: value for item in items for key, value in item.items()}


def _bytes(document: Any) -> int:
    # Printed as it is, text in UTF-8 is never longer.
    return len(json.dumps(document, separators=(",", ":")))


def _with(document: Document, path: str, value: Any) -> Document:
    name, _, below = path.partition(".")
    return document | {name: _with(document[name], below, value) if below else value}


def _size(document: Document, path: str) -> int:
    return len(value_at(document, path) or ())


@cache
def schema_paths(name: str) -> frozenset[str]:
    """Every dotted path of the document that docs/schema describes as ``name``; "*" is any name."""
    folder = _IN_WHEEL if _IN_WHEEL.exists() else _IN_REPOSITORY
    schema = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return frozenset(_paths(schema, schema, ""))


def _paths(schema: Mapping[str, Any], whole: Mapping[str, Any], above: str) -> Iterator[str]:
    same = [*schema.get("anyOf", ()), *schema.get("allOf", ())]
    if schema.get("items"):
        same.append(schema["items"])
    if "$ref" in schema:
        same.append(whole["$defs"][schema["$ref"].rsplit("/", 1)[1]])
    for one in same:
        yield from _paths(one, whole, above)
    named, others = schema.get("properties", {}), schema.get("additionalProperties") or {}
    for name, part in {**named, **({ANY: others} if others else {})}.items():
        yield f"{above}{name}"
        yield from _paths(part, whole, f"{above}{name}.")


def has_path(paths: frozenset[str], path: str) -> bool:
    """Whether one of ``paths`` is ``path``, where "*" is any name."""
    if path in paths:
        return True
    names = path.split(".")
    patterns = (one.split(".") for one in paths if ANY in one and one.count(".") == path.count("."))
    return any(all(p in (ANY, n) for p, n in zip(pattern, names, strict=True)) for pattern in patterns)
