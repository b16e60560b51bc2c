"""A name for each run, after its files."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import PurePath

from logparse.inputs.discovery import printable
from logparse.inputs.stores import shown


def run_names(runs: Sequence[Sequence[str]]) -> list[str]:
    """A name for each run: its first argument without endings, or its folder where several names are the same.

    A number distinguishes names that are still the same.
    """
    first = [shown(arguments[0]) for arguments in runs]
    plain = [_plain_name(argument) for argument in first]
    names: list[str] = []
    for argument, name in zip(first, plain, strict=True):
        wanted = name if plain.count(name) == 1 else PurePath(printable(argument)).parent.name.strip(".") or name
        numbered = (f"{wanted}-{n}" for n in itertools.count(2))
        names.append(wanted if wanted not in names else next(name for name in numbered if name not in names))
    return names


def _plain_name(argument: str) -> str:
    if argument == "-":
        return "stdin"
    if any(sign in argument for sign in "*?["):
        argument = str(PurePath(argument).parent)
    name = (
        PurePath(printable(argument).rstrip("/") or "/").name.split(".log")[0].removesuffix(".txt").removesuffix(".out")
    )
    return name.strip(".") or "run"
