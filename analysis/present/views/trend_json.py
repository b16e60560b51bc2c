"""The JSON document of trends: the names users script against. Adding is free, renaming is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import polars as pl

from analysis.history.annotations import ANNOTATION_COLUMNS
from analysis.nightly.trend import Trend
from analysis.present.views.history_json import run_documents
from logparse.schema import SCHEMA_VERSION


def document(trends: Sequence[Trend], runs: pl.DataFrame | None = None) -> dict[str, Any]:
    """The whole document; it holds no sentence. ``runs`` are those of the trends, with their annotations."""
    rows = [] if runs is None else run_documents(runs.select("run_id", *ANNOTATION_COLUMNS))
    annotations = {run["run_id"]: run for run in rows}
    return {"schema_version": SCHEMA_VERSION, "series": [_trend(trend, annotations) for trend in trends]}


def _trend(trend: Trend, annotations: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    runs = trend.runs.with_columns(pl.col("when").dt.to_string("iso"))
    return {
        "name": trend.name,
        "metric": trend.metric.column,
        "unknown_fields": list(trend.unknown),
        "unit": trend.metric.unit,
        "runs": [run | annotations.get(run["run_id"], {}) for run in runs.to_dicts()],
        "off": [trend.runs["run_id"][place] for place in trend.off],
        "newest_off": trend.newest_off,
        "drift": trend.drift,
        "groups": trend.groups.to_dicts(),
        "changes": [{**asdict(change), "change": change.change} for change in trend.changes],
    }
