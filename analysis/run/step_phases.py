"""The phases of a step, where a log prints them and no time of the whole step: a lower bound of the step time.

Comes in: the timers of a log whose step lines have no time, the names of the phases of its format. Goes out: a note.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from analysis.run.interruptions import WITHIN_STEP
from logparse.findings import Note, info, warning


def describe_phases(timers: pl.DataFrame, phases: Sequence[str]) -> Iterator[Note]:
    """A warning with the median sum of ``phases`` over the steps that print all of them, and the share of each.

    The number of these steps and the seconds of all phases show how long the run is at least.
    """
    read = timers.filter(pl.col("name").is_in(phases)).select("source", "step", "name", "max_ms").drop_nulls()
    if read.is_empty():
        return
    sums = read.group_by("source", "step").agg(pl.col("max_ms").sum(), names=pl.col("name").n_unique())
    whole = sums.filter(pl.col("names") == pl.col("names").max())
    total: Any = whole["max_ms"].sum()
    if total <= 0:
        return
    of_whole = read.join(whole.select("source", "step"), on=["source", "step"], how="semi")
    notes = list(_shares(of_whole, total))
    # Of some steps only, such as a validation: in the run, not in the median step.
    others = timers.filter(pl.col("name").is_in(WITHIN_STEP) & (pl.col("max_ms") > 0))
    printed = pl.concat([read["max_ms"], others["max_ms"]])
    seconds = float(printed.sum()) / 1000
    yield warning("phases_without_total", ms=whole["max_ms"].median(), phases=notes, steps=len(whole), seconds=seconds)
    if len(others):
        yield info("phases_of_some_steps", phases=list(_shares(others, seconds * 1000)))


def _shares(timers: pl.DataFrame, total: float) -> Iterator[Note]:
    """The share of each timer in ``total`` ms, the largest first."""
    sums = timers.group_by("name").agg(pl.col("max_ms").sum()).sort("max_ms", "name", descending=[True, False])
    return (info("phase_of_step", name=name, share=ms / total) for name, ms in sums.iter_rows())
