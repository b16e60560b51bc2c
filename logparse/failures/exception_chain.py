"""Exceptions that follow from a cause: the last one of a chain, and the first one after a line without a traceback."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import dropwhile

from logparse.failures.attribution import same_message
from logparse.failures.frames import Frame
from logparse.failures.precedence import is_near
from logparse.failures.scan import OF_WHOLE_JOBS, Hit

# Lines between two exceptions of a chain, at most.
LONGEST_LINK = 150
# Roles of exceptions in it.
_RAISED = ("root", "consequence")
# Lines between a line without a traceback and that of the exception that reports it, at most.
FURTHEST = 40
# Families of causes that a program does not report as its exception.
_OF_ITSELF = OF_WHOLE_JOBS | {"signal", "killed", "hardware", "node", "host_memory", "disk"}


def last_of_chain(cause: Hit, hits: Sequence[Hit]) -> Hit | None:
    """The last exception of the chain that begins with ``cause``; None where it says nothing else, or none follows."""
    last, linked = cause, False
    for hit in list(dropwhile(lambda one: one is not cause, hits))[1:]:
        if hit.rank != cause.rank or hit.source != cause.source:
            continue
        if hit.line - last.line > LONGEST_LINK or (hit.role in _RAISED and not linked):
            break
        if hit.has("chains"):
            linked = True
        elif hit.role in _RAISED:
            last, linked = hit, False
    return None if same_message(last, cause) else last


def raised_after(cause: Hit, hits: Sequence[Hit]) -> Hit | None:
    """The first exception that a program raises after a ``cause`` without a traceback of its own; None if none does."""
    if cause.frames or cause.role != "root" or cause.code is not None or cause.family in _OF_ITSELF:
        return None
    own = [hit for hit in hits if hit.source == cause.source and cause.rank in (None, hit.rank)]
    printed = max((hit.line for hit in own if same_message(hit, cause)), default=cause.line)
    begun = [hit.line for hit in own if hit.has("traceback") and hit.line > printed]
    later = (hit for hit in own if hit.line > printed and hit.role in _RAISED and hit.frames)
    first = next(later, None)
    if first is None or min((*begun[:1], first.line)) - printed > FURTHEST:
        return None
    return first if is_near(first, cause) or printed > cause.line else None


def frames_of(cause: Hit, reported: Hit | None, hits: Sequence[Hit]) -> tuple[Frame, ...]:
    """The call of one's own code that led to ``cause``, which a later exception may show, and the one that raised it.

    Where the traceback of ``cause`` is not in the log, those of another rank with the same message, or of the exception
    that ``reported`` it.
    """
    frames = _with_code(cause.frames) or _of_others(cause, hits) or cause.frames
    if reported is None or any(call.own for call in frames):
        return frames
    own = (call for call in reported.frames if call.own)
    return tuple(dict.fromkeys((*own, *frames))) if frames else reported.frames


def reporting_line(cause: Hit, reported: Hit | None, hits: Sequence[Hit]) -> int | None:
    """The line of the exception whose calls ``frames_of`` gives, if they are not those of ``cause``."""
    return None if reported is None or cause.frames or _of_others(cause, hits) else reported.line


def _of_others(cause: Hit, hits: Sequence[Hit]) -> tuple[Frame, ...]:
    """The calls that another process prints with the same message, those with their lines of code first."""
    others = [hit.frames for hit in hits if hit.frames and same_message(hit, cause)]
    return next(filter(_with_code, others), next(iter(others), ()))


def _with_code(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """``frames`` if the code of any is known: of tracebacks that several processes print at once it is not."""
    return frames if any(call.code for call in frames) else ()
