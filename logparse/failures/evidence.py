"""The lines that are quoted with a cause: what came before, what followed, and what is new in the run."""

from __future__ import annotations

from collections.abc import Sequence

from logparse.failures.attribution import same_message
from logparse.failures.novelty import novel_lines
from logparse.failures.precedence import is_near
from logparse.failures.scan import Hit, quoted
from logparse.failures.trainers import FileEnds
from logparse.light_dataclass import dataclass, replace

# Lines of evidence, at most.
MOST_EVIDENCE = 4
# Roles of lines that are quoted with the cause, the first ones first. A general line of a launcher adds nothing.
ORDER = ("finding", "explains", "consequence", "error")
# Families of what a scheduler alone does to a job.
_LIMITS = ("time_limit", "preempted")
# The role of lines that no signature knows.
NOVEL = "novel"


@dataclass(frozen=True)
class FailureLine:
    """A line that belongs to the failure, and its role."""

    source: str
    line: int
    text: str
    role: str
    family: str
    rank: int | None


def proof_of(cause: Hit, hits: Sequence[Hit]) -> Hit | None:
    """What the kernel or the scheduler says of the memory of the host, where a process only says that it was killed."""
    if cause.family != "host_memory" or cause.meaning.grade == "established":
        return None
    return next((hit for hit in hits if hit.role == "root" and _proves(hit, cause)), None)


def _proves(hit: Hit, cause: Hit) -> bool:
    return hit.family == cause.family and hit.meaning.grade == "established" and not same_message(hit, cause)


def quoted_lines(cause: Hit, hits: Sequence[Hit], reported: Hit | None) -> list[Hit]:
    """The cause, and the first lines of other signatures: what followed, and who reported it."""
    proof = proof_of(cause, hits)
    first = [hit for hit in (reported, proof) if hit is not None]
    others = {str(place): hit for place, hit in enumerate(first)}
    for hit in hits:
        # A logged error says more than a launcher, and nothing next to a cause.
        worth = hit.role in ORDER and (hit.role != "error" or cause.role in ("finding", "frame"))
        worth &= not hit.has("begins_block")
        # In a session of a shell a command before may have been interrupted.
        worth &= not (hit.has("typed") and cause.family in _LIMITS)
        if worth and hit not in first and not same_message(hit, cause):
            others.setdefault(hit.meaning.signature, hit)
    at = {id(hit): place for place, hit in enumerate(hits)}
    ranked = sorted(others.values(), key=lambda hit: (hit not in first, _place_of(hit.role), at[id(hit)]))
    chosen = [cause, *[hit for hit in ranked if hit is not cause][: MOST_EVIDENCE - 1]]
    return sorted(chosen, key=lambda hit: at[id(hit)])


def _place_of(role: str) -> int:
    return ORDER.index(role) if role in ORDER else 0


def raised_too(cause: Hit, hits: Sequence[Hit]) -> list[FailureLine]:
    """Where another rank begins a traceback whose exception is not in the log, near the ``cause``.

    It may have failed in the same way: then the first one that a log shows whole is chance.
    """
    if cause.rank is None or cause.role != "root":
        return []
    known = {None, *(hit.rank for hit in hits if not hit.has("traceback"))}
    others = [hit for hit in hits if hit.has("traceback") and hit.rank not in known and is_near(hit, cause)]
    lines = [replace(evidence_of(hit), text=f"[rank{hit.rank}]: {hit.text}") for hit in others[:1]]
    return [replace(line, role="consequence") for line in lines]


def novel_evidence(ends: FileEnds, source: str, cause: int, since: int, known: Sequence[int] = ()) -> list[FailureLine]:
    """What is new in a file near its line ``cause``, after the line ``since``."""
    new = novel_lines(ends, source, cause, since, known)
    return [FailureLine(source, one.line, quoted(one.text, ""), NOVEL, "unknown", one.rank) for one in new]


def evidence_of(hit: Hit) -> FailureLine:
    """``hit`` as a line that is quoted."""
    return FailureLine(hit.source, hit.line, hit.text, hit.role, hit.family, hit.rank)
