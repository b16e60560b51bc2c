"""A rank that may have stopped or slowed the others, and what points to it. Codes and numbers, no sentence."""

from __future__ import annotations

from collections.abc import Iterable

from logparse.light_dataclass import dataclass

# At most so many ranks are suspected.
MOST_SUSPECTS = 3
# What each reason is worth, where ranks are ordered by all of theirs.
WEIGHTS = {
    "fewer_collectives": 8.0,
    "silent": 7.0,
    "not_joined": 7.0,
    "named_absent": 6.0,
    "all_absent": 6.0,
    "other_collective": 6.0,
    "earlier_collective": 6.0,
    "collectives_differ": 6.0,
    "heartbeat_lost": 5.0,
    "stopped_first": 4.0,
    "slow_compute": 3.0,
    "slow_data": 3.0,
    "slow_step": 3.0,
    "low_throughput": 3.0,
    "low_score": 3.0,
    "fails_again": 2.0,
}


@dataclass(frozen=True)
class Suspicion:
    """One reason to suspect a rank or a host, and the line that shows it, where one line does.

    ``share`` is how far a time is above the median of the ranks, or a throughput below the highest. ``n`` of ``of``
    intervals, ranks or attempts show it. ``at`` is a step or the number of a collective. ``ranks`` are those
    of a node, or those among which some did not join. ``other`` is the rank with which it is compared.
    """

    rank: int | None
    code: str
    source: str | None = None
    line: int | None = None
    share: float | None = None
    n: int | None = None
    of: int | None = None
    at: int | None = None
    host: str | None = None
    ranks: tuple[int, ...] = ()
    other: int | None = None


@dataclass(frozen=True)
class Suspect:
    """A rank, a host or both, with every reason to suspect it, the strongest first; of a slow node all ``ranks``."""

    rank: int | None
    host: str | None
    reasons: tuple[Suspicion, ...]
    ranks: tuple[int, ...] = ()


def order_suspects(suspicions: Iterable[Suspicion]) -> tuple[Suspect, ...]:
    """The ranks with the strongest reasons, at most MOST_SUSPECTS."""
    own: dict[tuple[int | None, str | None, tuple[int, ...]], list[Suspicion]] = {}
    for one in suspicions:
        own.setdefault((one.rank, None if one.rank is not None else one.host, one.ranks), []).append(one)
    ranked = sorted(own.values(), key=_weight, reverse=True)[:MOST_SUSPECTS]
    return tuple(_suspect(reasons) for reasons in ranked)


def _suspect(reasons: list[Suspicion]) -> Suspect:
    host = next((one.host for one in reasons if one.host), None)
    ordered = sorted(reasons, key=lambda one: WEIGHTS[one.code], reverse=True)
    return Suspect(reasons[0].rank, host, tuple(ordered), reasons[0].ranks)


def _weight(reasons: list[Suspicion]) -> tuple[float, float]:
    return sum(WEIGHTS[one.code] for one in reasons), max(one.share or one.n or 0.0 for one in reasons)
