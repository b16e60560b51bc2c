"""The JSON document of a gate of all jobs: the names users script against. Adding is free, renaming is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from analysis.compare.independent_records import LeftOut
from analysis.nightly.exclusions import Hidden
from analysis.nightly.job_facts import AcceptedChange
from analysis.nightly.job_verdict import EndedSeries, JobVerdict, verdict_of
from analysis.nightly.metric_verdict import MetricNight
from analysis.present.views.compare_json import less_documents
from analysis.present.views.ending import ending_document
from analysis.present.views.jobs import accepted_change, refusal, sentence
from analysis.present.views.regressions import field_documents
from logparse.language import speaking
from logparse.schema import SCHEMA_VERSION


def document(jobs: Sequence[JobVerdict]) -> dict[str, Any]:
    """The whole document, the same in every language."""
    with speaking("en"):
        documents = [_job(job) for job in jobs]
    return {"schema_version": SCHEMA_VERSION, "verdict": verdict_of(jobs), "jobs": documents}


def _job(job: JobVerdict) -> dict[str, Any]:
    newest = job.newest
    return {
        "name": job.name,
        "owners": list(job.owners),
        "baseline": job.baseline,
        "verdict": job.verdict,
        "news": job.news,
        "runs": len(job.runs),
        "newest": {key: newest[key] for key in ("run_id", "name", "release")} | {"when": newest["when"].isoformat()},
        "metrics": {metric.metric.column: _metric(job, metric) for metric in job.metrics},
        "comparable": not job.refused,
        "refused": field_documents(job.refused),
        "refusal": refusal(job) if job.refused or job.is_idle else None,
        "idle_days": job.idle_days,
        "accepted": [_accepted(known) for known in job.accepted],
        "hidden": [_hidden(found) for found in job.hidden],
        "ended": _ended(job.ended) if job.ended else None,
        "failed": _left_out(job.failed) if job.failed else None,
        "failed_nights": job.failed_nights,
        "missing": job.missing,
        "missing_before": job.missing_before,
        "less_work": less_documents(job.less_work),
        "since": job.began,
        "worse_before": job.worse_before,
        "changes": [asdict(change) for change in job.changes],
        "left_out": [_left_out(run) for run in job.left_out],
    }


def _ended(ended: EndedSeries) -> dict[str, Any]:
    """An open regression of a series that ended."""
    job = ended.job
    return {
        "name": job.name,
        "since": job.began,
        "last_run": job.newest["run_id"],
        "when": ended.when.isoformat(),
        "metrics": {m.metric.column: m.night.change if m.night else None for m in job.metrics if m.is_open},
        "changed": field_documents(ended.fields),
    }


def _left_out(run: LeftOut) -> dict[str, Any]:
    return asdict(run) | {"ending": ending_document(run.ending)}


def _accepted(known: AcceptedChange) -> dict[str, Any]:
    acceptance = known.acceptance
    return {
        "metric": known.metric.column,
        "change": known.change,
        "since": acceptance.run_id,
        "reason": acceptance.reason,
        "issue": acceptance.issue,
        "until": acceptance.until.isoformat() if acceptance.until else None,
        "until_release": acceptance.until_release,
        "text": accepted_change(known),
    }


def _hidden(found: Hidden) -> dict[str, Any]:
    return {
        "metric": found.metric.column,
        "change": found.change,
        "run_id": found.run_id,
        "excluded": found.reason,
        "accepted": found.accepted,
    }


def _metric(job: JobVerdict, metric: MetricNight) -> dict[str, Any]:
    night = asdict(metric.night) if metric.night else None
    return {
        "verdict": metric.verdict,
        "reason": sentence(job, metric),
        "reason_code": metric.reason,
        "unit": metric.metric.unit,
        "value": metric.value,
        "threshold": metric.least,
        "expected": night,
        "since": metric.began,
        "p_worse": metric.p,
        "p_family": metric.p_family,
    }
