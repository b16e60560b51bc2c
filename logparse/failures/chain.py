"""Exceptions that were raised while another one was handled: the last of them says what the program wanted to do."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import dropwhile

from logparse.failures.attribution import same_message
from logparse.failures.frames import Frame
from logparse.failures.scan import Hit

# The signature of the line between two exceptions of a chain, and lines between the two, at most.
CHAIN, LONGEST_LINK = "chain.during", 150
# Roles of exceptions in it.
_RAISED = ("root", "consequence")


def last_of_chain(cause: Hit, hits: Sequence[Hit]) -> Hit | None:
    """The last exception of the chain that begins with ``cause``; None where it says nothing else, or none follows."""
    last, linked = cause, False
    for hit in list(dropwhile(lambda one: one is not cause, hits))[1:]:
        if hit.rank != cause.rank or hit.source != cause.source:
            continue
        if hit.line - last.line > LONGEST_LINK or (hit.role in _RAISED and not linked):
            break
        if hit.meaning.signature == CHAIN:
            linked = True
        elif hit.role in _RAISED:
            last, linked = hit, False
    return None if same_message(last, cause) else last


def frames_of(cause: Hit, chained: Hit | None, hits: Sequence[Hit]) -> tuple[Frame, ...]:
    """The call of one's own code that led to ``cause``, which the chain may show later, and the one that raised it.

    Where the traceback of ``cause`` is not in the log, those of another rank with the same message.
    """
    frames = cause.frames or next((hit.frames for hit in hits if hit.frames and same_message(hit, cause)), ())
    if chained is None or any(call.own for call in frames):
        return frames
    return tuple(dict.fromkeys((*(call for call in chained.frames if call.own), *frames)))
