"""The JSON document of a run: the names users script against. Adding is free, renaming is not."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from analysis.pipeline.analyze import RunResult
from analysis.pipeline.expectations import yardstick_document
from logparse.schema import SCHEMA_VERSION


def document(results: list[RunResult]) -> dict[str, Any]:
    """The whole document."""
    return {"schema_version": SCHEMA_VERSION, "runs": [_run(result) for result in results]}


def _run(result: RunResult) -> dict[str, Any]:
    analysis, how = result.analysis, result.analysis.computation
    return {
        "name": result.log.name,
        "sources": list(result.log.sources),
        "format": result.log.format.name,
        "framework": asdict(result.framework),
        "coverage": asdict(result.log.coverage),
        "versions": {
            name: {"value": version.value, "origin": version.origin(len(result.log.sources) > 1)}
            for name, version in result.log.versions.items()
        },
        "context": {name: asdict(fact) for name, fact in result.context.facts.items()},
        "device": asdict(how.peak) if how.peak else None,
        "formula": {
            "name": how.formula.name,
            "recompute_factor": how.recompute_factor,
            "recompute": how.recompute,
            "recompute_origin": result.context.origin("recompute"),
            "flops_per_iteration": analysis.flops_per_iteration,
        },
        "metrics": {row.pop("metric"): _metric(row) for row in analysis.summary.drop("run").to_dicts()},
        "rates": {row.pop("rate"): _metric(row) for row in analysis.rates.drop("run").to_dicts()},
        **_metric({"goodput": analysis.goodput}),
        "account": [_metric(row) for row in analysis.account.drop("run").to_dicts()],
        "starts": len(analysis.segments),
        "lost_steps": int(analysis.segments["lost_steps"].sum()),
        **yardstick_document(result.yardsticks),
        "notes": [asdict(note) for note in result.notes],
    }


def _metric(row: dict[str, Any]) -> dict[str, Any]:
    """JSON has no NaN: what is not a number is null."""
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}
