"""What a run did besides steps, as marks along the axes of its charts: its starts, saves, evaluations and restarts."""

from __future__ import annotations

import polars as pl

from analysis.charts.drawn_rows import AXES, place_rows
from analysis.run.clock.interruptions import Pauses

# Kinds of marks; the name of their rows, and of those of starts, in a page.
SAVE, EVALUATION, RESTART = "saves", "evaluation", "restarts"
KINDS = (SAVE, EVALUATION, RESTART)
MARKS, STARTS = "marks", "starts"
# Of more marks of one kind every second, third ... is drawn: closer together they would be a band.
MOST_MARKS = 400


def mark_rows(steps: pl.DataFrame, pauses: Pauses) -> pl.DataFrame:
    """One row for each mark of a run: ``run``, ``kind``, and its place on every axis."""
    places = place_rows(steps).filter(pl.col("step").is_not_null()).select("run", "segment", *AXES)
    pauses_at = [_at(places, pauses.saved, SAVE), _at(places, pauses.evaluated, EVALUATION)]
    begins = places.filter(pl.col("segment") > 0).unique("segment", keep="first", maintain_order=True)
    return pl.concat([*pauses_at, begins.select("run", *AXES, kind=pl.lit(RESTART))])


def _at(places: pl.DataFrame, steps: tuple[int, ...], kind: str) -> pl.DataFrame:
    """For each of ``steps`` a mark at the last row up to that step."""
    every = -(-len(steps) // MOST_MARKS) or 1
    marks = pl.DataFrame({"step": steps[::every]}, schema={"step": pl.Int64})
    first_places = places.unique("step", keep="first", maintain_order=True).sort("step")
    placed = marks.join_asof(first_places, on="step", strategy="backward").drop_nulls("run")
    return placed.select("run", *AXES, kind=pl.lit(kind))


def start_rows(steps: pl.DataFrame) -> pl.DataFrame:
    """From where to where each start of a run lasted, on every axis; empty where there was one."""
    places = place_rows(steps).filter(pl.col("step").is_not_null())
    starts = places.group_by("run", "segment", maintain_order=True).agg(
        *(pl.col(axis).min().alias(axis) for axis in AXES), *(pl.col(axis).max().alias(f"{axis}_to") for axis in AXES)
    )
    return starts if len(starts) > 1 else starts.clear()
