"""The JSON document of a run: the names users script against. Adding is free, renaming is not."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any

import polars as pl

from analysis.batch.peers import describe_outliers
from analysis.flops import Recomputed
from analysis.hardware.devices import DevicePeak
from analysis.present.findings_json import fact_document, note_document, origin_text, plain
from analysis.present.views.ending import ending_document, hours_document
from analysis.present.views.expectations import expectations_document
from analysis.present.views.requirements import requirement_documents
from analysis.present.words import evidence_text, word
from analysis.run.checks.self_checks import CheckResult
from analysis.run.result import Analysis
from analysis.run.run import Run
from analysis.run.useful.goodput import Reliability, Stretch
from analysis.run.useful.overheads import Overhead
from logparse.language import speaking
from logparse.schema import SCHEMA_VERSION


def document(results: list[Run], price: float | None = None) -> dict[str, Any]:
    """The whole document, the same in every language. ``price`` of a device-hour gives overheads a cost."""
    with speaking("en"):
        return {"schema_version": SCHEMA_VERSION, "runs": [_run(result, price) for result in results]}


def document_of_many(everything: pl.DataFrame, shown: pl.DataFrame) -> dict[str, Any]:
    """What many runs show: which of those ``shown`` are far below comparable runs, and how they ended."""
    outliers = describe_outliers(everything, shown["run"])
    with speaking("en"):
        finding = note_document(outliers) if outliers else None
    return {"stands_out": finding, "device_hours_by_ending": hours_document(shown)}


def _run(result: Run, price: float | None) -> dict[str, Any]:
    analysis, how = result.analysis, result.analysis.computation
    recompute = result.context.origin("recompute")
    return {
        "name": result.log.name,
        "sources": list(result.log.sources),
        "format": result.log.format.shown_name,
        "framework": {**asdict(result.framework), "evidence": evidence_text(result.framework)},
        "coverage": asdict(result.log.coverage),
        "versions": {
            name: {"value": version.value, "origin": origin_text(version.origin(len(result.log.sources) > 1))}
            for name, version in result.log.versions.items()
        },
        "context": {name: fact_document(fact) for name, fact in result.context.facts.items()},
        "device": _device(how.peak) if how.peak else None,
        "formula": {
            "name": how.formula.name,
            "recompute_factor": how.recompute_factor,
            "recomputed": _recomputed(how.recomputed),
            "recompute": how.recompute,
            "recompute_origin": origin_text(recompute) if recompute else None,
            "flops_per_iteration": analysis.flops_per_iteration,
        },
        "metrics": _metrics(analysis),
        "printed": {name: _metric(asdict(rate)) for name, rate in result.printed.items()},
        "device_mfu": None if result.device_mfu is None else _metric(asdict(result.device_mfu)),
        "impossible": list(analysis.impossible),
        "rates": {row["rate"]: _rate(row) for row in analysis.rates.drop("run").to_dicts()},
        **_metric({"goodput": analysis.goodput, "time_to_train_seconds": analysis.time_to_train_seconds}),
        "time_breakdown": [_metric(row) for row in analysis.time_breakdown.drop("run").to_dicts()],
        "overheads": [_overhead(overhead, price) for overhead in result.overheads],
        "short": result.short,
        "reliability": _reliability(analysis.reliability),
        "ranks": [_metric(row) for row in analysis.ranks.drop("run").to_dicts()],
        "starts": len(analysis.segments),
        "lost_steps": int(analysis.segments["lost_steps"].sum()),
        "ending": ending_document(result.log.ending),
        **expectations_document(result.expectations),
        "requirements": requirement_documents(result),
        "checks": [_check(check) for check in result.checks],
        "notes": [note_document(note) for note in result.notes],
    }


def _check(check: CheckResult) -> dict[str, Any]:
    return {"code": check.code, "passed": check.passed, "fields": plain(check.fields)}


def _overhead(overhead: Overhead, price: float | None) -> dict[str, Any]:
    hours = overhead.device_hours
    cost = {} if price is None else {"cost": None if hours is None else hours * price}
    advice = None if overhead.advice is None else note_document(overhead.advice)
    more = {"label": word("overheads", overhead.name), "in_steps": overhead.in_steps, "advice": advice}
    return {**_metric(vars(overhead)), **cost, **more}


def _reliability(goodput: Reliability) -> dict[str, Any]:
    """Goodput by the field's terms, without its curve over time; the charts have that."""
    values = {name: value for name, value in vars(goodput).items() if name not in ("badput", "curve")}
    badput = [_metric(row) for row in goodput.badput.drop("run").to_dicts()]
    stretches = {name: asdict(value) for name, value in values.items() if isinstance(value, Stretch)}
    return {**plain(values | stretches), "badput": badput}


def _metrics(analysis: Analysis) -> dict[str, dict[str, Any] | None]:
    """Each metric, null if unknown; HFU with both ends where it is a range, and marked where it is more than can be."""
    metrics = {row.pop("metric"): _metric(row) for row in analysis.summary.drop("run").to_dicts()}
    for name in metrics.keys() & set(analysis.impossible):
        metrics[name]["impossible"] = True
    times, mfu = analysis.computation.executed_times(), analysis.value("mfu")
    if times and mfu is not None and times[0] != times[1]:
        metrics["hfu"]["range"] = [mfu * end for end in times]
    return {name: metric if metric["n"] or "range" in metric else None for name, metric in metrics.items()}


def _recomputed(recomputed: Recomputed | None) -> list[dict[str, Any]] | None:
    """What is recomputed: one entry, or at least and at most where a setting is not understood; null is unknown."""
    if recomputed is None:
        return None
    ends = (recomputed.least,) if recomputed.known else (recomputed.least, recomputed.most)
    return [{"layers": end.layers, "mtp": end.depths, "modules": sorted(end.modules)} for end in ends]


def _device(peak: DevicePeak) -> dict[str, Any]:
    notes = [note_document(note) for note in peak.notes]
    return {**asdict(replace(peak, notes=())), "origin": origin_text(peak.origin), "notes": notes}


def _rate(row: dict[str, Any]) -> dict[str, Any]:
    return _metric({name: value for name, value in row.items() if name != "rate"}) | {
        "covers": word("covers", row["rate"])
    }


def _metric(row: dict[str, Any]) -> dict[str, Any]:
    """JSON has no NaN: what is not a number is null."""
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}
