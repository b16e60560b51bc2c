"""Where the time went, in tables: parts, stalls, starts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

import polars as pl

from analysis.charts.time_breakdown import parts_in_order
from analysis.pipeline.run import Run
from analysis.report.numbers import number, percent
from analysis.run.pace import stalled
from analysis.screens.parts import Cell, Table
from analysis.screens.words import word
from logparse.language import tr

# Of more stalls the longest are shown.
MOST_STALLS = 20


def account_table(runs: Sequence[Run]) -> Table | None:
    """Seconds and share of every part, a column for each run."""
    account = pl.concat(run.account for run in runs)
    if account.is_empty():
        return None
    found = {(run, part): (seconds, share) for run, part, seconds, share in account.rows()}
    rows = [
        [Cell(word("parts", part)), *(_spent(found.get((run.name, part))) for run in runs)]
        for part in parts_in_order(account)
    ]
    totals = [float(run.account["seconds"].sum()) for run in runs]
    rows.append([Cell(tr("together"), mark="sum"), *(Cell(_seconds(total), mark="sum") for total in totals)])
    names = [run.name for run in runs] if len(runs) > 1 else [tr("time")]
    return Table([tr("part"), *names], rows, tr("Where the time went"))


def _spent(part: tuple[float, float | None] | None) -> Cell:
    return Cell(percent(part[1]), _seconds(part[0])) if part else Cell(percent(None))


def _seconds(seconds: float) -> str:
    return f"{number(seconds, 0 if abs(seconds) >= 100 else 1)} s"


def stalls_table(run: Run) -> Table | None:
    """Each stalled step, how long it took and how much longer than usual; None where nothing stalled."""
    stalls = stalled(run.steps).select("step", "step_time_ms", "timestamp", longer="longer_ms")
    if stalls.is_empty():
        return None
    shown = stalls.top_k(MOST_STALLS, by="longer").sort("step")
    rows = [
        [number(step, 0), number(ms), f"+{number(longer)}", str(clock or "")]
        for step, ms, clock, longer in shown.rows()
    ]
    caption = (
        tr("Stalls: the {n} longest of {total}", n=MOST_STALLS, total=len(stalls))
        if len(stalls) > MOST_STALLS
        else tr("Stalls")
    )
    head = [tr("step"), tr("time, ms"), tr("longer than usual, ms"), tr("time stamp")]
    return Table(head, rows, caption)


def starts_table(run: Run) -> Table | None:
    """One row per start; None where there was only one."""
    segments = run.segments
    if len(segments) < 2:
        return None
    rows: list[list[Cell | str]] = [
        [
            Cell(str(row["segment"] + 1), f"{PurePath(row['source']).name}:{row['line_number']}"),
            f"{row['first_step']:,} – {row['last_step']:,}",
            str(row["first_timestamp"] or "–"),
            number(row["warm_up_rows"], 0),
            number(row["replayed_steps"], 0),
            number(row["lost_steps"], 0),
        ]
        for row in segments.iter_rows(named=True)
    ]
    head = [tr("start"), tr("steps"), tr("first line"), tr("warm-up rows"), tr("steps done again"), tr("steps lost")]
    return Table(head, rows, tr("Starts of the run"))


def left_out_table(runs: Sequence[Run]) -> Table | None:
    """How many rows do not count, by reason."""
    # In the order of the rows, so that the page of a run is the same each time.
    left_out = [run.steps["excluded_reason"].drop_nulls() for run in runs]
    counts = [dict(zip(found.unique(maintain_order=True), found.unique_counts(), strict=True)) for found in left_out]
    reasons = dict.fromkeys(reason for found in counts for reason in found)
    if not reasons:
        return None
    rows = [[word("reasons", reason), *(number(found.get(reason, 0), 0) for found in counts)] for reason in reasons]
    names = [run.name for run in runs] if len(runs) > 1 else [tr("rows")]
    return Table([tr("reason"), *names], rows, tr("Rows left out of the metrics"))
