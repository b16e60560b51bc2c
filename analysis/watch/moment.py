"""What the watcher knows at one time: the runs as ``analyze`` answers, and how their files grow."""

from __future__ import annotations

from analysis.run.run import Run
from logparse.errors import LogparseError
from logparse.failures.ending import Ending
from logparse.findings import Note
from logparse.light_dataclass import dataclass


@dataclass(frozen=True)
class FileGrowth:
    """One file that is followed: its ``size`` in bytes, its ``lines``, and when it last grew.

    ``grown_at`` is in seconds of the watcher's clock.
    """

    name: str
    size: int
    lines: int
    grown_at: float


@dataclass(frozen=True)
class Moment:
    """What is known ``at`` one time, in seconds of the watcher's clock (``time.time``).

    ``runs`` are the runs that the files hold, the newest last; none before the first step line, and ``refusal`` says
    why. ``files`` are those that are followed. ``waiting`` are names that do not exist yet. ``ending`` is that of
    ``diagnose``, where no run can be built. ``seconds`` is what it took to build.
    ``ended`` says that the input cannot grow any more (a pipe that was closed).
    ``notes`` report what happened to the files since the moment before.
    """

    at: float
    runs: tuple[Run, ...]
    files: tuple[FileGrowth, ...]
    waiting: tuple[str, ...] = ()
    refusal: LogparseError | None = None
    ending: Ending | None = None
    seconds: float = 0.0
    ended: bool = False
    notes: tuple[Note, ...] = ()
