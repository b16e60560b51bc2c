"""Which rank did not come to a collective: by the time-outs of the others, by the works that each completed, by names.

All ranks that wait print a time-out; the one for which they wait is silent, or is in another collective. Sources:
PyTorch (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp), the HCCL manual (task execution stage).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from logparse.failures.ranks.suspicions import MOST_SUSPECTS, Suspicion
from logparse.failures.scan import Hit

# More silent ranks than this are no suspects: the log is of other ranks, or a whole node is gone.
MOST_SILENT = 3
# Of the ranks of a job at least this share printed a time-out, where a silent rank is suspected.
LEAST_WAITING = 0.5
# Operations to which every rank gives as many elements, by the rules of MPI, which c10d follows; not so an all-to-all.
_OF_EQUAL_PARTS = frozenset(("ALLREDUCE", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE", "BROADCAST", "REDUCE"))


def find_absent(hits: Sequence[Hit], world_size: int | None, seen: Collection[int]) -> Iterator[Suspicion]:
    """What points to a rank that others waited for. ``seen`` are ranks that print anything, out of ``world_size``."""
    waits = [hit for hit in hits if hit.rank is not None and _waits(hit)]
    waiting = dict.fromkeys(hit.rank for hit in waits if hit.rank is not None)
    late = list(_late(hits))
    if not late and (world_size or 2) == 2:
        late = list(_before_the_other(waits, seen))
    yield from late
    differing = list(_other_collective(waits))
    yield from differing
    others = [rank for rank in waiting if rank not in {one.rank for one in (*late, *differing)}]
    silent = [*_not_joined(waits)] or [*_silent(waits, others, world_size, seen)]
    yield from silent
    yield from _named(hits, waiting, {one.rank for one in (*silent, *late)})
    for hit in hits:
        if hit.has("heartbeat") and hit.host:
            yield Suspicion(None, "heartbeat_lost", hit.source, hit.line, host=hit.host, at=hit.local_rank)


def _waits(hit: Hit) -> bool:
    """Whether a rank waits: it prints a time-out, or has a work that is not completed."""
    if hit.has("counts_works"):
        return int(hit.fields["enqueued"]) > int(hit.fields["completed"])
    return hit.has("waits")


def _late(hits: Sequence[Hit]) -> Iterator[Suspicion]:
    """Ranks whose last enqueued or completed work is before the one at which most ranks wait."""
    groups: dict[str, dict[int, Hit]] = {}
    for hit in hits:
        if hit.has("counts_works") and hit.rank is not None:
            groups.setdefault(hit.fields.get("group", ""), {}).setdefault(hit.rank, hit)
    for own in groups.values():
        done = {rank: int(hit.fields["completed"]) for rank, hit in own.items()}
        (most, n), *_ = Counter(done.values()).most_common(1)
        # Older versions print -1 where nothing is known.
        if n < 2 or most < 0:
            continue
        queued = {rank: int(hit.fields["enqueued"]) for rank, hit in own.items()}
        waiting = sum(number > most for number in queued.values()) >= len(own) / 2
        for rank, hit in own.items():
            # A rank without an open work did not come, where most ranks have one.
            if 0 <= done[rank] < most or (waiting and 0 <= queued[rank] <= most):
                n = sum(done[other] > done[rank] or queued[other] > queued[rank] for other in own)
                yield Suspicion(rank, "fewer_collectives", hit.source, hit.line, n=n, of=len(own), at=done[rank])


def _before_the_other(waits: Sequence[Hit], seen: Collection[int]) -> Iterator[Suspicion]:
    """Of the two ranks of a job the one that waits at a smaller number of a collective: it is late, or runs other code.

    Of one of two ranks the log may hold the number of its work, or that of its last completed one.
    """
    at: dict[int, tuple[int, Hit]] = {}
    for hit in waits:
        number = hit.fields.get("sequence")
        completed = int(hit.fields.get("completed", -1))
        started = int(number) if number is not None else completed + 1 if completed >= 0 else None
        if hit.rank is not None and started is not None and (hit.rank not in at or started < at[hit.rank][0]):
            at[hit.rank] = (started, hit)
    if at.keys() != {0, 1} or not set(seen) <= at.keys():
        return
    (rank, (first, hit)), (_, (second, _)) = sorted(at.items(), key=lambda one: one[1][0])
    if first < second:
        yield Suspicion(rank, "earlier_collective", hit.source, hit.line, n=1, of=2, at=first)


def _other_collective(waits: Sequence[Hit]) -> Iterator[Suspicion]:
    """A rank that waits in another collective than most, at the same number, or the only two that wait, in two.

    The code of the ranks differs, or of two they are in different groups.
    """
    numbers: dict[str, dict[int, Hit]] = {}
    for hit in waits:
        if hit.rank is not None and "operation" in hit.fields:
            numbers.setdefault(hit.fields["sequence"], {}).setdefault(hit.rank, hit)
    for number, own in numbers.items():
        (most, n), *_ = Counter(map(_collective, own.values())).most_common(1)
        few = [hit for hit in own.values() if _collective(hit) != most]
        if len(own) == 2 and len(few) == 1:
            for hit, other in zip(own.values(), reversed(own.values()), strict=True):
                at = int(number)
                yield Suspicion(hit.rank, "collectives_differ", hit.source, hit.line, at=at, other=other.rank)
        if n > 1 and len(few) <= max(1, n // 4):
            for hit in few:
                yield Suspicion(hit.rank, "other_collective", hit.source, hit.line, n=n, of=len(own), at=int(number))


def _collective(hit: Hit) -> tuple[str, str | None]:
    """The operation in which a rank waits, and the elements that it gives where all ranks must give as many."""
    operation = hit.fields["operation"]
    return operation, hit.fields.get("elements") if operation in _OF_EQUAL_PARTS else None


def _silent(
    waits: Sequence[Hit], waiting: Sequence[int], world_size: int | None, seen: Collection[int]
) -> Iterator[Suspicion]:
    """Ranks without a time-out of their own, where most ranks have one."""
    every = range(max((world_size or 0) - 1, *waiting, *seen) + 1) if waiting else range(0)
    printed = {hit.rank for hit in waits}
    silent = [rank for rank in every if rank not in printed]
    if len(waiting) < 2 or len(waiting) < LEAST_WAITING * len(every) or len(silent) > MOST_SILENT:
        return
    first = waits[0]
    for rank in silent:
        yield Suspicion(rank, "silent", first.source, first.line, n=len(waiting), of=len(every))


def _not_joined(waits: Sequence[Hit]) -> Iterator[Suspicion]:
    """The ranks without a time-out, where a barrier counts how many came: the missing ones are among them."""
    counted = [hit for hit in waits if "joined" in hit.fields]
    if not counted:
        return
    first = counted[0]
    world, joined = int(first.fields["world"]), int(first.fields["joined"])
    printed = {hit.rank for hit in counted}
    silent = tuple(rank for rank in range(world) if rank not in printed)
    if 0 < world - joined <= len(silent) <= world - joined + MOST_SILENT:
        yield Suspicion(None, "not_joined", first.source, first.line, n=joined, of=world, ranks=silent)


def _named(hits: Sequence[Hit], waiting: Collection[int], stronger: Collection[int | None]) -> Iterator[Suspicion]:
    """Ranks that others name as the one they wait for; those that wait themselves only where no other is named."""
    lines: dict[int, list[Hit]] = {}
    for hit in hits:
        for rank in hit.absent:
            lines.setdefault(rank, []).append(hit)
    idle = {rank: own for rank, own in lines.items() if rank not in waiting or rank in stronger}
    # Ranks in a circle that wait for each other accuse nobody.
    chosen = idle or (lines if len(lines) < max(2, len(waiting)) else {})
    if len(chosen) > MOST_SUSPECTS:
        first = min((own[0] for own in chosen.values()), key=lambda hit: hit.line)
        yield Suspicion(None, "all_absent", first.source, first.line, n=len(chosen), ranks=tuple(sorted(chosen)))
        return
    for rank, own in chosen.items():
        n = len({hit.rank for hit in own if hit.rank is not None}) or None
        yield Suspicion(rank, "named_absent", own[0].source, own[0].line, n=n)
