"""What the ranks of a job printed each by itself: which are missing, which are slow, whose clock is ahead.

Comes in: step rows of several files, whose names may show ranks. Goes out: one row per rank, and notes. No number of
the run changes here: the rows of all ranks but one are copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from analysis.run.rows.duplicates import clocks_apart
from analysis.run.tables import RANK_COLUMNS
from logparse.findings import Note, info
from logparse.inputs.ranks import missing_ranks, place_of
from logparse.schema import conform

# A spread of 1 to 2 % is healthy: Megatron-LM, megatron/core/README_STRAGGLER.md.
SLOWER = 0.02
# A straggler is slower than that in more steps than not, of at least FEWEST_STEPS.
REPEATS, FEWEST_STEPS = 0.5, 10
# Stamps are cut to seconds, and ranks print a step one after the other.
CLOCK_SECONDS = 2.0


def rank_times(steps: pl.DataFrame) -> pl.DataFrame:
    """One row per rank and step that counts, where two or more files print times of their own for the same steps.

    ``behind`` is by which share the time is above the median of all ranks, ``slowest`` whether no other is as long, and
    ``ahead_seconds`` by how much the stamp is later than the median stamp. Columns without data in the files are null.
    """
    none = steps[["run", "source", "step", "step_time_ms"]].clear()
    if not steps["copied"].any():
        return none
    copies = steps.group_by("source").agg(pl.col("copied").all()).filter("copied")["source"]
    if copies.is_empty():
        return none
    counted = steps.filter("counted")
    of_copies = steps.filter(pl.col("source").is_in(copies.implode())).join(counted, on="step", how="semi")
    timed = pl.concat([counted, of_copies]).filter(pl.col("step_time_ms").is_finite())
    each = timed.select("run", "source", "step", "timestamp", "step_time_ms").unique(
        ["source", "step"], keep="first", maintain_order=True
    )
    time, stamp = pl.col("step_time_ms"), pl.col("timestamp")
    shared = each.filter(pl.len().over("step") > 1).with_columns(
        (time / time.median().over("step") - 1).alias("behind"),
        slowest=(time == time.max().over("step")) & (pl.len().over("step", "step_time_ms") == 1),
        ahead_seconds=(stamp - stamp.median().over("step")).dt.total_milliseconds() / 1000,
    )
    return shared if (shared["behind"] != 0).any() else shared.clear()


def compare_ranks(steps: pl.DataFrame) -> pl.DataFrame:
    """One row per rank, the slowest first; none where no two ranks print times of their own."""
    times = rank_times(steps)
    if times.is_empty():
        return conform(times, RANK_COLUMNS)
    rows = times.group_by("run", "source", maintain_order=True).agg(
        pl.len().alias("steps"),
        pl.col("step_time_ms").median(),
        pl.col("step_time_ms").quantile(0.9, "linear").alias("step_time_p90_ms"),
        pl.col("slowest").mean().alias("slowest_share"),
        (pl.col("behind") > SLOWER).mean().alias("behind_share"),
        pl.col("ahead_seconds").median().alias("clock_ahead_seconds"),
    )
    places = [place_of(source) for source in rows["source"]]
    with_ranks = rows.with_columns(
        rank=pl.Series([place and place.rank for place in places], dtype=pl.Int64),
        node=pl.Series([place and place.node for place in places], dtype=pl.Int64),
    )
    slowest_first = with_ranks.sort("step_time_ms", "slowest_share", descending=True, maintain_order=True)
    return conform(slowest_first, RANK_COLUMNS)


def describe_missing(sources: Sequence[str], world_size: int | None) -> Iterator[Note]:
    """A note on ranks of which there is no file."""
    missing = missing_ranks(sources, world_size)
    if missing:
        there = {place.rank for source in sources if (place := place_of(source)) and place.rank is not None}
        yield info("ranks_missing", ranks=missing, n=len(missing), of=len(missing) + len(there))


def describe_ranks(ranks: pl.DataFrame, numbered: pl.DataFrame) -> Iterator[Note]:
    """Notes on ranks that are slow again and again, and on clocks; ``numbered`` are the rows with ``copied``."""
    if ranks.is_empty():
        return
    slow = ranks.filter((pl.col("behind_share") > REPEATS) & (pl.col("steps") >= FEWEST_STEPS))
    nodes = slow["node"].unique().to_list()
    if len(slow) > 1 and len(nodes) == 1 and nodes[0] is not None and ranks["node"].n_unique() > 1:
        yield info("node_straggles", node=nodes[0], names=rank_names(slow))
    elif len(slow):
        yield info("ranks_straggle", names=rank_names(slow), n=len(slow))
    skewed = ranks.filter(pl.col("clock_ahead_seconds").abs() >= CLOCK_SECONDS)
    if len(skewed):
        apart = clocks_apart(numbered)
        skewed = skewed.filter(~pl.col("source").is_in(list(apart)))
    if len(skewed):
        seconds = float(skewed["clock_ahead_seconds"].abs().max())  # type: ignore[arg-type]
        yield info("clocks_skewed", names=rank_names(skewed), n=len(skewed), seconds=seconds)


def rank_names(ranks: pl.DataFrame) -> list[str]:
    """The name of each rank: its number, where the names of the files give each another one; else the file."""
    numbers = ranks["rank"]
    is_unique = numbers.null_count() == 0 and numbers.n_unique() == len(numbers)
    return [str(name) for name in (numbers if is_unique else ranks["source"])]
