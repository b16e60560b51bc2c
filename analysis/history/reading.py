"""Reading many files of which some may be damaged, newer, or no longer there: each is left out, and named."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from analysis.history.seal import UNREADABLE
from analysis.history.storage import Storage
from logparse.findings import Note, warning
from logparse.language import tr

Warn = Callable[[Note], object]


def read_whole(
    storage: Storage, warn: Warn, keys: Sequence[str], read: Callable[[Sequence[str]], pl.DataFrame]
) -> list[pl.DataFrame]:
    """The frames that ``read`` returns for ``keys``; if it fails, they are halved down to the file that cannot be read.

    Raises FileNotFoundError if a file is gone and the storage no longer lists it.
    """
    if not keys:
        return []
    try:
        return [read(keys)]
    except (FileNotFoundError, *UNREADABLE) as error:
        if isinstance(error, FileNotFoundError) and not _are_listed(storage, keys):
            raise
        if len(keys) == 1:
            warn(warning("file_left_out", path=keys[0], reason=first_line(error)))
            return []
    middle = len(keys) // 2
    return [part for half in (keys[:middle], keys[middle:]) for part in read_whole(storage, warn, half, read)]


def _are_listed(storage: Storage, keys: Sequence[str]) -> bool:
    """Whether all are: such as cannot be found are links that lead nowhere."""
    folder = keys[0].partition("/")[0]
    return set(keys) <= set(storage.keys(folder))


def left_out_newer(keys: Sequence[str], warn: Warn) -> None:
    """Report files that a newer logparse wrote."""
    if keys:
        warn(warning("newer_left_out", n=len(keys), path=keys[0]))


def first_line(error: Exception) -> str:
    """The reason why a file cannot be read, in one line."""
    if isinstance(error, FileNotFoundError):
        return tr("the link target does not exist")
    return str(error).partition("\n")[0]
