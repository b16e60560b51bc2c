"""All log formats: every module of this folder whose name does not start with an underscore holds one ``FORMAT``.

Those of installed packages come on top.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

from logparse.errors import unknown_name, use_one_of
from logparse.formats._base import LogFormat
from logparse.language import msg

if TYPE_CHECKING:
    from logparse.formats._packages import Packaged

# How the name of a file with a format of the user's own ends.
USERS = ".toml"


@cache
def all_formats() -> tuple[LogFormat, ...]:
    """Every format, in the order of its module's name."""
    modules = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    return tuple(importlib.import_module(f"{__name__}.{m}").FORMAT for m in modules)


def packaged() -> Packaged:
    """The formats that installed packages give, which are looked for now."""
    from logparse.formats._packages import packaged_formats

    return packaged_formats(frozenset(fmt.name for fmt in all_formats()))


def known_formats() -> tuple[LogFormat, ...]:
    """Every format, then those of installed packages."""
    return (*all_formats(), *packaged().formats)


def find_format(name: str) -> LogFormat:
    """The format called ``name``, or that of a TOML file; UsageError when there is none."""
    if name.endswith(USERS):
        from logparse.formats._user import read_format

        return read_format(name)
    formats = {f.name: f for f in all_formats()}
    if name not in formats:
        formats |= {f.name: f for f in packaged().formats}
    if name not in formats:
        raise unknown_name(msg("format"), name, formats, use_one_of(formats, "logparse formats"))
    return formats[name]
