"""Which process a cause is of: its rank, host and exit code, and which other processes report the same.

Comes in: the cause, and the hits of its attempt. What the cause says of itself counts before what a launcher says.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeVar

import regex

from logparse.failures.precedence import BLOCK_LINES, is_near
from logparse.failures.scan import LONGEST_QUOTE, Hit
from logparse.inputs.writers import read_prefixes
from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass, replace

# From so many times on a message is printed by several processes, if it is of the program and not of a device.
SEVERAL = 3
_OF_PROGRAMS = frozenset(("exception", "arguments", "file", "data", "checkpoint"))
# NCCL's name of a process: its host and number, before those of its thread and device.
_OF_NCCL = lazy_regex(r"[\w.-]+:\d+(?=:\d+ \[\d+\] )")


_T = TypeVar("_T")


@dataclass(frozen=True)
class Who:
    """A process: its rank, its rank on its node, its host and its exit code; None where they are unknown."""

    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    code: int | None = None


def attributed(cause: Hit, hits: Sequence[Hit]) -> Who:
    """The process that the cause is of: what it says itself, else what the launcher's report that fits says."""
    who = _block(hits, cause)
    if who.rank is None and cause.rank is None:
        who = _with_rank_of_others(who, cause, hits)
    if cause.rank is not None and who.rank not in (None, cause.rank):
        who = Who()
    failed = [hit for hit in hits if hit.has("of_torchrun")]
    if (who.rank, who.local_rank, cause.rank, cause.local_rank) == (None,) * 4:
        # torchrun names the only process of the node that failed by itself.
        who = replace(who, local_rank=_only({hit.local_rank for hit in failed}))
    code = _only({hit.code for hit in failed}) if who.code is None else who.code
    return Who(
        who.rank if cause.rank is None else cause.rank,
        who.local_rank if cause.local_rank is None else cause.local_rank,
        cause.host or who.host or _pod_of(cause, hits),
        code if cause.code is None else cause.code,
    )


def _pod_of(cause: Hit, hits: Sequence[Hit]) -> str | None:
    """The only pod that a list of Kubernetes names, where the cause is why a pod ended."""
    return _only({hit.host for hit in hits if hit.has("names_pod")}) if cause.has("of_pod") else None


def _with_rank_of_others(who: Who, cause: Hit, hits: Sequence[Hit]) -> Who:
    """``who`` with the rank that other lines name: those that report the same, or speak of the process."""
    rank, host = _named_with(cause, hits)
    if rank is None and who.local_rank is None:
        alone = _of_environment(hits)
        # The environment of one process says nothing of another one on its node.
        rank = alone if cause.local_rank is None or cause.local_rank == alone == 0 else None
        rank = _of_reporter(cause, hits) if rank is None else rank
    return replace(who, rank=rank, host=host)


def _only(values: Collection[_T]) -> _T | None:
    """The one of ``values`` that there is; None of several, or none."""
    return next(iter(values)) if len(values) == 1 else None


def _named_with(cause: Hit, hits: Sequence[Hit]) -> tuple[int | None, str | None]:
    """The only rank that a near line of the same signature or remedy names, and its host: they report one failure."""
    differ = cause.has("exception", "of_torchrun")
    last = _last_of_run(cause, hits)
    same = (
        hit
        for hit in hits
        if (hit.meaning.signature == cause.meaning.signature or _has_remedy_of(cause, hit))
        and hit.rank is not None
        and is_near(last, hit)
        and (cause.host is None or hit.host in (None, cause.host))
    )
    named = {(hit.rank, hit.host) for hit in same if not differ or same_message(hit, cause)}
    return _only(named) or (None, None)


def _last_of_run(cause: Hit, hits: Sequence[Hit]) -> Hit:
    """The last of the lines from the ``cause`` on that say the same: a device prints one for each of its threads."""
    last = cause
    for hit in hits:
        if hit.line > last.line and same_message(hit, cause) and is_near(last, hit) and hit.source == cause.source:
            last = hit
    return last


def _has_remedy_of(cause: Hit, hit: Hit) -> bool:
    """Whether ``hit`` has the remedy of ``cause``, which is narrower than that of its family."""
    return hit.family == cause.family and hit.meaning.remedy == cause.meaning.remedy != cause.family


def _of_environment(hits: Sequence[Hit]) -> int | None:
    """The rank of the only process whose environment the log prints, where no line has a rank."""
    printed = {hit.rank for hit in hits if hit.has("rank_of_environment")}
    ranks = {hit.rank for hit in hits if hit.rank is not None}
    return _only(printed) if ranks <= printed else None


def _of_reporter(cause: Hit, hits: Sequence[Hit]) -> int | None:
    """The only rank that torch_npu names as a process ends, or Ray as an actor died: the cause has none."""
    reporters = [("rank_of_npu", cause.meaning.collect == "plog"), ("rank_of_ray", cause.has("actor_died"))]
    return _only({hit.rank for hit in hits if hit.has(*(trait for trait, fits in reporters if fits))})


def _block(hits: Sequence[Hit], cause: Hit) -> Who:
    """What torchrun's first report of a root cause says; without one what another launcher says."""
    begin = next((hit for hit in hits if hit.has("begins_block")), None)
    if begin is not None:
        first, last = begin.line, begin.line + BLOCK_LINES
    elif cause.has("ends_block"):
        # The heading of the report is not in an excerpt.
        begin, first, last = cause, cause.line - BLOCK_LINES, cause.line
    else:
        named = next((hit for hit in hits if hit.has("names_rank") and hit.rank is not None), None)
        return Who(named.rank, None, named.host, named.code) if named else Who()
    block = [hit for hit in hits if hit.has("of_block") and hit.source == begin.source and first < hit.line <= last]
    rank = next((hit for hit in block if hit.local_rank is not None), None)
    host = next((hit.host for hit in block if hit.text.startswith("host")), None)
    code = next((hit.code for hit in block if hit.code is not None), None)
    return Who(rank.rank if rank else None, rank.local_rank if rank else None, host, code)


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
    if cause.code is None or cause.code >= 0 or not cause.has("of_torchrun"):
        return ()
    ranks, rank = set(), None
    for hit in hits:
        if hit.has("of_block"):
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
    reports = sum(hit.has("begins_block") for hit in hits)
    same = sum(hit.rank is None and same_message(hit, cause) for hit in hits)
    # One process prints its exception twice at most: as it logs and as it raises it.
    every = reports and same >= SEVERAL and cause.family in _OF_PROGRAMS
    return same if every else min(reports, same)


def hosts_with(cause: Hit, hits: Sequence[Hit]) -> set[str | None]:
    """The hosts whose processes print the cause; None among them where one is unknown."""
    return {hit.host for hit in hits if hit.rank is not None and same_message(hit, cause)}
