"""What the user gives along with the log: quantities, a model's name, a config file.

Goes out: layers of facts, strongest first, each fact with the flag or file it is from.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.model.catalogue import find_model
from analysis.project import LEAST_UTILISATION
from logparse.context.run_context import Fact, Given, read_value
from logparse.errors import InputError, UsageError, reason_of, unknown_name
from logparse.findings import Origin, flag
from logparse.language import msg, tr
from logparse.schema import QUANTITIES, QUANTITY, Quantity, flag_of

# Options of analyze that a config file may set too.
FILE_OPTIONS: dict[str, type] = {
    "hw": str,
    "model": str,
    "formula": str,
    "peak_tflops": float,
    "require": list,
    "baseline": str,
    "utilisation": float,
}
TYPES = {"int": int, "float": float, "bool": bool, "text": str}
CHOICES = {
    "recompute": ("none", "selective", "full"),
    "precision": ("bf16", "fp16", "fp32", "tf32", "fp8", "fp4", "int8"),
}


def gather(given: Mapping[str, Any], model: str | None, config: Path | None) -> Given:
    """Put flags, model and config file in order. A model that the file names is weaker than the file's own values."""
    from_file, options = read_config(config)
    of_file = {} if model else facts_of_model(options.get("model"))
    return Given((facts_of_flags(given), facts_of_model(model), from_file, of_file), options, config)


def facts_of_flags(given: Mapping[str, Any]) -> dict[str, Fact]:
    """Facts from the command line. Raises UsageError for a value that is none of a quantity's choices."""
    for name, value in given.items():
        _check_choice(name, value, str(flag_of(name)))
    return {name: Fact(value, flag(str(flag_of(name)))) for name, value in given.items()}


def check_quantities(given: Mapping[str, Any]) -> dict[str, Any]:
    """``given`` as the flags would take it. Raises UsageError for a name that is no flag or a value of another kind."""
    flags = {q.name: q for q in QUANTITIES if q.flag}
    for name, value in given.items():
        if name not in flags:
            raise unknown_name(msg("quantity"), name, flags, tr("the names are those of the flags, with _ for -"))
        kind: Any = TYPES[flags[name].kind]
        if type(value) is not kind or (kind is int and value < flags[name].least):
            raise UsageError(tr("{name} is {value!r}", name=name, value=value), remedy=_way(flags[name]))
    return dict(given)


def _way(quantity: Quantity) -> str:
    return tr("give a {kind}: {meaning}", kind=quantity.kind, meaning=tr(quantity.meaning))


def _check_choice(name: str, value: Any, label: str, where: str | None = None) -> None:
    if name in CHOICES and value not in CHOICES[name]:
        remedy = tr("use one of {names}", names=", ".join(CHOICES[name]))
        raise UsageError(tr("{name} is {value!r}", name=label, value=value), where=where, remedy=remedy)


def facts_of_model(name: str | None) -> dict[str, Fact]:
    """Facts from the catalogue. Raises UsageError for a model it does not hold."""
    if name is None:
        return {}
    model = find_model(name)
    return {quantity: Fact(value, Origin("model", rule=model.name)) for quantity, value in model.quantities().items()}


def read_config(path: Path | None, known: Mapping[str, type] = FILE_OPTIONS) -> tuple[dict[str, Fact], dict[str, Any]]:
    """Facts and the options ``known`` of a TOML file.

    Raises InputError for a file that cannot be read as TOML, UsageError for a key nobody knows or a wrong value.
    """
    if path is None:
        return {}, {}
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        problem = tr("cannot read {path}: {reason}", path=path, reason=reason_of(error))
        raise InputError(problem, remedy=tr("check the path given with --config")) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = tr("not a TOML file: {reason}", reason=error)
        raise InputError(problem, where=str(path), remedy=tr("write lines like: world_size = 8")) from error
    options = {key: _option(key, value, path, known[key]) for key, value in table.items() if key in known}
    if {"dtype", "precision"} <= set(table):
        raise UsageError(tr("dtype and precision are the same"), where=str(path), remedy=tr("leave one out"))
    facts = {
        "precision" if key == "dtype" else key: _file_fact(key, value, path, known)
        for key, value in table.items()
        if key not in known
    }
    return facts, options


def _option(key: str, value: Any, path: Path, expected: type) -> Any:
    remedy = tr("give a {kind}", kind=expected.__name__)
    if expected is float and type(value) in (int, float):
        value = float(value)
    if key == "utilisation":
        remedy = tr("give a number from {least:g} to {most:g}", least=LEAST_UTILISATION, most=1)
    too_far = key == "utilisation" and isinstance(value, float) and not LEAST_UTILISATION <= value <= 1
    of_others = isinstance(value, list) and not all(isinstance(part, str) for part in value)
    # No file has such a name, and no other option such a value.
    has_nul = isinstance(value, str) and "\0" in value
    if type(value) is not expected or too_far or of_others or has_nul:
        raise UsageError(tr("{name} is {value!r}", name=key, value=value), where=str(path), remedy=remedy)
    return value


def _file_fact(key: str, value: Any, path: Path, known: Mapping[str, type]) -> Fact:
    key = "precision" if key == "dtype" else key
    if key not in QUANTITY:
        remedy = tr("{path} can contain the flags of `logparse analyze`, with _ for -", path=path)
        raise unknown_name(msg("key"), key, [*QUANTITY, *known, "dtype"], remedy)
    quantity = QUANTITY[key]
    _check_choice(key, value, key, str(path))
    try:
        read = read_value(quantity, str(value))
    except (ValueError, KeyError):
        read = None
    if read is None or (quantity.kind == "int" and (type(value) is not int or value < quantity.least)):
        raise UsageError(tr("{name} is {value!r}", name=key, value=value), where=str(path), remedy=_way(quantity))
    return Fact(read, Origin("config", str(path)))
