"""At most three ranks that may have stopped or slowed the others, by all that the log holds of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import polars as pl
import regex

from logparse.failures.progress import Progress
from logparse.failures.ranks.absent import find_absent
from logparse.failures.ranks.slow import DATA_BOUND, RankComparison, RankLayout, compare_rank_times
from logparse.failures.ranks.suspicions import Suspect, Suspicion, order_suspects
from logparse.failures.ranks.times import RANK_TIMES
from logparse.failures.scan import Hit
from logparse.failures.trainers import FileEnds
from logparse.inputs.blocks import TextBlock
from logparse.inputs.ranks import ranks_of_files
from logparse.inputs.writers import clock_of, read_prefixes
from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass

# Families in which a rank that is not in the cause may be to blame.
WAITED = frozenset(("collective_timeout", "network", "setup"))
# A rank stops before the others by this many seconds; less is the time that it takes to end a job.
STOPS_BEFORE = 30.0
# A rank or host that fails in this share of the attempts, of at least so many.
AGAIN, FEWEST_ATTEMPTS = 0.6, 3
# Files of ranks whose step times are compared, at least, and steps of each.
_FEWEST_FILES = 3
_WORLD = lazy_regex(
    r"\bworld[_ ]size\b[\"']?(?: \.{2,}|[:=])? *(\d+)|WORLD_SIZE[=:] *(\d+)|[Ss]tarting with (\d+) processes"
    r"|\[rank-\d+/(\d+)\]"
)
_PER_NODE = lazy_regex(
    r"\b(?:nproc[_-]per[_-]node|local[_-]world[_-]size|(?:num_)?(?:gpus|npus|devices)[_-]per[_-]node|LOCAL_WORLD_SIZE)"
    r"\b[\"']?(?: \.{2,}|[:= ]) *(\d+)"
)
_STAGES = lazy_regex(r"pipeline[_-]model[_-]parallel[_-]size\b[\"']?(?: \.{2,}|[:= ]) *(\d+)")


@dataclass(frozen=True)
class Verdict:
    """The suspects; how many ranks were compared; whether the run waits for its data, and for what share of a step."""

    suspects: tuple[Suspect, ...] = ()
    ranks_compared: int = 0
    bound: str | None = None
    data_share: float | None = None


@dataclass(frozen=True)
class FailedRanks:
    """Rank and host of the cause of each attempt that failed, and how many hosts the log names."""

    causes: Sequence[tuple[int | None, str | None]]
    hosts: int


@dataclass(frozen=True)
class RankFacts:
    """What a log holds of single ranks: their times, the steps of their files, and the ends of these."""

    times: pl.DataFrame
    steps: pl.DataFrame
    ends: FileEnds

    def comparison(self) -> RankComparison:
        """The times of the ranks, those that the log prints with their rank, and those of ranks' own files."""
        own = _times_of_files(self.steps)
        times = pl.concat([self.times, own]) if len(own) else self.times
        return compare_rank_times(times, _layout(self.ends)) if len(times) else RankComparison()


def find_suspects(
    facts: RankFacts, hits: Sequence[Hit], family: str, progress: Progress, failed: FailedRanks
) -> Verdict:
    """Who may be to blame. ``family`` is that of the failure, empty without one; ``hits`` are of the last attempt."""
    compared = facts.comparison()
    found = list(compared.slow)
    waited = 0
    if family in WAITED:
        seen = _ranks_seen(facts.ends, hits)
        found += find_absent(hits, _setting(facts.ends, _WORLD), seen)
        found += _stopped_first(facts.ends, progress)
        waited = len(seen)
    if family:
        found += _fails_again(failed)
    share = compared.data_share
    bound = None if share is None else "data" if share >= DATA_BOUND else "compute"
    return Verdict(order_suspects(found), max(compared.compared, waited), bound, share)


def _times_of_files(steps: pl.DataFrame) -> pl.DataFrame:
    """The step times of ranks that write files of their own."""
    none = pl.DataFrame(schema=RANK_TIMES)
    if steps.is_empty() or "elapsed_time_per_iteration_ms" not in steps.columns:
        return none
    ranks = ranks_of_files(steps["source"].unique())
    if len(ranks) < _FEWEST_FILES or len(set(ranks.values())) < len(ranks):
        return none
    timed = steps.filter(pl.col("source").is_in(list(ranks)) & pl.col("elapsed_time_per_iteration_ms").is_finite())
    return (
        timed.select(
            "source",
            "line_number",
            pl.col("step").cast(pl.Int64).alias("interval"),
            pl.lit("step").alias("kind"),
            pl.lit("each").alias("extreme"),
            pl.col("source").replace_strict(ranks, default=None, return_dtype=pl.Int64).alias("rank"),
            pl.col("elapsed_time_per_iteration_ms").cast(pl.Float64).alias("value"),
        )
        .drop_nulls("interval")
        .cast(RANK_TIMES)
    )


def _stopped_first(ends: FileEnds, progress: Progress) -> Iterator[Suspicion]:
    """Of ranks' own files those that stop before most others: at an earlier step, or earlier by the clock."""
    files = {tail.source: tail for tail in ends.tails}
    ranks = ranks_of_files(files)
    if len(ranks) < _FEWEST_FILES:
        return
    steps = {source: step for source in ranks if (step := progress.last_in(source, 1, None)[1]) is not None}
    clocks = {source: clock for source in ranks if (clock := _last_clock(files[source])) is not None}
    for values, least in ((steps, 1.0), (clocks, STOPS_BEFORE)):
        early = _early(values, least)
        for source in early:
            n = len(values) - len(early)
            yield Suspicion(ranks[source], "stopped_first", source, n=n, of=len(values), at=steps.get(source))
        if early:
            return


def _early(values: Mapping[str, float], least: float) -> list[str]:
    """Sources whose value is smaller than that of most others by ``least``; none where many are."""
    if len(values) < _FEWEST_FILES:
        return []
    middle = sorted(values.values())[len(values) // 2]
    early = [source for source, value in values.items() if middle - value >= least]
    return early if len(early) <= max(1, len(values) // 4) else []


def _last_clock(tail: TextBlock) -> float | None:
    texts = tail.stamped(0, tail.count)
    return next((clock for text in reversed(texts) if (clock := clock_of(text)) is not None), None)


def _fails_again(failed: FailedRanks) -> Iterator[Suspicion]:
    """A rank or a host that failed in most of several attempts. Of a job on one host the host says nothing."""
    of = len(failed.causes)
    if of < FEWEST_ATTEMPTS:
        return
    ranks = Counter(rank for rank, _ in failed.causes if rank is not None)
    hosts = Counter(host for _, host in failed.causes if host and failed.hosts > 1)
    for host, n in hosts.most_common(1):
        if n >= AGAIN * of:
            yield Suspicion(None, "fails_again", n=n, of=of, host=host)
    for rank, n in ranks.most_common(1):
        if n >= AGAIN * of:
            yield Suspicion(rank, "fails_again", n=n, of=of)


def _ranks_seen(ends: FileEnds, hits: Sequence[Hit]) -> set[int]:
    """Ranks of which the log has a line."""
    blocks = chain.from_iterable(block.lines["text"] for block in (*ends.heads, *ends.tails))
    prefixed = {read_prefixes(text).rank for text in blocks if text[:1] in "[0123456789"}
    return {rank for rank in prefixed | {hit.rank for hit in hits} if rank is not None and rank < 10**6}


def _layout(ends: FileEnds) -> RankLayout:
    """How the ranks are laid out, by the first lines of the files, and the hosts that launchers put before lines."""
    blocks = chain.from_iterable(block.lines["text"] for block in (*ends.heads, *ends.tails))
    lines = (read_prefixes(text) for text in blocks if text[:1].isalnum() or text[:1] in "[(")
    hosts = {line.rank: line.host for line in lines if line.rank is not None and line.host is not None}
    return RankLayout(_setting(ends, _STAGES), _setting(ends, _PER_NODE), hosts)


def _setting(ends: FileEnds, pattern: regex.Pattern[str]) -> int | None:
    """The largest number that the first lines of the files print of a setting."""
    texts = chain.from_iterable(block.lines["text"] for block in ends.heads)
    found = [
        int(number) for text in texts for match in pattern.finditer(text[:2000]) for number in match.groups() if number
    ]
    return max(found, default=None)
