"""The phases of a step, where a log prints them and no time of the whole step: a lower bound of the step time.

Comes in: the timers of a log whose step lines have no time, the names of the phases of its format. Goes out: a note.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from logparse.findings import Note, info, warning


def describe_phases(timers: pl.DataFrame, phases: Sequence[str]) -> Iterator[Note]:
    """A warning with the median sum of ``phases`` over the steps that print all of them, and the share of each."""
    read = timers.filter(pl.col("name").is_in(phases)).select("source", "step", "name", "max_ms").drop_nulls()
    if read.is_empty():
        return
    sums = read.group_by("source", "step").agg(pl.col("max_ms").sum(), names=pl.col("name").n_unique())
    whole = sums.filter(pl.col("names") == pl.col("names").max())
    total = whole["max_ms"].sum()
    if total <= 0:
        return
    of_whole = read.join(whole.select("source", "step"), on=["source", "step"], how="semi")
    parts = of_whole.group_by("name").agg(pl.col("max_ms").sum()).sort("max_ms", "name", descending=[True, False])
    notes = [info("phase_of_step", name=name, share=ms / total) for name, ms in parts.iter_rows()]
    yield warning("phases_without_total", ms=whole["max_ms"].median(), phases=notes)
