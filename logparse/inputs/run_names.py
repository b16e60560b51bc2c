"""A name for each run, after its files."""

from __future__ import annotations

import itertools
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import PurePath

from logparse.inputs.discovery import printable
from logparse.inputs.stores import shown


def run_names(runs: Sequence[Sequence[str]]) -> list[str]:
    """A name for each run: its first argument without endings, or the folders that distinguish namesakes.

    A number distinguishes names that are still the same.
    """
    first = [shown(arguments[0]) for arguments in runs]
    plain = [_plain_name(argument) for argument in first]
    folders = [_folders(argument) for argument in first]
    namesakes: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    for path, name in zip(folders, plain, strict=True):
        namesakes[name].append(path)
    names: dict[str, None] = {}
    for path, name in zip(folders, plain, strict=True):
        others = namesakes[name]
        wanted = name if len(others) == 1 else _shortest_end(path, set(others)) or name
        numbered = (f"{wanted}-{n}" for n in itertools.count(2))
        names[wanted if wanted not in names else next(name for name in numbered if name not in names)] = None
    return list(names)


def _printable(argument: str) -> str:
    """The argument as text that the locale can write, because a run's folder of results has the name of the run."""
    encoding = sys.getfilesystemencoding()
    return printable(argument).encode(encoding, "replace").decode(encoding)


def _folders(argument: str) -> tuple[str, ...]:
    """The names of the folders above an argument."""
    return tuple(name for part in PurePath(_printable(argument)).parent.parts if (name := part.strip("./")))


def _shortest_end(path: tuple[str, ...], others: set[tuple[str, ...]]) -> str:
    """The shortest end of ``path`` that differs for all ``others``, without the folders in which all of them end."""
    if len(others) == 1:
        return path[-1] if path else ""
    same = next(n for n in itertools.count() if len({other[-n - 1 :] for other in others}) > 1)
    ends = {other: other[: len(other) - same] for other in others}
    depth = next(n for n in itertools.count(1) if len({end[-n:] for end in ends.values()}) == len(others))
    return "-".join(ends[path][-depth:])


def _plain_name(argument: str) -> str:
    if argument == "-":
        return "stdin"
    if any(sign in argument for sign in "*?["):
        argument = str(PurePath(argument).parent)
    file = PurePath(_printable(argument).rstrip("/") or "/").name
    name = file.split(".log")[0].removesuffix(".txt").removesuffix(".out")
    return name.strip(".") or "run"
