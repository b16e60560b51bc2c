"""Which of many runs are far from comparable runs: a run is judged by its peers, not by one limit for all.

Comes in: the table ``runs``. Goes out: the median of the peers, and which runs are outliers, as a finding.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from logparse.findings import Note, info

# Runs with equal values in all of these are peers. A run whose devices or model are unknown has no peers.
PEER_FIELDS = ("model", "parameters", "device", "world_size", "global_batch_size", "seq_length")
_KNOWN = pl.col("world_size").is_not_null() & pl.any_horizontal(pl.col("model", "parameters").is_not_null())
TOKENS = "tokens_per_second_per_device"
# What is compared, all of it better where it is more: the clock, then the steps, then what follows from either.
COMPARED = ("goodput", TOKENS, f"with_stalls_{TOKENS}", f"wall_clock_{TOKENS}", "mfu", "hfu")
# The two that explain most: time was lost, or the steps themselves are slower.
MAIN_FIGURES = COMPARED[:2]
# Far is so much below the median of at least so many, and below by more than so many median absolute deviations.
FEWEST_COMPARABLE, FAR, DEVIATIONS = 5, 0.10, 5.0
# Runs that are named; the others are counted.
MOST_NAMED = 5


def peer_median(name: str) -> pl.Expr:
    """The median of the column ``name`` among the peers; null if they are fewer than FEWEST_COMPARABLE."""
    value = pl.col(name).fill_nan(None)
    return pl.when(_KNOWN & (value.count().over(PEER_FIELDS) >= FEWEST_COMPARABLE)).then(
        value.median().over(PEER_FIELDS)
    )


def is_far(name: str) -> pl.Expr:
    """Whether the column ``name`` is far below the median of the peers; null if there is no such median."""
    below = peer_median(name) - pl.col(name)
    deviation = (pl.col(name) - peer_median(name)).abs().median().over(PEER_FIELDS)
    return (below > FAR * peer_median(name)) & (below > DEVIATIONS * deviation)


def with_outliers(runs: pl.DataFrame) -> pl.DataFrame:
    """``runs`` with the column ``stands_out``: the names of all figures far below the median of the peers."""
    names = [pl.when(is_far(name)).then(pl.lit(name)) for name in COMPARED]
    far = pl.concat_str(names, separator=" ", ignore_nulls=True)
    return runs.with_columns(pl.when(far != "").then(far).alias("stands_out"))


def outliers(runs: pl.DataFrame) -> list[dict[str, Any]]:
    """The figures in which ``runs`` are outliers, the worst first: ``run``, ``metric``, ``value``, ``median``.

    A run has an entry for each of MAIN_FIGURES that is far; if neither is, for the first other figure that is.
    """
    medians = runs.with_columns(peer_median(name).alias(f"median_{name}") for name in COMPARED)
    figures = [
        {"run": row["run"], "metric": name, "value": row[name], "median": row[f"median_{name}"]}
        for row in medians.drop_nulls("stands_out").iter_rows(named=True)
        for name in _main_figures(row["stands_out"].split())
    ]
    return sorted(figures, key=lambda figure: figure["value"] / figure["median"])


def _main_figures(names: list[str]) -> list[str]:
    return [name for name in names if name in MAIN_FIGURES] or names[:1]


def describe_outliers(runs: pl.DataFrame, shown: Iterable[str]) -> Note | None:
    """How many of the runs ``shown`` are outliers among ``runs``, and in which figures; None if none is."""
    names = set(shown)
    figures: dict[str, list[Note]] = {}
    for one in outliers(runs):
        if one["run"] in names:
            figures.setdefault(one["run"], []).append(_figure(one["metric"], one["value"], one["median"]))
    named = [info("run_stands_out", run=run, figures=notes) for run, notes in list(figures.items())[:MOST_NAMED]]
    fields = {"n": len(figures), "of": len(names), "runs": named}
    if len(figures) > MOST_NAMED:
        return info("runs_stand_out_and_more", **fields, more=len(figures) - MOST_NAMED)
    return info("runs_stand_out", **fields) if figures else None


def _figure(metric: str, value: float, median: float) -> Note:
    if metric.endswith(TOKENS):
        return info("tokens_below_median", metric=metric, value=value, median=median, below=1 - value / median)
    return info("share_below_median", metric=metric, value=value, median=median)
