"""The flags that describe a run in addition to its logs, written once for every command that reads logs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Annotated, Any, get_args

import typer

from analysis.commands import _completion
from analysis.commands import _options as options
from analysis.commands._help_pages import MISSING
from analysis.project.choose_options import choose
from analysis.project.given_facts import CHOICES, TYPES
from analysis.project.project_file import find_project_settings
from logparse.schema import QUANTITIES, Quantity, flag_of

Command = Callable[..., None]
# More choices than this are named in the help of the flag, not in its metavar.
MOST_CHOICES = 4
# How logs are read, and how a run is computed from them.
READING = {
    "model": options.Model,
    "config": options.Config,
    "log_format": options.LogFormat,
    "dialect": options.Dialect,
    "all_files": options.AllFiles,
    "jobs": options.Jobs,
}
COMPUTING = {
    "hw": options.Hardware,
    "peak_tflops": options.PeakTflops,
    "peak_basis": options.PeakBasis,
    "formula": options.FormulaName,
    "warmup": options.Warmup,
}


def with_run_flags(**flags: Any) -> Callable[[Command], Command]:
    """Give a command ``flags`` and one for every quantity; they reach it as ``how``, its RunOptions."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapper(given: dict[str, Any], **values: Any) -> None:
            chosen = {name: values.pop(name) for name in flags}
            command(**values, how=choose(given, **chosen, standing=find_project_settings()))

        named = [_flag(name, hint) for name, hint in flags.items()]
        return with_quantity_flags(_with_parameters(wrapper, command, "how", [*named, _flag("given", dict)]))

    return decorate


def with_quantity_flags(command: Command, named: Collection[str] = ()) -> Command:
    """Give ``command`` a flag for every quantity the schema allows; they reach it as the dict ``given``.

    It has flags of its own that are ``named`` as short ones.
    """
    flags = [_quantity_flag(q, named) for q in QUANTITIES if q.flag]

    @functools.wraps(command)
    def wrapper(**values: Any) -> None:
        given = {flag.name: values.pop(flag.name) for flag in flags}
        command(**values, given={name: value for name, value in given.items() if value is not None})

    return _with_parameters(wrapper, command, "given", flags)


def _with_parameters(wrapper: Command, command: Command, place: str, flags: list[inspect.Parameter]) -> Command:
    """``wrapper`` with the signature of ``command``, where ``flags`` replace the parameter ``place``."""
    own = inspect.signature(command, eval_str=True).parameters.values()
    parameters = [new for p in own for new in (flags if p.name == place else [p])]
    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapper


def _flag(name: str, annotation: Any) -> inspect.Parameter:
    default = False if get_args(annotation)[:1] == (bool,) else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _metavar(choices: Collection[str] | None) -> str | None:
    """The choices, or TYPE where they would take a line of the help each."""
    if not choices:
        return None
    return "|".join(choices) if len(choices) <= MOST_CHOICES else "TYPE"


def _quantity_flag(quantity: Quantity, taken: Collection[str]) -> inspect.Parameter:
    flag = str(flag_of(quantity.name))
    declaration = f"{flag}/--no-{flag[2:]}" if quantity.kind == "bool" else flag
    short = [quantity.short] if quantity.short and quantity.short not in taken else []
    choices = CHOICES.get(quantity.name)
    option = typer.Option(
        declaration,
        *short,
        help=quantity.meaning,
        rich_help_panel=MISSING,
        metavar=_metavar(choices),
        autocompletion=_completion.one_of(*choices) if choices else None,
        min=quantity.least if quantity.kind == "int" else None,
    )
    kind: Any = TYPES[quantity.kind]
    return _flag(quantity.name, Annotated[kind | None, option])
