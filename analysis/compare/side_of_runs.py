"""A side of a comparison made of runs that are read already. Comes in: runs. Goes out: a Side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from analysis.compare.comparison import Side
from analysis.history.record_run import Marks, keep
from analysis.run.run import Run
from logparse.findings import Note


def side_of_runs(runs: Sequence[Run], warn: Callable[[Note], object]) -> Side:
    """The side of ``runs``, named after them, as if their logs were given; at least one. See Side for ``warn``."""
    records = {record.run_id: record for record in (keep(run, Marks()) for run in runs)}
    frame = pl.concat(r.summary.with_columns(release=pl.lit(None, pl.String)) for r in records.values())
    return Side(", ".join(run.name for run in runs), frame, frame, lambda run_id: records[run_id].steps, warn)
