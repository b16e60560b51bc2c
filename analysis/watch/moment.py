"""What the watcher knows at one time: the runs as ``analyze`` answers, and how their files grow."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.run.run import Run
from logparse.errors import InputError, LogparseError
from logparse.failures.ending import Ending
from logparse.findings import Note
from logparse.light_dataclass import dataclass, replace


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
    ``notes`` report what happened to the files since the moment before. ``name`` is how the user knows the files.
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
    name: str = ""

    @property
    def is_blind(self) -> bool:
        """Whether nothing can be read: the files are not there, or cannot be opened."""
        return not self.files or isinstance(self.refusal, InputError)

    def of_each_run(self) -> Iterator[Moment]:
        """A moment for each run that may go on, which is its newest; of those that follow each other the last one's."""
        going_on = [run for run in self.runs if not any(_follows(other, run) for other in self.runs)]
        if len(going_on) < 2:
            yield self
        else:
            yield from (self._of(run, self.notes if n == 0 else ()) for n, run in enumerate(going_on))

    def _of(self, run: Run, notes: tuple[Note, ...]) -> Moment:
        others = (other for other in self.runs if other is not run)
        return replace(self, runs=(*others, run), notes=notes, name=run.name)


def _follows(later: Run, earlier: Run) -> bool:
    """Whether all steps of ``later`` are after the last one of ``earlier``, in the same file."""
    if later.steps.is_empty() or earlier.steps.is_empty():
        return False
    (source, line), (file, first) = (
        steps.select("source", "line_number").row(at) for steps, at in ((earlier.steps, -1), (later.steps, 0))
    )
    return bool(file == source and first > line)
