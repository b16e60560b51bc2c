"""The runs of files that grow, at each time: what ``analyze`` answers of the same bytes, which are read once.

Comes in: what the user named, and a time. Goes out: a Moment. A run is built again from its frames where a file grew.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from analysis.run.anonymous import shown_about, shown_error
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
from logparse.inputs.follow import Follow, Look
from logparse.inputs.run_names import run_names
from logparse.inputs.sources import Source
from logparse.light_dataclass import dataclass, replace
from logparse.masking import mask_text
from logparse.texts import map_texts

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
    """Follows the logs of a run as they grow.

    Args:
        arguments: What ``analyze`` takes: files, folders, patterns, URLs, ``-``; also names that do not exist yet.
        how: The options of ``analyze``.
        name: The name of the run; by default it is that of its first argument.
        split: Whether runs that write to one file at the same time are runs of their own.
        block_bytes: The bytes of a block, which is read once when it is whole.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        how: RunOptions | None = None,
        *,
        name: str | None = None,
        split: bool = False,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self._arguments, self._how, self._block_bytes, self._split = arguments, how or RunOptions(), block_bytes, split
        self._name = name or run_names([arguments])[0]
        self._follow, self._memory = Follow(arguments, whole_lines=self._how.strict), Memory()
        self._versions: object = None
        self._answer = BuiltRuns()
        # CPU seconds of the last two refreshes that had something new.
        self._took = (0.0, 0.0)

    @property
    def read_again(self) -> int:
        """How many blocks were read more than once, since later bytes changed how they are to be read."""
        return self._memory.read_again

    def refresh(self, at: float) -> Moment:
        """What is known ``at`` a time.

        Raises UsageError for options that cannot be used, InputError for a pipe that cannot be kept, never for what
        files do.
        """
        begin = time.process_time()
        look = self._follow.look(at)
        for name in look.renewed:
            self._memory.forget(name)
        versions = [(source.name, source.version) for source in look.sources]
        is_new = bool(look.sources) and versions != self._versions
        if is_new:
            self._answer = self._built(join_parts(look.sources, formats_named(self._how.log_format)))
        elif not look.sources and look.refusal is not None:
            self._answer = BuiltRuns(refusal=shown_error(look.refusal, self._arguments, self._how))
        self._versions = versions
        seconds = time.process_time() - begin
        if is_new:
            self._took = (self._took[1], seconds)
        return self._moment(at, look, seconds)

    def seconds_to_wait(self, every: float) -> float:
        """Seconds until the next refresh: ``every``, or more where that would take more of a core than SHARE.

        The shorter of the last two that had something new counts: to read a long log for the first time is rare.
        """
        return max(every, min(self._took) / SHARE)

    def _moment(self, at: float, look: Look, seconds: float) -> Moment:
        growths = [
            FileGrowth(file.name, file.size, self._memory.lines.get(file.name, 0), file.grown_at) for file in look.files
        ]
        answer = self._answer
        moment = Moment(
            at,
            (),
            tuple(growths),
            tuple(look.waiting),
            answer.refusal,
            answer.ending,
            seconds,
            look.ended,
            tuple(look.notes),
            self._name,
        )
        # The runs and the refusal are shown as the user wants it already.
        names = [*self._arguments, *look.waiting, *look.renewed, *(file.name for file in look.files)]
        masked = map_texts(moment, mask_text)
        shown = shown_about(masked, map(mask_text, names), self._name, self._how)
        return replace(shown, runs=answer.runs)

    def _built(self, sources: Sequence[Source]) -> BuiltRuns:
        """What the files hold now. Raises UsageError for options that cannot be used."""
        contents = None
        try:
            contents = self._read(sources)
            loaded = understand(self._log(contents, sources), self._how)
            return BuiltRuns(tuple(parts_of(loaded, self._how, self._split)))
        except UsageError:
            raise
        except LogparseError as refusal:
            ending = None if contents is None else _ending(contents, sources)
            return BuiltRuns(refusal=shown_error(refusal, self._arguments, self._how), ending=ending)

    def _read(self, sources: Sequence[Source]) -> Contents:
        how = self._how
        formats = formats_named(how.log_format)
        return read_sources(sources, formats, self._block_bytes, how.jobs or CORES, how.all_files, self._memory)

    def _log(self, contents: Contents, sources: Sequence[Source]) -> ParsedLog:
        how = self._how
        try:
            return log_of(contents, sources, how.log_format, how.strict, self._name)
        except NoStepLineError as refusal:
            # A pipe cannot be read again by those who draft.
            if not how.drafts or how.log_format is not None or any(source.spool for source in sources):
                raise
            from logparse.draft.read_unknown import read_drafted

            logs = self._arguments
            return read_drafted(logs, refusal, lambda fmt: read_run(logs, fmt, how.strict, self._name, None, how.jobs))


def _ending(contents: Contents, sources: Sequence[Source]) -> Ending | None:
    """The ending of files of which no run can be built; None of an empty log, and of several runs."""
    try:
        return ending_in(contents, sources)
    except LogparseError:
        return None
