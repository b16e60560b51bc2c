"""Rows of runs with their later annotations: merged labels, and the columns of ANNOTATION_COLUMNS.

Comes in: rows of RUN_COLUMNS and the Annotations of their runs. Goes out: the same rows with more columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import polars as pl

from analysis.history.events import Acceptance, Annotations, relabelled

_ACCEPTANCE = pl.Struct(
    {
        "metric": pl.String,
        "reason": pl.String,
        "issue": pl.String,
        "until": pl.Date,
        "until_release": pl.String,
        "at": pl.Datetime("us"),
        "user": pl.String,
    }
)
# Why a run is excluded, null where it is not; what it is annotated with; what is accepted of it.
ANNOTATION_COLUMNS: Mapping[str, pl.DataType] = {
    "excluded": pl.String(),
    "annotation": pl.String(),
    "acceptances": pl.List(_ACCEPTANCE),
}


def with_annotations(runs: pl.DataFrame, by_run: Annotations) -> pl.DataFrame:
    """``runs`` with ANNOTATION_COLUMNS, and with later labels added to the recorded ones, or in their place."""
    columns: tuple[Mapping[str, Any], ...] = (
        by_run.excluded,
        by_run.annotations,
        {run_id: [_row(one) for one in accepted] for run_id, accepted in by_run.acceptances.items()},
    )
    named = zip(ANNOTATION_COLUMNS.items(), columns, strict=True)
    labelled = _labelled(runs, by_run)
    return labelled.with_columns(_column(runs, values).cast(dtype).alias(n) for (n, dtype), values in named)


def acceptances_of(runs: pl.DataFrame) -> dict[str, tuple[Acceptance, ...]]:
    """The acceptances by run id, of ``runs`` with ANNOTATION_COLUMNS; runs of logs have none."""
    if "acceptances" not in runs.columns:
        return {}
    rows = runs.select("run_id", "acceptances").drop_nulls().iter_rows()
    return {run_id: tuple(Acceptance(run_id, **one) for one in accepted) for run_id, accepted in rows}


def _row(acceptance: Acceptance) -> dict[str, Any]:
    return {name: value for name, value in asdict(acceptance).items() if name != "run_id"}


def _column(runs: pl.DataFrame, values: Mapping[str, Any]) -> pl.Series:
    if not values:
        return pl.Series([None] * len(runs), dtype=pl.Null)
    return pl.Series([values.get(run_id) for run_id in runs["run_id"]])


def _labelled(runs: pl.DataFrame, by_run: Annotations) -> pl.DataFrame:
    if not by_run.labels or runs.is_empty():
        return runs
    rows = runs.select("run_id", "labels").iter_rows()
    labels = [_merged(pairs, by_run.labels[run_id]) if run_id in by_run.labels else pairs for run_id, pairs in rows]
    return runs.with_columns(pl.Series("labels", labels, runs.schema["labels"]))


def _merged(pairs: list[dict[str, str]] | None, later: Mapping[str, str]) -> list[dict[str, str]]:
    recorded = {pair["name"]: pair["value"] for pair in pairs or ()}
    return [{"name": name, "value": value} for name, value in sorted(relabelled(recorded, later).items())]
