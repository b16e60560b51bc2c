"""The JSON document of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from analysis.batch.peers import describe_outliers
from analysis.batch.run_table import hours_by_ending
from analysis.flops import Recomputed
from analysis.hardware.devices import DevicePeak
from analysis.present.as_json import fact_document, note_document, origin_text, pick, plain
from analysis.present.views.expectations import expectations_document
from analysis.present.views.requirements import requirement_documents
from analysis.present.words import evidence_text, word
from analysis.run.result import Analysis
from analysis.run.run import Run
from analysis.run.useful.overheads import Overhead
from logparse.language import speaking
from logparse.schema import SCHEMA_VERSION

# The keys of a run, of its formula, of its interruptions and of an overhead.
RUN = """name sources format framework coverage versions context device formula metrics printed device_mfu impossible
 rates goodput time_to_train_seconds time_breakdown overheads short reliability ranks starts lost_steps ending planned
 published requirements checks notes"""
FORMULA = "name recompute_factor recomputed recompute recompute_origin flops_per_iteration"
RELIABILITY = "ettr worst_hour interruptions planned_stops seconds_between lost_steps longest_dead badput"
OVERHEAD = "cause share seconds device_hours useful_without rate_without advice has_nan"


def document(results: list[Run], price: float | None = None) -> dict[str, Any]:
    """The whole document, the same in every language. ``price`` of a device-hour gives overheads a cost."""
    return document_of([run_document(result, price) for result in results])


def document_of(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The whole document of the documents of ``runs``."""
    return {"schema_version": SCHEMA_VERSION, "runs": runs}


def run_document(result: Run, price: float | None = None) -> dict[str, Any]:
    """The element of ``runs`` of one run, the same in every language."""
    with speaking("en"):
        return _run(result, price)


def document_of_many(everything: pl.DataFrame, shown: pl.DataFrame) -> dict[str, Any]:
    """What many runs show: which of those ``shown`` are far below comparable runs, and how they ended."""
    outliers = describe_outliers(everything, shown["run"])
    finding = note_document(outliers) if outliers else None
    return {"stands_out": finding, "device_hours_by_ending": hours_by_ending(shown).to_dicts()}


def _run(result: Run, price: float | None) -> dict[str, Any]:
    analysis, log, goodput = result.analysis, result.log, result.analysis.reliability
    return pick(
        analysis,
        RUN,
        name=log.name,
        sources=log.sources,
        format=log.format.shown_name,
        framework={**plain(result.framework), "evidence": evidence_text(result.framework)},
        coverage=log.coverage,
        versions={
            name: {"value": version.value, "origin": origin_text(version.origin(len(log.sources) > 1))}
            for name, version in log.versions.items()
        },
        context={name: fact_document(fact) for name, fact in result.context.facts.items()},
        device=_device(analysis.computation.peak),
        formula=_formula(result),
        metrics=_metrics(analysis),
        printed=result.printed,
        device_mfu=result.device_mfu,
        rates={(rate := row.pop("rate")): {**row, "covers": word("covers", rate)} for row in _rows(analysis.rates)},
        time_breakdown=_rows(analysis.time_breakdown),
        overheads=[_overhead(overhead, price) for overhead in result.overheads],
        short=result.short,
        reliability=pick(goodput, RELIABILITY, badput=_rows(goodput.badput)),
        ranks=_rows(analysis.ranks),
        starts=None if analysis.streams else len(analysis.segments),
        lost_steps=goodput.lost_steps,
        ending=log.ending,
        **expectations_document(result.expectations),
        requirements=requirement_documents(result),
        checks=[pick(check, "code passed fields") for check in result.checks],
        notes=[note_document(note) for note in result.notes],
    )


def run_metrics(result: Run) -> dict[str, dict[str, Any] | None]:
    """The object ``metrics`` of a run."""
    return _metrics(result.analysis)


def _rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    return frame.drop("run").to_dicts()


def _formula(result: Run) -> dict[str, Any]:
    how, recompute = result.analysis.computation, result.context.origin("recompute")
    return pick(
        how,
        FORMULA,
        name=how.formula.name,
        recomputed=_recomputed(how.recomputed),
        recompute_origin=origin_text(recompute) if recompute else None,
        flops_per_iteration=result.analysis.flops_per_iteration,
    )


def _overhead(overhead: Overhead, price: float | None) -> dict[str, Any]:
    hours = overhead.device_hours
    cost = {} if price is None else {"cost": None if hours is None else hours * price}
    advice = None if overhead.advice is None else note_document(overhead.advice)
    more = {"label": word("overheads", overhead.name), "in_steps": overhead.in_steps}
    return {**pick(overhead, OVERHEAD, advice=advice), **cost, **more}


def _metrics(analysis: Analysis) -> dict[str, dict[str, Any] | None]:
    """Each metric, null if unknown; HFU with both ends where it is a range, and marked where it is more than can be."""
    metrics = {row.pop("metric"): row for row in _rows(analysis.summary)}
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


def _device(peak: DevicePeak | None) -> dict[str, Any] | None:
    if peak is None:
        return None
    notes = [note_document(note) for note in peak.notes]
    return {**plain(replace(peak, notes=())), "notes": notes, "origin": origin_text(peak.origin)}
