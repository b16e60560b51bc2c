"""The names of Python arguments: checked as they are given, and put into errors in place of the flags.

Messages are written for the command line. The Python API translates them once, when an error leaves it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from logparse.errors import LogparseError, UsageError, unknown_name
from logparse.language import msg, tr
from logparse.schema import QUANTITIES, flag_of

# The options of logparse.analyze by their types; how a run is read and computed.
OPTION_TYPES: dict[str, tuple[type, ...]] = {
    "hw": (str,),
    "peak_tflops": (int, float),
    "peak_basis": (str,),
    "model": (str,),
    "formula": (str,),
    "config": (str, Path),
    "log_format": (str, Path),
    "dialect": (str,),
    "warmup": (int,),
    "strict": (bool,),
    "all_files": (bool,),
    "anonymise": (bool,),
    "jobs": (int,),
    "require": (str, list, tuple),
}
# The arguments of logparse.estimate that are neither options of a run nor quantities.
JOB_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("devices", "tp", "pp", "dp", "cp", "ep", "vpp", "zero"), (int,)),
    **dict.fromkeys(("sequence_parallel", "flash_attention", "dropout"), (bool,)),
    **dict.fromkeys(("network_gbits", "memory_gb", "tokens", "utilisation", "days"), (int, float)),
    "from_log": (str, Path),
}
# The smallest whole number that an option takes.
LEAST = {"warmup": 0, "jobs": 1}
# Arguments of the other functions.
OTHERS = ("force", "tables", "theme", "price", "history", "threshold", "allow")
# Flags whose argument has another name.
RENAMED = {
    "--from": "from_log",
    "--format": "log_format",
    "--format-file": "log_format",
    "--chart-format": "chart_formats",
    "--metric": "metrics",
    "-o": "folder",
}
SWITCHES = {
    "strict",
    "all_files",
    "anonymise",
    "force",
    *(quantity.name for quantity in QUANTITIES if quantity.kind == "bool"),
}
# By the flag: the argument of the same meaning.
ARGUMENTS = {
    **{f"--{name}".replace("_", "-"): name for name in (*OPTION_TYPES, *OTHERS, *JOB_TYPES)},
    **{str(flag_of(quantity.name)): quantity.name for quantity in QUANTITIES if quantity.flag},
    **{quantity.short: quantity.name for quantity in QUANTITIES if quantity.short},
    **RENAMED,
}
# A command in backticks stays as it is. A value after a flag is a number, a quoted text, or a placeholder such as DIR.
FLAG = re.compile(
    r"`[^`]*`|\b(?:pass|add) --each\b|\bby flags\b|(?<![\w-])(?P<flag>--[a-z][a-z0-9-]*|-o)(?![\w-])"
    r"(?: (?P<value>'[^']*'|\d+(?:\.\d+)?%?(?![\w.])|[A-Z]+\b|noise\b))?",
    re.ASCII,
)
# Words that go with a flag, and what goes with an argument.
PHRASES = {
    "pass --each": "use logparse.analyze_many()",
    "add --each": "use logparse.analyze_many()",
    "by flags": "by arguments",
}
# After these a flag is the subject of its sentence, in each language.
VERBS = (" is ", " 的值为 ")


@contextmanager
def naming_arguments() -> Iterator[None]:
    """Let errors that leave the block name arguments, such as ``hw=``, and not flags."""
    try:
        yield
    except LogparseError as error:
        error.problem = with_arguments(error.problem)
        error.where = error.where and with_arguments(error.where)
        error.remedy = error.remedy and with_arguments(error.remedy)
        error.args = (error.problem,)
        raise


def with_arguments(text: str) -> str:
    """``text`` with the arguments of Python in place of flags: ``hw=`` for ``--hw``."""
    return FLAG.sub(_argument, text)


def _argument(found: re.Match[str]) -> str:
    flag, value = found["flag"], found["value"] or ""
    if flag is None:
        return PHRASES.get(found[0], found[0])
    if flag == "--each":
        return found[0].replace(flag, "logparse.analyze_many()")
    name = ARGUMENTS.get(flag) or ARGUMENTS.get(flag.replace("--no-", "--", 1))
    if name is None or (not value and found.string.startswith(VERBS, found.end())):
        return name or found[0]
    if name in SWITCHES:
        return f"{name}={flag in ARGUMENTS} {value}".rstrip()
    return f"{name}={_literal(value)}"


def _literal(value: str) -> str:
    """The value of a flag as Python writes it."""
    return repr(value) if value.endswith("%") or value == "noise" else value


def check_names(given: Iterable[str], more: Iterable[str] = ()) -> None:
    """Refuse an argument that is no option, no quantity and none of ``more``. Raises UsageError with similar names."""
    allowed = (*OPTION_TYPES, *(quantity.name for quantity in QUANTITIES if quantity.flag), *more)
    for name in given:
        if name in allowed:
            continue
        remedy = tr("help(logparse.analyze) lists the arguments")
        of_flag = ARGUMENTS.get(f"--{name}".replace("_", "-"))
        if of_flag in allowed:
            hint = tr("did you mean {names}? ", names=of_flag)
            raise UsageError(tr("unknown {kind} {name!r}", kind=tr("argument"), name=name), remedy=hint + remedy)
        raise unknown_name(msg("argument"), name, allowed, remedy)


def check_types(options: Mapping[str, Any]) -> None:
    """Refuse an option of another type, or a whole number that is too small. Raises UsageError."""
    for name, value in options.items():
        if value is not None and (remedy := _wanted(name, value)):
            raise UsageError(tr("{name} is {value!r}", name=name, value=value), remedy=remedy)


def _wanted(name: str, value: Any) -> str | None:
    """What to give in place of ``value``; None where it can be used."""
    kinds = (OPTION_TYPES | JOB_TYPES)[name]
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        return tr("give a {kind}", kind=(float if float in kinds else kinds[0]).__name__)
    if isinstance(value, int) and name in LEAST and value < LEAST[name]:
        return tr("give a whole number from {least}", least=LEAST[name])
    return None
