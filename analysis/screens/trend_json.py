"""The JSON document of trends: the names users script against. Adding is free, renaming is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import polars as pl

from analysis.compare.trend import Trend
from logparse.schema import SCHEMA_VERSION


def document(trends: Sequence[Trend]) -> dict[str, Any]:
    """The whole document; it holds no sentence."""
    return {"schema_version": SCHEMA_VERSION, "series": [_trend(trend) for trend in trends]}


def _trend(trend: Trend) -> dict[str, Any]:
    runs = trend.runs.with_columns(pl.col("when").dt.to_string("iso"))
    return {
        "name": trend.name,
        "metric": trend.metric.column,
        "unknown_fields": list(trend.unknown),
        "unit": trend.metric.unit,
        "runs": runs.to_dicts(),
        "off": [trend.runs["run_id"][place] for place in trend.off],
        "newest_off": trend.newest_off,
        "groups": trend.groups.to_dicts(),
        "changes": [{**asdict(change), "change": change.change} for change in trend.changes],
    }
