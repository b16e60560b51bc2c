"""All log formats: every module of this folder whose name does not start with an underscore holds one ``FORMAT``."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from logparse.errors import unknown_name
from logparse.formats._base import LogFormat
from logparse.language import msg, tr

# How the name of a file with a format of the user's own ends.
USERS = ".toml"


@cache
def all_formats() -> tuple[LogFormat, ...]:
    """Every format, in the order of its module's name."""
    modules = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    return tuple(importlib.import_module(f"{__name__}.{m}").FORMAT for m in modules)


def find_format(name: str) -> LogFormat:
    """The format called ``name``, or that of a TOML file; UsageError when there is none."""
    if name.endswith(USERS):
        from logparse.formats._user import read_format

        return read_format(name)
    formats = {f.name: f for f in all_formats()}
    if name not in formats:
        raise unknown_name(msg("format"), name, formats, tr("known formats: {names}", names=", ".join(formats)))
    return formats[name]
