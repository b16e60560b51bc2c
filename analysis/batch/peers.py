"""Which of many runs are far from those that are alike: a run is judged by its peers, not by a limit for all.

Comes in: the table ``runs``. Goes out: what is usual among the runs alike, and which runs stand out, as a finding.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from logparse.findings import Note, info

# Runs are alike where all of these are; of one whose devices or model are unknown nothing is known to be alike.
ALIKE = ("model", "parameters", "device", "world_size", "global_batch_size", "seq_length")
_KNOWN = pl.col("world_size").is_not_null() & pl.any_horizontal(pl.col("model", "parameters").is_not_null())
TOKENS = "tokens_per_second_per_device"
# What is compared, all of it better where it is more: the clock, then the steps, then what follows from either.
COMPARED = ("goodput", TOKENS, f"delivered_{TOKENS}", f"all_in_{TOKENS}", "mfu", "mfu_as_built", "hfu")
# The two that tell most of why: time was lost, or the steps themselves are slower.
TELLING = COMPARED[:2]
# Far is so much below the median of at least so many, and below by more than so many median absolute deviations.
FEWEST_ALIKE, FAR, DEVIATIONS = 5, 0.10, 5.0
# Runs that are named; the others are counted.
MOST_NAMED = 5


def usual(name: str) -> pl.Expr:
    """The median of the column ``name`` among the runs alike; null where they are fewer than FEWEST_ALIKE."""
    value = pl.col(name).fill_nan(None)
    return pl.when(_KNOWN & (value.count().over(ALIKE) >= FEWEST_ALIKE)).then(value.median().over(ALIKE))


def is_far(name: str) -> pl.Expr:
    """Whether the column ``name`` is far below what is usual; null where nothing is."""
    below = usual(name) - pl.col(name)
    deviation = (pl.col(name) - usual(name)).abs().median().over(ALIKE)
    return (below > FAR * usual(name)) & (below > DEVIATIONS * deviation)


def with_outliers(runs: pl.DataFrame) -> pl.DataFrame:
    """``runs`` with the column ``stands_out``: the names of all figures that are far below what is usual."""
    names = [pl.when(is_far(name)).then(pl.lit(name)) for name in COMPARED]
    told = pl.concat_str(names, separator=" ", ignore_nulls=True)
    return runs.with_columns(stands_out=pl.when(told != "").then(told))


def outliers(runs: pl.DataFrame) -> list[dict[str, Any]]:
    """The figures by which ``runs`` stand out, the worst first: ``run``, ``metric``, ``value``, ``median``.

    Of a run those that tell most; one by which they are not is far in another figure, the first of which is named.
    """
    medians = runs.with_columns(usual(name).alias(f"usual_{name}") for name in COMPARED)
    found = [
        {"run": row["run"], "metric": name, "value": row[name], "median": row[f"usual_{name}"]}
        for row in medians.drop_nulls("stands_out").iter_rows(named=True)
        for name in _telling(row["stands_out"].split())
    ]
    return sorted(found, key=lambda one: one["value"] / one["median"])


def _telling(names: list[str]) -> list[str]:
    return [name for name in names if name in TELLING] or names[:1]


def describe_outliers(runs: pl.DataFrame, shown: Iterable[str]) -> Note | None:
    """How many of the runs ``shown`` stand out among ``runs``, and by what; None where none does."""
    names = set(shown)
    figures: dict[str, list[Note]] = {}
    for one in outliers(runs):
        if one["run"] in names:
            figures.setdefault(one["run"], []).append(_figure(one["metric"], one["value"], one["median"]))
    named = [info("run_stands_out", run=run, figures=told) for run, told in list(figures.items())[:MOST_NAMED]]
    fields = {"n": len(figures), "of": len(names), "runs": named}
    if len(figures) > MOST_NAMED:
        return info("runs_stand_out_and_more", **fields, more=len(figures) - MOST_NAMED)
    return info("runs_stand_out", **fields) if figures else None


def _figure(metric: str, value: float, median: float) -> Note:
    if metric.endswith(TOKENS):
        return info("tokens_below_median", metric=metric, value=value, median=median, below=1 - value / median)
    return info("share_below_median", metric=metric, value=value, median=median)
