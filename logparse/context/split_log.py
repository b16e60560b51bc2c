"""A log of several runs as several logs: those that take turns in a file, and those that follow each other.

Comes in: a log that was read, and which of its rows are of which run. Goes out: one log each. Settings and events go
with the rows around them, the lines of an ending with those before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from logparse.decode.read_run import ParsedLog
from logparse.failures.ending import NOTES_OF_ENDING, notes_of
from logparse.failures.judge import ending_of_lines
from logparse.findings import info
from logparse.schema import BEGINNINGS


def split_log(log: ParsedLog, runs: Sequence[Sequence[int]], in_turn: bool) -> list[ParsedLog]:
    """One log for each of ``runs``, the places of its rows; they follow each other ``in_turn`` or mix.

    Its name has the number of the run.
    """
    places = pl.concat(
        log.steps[list(run)].select("source", "line_number", which=pl.lit(n)) for n, run in enumerate(runs)
    ).sort("line_number")
    parts = [_with_ending(_part(log, run, n, places), log, places, n) for n, run in enumerate(runs)]
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


def _with_ending(part: ParsedLog, log: ParsedLog, places: pl.DataFrame, n: int) -> ParsedLog:
    """``part``, run ``n``, with the ending that its own lines show; without one where they mix with other runs."""
    notes = tuple(note for note in log.notes if note.code not in NOTES_OF_ENDING)
    of_file = places.filter(pl.col("source") == part.steps["source"][0])
    mine, others = of_file.filter(pl.col("which") == n)["line_number"], of_file.filter(pl.col("which") != n)
    begins, ends = mine.min(), mine.max()
    if len(others.filter(pl.col("line_number").is_between(begins, ends))):
        return replace(part, ending=None, hits=(), notes=(*notes, info("ending_of_mixed_runs")))
    before = others.filter(pl.col("line_number") < begins)["line_number"].max()
    after = others.filter(pl.col("line_number") > ends)["line_number"].min()
    first = 1 if before is None else _next_start(log.starts, before, begins)
    last = None if after is None else _next_start(log.starts, ends, after)
    ending = ending_of_lines(log.hits, part.steps, part.starts, first, last, log.format.from_zero)
    if after is not None and ending.state == "cut_off":
        # The log goes on with the next run.
        ending = replace(ending, state="unknown")
    return replace(part, ending=ending, hits=(), notes=(*notes, *notes_of(ending, several=False)))


def _next_start(starts: pl.DataFrame, last: Any, first: Any) -> int:
    """The line on which the run begins that follows the row ``last``: with its settings, or with its ``first`` row."""
    between = starts.filter((pl.col("line_number") > last) & (pl.col("line_number") < first))["line_number"]
    line: Any = first if between.is_empty() else between.min()
    return int(line)


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
