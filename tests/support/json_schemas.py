"""Parts of JSON Schemas: objects of named keys, dataclasses and columns, described by json_keys.toml.

An object has all its keys and no other. A key without a description, and a description without a key, is an error.
"""

import tomllib
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl

from analysis.present.document_parts import ANY, Tree
from logparse.context.run_context import Fact
from logparse.failures.ending import Ending
from logparse.findings import Note, Origin
from logparse.schema import QUANTITY, SCHEMA_VERSION, Column

Schema = dict[str, Any]
KEYS = tomllib.loads((Path(__file__).parent / "json_keys.toml").read_text(encoding="utf-8"))
DIALECT = "https://json-schema.org/draft/2020-12/schema"

STRING: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
INTEGER: Schema = {"type": "integer"}
BOOLEAN: Schema = {"type": "boolean"}
SCALAR: Schema = {"type": ["string", "number", "boolean"]}
FREE: Schema = {"type": "object"}
VERSION: Schema = {"const": SCHEMA_VERSION}
_SIMPLE = {str: STRING, float: NUMBER, int: INTEGER, bool: BOOLEAN, datetime: STRING, date: STRING, Any: {}}
_KINDS = {"int": INTEGER, "float": NUMBER, "bool": BOOLEAN, "text": STRING}
_COLUMNS = {pl.Float64(): NUMBER, pl.Int64(): INTEGER, pl.Boolean(): BOOLEAN, pl.String(): STRING}
used: set[tuple[str, str]] = set()


def described(of: str, key: str) -> str:
    """The description of ``key`` in the object ``of``: from json_keys.toml, there or in [common], or the glossary."""
    table = of if key in KEYS.get(of, {}) else "common"
    if key in KEYS[table]:
        used.add((table, key))
        return str(KEYS[table][key])
    if key in QUANTITY:
        return with_unit(QUANTITY[key].meaning, "")
    raise KeyError(f"json_keys.toml: [{of}] needs a description of {key}")


def fixed(of: str, keys: Mapping[str, Schema], optional: Iterable[str] = ()) -> Schema:
    """An object with exactly ``keys``; those that are ``optional`` may be absent."""
    properties = {key: described_as(schema, described(of, key)) for key, schema in keys.items()}
    return closed(properties, [key for key in keys if key not in set(optional)])


def closed(properties: Mapping[str, Schema], required: Sequence[str]) -> Schema:
    """An object with ``properties`` and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def described_as(schema: Schema, text: str) -> Schema:
    """``schema`` with a description."""
    return {"description": text, **schema}


def record(cls: type, omit: Iterable[str] = (), optional: Iterable[str] = (), **other: Schema) -> Schema:
    """A dataclass as ``asdict`` has it, without ``omit``; ``other`` are keys of another type, and further ones."""
    hints = typing.get_type_hints(cls)
    names = [field.name for field in fields(cls) if field.name not in set(omit) | set(other)]
    return fixed(cls.__name__, {name: typed(hints[name]) for name in names} | other, optional)


def typed(hint: Any) -> Schema:
    """A type hint as schema."""
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    if hint in (Note, Origin, Fact, Ending):
        return ref(hint.__name__.lower())
    if is_dataclass(hint) and isinstance(hint, type):
        return record(hint)
    return _generic(typing.get_origin(hint), typing.get_args(hint))


def _generic(origin: Any, inner: tuple[Any, ...]) -> Schema:
    if origin is typing.Literal:
        return {"enum": list(inner)}
    if origin in (typing.Union, types.UnionType):
        return _union([typed(one) for one in inner if one is not type(None)], type(None) in inner)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return mapping(typed(inner[1]) if len(inner) > 1 else INTEGER)
    if origin is tuple and inner[-1] is not ...:
        return {"type": "array", "prefixItems": [typed(one) for one in inner], "items": False, "minItems": len(inner)}
    return array(typed(inner[0]))


def _union(members: list[Schema], null: bool) -> Schema:
    schema = members[0] if len(members) == 1 else {"anyOf": members}
    return nullable(schema) if null else schema


def nullable(schema: Schema) -> Schema:
    """``schema``, or null where the value is unknown."""
    if isinstance(schema.get("type"), str) and "properties" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    if "enum" in schema:
        return {"enum": [*schema["enum"], None]}
    return {"anyOf": [schema, {"type": "null"}]}


def array(items: Schema) -> Schema:
    """A list of ``items``."""
    return {"type": "array", "items": items}


def mapping(values: Schema) -> Schema:
    """An object with ``values`` by any names."""
    return {"type": "object", "additionalProperties": values}


def of_kind(kind: str) -> Schema:
    """The type of a quantity."""
    return _KINDS[kind]


def columns(of: Sequence[Column], omit: Iterable[str] = (), known: Iterable[str] = ()) -> dict[str, Schema]:
    """Columns of a frame, null where unknown but for those that are always ``known``, described by the glossary."""
    return {
        column.name: described_as(_column(column, column.name in set(known)), with_unit(column.meaning, column.unit))
        for column in of
        if column.name not in set(omit)
    }


def _column(column: Column, known: bool) -> Schema:
    schema = _COLUMNS.get(column.dtype, STRING)
    return schema if known else nullable(schema)


def with_unit(meaning: str, unit: str) -> str:
    """A sentence with its unit."""
    return f"{meaning[:1].upper()}{meaning[1:]}{f' ({unit})' if unit else ''}."


def ref(name: str) -> Schema:
    """A definition that several places use."""
    return {"$ref": f"#/$defs/{name}"}


def whole(title: str, description: str, schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """A schema file, with those of ``definitions`` that it uses."""
    needed: dict[str, Schema] = {}
    waiting = _refs(schema)
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed[name] = definitions[name]
            waiting += _refs(definitions[name])
    head = {"$schema": DIALECT, "title": title, "description": description}
    return {**head, **schema, **({"$defs": dict(sorted(needed.items()))} if needed else {})}


def _refs(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [name for part in schema for name in _refs(part)]
    if not isinstance(schema, dict):
        return []
    mine = [str(schema["$ref"]).rsplit("/", 1)[1]] if isinstance(schema.get("$ref"), str) else []
    return mine + [name for part in schema.values() for name in _refs(part)]


def short(schema: Any, tree: Tree, definitions: Mapping[str, Schema]) -> Any:
    """``schema`` of which the keys of ``tree`` are left; an empty tree keeps all of it."""
    if not tree or not isinstance(schema, dict):
        return schema
    if isinstance(schema.get("$ref"), str):
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return short({**definitions[schema["$ref"].rsplit("/", 1)[1]], **rest}, tree, definitions)
    left = dict(schema)
    for key in ("anyOf", "allOf"):
        if key in schema:
            left[key] = [short(one, tree, definitions) for one in schema[key]]
    if "items" in schema:
        left["items"] = short(schema["items"], tree, definitions)
    if ANY in tree and isinstance(schema.get("additionalProperties"), dict):
        left["additionalProperties"] = short(schema["additionalProperties"], tree[ANY], definitions)
    if "properties" in schema and "allOf" not in schema:
        kept = {
            name: tree[name if name in tree else ANY] for name in schema["properties"] if name in tree or ANY in tree
        }
        left["properties"] = {
            name: short(schema["properties"][name], below, definitions) for name, below in kept.items()
        }
        left["required"] = [name for name in schema["required"] if name in kept]
    return left
