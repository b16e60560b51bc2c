"""Formats that installed packages give, by the entry point group ``logparse.formats``.

An entry point is a LogFormat, the path of a TOML file as docs/formats.md describes, or a list of either. Packages are
searched when a log is read, and not before. One that cannot be used is reported and left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from os import PathLike, fspath
from typing import Any

import polars as pl

from logparse.findings import Note, warning
from logparse.formats._base import LogFormat
from logparse.formats._user import read_format
from logparse.light_dataclass import dataclass

GROUP = "logparse.formats"


@dataclass(frozen=True)
class Packaged:
    """The formats of all packages, the package of each by the format's name, and what was left out."""

    formats: tuple[LogFormat, ...]
    packages: dict[str, str]
    notes: tuple[Note, ...]


@cache
def packaged_formats(taken: frozenset[str]) -> Packaged:
    """All that packages give, but for names that are ``taken``; of two of one name the first."""
    formats: dict[str, LogFormat] = {}
    packages: dict[str, str] = {}
    notes: list[Note] = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: (_package(point), point.name)):
        package = _package(point)
        try:
            given = list(_formats(point.load()))
        except Exception as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            notes.append(warning("format_package_broken", package=package, name=point.name, reason=reason))
            continue
        for fmt in given:
            if fmt.name in taken or fmt.name in formats:
                other = packages.get(fmt.name, "logparse")
                notes.append(warning("format_name_taken", package=package, name=fmt.name, other=other))
            else:
                formats[fmt.name], packages[fmt.name] = fmt, package
    return Packaged(tuple(formats.values()), packages, tuple(notes))


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else point.module


def _check(fmt: LogFormat) -> None:
    """Raise ComputeError where a pattern is none."""
    for pattern in filter(None, (fmt.head, fmt.pair, fmt.separator, fmt.foreign)):
        pl.select(pl.lit("").str.contains(pattern))


def _formats(given: Any) -> Iterator[LogFormat]:
    if isinstance(given, LogFormat):
        _check(given)
        yield given
    elif isinstance(given, str | PathLike):
        yield read_format(fspath(given))
    elif isinstance(given, list | tuple):
        for each in given:
            yield from _formats(each)
    else:
        raise TypeError(f"a {type(given).__name__}, not a LogFormat or the path of a TOML file")
