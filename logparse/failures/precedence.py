"""Which of the lines of one attempt is its cause: the earliest root, but for what is a consequence of another line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import regex

from logparse.failures.details import mebibytes
from logparse.failures.scan import Hit
from logparse.failures.signatures import JUDGED
from logparse.inputs.writers import read_prefixes

# Clocks of ranks differ by seconds; without a clock, ranks that fail together print within so many lines.
NEAR_SECONDS, NEAR_LINES = 2.0, 200
# Of causes that are near each other the heavier one counts: lower numbers are heavier. All others are equal.
_WEIGHT = {"hardware": 0, "node": 0, "device_memory": 1, "host_memory": 1, "shared_memory": 1}
_SCHEDULED, _OTHERS = ("time_limit", "preempted"), 2
# What a time-out that came before brings about: exceptions, aborted processes, stops from outside.
_FALLOUT = frozenset(("exception", "crash", "signal", "killed", "cancelled", "time_limit", "preempted", "network"))
# Characters of messages by which they are the same.
SAME_CHARACTERS = 30
# Lines of torchrun's report on all processes of a node, and of its part on one of them, at most.
LONGEST_REPORT, BLOCK_LINES = 150, 12
# What a process prints that is stopped or left alone, and what a scheduler's own word explains.
_STOPPED = frozenset(("exception", "cancelled", "signal", "killed"))
# The remedy of a program that refuses its arguments.
_REFUSED = "parser"
# Slurm ends the steps of a job first, and then says why it ended the job.
_REASONS = ("time_limit", "preempted", "node")
# A size that an aborted collective never filled in is any number: a request above so many devices is no real one.
_MOST_DEVICES = 2


def cause_of(hits: Sequence[Hit]) -> Hit | None:
    """The line among ``hits``, in order, that is the cause; else the best that there is, None without any."""
    at = {id(hit): place for place, hit in enumerate(hits)}
    ended = next(
        (at[id(hit)] for hit in hits if hit.role in ("finding", "frame") and hit.code not in (None, 0)), len(hits)
    )
    explains = _first_wait(hits)
    # A scheduler's line only clears up where a process ended before; a shell goes on.
    roots = [hit for hit in hits if hit.role == "root" and not (hit.has("clears_up") and at[id(hit)] > ended)]
    if explains is not None:
        place = at[id(explains)]
        roots = [root for root in roots if at[id(root)] < place or not _follows(root, explains)]
    if roots:
        roots = _that_end_so(roots, hits)
        soon = roots if explains is None else [root for root in roots if at[id(root)] < at[id(explains)]]
        return _heaviest(roots, soon)
    if explains is not None:
        return explains
    known = [hit for hit in hits if hit.role == "consequence" and hit.family != "unknown"]
    # A process aborts itself after any error in native code; NCCL's watchdog says first that something failed.
    known.sort(key=lambda hit: (hit.family == "crash", hit.has("of_watchdog")))
    named = [hit for hit in hits if hit.role == "finding" and hit.family != "unknown"]
    logged = [hit for hit in hits if hit.role == "error"]
    named_errors = [hit for hit in logged if hit.family not in ("unknown", "exception")]
    roles = ("consequence", "finding", "error", "frame")
    by_role = (next((hit for hit in hits if hit.role == role), None) for role in roles)
    return next((hit for hit in (*known[:1], *named[:1], *named_errors[:1], *by_role) if hit is not None), None)


def _that_end_so(roots: list[Hit], hits: Sequence[Hit]) -> list[Hit]:
    """The ``roots`` that end a process with the exit code that torchrun reports; all where that says nothing.

    Python exits with 2 where it finds no program, or the program refuses its arguments; with 1 after an exception.
    """
    codes = {hit.code for hit in hits if hit.has("of_torchrun", "of_block") and hit.code is not None}
    refused = [root for root in roots if root.has("exits_with_2") or root.meaning.remedy == _REFUSED]
    return refused if codes == {2} and refused else roots


def _first_wait(hits: Sequence[Hit]) -> Hit | None:
    """The first wait that timed out, or one near it that names the other end of a link."""
    waits = [hit for hit in hits if hit.role == "explains"]
    return next((hit for hit in waits if "peer" in hit.fields and is_near(hit, waits[0])), waits[0] if waits else None)


def _with_followers(hits: Sequence[Hit]) -> list[Hit]:
    """``hits`` in which requests for more memory than devices have, after a time-out of their file, follow from it."""
    waits: set[str] = set()
    judged: list[Hit] = []
    for hit in hits:
        if hit.role == "explains":
            waits.add(hit.source)
        elif hit.source in waits and _asks_too_much(hit):
            hit = replace(hit, meaning=replace(hit.meaning, role="consequence", grade="hypothesis"))
        judged.append(hit)
    return judged


def _asks_too_much(hit: Hit) -> bool:
    if hit.family != "device_memory" or not {"asked", "total", "free"} <= hit.figures.keys():
        return False
    asked, total = (mebibytes(hit.figures[name]) for name in ("asked", "total"))
    return asked > _MOST_DEVICES * total


def without_caught(hits: Sequence[Hit]) -> list[Hit]:
    """``hits`` without exceptions that a program caught, and without lines that others near them explain away.

    An exception that a program only logs is a failure where another line shows that it ended.
    """
    hits = _with_followers(hits)
    known = {_beginning(hit) for hit in hits if hit.caught}
    caught = {id(hit) for hit in hits if hit.caught or (known and _beginning(hit) in known)}
    logged = {id(hit) for hit in hits if hit.caught in ("", "logged")}
    others = [
        hit for hit in hits if id(hit) not in caught and not _explained_away(hit, hits) and not _fell_later(hit, hits)
    ]
    kept = {id(hit) for hit in others}
    if any(hit.role in JUDGED and hit.role != "error" for hit in others):
        kept |= caught & logged
    else:
        kept |= {id(hit) for hit in hits if hit.caught and hit.has("of_loader")}
    return [hit for hit in hits if id(hit) in kept]


def _fell_later(hit: Hit, hits: Sequence[Hit]) -> bool:
    """Whether torchrun lists how a process ended before its "Root Cause": it was stopped because another failed."""
    if not hit.has("ends_block"):
        return False
    blocks = [one for one in hits if one.has("begins_block") and one.source == hit.source]
    report = next((block.line for block in blocks if 0 < block.line - hit.line <= LONGEST_REPORT), None)
    if report is None:
        return False
    codes = {one.line: one.code for one in hits if one.source == hit.source and one.code is not None}
    listed = {code for line, code in codes.items() if report - LONGEST_REPORT <= line < report}
    # A paste may end before it says how the root cause ended: where all others ended the same way, so did that.
    return len(listed) > 1 or any(report < line <= report + BLOCK_LINES for line in codes)


def _beginning(hit: Hit) -> str:
    """How the message begins: ranks and workers that catch the same exception use the same words."""
    return regex.sub(r"\d+", "", read_prefixes(hit.text).bare)[:SAME_CHARACTERS]


def _explained_away(hit: Hit, hits: Sequence[Hit]) -> bool:
    other = hit.meaning.unless
    if hit.has("ends_job") and "job" in hit.fields:
        reasons = (one for one in hits if one.family in _REASONS)
        return any(one.fields.get("job") == hit.fields["job"] for one in reasons)
    return bool(other) and any(near.meaning.signature == other and is_near(near, hit) for near in hits)


def is_near(one: Hit, other: Hit) -> bool:
    """Whether two lines were printed together, by their clocks, or by their places where one has no clock."""
    if one.clock is not None and other.clock is not None:
        return abs(one.clock - other.clock) <= NEAR_SECONDS
    return one.source != other.source or abs(one.line - other.line) <= NEAR_LINES


def _heaviest(roots: Sequence[Hit], soon: Sequence[Hit]) -> Hit:
    """The root that counts; ``soon`` are those before a time-out."""
    first = roots[0]
    if first.family == "checkpoint" and first.has("may_write"):
        # What fails while it writes says that it did; another line says why.
        full = next((root for root in soon if root.family == "disk" and is_near(first, root)), None)
        first = full or first
    # A shell only says that a process was killed, the kernel or the scheduler later why.
    why = "host_memory" if first.family == "killed" else ""
    others = [root for root in roots if (is_near(first, root) or root.family == why) and _may_displace(root, first)]
    return min((first, *others), key=lambda root: _weight(root))


def _may_displace(root: Hit, first: Hit) -> bool:
    """A rank that raised another exception first did not wait for what it printed later."""
    if root.family in _SCHEDULED:
        return first.family in _STOPPED
    if _is_cancelled(root):
        return first.family == "signal"
    return root.rank is None or root.rank != first.rank


def _is_cancelled(root: Hit) -> bool:
    """Whether the scheduler says that a job was cancelled: the signal that its processes print is how."""
    return root.has("ends_job")


def _weight(root: Hit) -> int:
    return 1 if root.family in _SCHEDULED or _is_cancelled(root) else _WEIGHT.get(root.family, _OTHERS)


def _follows(root: Hit, explains: Hit) -> bool:
    """Whether ``root``, which comes after the time-out that ``explains``, is what it brings about."""
    if (root.local_rank if root.rank is None else root.rank) in explains.absent:
        return False
    fallout = root.family in _FALLOUT or root.has("follows", "clears_up")
    return fallout or root.meaning.general or not is_near(root, explains)
