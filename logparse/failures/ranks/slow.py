"""Which ranks are slow, by the times that a log prints of each: a rank is an outlier in most intervals, or nobody does.

A spread of 1 to 2 % is healthy (Megatron-LM, megatron/core/README_STRAGGLER.md). Ranks of a synchronous training take
the same time for a step: only the times of computing and of loading data accuse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import polars as pl

from logparse.failures.ranks.suspicions import Suspicion
from logparse.inputs.ranks import ranks_of_files
from logparse.light_dataclass import dataclass, field

# A slow rank is by this share above the median of the ranks, over the run and in most intervals.
SLOWER, MOST_INTERVALS, FEWEST_INTERVALS = 0.08, 0.6, 3
# It is this many times farther from the median than ranks typically are.
OUTLIER = 5.0
# Where only the largest and the smallest value have a rank, they are by this share apart, in more intervals.
APART, MOST_OF_EXTREMES, FEWEST_OF_EXTREMES = 0.12, 0.7, 6
# A spread below which no rank is worth a comparison.
HEALTHY_SPREAD = 0.01
# Of NVIDIA's straggler report; its own threshold is 0.7 to 0.75.
LOW_SCORE = 0.75
# More ranks than this share of all are no outliers: a pipeline stage, or half the job.
FEW_RANKS = 0.25
# Nodes among which one that is slow is an outlier; no rank of it is the slowest in more than this share of intervals.
FEWEST_NODES, OF_ONE_RANK = 3, 0.6
# From this share of a step on a run waits for its data.
DATA_BOUND = 0.2
_CODES = {"compute": "slow_compute", "data": "slow_data", "step": "slow_step"}


@dataclass(frozen=True)
class RankComparison:
    """Ranks that are outliers, how many were compared, and the share of a step for which the ranks wait for data."""

    slow: tuple[Suspicion, ...] = ()
    compared: int = 0
    data_share: float | None = None


@dataclass(frozen=True)
class RankLayout:
    """Stages of the pipeline and ranks of each node, None where the log does not print them; the hosts of ranks."""

    stages: int | None = None
    ranks_per_node: int | None = None
    hosts: Mapping[int, str] = field(default_factory=dict)

    def of_node(self, node: int) -> tuple[tuple[int, ...], str | None]:
        """The ranks of a node, and its host where the log shows it."""
        size = self.ranks_per_node or 1
        ranks = tuple(range(node * size, (node + 1) * size))
        hosts = {self.hosts[rank] for rank in ranks if rank in self.hosts}
        return ranks, next(iter(hosts)) if len(hosts) == 1 else None


def compare_rank_times(times: pl.DataFrame, layout: RankLayout) -> RankComparison:
    """Compare the ranks of ``times`` (rows of RANK_TIMES), those of one stage of a pipeline with each other."""
    if times.is_empty():
        return RankComparison()
    times = _with_ranks_of_files(times)
    named = times.filter(pl.col("rank").is_not_null())
    slow = (*_by_each(named, layout), *_by_extremes(named, layout), *_by_lists(named), *_by_scores(named))
    return RankComparison(tuple(slow), named["rank"].n_unique(), _data_share(times))


def _with_ranks_of_files(times: pl.DataFrame) -> pl.DataFrame:
    """``times`` with the rank in the name of the file, where the line has none."""
    if not times["rank"].has_nulls():
        return times
    ranks = ranks_of_files(times["source"].unique())
    of_file = pl.col("source").replace_strict(ranks, default=None, return_dtype=pl.Int64)
    return times.with_columns(rank=pl.coalesce("rank", of_file))


def _by_each(times: pl.DataFrame, layout: RankLayout) -> Iterator[Suspicion]:
    """Where every rank has a time: those far above the median of the others, interval after interval."""
    each = times.filter((pl.col("extreme") == "each") & pl.col("kind").is_in(list(_CODES)))
    if each.is_empty():
        return
    # A step has several timers of one kind.
    summed = each.group_by("kind", "interval", "rank").agg(
        pl.col("value").sum(), pl.col("source", "line_number").last()
    )
    work = summed.filter(pl.col("kind") != "data").group_by("interval").agg(pl.col("value").median().alias("work"))
    per_stage = max(1, (int(summed["rank"].max() or 0) + 1) // (layout.stages or 1))  # type: ignore[arg-type]
    staged = summed.join(work, on="interval", how="left").with_columns(stage=pl.col("rank") // per_stage)
    group = ("kind", "interval", "stage")
    # Of an even number of ranks the lower of the two in the middle.
    typical = pl.col("value").quantile(0.5, "lower").over(group)
    base = pl.when(pl.col("kind") == "data").then("work").otherwise(typical)
    above = staged.filter(pl.len().over(group) > 1).with_columns(above=(pl.col("value") - typical) / base)
    rows = above.filter(pl.col("above").is_finite())
    ranks = rows.group_by("kind", "rank").agg(
        pl.col("above").median().alias("share"),
        (pl.col("above") > SLOWER / 2).sum().alias("n"),
        pl.len().alias("of"),
        pl.col("source", "line_number").last(),
    )
    for (kind,), own in ranks.group_by("kind", maintain_order=True):
        yield from _outliers(_CODES[str(kind)], own, layout)


def _outliers(code: str, ranks: pl.DataFrame, layout: RankLayout) -> Iterator[Suspicion]:
    spread = max(1.4826 * _median(ranks["share"].abs()), HEALTHY_SPREAD)
    enough = (pl.col("of") >= FEWEST_INTERVALS) & (pl.col("n") >= MOST_INTERVALS * pl.col("of"))
    out = ranks.filter((pl.col("share") >= max(SLOWER, OUTLIER * spread)) & enough)
    if _is_one_node(out, ranks, layout.ranks_per_node):
        yield _suspicion_of_node(code, out, layout)
    elif len(out) <= max(1, FEW_RANKS * len(ranks)):
        for row in out.iter_rows(named=True):
            yield _suspicion(code, row)


def _is_one_node(out: pl.DataFrame, ranks: pl.DataFrame, size: int | None) -> bool:
    """Whether the outliers are all ranks of one of several nodes."""
    if size is None or size < 2 or len(out) != size:
        return False
    return (out["rank"] // size).n_unique() == 1 and (ranks["rank"] // size).n_unique() >= FEWEST_NODES


def _suspicion_of_node(code: str, rows: pl.DataFrame, layout: RankLayout) -> Suspicion:
    """The suspicion of a node, by the ``rows`` of its ranks."""
    ranks, host = layout.of_node(int(rows["rank"][0]) // (layout.ranks_per_node or 1))
    share, n, of = _median(rows["share"]), int(_median(rows["n"])), int(_median(rows["of"]))
    return Suspicion(None, code, rows["source"][-1], rows["line_number"][-1], share, n, of, host=host, ranks=ranks)


def _by_extremes(times: pl.DataFrame, layout: RankLayout) -> Iterator[Suspicion]:
    """Where only the largest and the smallest have a rank: one that is the worst again and again, far from the best."""
    ends = times.filter(pl.col("extreme").is_in(["min", "max"]))
    work = ends.filter(pl.col("kind") == "compute").group_by("interval").agg(pl.col("value").min().alias("work"))
    for (kind,), rows in ends.group_by("kind", maintain_order=True):
        low, high = (rows.filter(pl.col("extreme") == end) for end in ("min", "max"))
        bad, good = (low, high) if kind == "throughput" else (high, low)
        both = bad.join(good.select("interval", best="value", best_rank="rank"), on="interval").join(
            work, on="interval", how="left"
        )
        base = pl.col("work") if kind == "data" else pl.min_horizontal("value", "best")
        apart = both.with_columns(above=(pl.col("value") - pl.col("best")).abs() / base)
        yield from _again("low_throughput" if kind == "throughput" else _CODES[str(kind)], apart, layout)


def _by_lists(times: pl.DataFrame) -> Iterator[Suspicion]:
    """Where the lowest ranks are listed: those far below the highest, interval after interval."""
    low = times.filter(pl.col("extreme") == "low")
    high = times.filter(pl.col("extreme") == "high")
    if low.is_empty():
        return
    best = high.sort("line_number").select("line_number", best="value").unique("line_number", keep="any")
    near = low.sort("line_number").join_asof(best, on="line_number", strategy="nearest")
    alone = near.with_columns(above=pl.col("best") / pl.col("value") - 1, of=pl.col("interval").n_unique())
    yield from _repeated("low_throughput", alone.filter(pl.col("above") >= APART))


def _again(code: str, apart: pl.DataFrame, layout: RankLayout) -> Iterator[Suspicion]:
    shown = apart.filter(pl.col("above").is_finite())
    if len(shown) and _median(shown["above"]) >= APART:
        rows = shown.with_columns(of=pl.lit(len(shown)))
        ranks = list(_repeated(code, rows))
        yield from ranks or _node_again(code, rows, layout)


def _node_again(code: str, rows: pl.DataFrame, layout: RankLayout) -> Iterator[Suspicion]:
    """Where the worst rank is one of the same node again and again, and the best one is not.

    Stages of a pipeline differ by design: only of a run without one nodes are compared.
    """
    size = layout.ranks_per_node
    if size is None or size < 2 or layout.stages != 1:
        return
    nodes = rows.with_columns(node=pl.col("rank") // size)
    for _, own in nodes.filter(pl.col("node") != pl.col("best_rank") // size).group_by("node", maintain_order=True):
        enough = len(own) >= max(FEWEST_OF_EXTREMES, MOST_OF_EXTREMES * len(rows))
        if enough and max(Counter(own["rank"]).values()) <= OF_ONE_RANK * len(own):
            shares = own.with_columns(share="above", n=pl.lit(len(own)))
            yield _suspicion_of_node(code, shares, layout)


def _repeated(code: str, rows: pl.DataFrame) -> Iterator[Suspicion]:
    ranks = rows.group_by("rank", maintain_order=True).agg(
        pl.len().alias("n"),
        pl.col("above").median().alias("share"),
        pl.col("of").first(),
        pl.col("source", "line_number").last(),
    )
    enough = (pl.col("of") >= FEWEST_OF_EXTREMES) & (pl.col("n") >= MOST_OF_EXTREMES * pl.col("of"))
    for row in ranks.filter(enough).iter_rows(named=True):
        yield _suspicion(code, row)


def _by_scores(times: pl.DataFrame) -> Iterator[Suspicion]:
    scores = times.filter((pl.col("kind") == "score") & (pl.col("value") < LOW_SCORE))
    ranks = scores.group_by("rank", maintain_order=True).agg(
        (1 - pl.col("value").median()).alias("share"),
        pl.len().alias("n"),
        pl.lit(None, pl.Int64).alias("of"),
        pl.col("source", "line_number").last(),
    )
    for row in ranks.iter_rows(named=True):
        yield _suspicion("low_score", row)


def _suspicion(code: str, row: dict[str, object]) -> Suspicion:
    rank, n, of, line = (row[name] for name in ("rank", "n", "of", "line_number"))
    return Suspicion(
        *(rank, code, row["source"], line, row["share"], n, of),  # type: ignore[arg-type]
    )


def _data_share(times: pl.DataFrame) -> float | None:
    """The share of a step for which the rank that waits longest waits for its data; None where a time is missing."""
    longest = (
        times.filter(pl.col("extreme").is_in(["each", "max"])).group_by("kind", "interval").agg(pl.col("value").max())
    )
    medians = dict(longest.group_by("kind").agg(pl.col("value").median()).iter_rows())
    data = medians.get("data")
    if data is None:
        return None
    # Megatron counts the wait for data into the time of its forward and backward pass.
    whole = medians.get("step") or (data + medians["compute"] if "compute" in medians else None)
    return float(data / whole) if whole else None


def _median(values: pl.Series) -> float:
    return float(values.median() or 0.0)  # type: ignore[arg-type]
