"""The history that a command works with."""

from __future__ import annotations

from collections.abc import Callable

from analysis.history.storage import open_storage
from analysis.history.store import History
from logparse.errors import UsageError
from logparse.findings import Note
from logparse.inputs.stores import shown
from logparse.language import tr

Report = Callable[[Note], object]


def open_history(place: str | None, report: Report, must_exist: bool = True) -> History:
    """The history at ``place``. Raises UsageError where none is given, or nothing is there though it must be."""
    if not (place and place.strip()):
        remedy = tr("give its folder: --history DIR, the variable LOGPARSE_HISTORY, or history in logparse.toml")
        raise UsageError(tr("no history is given"), remedy=remedy)
    storage = open_storage(place)
    if must_exist and not storage.exists():
        raise UsageError(
            tr("there is no history in {place}", place=shown(place)),
            remedy=tr("check the path; `logparse record LOG --history DIR --release NAME` creates one"),
        )
    return History(storage, warn=report)
