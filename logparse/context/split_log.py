"""A log of several runs as several logs: those that take turns in a file, and those that follow each other.

Comes in: a log that was read, and which of its rows are of which run. Goes out: one log each. Settings and events go
with the rows around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from logparse.decode.read_run import ParsedLog
from logparse.schema import BEGINNINGS


def split_log(log: ParsedLog, runs: Sequence[Sequence[int]], in_turn: bool) -> list[ParsedLog]:
    """One log for each of ``runs``, the places of its rows; they follow each other ``in_turn`` or mix.

    Its name has the number of the run.
    """
    places = pl.concat(
        log.steps[list(run)].select("source", "line_number", which=pl.lit(n)) for n, run in enumerate(runs)
    ).sort("line_number")
    parts = [_part(log, run, n, places) for n, run in enumerate(runs)]
    return parts if in_turn else [_without_beginnings(part) for part in parts]


def _part(log: ParsedLog, run: Sequence[int], n: int, places: pl.DataFrame) -> ParsedLog:
    steps = log.steps[list(run)]
    last = steps["line_number"].max()
    coverage = replace(log.coverage, step_lines=len(steps), torn_lines=0)
    return replace(
        log,
        name=f"{log.name}#{n + 1}",
        steps=steps.with_columns(run=pl.lit(f"{log.name}#{n + 1}")),
        # The last settings before its first row are in force.
        settings=log.settings.filter(pl.col("line_number") < last),
        starts=_near(log.starts, places, n, forward=pl.lit(value=True)),
        records={name: _of_run(frame, places, n) for name, frame in log.records.items()},
        coverage=coverage,
    )


def _without_beginnings(log: ParsedLog) -> ParsedLog:
    """``log`` without the lines of a beginning: where runs take turns they may be those of another run."""
    events = log.records["events"]
    own = events.filter(~pl.col("kind").is_in(BEGINNINGS))
    return replace(log, starts=log.starts.clear(), records={**log.records, "events": own})


def _of_run(records: pl.DataFrame, places: pl.DataFrame, n: int) -> pl.DataFrame:
    """Records of the rows before them, but for the beginnings of a process."""
    forward = pl.col("kind").is_in(BEGINNINGS) if "kind" in records.columns else pl.lit(value=False)
    return _near(records, places, n, forward)


def _near(records: pl.DataFrame, places: pl.DataFrame, n: int, forward: pl.Expr) -> pl.DataFrame:
    """The ``records`` whose row before, or after where ``forward`` says so, is of run ``n``."""
    if records.is_empty():
        return records
    marks = records.with_row_index("place").sort("line_number")
    before, after = (
        marks.join_asof(places, on="line_number", by="source", strategy=side, check_sortedness=False)["which"]
        for side in ("backward", "forward")
    )
    which = pl.when(forward).then(pl.coalesce(after, before)).otherwise(pl.coalesce(before, after))
    return marks.filter(which == n).sort("place").drop("place")
