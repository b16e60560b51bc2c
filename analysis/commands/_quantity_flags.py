"""One flag for every quantity of the schema that the command line can give."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from analysis.pipeline.inputs import CHOICES, TYPES
from logparse.schema import QUANTITIES, Quantity, flag_of


def with_quantity_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Give ``command`` a flag for every quantity the schema allows; they reach it as the dict ``given``."""
    signature = inspect.signature(command, eval_str=True)
    own = [p for p in signature.parameters.values() if p.name != "given"]
    flags = [_parameter(q) for q in QUANTITIES if q.flag]

    @functools.wraps(command)
    def wrapper(**values: Any) -> None:
        given = {flag.name: values.pop(flag.name) for flag in flags}
        command(**values, given={name: value for name, value in given.items() if value is not None})

    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*own, *flags)]
    wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapper


def _parameter(quantity: Quantity) -> inspect.Parameter:
    named = str(flag_of(quantity.name))
    declaration = f"{named}/--no-{named[2:]}" if quantity.kind == "bool" else named
    choices = CHOICES.get(quantity.name)
    metavar = "|".join(choices) if choices else None
    option = typer.Option(
        declaration,
        help=quantity.meaning,
        metavar=metavar,
        min=quantity.least if quantity.kind == "int" else None,
    )
    kind: Any = TYPES[quantity.kind]
    annotation = Annotated[kind | None, option]
    return inspect.Parameter(quantity.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
