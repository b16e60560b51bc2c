"""Rows of runs with what was said of them later: labels put together, and the columns of SAID.

Comes in: rows of RUN_COLUMNS and what holds of their runs. Goes out: the same rows with more columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import polars as pl

from analysis.history.events import Acceptance, Said, relabelled

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
SAID: Mapping[str, pl.DataType] = {
    "excluded": pl.String(),
    "annotation": pl.String(),
    "acceptances": pl.List(_ACCEPTANCE),
}


def with_said(runs: pl.DataFrame, said: Said) -> pl.DataFrame:
    """``runs`` with the columns of SAID, and with later labels among the recorded ones, the later in place of those."""
    columns: tuple[Mapping[str, Any], ...] = (
        said.excluded,
        said.annotations,
        {run_id: [_row(one) for one in found] for run_id, found in said.acceptances.items()},
    )
    named = zip(SAID.items(), columns, strict=True)
    return _labelled(runs, said).with_columns(_told(runs, values).cast(dtype).alias(n) for (n, dtype), values in named)


def acceptances_of(runs: pl.DataFrame) -> dict[str, tuple[Acceptance, ...]]:
    """What is accepted, by run id, of ``runs`` that have SAID; runs of logs have none."""
    if "acceptances" not in runs.columns:
        return {}
    rows = runs.select("run_id", "acceptances").drop_nulls().iter_rows()
    return {run_id: tuple(Acceptance(run_id, **one) for one in found) for run_id, found in rows}


def _row(acceptance: Acceptance) -> dict[str, Any]:
    return {name: value for name, value in asdict(acceptance).items() if name != "run_id"}


def _told(runs: pl.DataFrame, values: Mapping[str, Any]) -> pl.Series:
    if not values:
        return pl.Series([None] * len(runs), dtype=pl.Null)
    return pl.Series([values.get(run_id) for run_id in runs["run_id"]])


def _labelled(runs: pl.DataFrame, said: Said) -> pl.DataFrame:
    if not said.labels or runs.is_empty():
        return runs
    rows = runs.select("run_id", "labels").iter_rows()
    labels = [_merged(pairs, said.labels[run_id]) if run_id in said.labels else pairs for run_id, pairs in rows]
    return runs.with_columns(pl.Series("labels", labels, runs.schema["labels"]))


def _merged(pairs: list[dict[str, str]] | None, later: Mapping[str, str]) -> list[dict[str, str]]:
    recorded = {pair["name"]: pair["value"] for pair in pairs or ()}
    return [{"name": name, "value": value} for name, value in sorted(relabelled(recorded, later).items())]
