"""A figure that shows its working: the text of a formula is what computes the value, so the two cannot differ.

Comes in: a formula in Python's arithmetic and the numbers for its names. Goes out: the value, the formula in symbols,
the formula with its own numbers, and where it is from.
"""

from __future__ import annotations

import math
from functools import lru_cache
from types import CodeType
from typing import Any

from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass

Number = int | float

# The flag that gives each symbol, or the code of what else does; a symbol that is not here follows from others.
SYMBOLS = {
    "P": "whole_shape",
    "l": "--num-layers",
    "h": "--hidden-size",
    "V": "--vocab-size",
    "a": "--num-attention-heads",
    "s": "--seq-length",
    "b": "--micro-batch-size",
    "B": "--global-batch-size",
    "n": "--tokens",
    "m": "--global-batch-size",
    "devices": "--devices",
    "peak": "peak_of_device",
    "utilisation": "utilisation",
    "seconds": "--days",
    "link": "link_of_device",
    "memory": "memory_of_device",
}
_NAME = lazy_regex(r"((?<![\w.])[A-Za-z_]\w*)")
_FUNCTIONS = {"min": min, "max": max, "ceil": math.ceil}


@dataclass(frozen=True)
class Term:
    """One term of a sum: its name, its value, and the share of its forward pass, a third of it, that runs again."""

    name: str
    value: float
    again: float


@dataclass(frozen=True)
class Figure:
    """One number of an estimate. ``value`` is None where an input is unknown; ``missing`` then names the inputs.

    ``label`` is the code of its text: its name, unless several figures share a text. ``formula`` is in symbols,
    ``worked`` the same with its own numbers; a sum of named ``terms`` has those instead. ``unit`` is bytes, parameters,
    FLOPs, s, ... ``missing`` holds flags, names of quantities that have no flag, and codes.
    """

    name: str
    label: str
    unit: str
    value: Number | None
    formula: str
    worked: str
    source: str
    missing: tuple[str, ...] = ()
    terms: tuple[Term, ...] = ()


def work_out(name: str, unit: str, formula: str, source: str, **inputs: Number | Figure | None) -> Figure:
    """Compute ``formula``, a constant of our code, with ``inputs`` for its names; a Figure counts by its value."""
    shown = formula.replace("**", "^").replace(" * ", " ")
    values = {symbol: given.value if isinstance(given, Figure) else given for symbol, given in inputs.items()}
    if None in values.values():
        missing = [name for symbol, given in inputs.items() for name in _missing(symbol, given)]
        return Figure(name, name, unit, None, shown, "", source, tuple(dict.fromkeys(missing)))
    names: dict[str, Any] = {**_FUNCTIONS, **values}
    value: Number = eval(_compiled(formula), {"__builtins__": {}}, names)
    return Figure(name, name, unit, value, shown, _substitute(formula, values), source)


def _missing(symbol: str, given: Number | Figure | None) -> tuple[str, ...]:
    if isinstance(given, Figure):
        return given.missing
    return (SYMBOLS.get(symbol, symbol),) if given is None else ()


# A search works the same few formulas out for thousands of layouts.
@lru_cache(maxsize=256)
def _compiled(formula: str) -> CodeType:
    return compile(formula, "<formula>", "eval")


@lru_cache(maxsize=256)
def _pieces(formula: str) -> tuple[str, ...]:
    """``formula`` as a person writes it, cut at its names: the text between two names, a name, and so on."""
    return tuple(_NAME.split(formula.replace("**", "^").replace(" * ", " x ")))


def _substitute(formula: str, values: dict[str, Any]) -> str:
    """``formula`` with numbers for names."""
    return "".join(_number(values[piece]) if piece in values else piece for piece in _pieces(formula))


def _number(value: Number) -> str:
    if isinstance(value, int) or value.is_integer():
        return f"{int(value):,}" if abs(value) < 1e15 else f"{value:.6g}"
    return f"{value:,.6g}"
