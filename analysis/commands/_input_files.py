"""The files that the arguments of a command name: no output may replace them."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from pathlib import Path

from analysis.files.own_files import input_overwritten
from logparse.inputs.stores import is_url


def input_files(arguments: Iterable[str | Path | None]) -> list[str]:
    """The ``arguments``, and the files that match those that are patterns. A folder stays a folder."""
    return [name for argument in arguments if argument is not None for name in _named(str(argument))]


def _named(argument: str) -> list[str]:
    if is_url(argument) or not any(sign in argument for sign in "*?["):
        return [argument]
    return [argument, *glob.glob(argument, recursive=True)]  # noqa: PTH207


def check_output_file(output: Path, inputs: Iterable[str]) -> None:
    """Refuse an output that is one of ``inputs``, or a file below one that is a folder. Raises UsageError."""
    for name in inputs:
        path = Path(name)
        if is_url(name) or not output.exists() or not path.exists():
            continue
        if path.samefile(output) or (path.is_dir() and output.resolve().is_relative_to(path.resolve())):
            raise input_overwritten(output, output)
