"""Where the time went, in tables: parts, stalls, starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import PurePath
from typing import Any

import polars as pl

from analysis.charts.time_breakdown import by_cause, color_of, parts_in_order
from analysis.present.parts import Cell, Table
from analysis.present.words import fill, word
from analysis.present.words.forms import second
from analysis.report.shown_numbers import NONE, lasted, number, percent
from analysis.run.clock.step_time_patterns import explain_stalls
from analysis.run.rates.baseline_step_time import stalled
from analysis.run.run import Run
from logparse.language import tr
from logparse.light_dataclass import dataclass

# Of more stalls the longest are shown.
MOST_STALLS = 20
# A part below this share is rounded to nothing.
LEAST_SHARE = 0.0005


def time_breakdown_table(runs: Sequence[Run]) -> Table | None:
    """Seconds and share of every part, a column for each run."""
    time_breakdown = pl.concat(run.time_breakdown for run in runs)
    if time_breakdown.is_empty():
        return None
    times = {(run, part): (seconds, share) for run, part, seconds, share in time_breakdown.rows()}
    rows = [
        [Cell(word("parts", part)), *(_spent(times.get((run.name, part))) for run in runs)]
        for part in parts_in_order(time_breakdown)
    ]
    totals = [float(run.time_breakdown["seconds"].sum()) for run in runs]
    rows.append([Cell(tr("total"), mark="sum"), *(Cell(lasted(total), mark="sum") for total in totals)])
    names = [run.name for run in runs] if len(runs) > 1 else [tr("time")]
    return Table([tr("part"), *names], rows, tr("Time breakdown"))


def _spent(part: tuple[float, float | None] | None) -> Cell:
    return Cell(percent(part[1]), lasted(part[0]), bar=part[1]) if part else Cell(percent(None))


@dataclass(frozen=True)
class Segment:
    """A part of the bar of a run's time: ``share`` of it, from 0 to 1, in ``color``."""

    name: str
    share: float
    shown: str
    lasted: str
    color: str


def time_breakdown_bar(run: Run) -> list[Segment]:
    """The time of a run by cause, useful work first; empty where it is unknown."""
    time_breakdown = by_cause(run.time_breakdown)
    times = {
        part: (seconds, share) for part, seconds, share in time_breakdown.select("part", "seconds", "share").iter_rows()
    }
    return [
        Segment(word("parts", part), share, percent(share), lasted(seconds), color_of(part))
        for part in parts_in_order(time_breakdown)
        for seconds, share in (times[part],)
        if share and share >= LEAST_SHARE
    ]


def stalls_table(run: Run) -> Table | None:
    """Each stalled step, when and how long, how much longer than the baseline, and why; None where nothing stalled."""
    stalls = stalled(run.steps)
    if stalls.is_empty():
        return None
    causes = explain_stalls(stalls["step"].to_list(), run.analysis.pauses)
    shown = stalls.with_columns(at=pl.int_range(pl.len())).top_k(MOST_STALLS, by="longer_ms").sort("at")
    rows = [_stall(row, *causes[row["at"]]) for row in shown.iter_rows(named=True)]
    total = len(stalls)
    caption = (
        tr("Stalls: the {n} longest of {total}", n=MOST_STALLS, total=total) if total > MOST_STALLS else tr("Stalls")
    )
    head = [tr("step"), tr("start"), tr("ended"), tr("duration"), tr("above baseline"), tr("cause")]
    return Table(head, rows, caption, prose={5})


def _stall(row: Mapping[str, Any], cause: str, period: int | None) -> list[Cell | str]:
    place = f"{PurePath(row['source']).name}:{row['line_number']}"
    return [
        Cell(number(row["step"], 0), place, place=f"{row['source']}:{row['line_number']}"),
        str(row["segment"] + 1),
        _to_the_second(row["timestamp"]),
        lasted(row["step_time_ms"] / 1000),
        f"+{lasted(row['longer_ms'] / 1000)}",
        fill("stall_causes", cause, {"period": period}),
    ]


def _to_the_second(clock: datetime | None) -> str:
    return second(clock) if clock else NONE


def starts_table(run: Run) -> Table | None:
    """One row per start; None where there was only one."""
    segments = run.segments
    if len(segments) < 2:
        return None
    rows: list[list[Cell | str]] = [
        [
            _start(row),
            f"{row['first_step']:,} – {row['last_step']:,}",
            _to_the_second(row["first_timestamp"]),
            number(row["warm_up_rows"], 0),
            number(row["replayed_steps"], 0),
            number(row["lost_steps"], 0),
        ]
        for row in segments.iter_rows(named=True)
    ]
    head = [tr("start"), tr("steps"), tr("first line"), tr("warm-up rows"), tr("replayed steps"), tr("steps lost")]
    return Table(head, rows, tr("Starts"))


def _start(row: Mapping[str, Any]) -> Cell:
    place = f"{PurePath(row['source']).name}:{row['line_number']}"
    return Cell(str(row["segment"] + 1), place, place=f"{row['source']}:{row['line_number']}")


def left_out_table(runs: Sequence[Run]) -> Table | None:
    """How many rows do not count, by reason."""
    # In the order of the rows, so that the page of a run is the same each time.
    left_out = [run.steps["excluded_reason"].drop_nulls() for run in runs]
    counts = [
        dict(zip(excluded.unique(maintain_order=True), excluded.unique_counts(), strict=True)) for excluded in left_out
    ]
    reasons = dict.fromkeys(reason for by_reason in counts for reason in by_reason)
    if not reasons:
        return None
    rows = [
        [word("reasons", reason), *(number(by_reason.get(reason, 0), 0) for by_reason in counts)] for reason in reasons
    ]
    names = [run.name for run in runs] if len(runs) > 1 else [tr("rows")]
    return Table([tr("reason"), *names], rows, tr("Excluded rows"))
