"""CSV and JSON lines: a table of the steps and one of the runs, without any library."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from analysis.export.exported_run import ExportedRun


def tables_of(runs: Sequence[ExportedRun]) -> dict[str, pl.DataFrame]:
    """``steps``, one row for each step of each run, and ``runs``, one row for each run."""
    steps = pl.concat([run.steps.drop("wall_time") for run in runs], how="diagonal")
    rows = [{"run": run.name, **run.facts, **run.figures} for run in runs]
    return {"steps": steps, "runs": pl.DataFrame(rows, infer_schema_length=None, strict=False)}
