"""Takes values of a command line that need no check as they are: text, and options that are not given.

Typer lets pydantic check every value, also of options that are not given. Its import takes half as long as polars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any


def taking_text(parameters: list[Any]) -> list[Any]:
    """``parameters`` of Typer, each of which now takes text by itself."""
    for parameter in parameters:
        if "process_value" not in vars(parameter):
            parameter.process_value = partial(_process, parameter, parameter.process_value)
    return parameters


def _process(parameter: Any, check: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    if not _needs_no_check(parameter, value):
        return check(context, value)
    return value if parameter.callback is None else parameter.callback(context, parameter, value)


def _needs_no_check(parameter: Any, value: Any) -> bool:
    if value is None:
        return not parameter.required
    kind = parameter.type_descriptor.annotation
    return (kind is str and isinstance(value, str)) or (kind == list[str] and isinstance(value, tuple) and value != ())


def holds(words: Sequence[str], names: Iterable[str]) -> bool:
    """Whether one of ``names`` has all ``words`` in it; case, blanks, hyphens and underscores do not count."""
    parts = [_plain(word) for word in words]
    return any(all(part in _plain(name) for part in parts) for name in names)


def _plain(text: str) -> str:
    return text.lower().translate(str.maketrans("", "", " -_"))
