"""Recorded runs in JSON: the names users script against. Adding is free, renaming is not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import date
from typing import Any

import polars as pl

from analysis.compare.verdict import Verdict
from analysis.history.events import Event
from analysis.history.kept_endings import read_ending
from analysis.present.findings_json import origin_text
from analysis.present.views.ending import ending_document, hours_document
from logparse.findings import Origin
from logparse.schema import SCHEMA_VERSION


def document(runs: pl.DataFrame, verdicts: Mapping[str, Verdict]) -> dict[str, Any]:
    """The whole document, the same in every language; ``verdicts`` are by run id."""
    rows = [row | {"verdict": verdicts.get(row["run_id"])} for row in run_documents(runs)]
    return {"schema_version": SCHEMA_VERSION, "runs": rows, "device_hours_by_ending": hours_document(runs)}


def run_documents(runs: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON can hold them: clocks as text, NaN as null, pairs as objects by name."""
    floats = [name for name, dtype in runs.schema.items() if dtype == pl.Float64]
    finite = runs.with_columns(
        pl.when(pl.col(floats).is_finite()).then(pl.col(floats)), pl.col(pl.Datetime).dt.to_string("iso")
    )
    return [{key: _value(key, value, row) for key, value in row.items()} for row in finite.to_dicts()]


def event_documents(events: Iterable[Event]) -> list[dict[str, Any]]:
    """The events of runs, the oldest first."""
    return [_plain({**asdict(event), "labels": dict(event.labels)}) for event in events]


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Clocks and days as text."""
    return {name: value.isoformat() if isinstance(value, date) else value for name, value in fields.items()}


def _value(key: str, value: Any, run: Mapping[str, Any]) -> Any:
    if key == "ending":
        return ending_document(read_ending(run))
    if key == "acceptances":
        return [_plain(one) for one in value or ()]
    return {pair["name"]: _pair(pair) for pair in value} if isinstance(value, list) else value


def _pair(pair: dict[str, Any]) -> Any:
    """The value of a pair, or its value and origin, or its origin."""
    if "origin" not in pair:
        return pair["value"]
    value = {"value": pair["value"]} if "value" in pair else {}
    origin = pair["origin"]
    return {**value, "origin": origin_text(Origin(**origin)) if origin else None, "from": origin}
