"""What the end of a log shows that no signature knows: lost values, a torn traceback, a save that did not end.

Comes in: an ending without a failure, or of a run that was stopped. Goes out: the ending with these lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from logparse.failures.attempts import Part
from logparse.failures.details import detail_of
from logparse.failures.ending import Ending
from logparse.failures.evidence import FailureLine, novel_evidence
from logparse.failures.last_lines import (
    first_nan,
    last_lost,
    last_printed,
    never_finite,
    open_evaluation,
    printed_before,
    torn_traceback,
)
from logparse.failures.progress import Progress, last_progress
from logparse.failures.scan import Hit, quoted
from logparse.failures.signatures import LOST_VALUES, NEVER_FINITE, TORN_TRACEBACK
from logparse.failures.trainers import FileEnds
from logparse.failures.unfinished_save import unfinished_save
from logparse.inputs.blocks import TextBlock
from logparse.inputs.writers import read_prefixes

# Families of what stops a run from outside, whatever it does.
_FROM_OUTSIDE = frozenset(("time_limit", "preempted", "killed", "signal", "cancelled"))
# Lines between two that a launcher prints as a run stops, at most.
_TOGETHER = 3


def without_failure(progress: Progress, ends: FileEnds) -> Ending:
    """The ending of a log without a failure: cut off or unknown; failed where it ends inside a traceback."""
    cut = progress.step is not None or any(last_progress(tail) for tail in ends.tails)
    ending = Ending("cut_off" if cut else "unknown", step=progress.step, planned_steps=progress.planned)
    if len(ends.tails) == 1 and (found := last_printed(ends.tails[0])) is not None:
        ending = replace(ending, printed_last=_line_of(ends.tails[0].source, found))
    lost, torn = _first_of(ends, last_lost), _first_of(ends, torn_traceback)
    if torn is not None:
        ending = _with_line(replace(ending, state="failed"), "unknown", "unknown", TORN_TRACEBACK, *torn)
        since = max(progress.lines.get(torn[0], ()), default=0)
        ending = replace(ending, evidence=(*ending.evidence, *novel_evidence(ends, torn[0], torn[1], since)))
    return _with_values(ending, progress, ends, *lost) if lost else ending


def _with_values(ending: Ending, progress: Progress, ends: FileEnds, source: str, line: int, text: str) -> Ending:
    """``ending`` with the line from which on values are not finite; if none ever was, with the first that is not."""
    tail = next(tail for tail in ends.tails if tail.source == source)
    if not (progress.is_whole(tail) and never_finite(tail)):
        return _with_line(ending, "numerics", "supported", LOST_VALUES, source, line, text)
    ending = _with_line(ending, "numerics", "supported", NEVER_FINITE, source, line, text)
    first = _line_of(source, first_nan(tail, line))
    return ending if first is None else replace(ending, evidence=(first, *ending.evidence))


def within_evaluation(progress: Progress, ends: FileEnds, end: Hit | None) -> Ending | None:
    """The ending of a log that says that the training is done, and then stops within an evaluation."""
    if end is None or len(ends.tails) != 1 or ends.tails[0].source != end.source:
        return None
    line = _line_of(end.source, open_evaluation(ends.tails[0], end.line))
    return None if line is None else replace(without_failure(progress, ends), unfinished_evaluation=line)


def with_lost_values(ending: Ending, ends: FileEnds) -> Ending:
    """``ending`` of a completed run with the line from which on losses are not finite, unless an error came later."""
    lost = _first_of(ends, partial(last_lost, evaluated=True))
    if lost is None or ending.evidence:
        return ending
    line = _with_line(ending, "numerics", "supported", LOST_VALUES, *lost)
    return replace(ending, evidence=line.evidence, remedy=line.remedy, detail=line.detail, figures=line.figures)


def with_lines_before(ending: Ending, part: Part, cause: Hit, ends: FileEnds) -> Ending:
    """``ending`` with a save that had begun, and of a run that was stopped from outside with what it printed before."""
    tail = next((tail for tail in ends.tails if tail.source == cause.source), None)
    if tail is None:
        return ending
    first = cause.line
    own = [hit for hit in part.hits if hit.source == cause.source and not hit.has("typed")]
    for hit in reversed([hit for hit in own if hit.line < cause.line]):
        first = hit.line if first - hit.line <= _TOGETHER else first
    # A step after it shows that the save did not hold the run, and may have ended.
    since = max(part.first_line, (part.stepped_line or 0) + 1)
    saving = _line_of(cause.source, unfinished_save(tail, since, first))
    last = printed_before(tail, first) if ending.family in _FROM_OUTSIDE and not cause.frames else None
    stepped = part.stepped_line if ending.step is not None else None
    known = last is None or last[0] in (stepped, saving and saving.line)
    return replace(ending, unfinished_save=saving, printed_last=None if known else _line_of(cause.source, last))


def with_error_file(ending: Ending, hits: Sequence[Hit]) -> Ending:
    """``ending`` with the file or folder in which a scheduler or a launcher says that the errors of the job are."""
    named = next((hit for hit in hits if hit.has("error_file")), None)
    if named is None or (ending.failed and ending.family != "unknown" and ending.collect != "errors"):
        return ending
    detail, figures = detail_of(named.meaning.remedy, named.text) or (None, {})
    return replace(ending, remedy=named.meaning.remedy, detail=detail, figures=figures, collect=None)


def _first_of(ends: FileEnds, find: Callable[[TextBlock], tuple[int, str] | None]) -> tuple[str, int, str] | None:
    """File, line and text of what ``find`` finds at the end of the first file that has it."""
    return next(((tail.source, *found) for tail in ends.tails if (found := find(tail))), None)


def _line_of(source: str, found: tuple[int, str] | None) -> FailureLine | None:
    if found is None:
        return None
    number, text = found
    return FailureLine(source, number, quoted(text, ""), "last", "unknown", read_prefixes(text).rank)


def _with_line(ending: Ending, family: str, grade: str, remedy: str, source: str, line: int, text: str) -> Ending:
    """``ending`` with what a line at the end of the log shows, which no signature knows."""
    found = FailureLine(source, line, quoted(text, ""), "finding", family, None)
    detail, figures = detail_of(remedy, text) or (None, {})
    return replace(
        ending,
        family=family,
        grade=grade,
        source=source,
        line=line,
        text=found.text,
        remedy=remedy,
        evidence=(found,),
        detail=detail,
        figures=figures,
    )
