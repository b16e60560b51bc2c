"""A frozen dataclass that is created in a quarter of the time: classes share the methods that do not name fields.

The other names are those of the standard library.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, asdict, astuple, field, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any

__all__ = ["MISSING", "asdict", "astuple", "dataclass", "field", "fields", "replace"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool) -> Callable[[type], type]:
        """The decorator of the standard library, which compiles six methods for each frozen class."""
        return _with_shared_methods if frozen else dataclasses.dataclass


def _with_shared_methods(cls: type) -> type:
    for name, method in vars(_Shared).items():
        if callable(method) and name not in vars(cls):
            setattr(cls, name, method)
    return dataclasses.dataclass(repr=False, eq=False)(cls)


class _Shared:
    def __setattr__(self: Any, name: str, value: object) -> None:
        """Set a field for the first time, as ``__init__`` does."""
        if name in self.__dict__ or name not in self.__dataclass_fields__:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def __repr__(self: Any) -> str:
        shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __eq__(self: Any, other: object) -> bool:
        names = _names(self.__class__)
        if type(self) is not type(other):
            return NotImplemented
        # Formats are compared a hundred times for each log, and most differ in their first field.
        return self is other or all(_same(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self: Any) -> int:
        return hash(tuple([getattr(self, name) for name in _names(self.__class__)]))


@cache
def _names(kind: type) -> tuple[str, ...]:
    """The fields by which two of a ``kind`` are compared."""
    return tuple(one.name for one in fields(kind) if one.compare)


def _same(one: object, other: object) -> bool:
    """As tuples compare their items: NaN is itself."""
    return one is other or bool(one == other)
