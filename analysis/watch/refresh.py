"""The runs of files that grow, at each time: what ``analyze`` answers of the same bytes, which are read once.

Comes in: what the user named, and a time. Goes out: a Moment. A run is built again from its frames where a file grew.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from analysis.run.anonymous import shown_error
from analysis.run.build import parts_of
from analysis.run.load import understand
from analysis.run.options import RunOptions
from analysis.run.run import Run
from analysis.watch.moment import FileGrowth, Moment
from logparse.decode.file_contents import Memory
from logparse.decode.log_parts import join_parts
from logparse.decode.read_run import ParsedLog, ending_in, formats_named, log_of, read_run
from logparse.decode.reader import CORES, Contents, read_sources
from logparse.errors import LogparseError, NoStepLineError, UsageError
from logparse.failures.ending import Ending
from logparse.inputs.follow import Follow
from logparse.inputs.run_discovery import named_runs
from logparse.inputs.sources import Source
from logparse.light_dataclass import dataclass

# Bytes of a block. The last one of each file is read again where it grew, so that it is short.
BLOCK_BYTES = 2**20
# The share of a core that refreshing may take.
SHARE = 0.1


@dataclass(frozen=True)
class BuiltRuns:
    """The runs that files hold; where there is none, the ``refusal`` says why and ``diagnose`` gives the ``ending``."""

    runs: tuple[Run, ...] = ()
    refusal: LogparseError | None = None
    ending: Ending | None = None


class Follower:
    """Follows the logs of a run, or with ``each`` those of several, as they grow.

    Args:
        arguments: What ``analyze`` takes: files, folders, patterns, URLs, ``-``; also names that do not exist yet.
        how: The options of ``analyze``.
        each: Whether each of ``arguments``, and of what is in a folder or pattern, is a run of its own.
        block_bytes: The bytes of a block, which is read once when it is whole.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        how: RunOptions | None = None,
        *,
        each: bool = False,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self._arguments, self._how = arguments, how or RunOptions()
        self._each, self._block_bytes = each, block_bytes
        self._followed: dict[str, FollowedRun] = {}
        # CPU seconds of the last two refreshes that had something new.
        self._took = (0.0, 0.0)

    @property
    def read_again(self) -> int:
        """How many blocks were read more than once, since later bytes changed how they are to be read."""
        return sum(run.memory.read_again for run in self._followed.values())

    def refresh(self, at: float) -> Moment:
        """What is known ``at`` a time. Raises UsageError for options that cannot be used, never for what files do."""
        begin = time.process_time()
        moments = [run.refresh(at) for run in self._runs()]
        runs = tuple(run for moment in moments for run in moment.runs)
        first = next((moment for moment in moments if moment.refusal is not None), None)
        seconds = time.process_time() - begin
        if any(run.is_new for run in self._followed.values()):
            self._took = (self._took[1], seconds)
        return Moment(
            at,
            runs,
            tuple(file for moment in moments for file in moment.files),
            tuple(name for moment in moments for name in moment.waiting),
            None if runs or first is None else first.refusal,
            None if runs or first is None else first.ending,
            seconds,
            all(moment.ended for moment in moments),
            tuple(note for moment in moments for note in moment.notes),
        )

    def seconds_to_wait(self, every: float) -> float:
        """Seconds until the next refresh: ``every``, or more where that would take more of a core than SHARE.

        The shorter of the last two that had something new counts: to read a long log for the first time is rare.
        """
        return max(every, min(self._took) / SHARE)

    def _runs(self) -> Iterable[FollowedRun]:
        """The runs that the arguments name now, whose files may have become more."""
        before, self._followed = self._followed, {}
        for name, logs in named_runs(self._arguments, self._each):
            run = before.get(name) or FollowedRun(name, self._how, self._block_bytes)
            run.follow.arguments = logs
            self._followed[name] = run
        return self._followed.values()


class FollowedRun:
    """The files of one run, as they grow."""

    def __init__(self, name: str, how: RunOptions, block_bytes: int) -> None:
        self.follow, self.memory = Follow(), Memory()
        self._name, self._how, self._block_bytes = name, how, block_bytes
        self._versions: object = None
        self._answer = BuiltRuns()
        # Whether the last refresh read something.
        self.is_new = False

    def refresh(self, at: float) -> Moment:
        """What is known of the run ``at`` a time."""
        look = self.follow.look(at)
        for name in look.renewed:
            self.memory.forget(name)
        versions = [(source.name, source.version) for source in look.sources]
        self.is_new = bool(look.sources) and versions != self._versions
        if self.is_new:
            self._answer = self._built(join_parts(look.sources, formats_named(self._how.log_format)))
        elif not look.sources and look.refusal is not None:
            self._answer = BuiltRuns(refusal=look.refusal)
        self._versions = versions
        growths = [
            FileGrowth(file.name, file.size, self.memory.lines.get(file.name, 0), file.grown_at) for file in look.files
        ]
        return Moment(
            at,
            self._answer.runs,
            tuple(growths),
            tuple(look.waiting),
            self._answer.refusal,
            self._answer.ending,
            ended=look.ended,
            notes=tuple(look.notes),
        )

    def _built(self, sources: Sequence[Source]) -> BuiltRuns:
        """What the files hold now. Raises UsageError for options that cannot be used."""
        contents = None
        try:
            contents = self._read(sources)
            return BuiltRuns(tuple(parts_of(understand(self._log(contents, sources), self._how), self._how)))
        except UsageError:
            raise
        except LogparseError as refusal:
            ending = None if contents is None else _ending(contents, sources)
            return BuiltRuns(refusal=shown_error(refusal, self.follow.arguments, self._how), ending=ending)

    def _read(self, sources: Sequence[Source]) -> Contents:
        how = self._how
        formats = formats_named(how.log_format)
        return read_sources(sources, formats, self._block_bytes, how.jobs or CORES, how.all_files, self.memory)

    def _log(self, contents: Contents, sources: Sequence[Source]) -> ParsedLog:
        how = self._how
        try:
            return log_of(contents, sources, how.log_format, how.strict, self._name)
        except NoStepLineError as refusal:
            # A pipe cannot be read again by those who draft.
            if not how.drafts or how.log_format is not None or any(source.spool for source in sources):
                raise
            from logparse.draft.read_unknown import read_drafted

            logs = self.follow.arguments
            return read_drafted(logs, refusal, lambda fmt: read_run(logs, fmt, how.strict, self._name, None, how.jobs))


def _ending(contents: Contents, sources: Sequence[Source]) -> Ending | None:
    """The ending of files of which no run can be built; None of an empty log, and of several runs."""
    try:
        return ending_in(contents, sources)
    except LogparseError:
        return None
