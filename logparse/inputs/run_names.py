"""A name for each run, after its files."""

from __future__ import annotations

import itertools
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import PurePath

from logparse.inputs.discovery import printable
from logparse.inputs.stores import shown
from logparse.masking import mask_text


def run_names(runs: Sequence[Sequence[str]]) -> list[str]:
    """A name for each run: its first argument without endings, or the folders that distinguish namesakes.

    A number distinguishes names that are still the same. Secrets in names are masked.
    """
    first = [shown(arguments[0]) for arguments in runs]
    plain = [mask_text(_plain_name(argument)) for argument in first]
    folders = [_folders(argument) for argument in first]
    namesakes: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    for path, name in zip(folders, plain, strict=True):
        namesakes[name].append(path)
    ends = {name: _shortest_ends(set(paths)) for name, paths in namesakes.items() if len(paths) > 1}
    next_number: defaultdict[str, Iterator[int]] = defaultdict(partial(itertools.count, 2))
    names: dict[str, None] = {}
    for path, name in zip(folders, plain, strict=True):
        wanted = (ends[name][path] if name in ends else "") or name
        numbered = (f"{wanted}-{n}" for n in next_number[wanted])
        names[wanted if wanted not in names else next(name for name in numbered if name not in names)] = None
    return list(names)


def _printable(argument: str) -> str:
    """The argument as text that the locale can write, because a run's folder of results has the name of the run."""
    encoding = sys.getfilesystemencoding()
    return printable(argument).encode(encoding, "replace").decode(encoding)


def _folders(argument: str) -> tuple[str, ...]:
    """The names of the folders above an argument."""
    names = (part.strip("./") for part in PurePath(_printable(argument)).parent.parts)
    return tuple(mask_text(name) for name in names if name)


def _shortest_ends(paths: set[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """The shortest end of each of ``paths`` that differs for all, without the folders in which all of them end."""
    if len(paths) == 1:
        return {path: path[-1] if path else "" for path in paths}
    same = next(n for n in itertools.count() if len({path[-n - 1 :] for path in paths}) > 1)
    ends = {path: path[: len(path) - same] for path in paths}
    depth = next(n for n in itertools.count(1) if len({end[-n:] for end in ends.values()}) == len(paths))
    return {path: "-".join(end[-depth:]) for path, end in ends.items()}


def _plain_name(argument: str) -> str:
    if argument == "-":
        return "stdin"
    if any(sign in argument for sign in "*?["):
        argument = str(PurePath(argument).parent)
    file = PurePath(_printable(argument).rstrip("/") or "/").name
    name = file.split(".log")[0].removesuffix(".txt").removesuffix(".out")
    return name.strip(".") or "run"
