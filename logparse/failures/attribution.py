"""Which process a cause is of: its rank, host and exit code, and which other processes report the same.

Comes in: the cause, and the hits of its attempt. What the cause says of itself counts before what a launcher says.
"""

from __future__ import annotations

from collections.abc import Sequence

import regex

from logparse.failures.precedence import BLOCK_LINES, is_near
from logparse.failures.scan import LONGEST_QUOTE, Hit
from logparse.inputs.writers import read_prefixes
from logparse.lazy_regex import lazy_regex

# Signatures of lines that need not be about the same failure.
_DIFFERENT = frozenset(("python.exception", "exit.torchrun"))
# From so many times on a message is printed by several processes, if it is of the program and not of a device.
SEVERAL = 3
_OF_PROGRAMS = frozenset(("exception", "arguments", "file", "data", "checkpoint"))
# NCCL's name of a process: its host and number, before those of its thread and device.
_OF_NCCL = lazy_regex(r"[\w.-]+:\d+(?=:\d+ \[\d+\] )")
# Lines in which a launcher names the rank that ended first.
NAMED_BY_LAUNCHER = frozenset(
    ("exit.mpirun", "exit.mpirun_name", "exit.other", "exit.paddle", "exit.replica", "exit.lightning")
)


def attributed(cause: Hit, hits: Sequence[Hit]) -> tuple[int | None, int | None, str | None, int | None]:
    """Rank, local rank, host and exit code of the cause: its own, else those of the launcher's report that fits."""
    rank, local, host, code = _block(hits, cause)
    if rank is None and cause.rank is None:
        rank, host = _named_with(cause, hits)
    if rank is None and cause.rank is None and local is None:
        alone = _of_environment(hits)
        # The environment of one process says nothing of another one on its node.
        rank = alone if cause.local_rank is None or cause.local_rank == alone == 0 else None
    if rank is None and cause.rank is None and local is None:
        rank = _of_reporter(cause, hits)
    if cause.rank is not None and rank is not None and cause.rank != rank:
        rank, local, host, code = cause.rank, None, None, None
    codes = {hit.code for hit in hits if hit.meaning.signature == "exit.torchrun"}
    if (rank, local, cause.rank, cause.local_rank) == (None,) * 4:
        # torchrun names the only process of the node that failed by itself.
        named = {hit.local_rank for hit in hits if hit.meaning.signature == "exit.torchrun"}
        local = next(iter(named)) if len(named) == 1 else None
    code = code if code is not None or len(codes) != 1 else next(iter(codes))
    return (
        cause.rank if cause.rank is not None else rank,
        cause.local_rank if cause.local_rank is not None else local,
        cause.host or host,
        cause.code if cause.code is not None else code,
    )


def _named_with(cause: Hit, hits: Sequence[Hit]) -> tuple[int | None, str | None]:
    """The only rank that a near line of the same signature names, and its host: several lines report one failure."""
    same = [
        hit
        for hit in hits
        if hit.meaning.signature == cause.meaning.signature
        and hit.rank is not None
        and is_near(cause, hit)
        and (cause.host is None or hit.host in (None, cause.host))
    ]
    differ = cause.meaning.signature in _DIFFERENT
    known = {(hit.rank, hit.host) for hit in same if not differ or same_message(hit, cause)}
    return next(iter(known)) if len(known) == 1 else (None, None)


def _of_environment(hits: Sequence[Hit]) -> int | None:
    """The rank of the only process whose environment the log prints, where no line has a rank."""
    known = {hit.rank for hit in hits if hit.meaning.signature == "context.rank"}
    ranks = {hit.rank for hit in hits if hit.rank is not None}
    return next(iter(known)) if len(known) == 1 and ranks <= known else None


def _of_reporter(cause: Hit, hits: Sequence[Hit]) -> int | None:
    """The only rank that torch_npu names as a process ends, or Ray as an actor died: the cause has none."""
    reporters = []
    if cause.meaning.collect == "plog":
        reporters.append("context.npu_rank")
    if cause.meaning.signature in ("ray.died", "ray.pod_memory"):
        reporters.append("context.ray_worker")
    ranks = {hit.rank for hit in hits if hit.meaning.signature in reporters}
    return next(iter(ranks)) if len(ranks) == 1 else None


def _block(hits: Sequence[Hit], cause: Hit) -> tuple[int | None, int | None, str | None, int | None]:
    """What torchrun's first report of a root cause says."""
    begin = next((hit for hit in hits if hit.meaning.signature == "exit.block"), None)
    first, last = 0, 0
    if begin is not None:
        first, last = begin.line, begin.line + BLOCK_LINES
    elif cause.meaning.signature == "exit.signal":
        # The heading of the report is not in an excerpt.
        begin, first, last = cause, cause.line - BLOCK_LINES, cause.line
    else:
        named = next((hit for hit in hits if hit.meaning.signature in NAMED_BY_LAUNCHER and hit.rank is not None), None)
        return (named.rank, None, named.host, named.code) if named else (None, None, None, None)
    own = [
        hit
        for hit in hits
        if hit.meaning.signature == "context.block" and hit.source == begin.source and first < hit.line <= last
    ]
    rank = next((hit for hit in own if hit.local_rank is not None), None)
    host = next((hit.host for hit in own if hit.text.startswith("host")), None)
    code = next((hit.code for hit in own if hit.code is not None), None)
    return rank.rank if rank else None, rank.local_rank if rank else None, host, code


def same_message(hit: Hit, other: Hit) -> bool:
    """Whether two lines differ in nothing but numbers and what a launcher put before them.

    Of long lines only the beginning is quoted: where that ends depends on the numbers.
    """
    one, another = words_of(hit.text), words_of(other.text)
    if min(len(hit.text), len(other.text)) < LONGEST_QUOTE:
        return one == another
    shorter = min(len(one), len(another))
    return one[:shorter] == another[:shorter]


def words_of(text: str) -> str:
    """What a line says, without its numbers, their units of memory, and what a launcher put before it."""
    return regex.sub(r"\d[\d.]* [KMGT]?i?B\b|\d+", "", read_prefixes(text).bare)


def ranks_with(cause: Hit, hits: Sequence[Hit]) -> tuple[int, ...]:
    """The ranks that print the cause: one that all print is a setting or the data, not a device."""
    return tuple(sorted({hit.rank for hit in hits if hit.rank is not None and same_message(hit, cause)}))


def ranks_of_report(cause: Hit, hits: Sequence[Hit]) -> tuple[int, ...]:
    """The ranks that torchrun reports with the signal that is the ``cause``, where they are several."""
    if cause.code is None or cause.code >= 0 or cause.meaning.signature != "exit.torchrun":
        return ()
    ranks, rank = set(), None
    for hit in hits:
        if hit.meaning.signature == "context.block":
            rank = hit.rank if hit.rank is not None else rank
            if hit.code == cause.code and rank is not None:
                ranks.add(rank)
    return tuple(sorted(ranks)) if len(ranks) > 1 else ()


def hosts_without_rank(cause: Hit, hits: Sequence[Hit]) -> tuple[str, ...]:
    """The hosts that print the cause, where they are several and no line has a rank."""
    same = [hit for hit in hits if same_message(hit, cause)]
    hosts = {hit.host for hit in same if hit.host is not None}
    return tuple(sorted(hosts)) if len(hosts) > 1 and all(hit.rank is None for hit in same) else ()


def count_unnamed(cause: Hit, hits: Sequence[Hit]) -> int:
    """How many processes print the cause without their rank.

    NCCL names each process; else torchrun's reports of several nodes show it.
    """
    if cause.rank is not None or cause.role != "root":
        return 0
    lines = (_OF_NCCL.search(hit.text) for hit in hits if same_message(hit, cause))
    processes = {line[0] for line in lines if line}
    if len(processes) > 1:
        return len(processes)
    reports = sum(hit.meaning.signature == "exit.block" for hit in hits)
    same = sum(hit.rank is None and same_message(hit, cause) for hit in hits)
    # One process prints its exception twice at most: as it logs and as it raises it.
    every = reports and same >= SEVERAL and cause.family in _OF_PROGRAMS
    return same if every else min(reports, same)


def hosts_with(cause: Hit, hits: Sequence[Hit]) -> set[str | None]:
    """The hosts whose processes print the cause; None among them where one is unknown."""
    return {hit.host for hit in hits if hit.rank is not None and same_message(hit, cause)}
