"""The JSON document of comparisons: the names users script against. Adding is free, renaming is not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from analysis.compare.comparability import Change, Field
from analysis.compare.comparison import Comparison, LossAgreement, Side
from analysis.compare.independent_records import LeftOut
from analysis.compare.verdict import Finding
from analysis.compare.work_difference import Less
from analysis.history.annotations import ANNOTATION_COLUMNS
from analysis.present.views.compare import called, sentence
from analysis.present.views.ending import ending_document
from analysis.present.views.history_json import run_documents
from analysis.present.words import word
from logparse.language import speaking
from logparse.schema import SCHEMA_VERSION


def document(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """The whole document, the same in every language; several comparisons are a list."""
    with speaking("en"):
        documents = [_comparison(one) for one in comparisons]
    return documents[0] if len(documents) == 1 else {"schema_version": SCHEMA_VERSION, "comparisons": documents}


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "job": comparison.job,
        "verdict": comparison.verdict,
        "threshold": comparison.asked_for[0].threshold,
        "baseline": _side(comparison.baseline),
        "candidate": _side(comparison.candidate),
        "comparable": not comparison.refused,
        "fields": {field.name: _field(field) for field in comparison.fields},
        "metrics": {finding.metric.column: _finding(finding, comparison) for finding in comparison.findings},
        **_losses(comparison),
        **_changes(comparison.changes),
        "less_work": less_documents(comparison.less_work),
        "noise": _noise(comparison, comparison.judged[0]),
        "failed": {
            side: [{"run_id": run.run_id, "name": run.name, "ending": ending_document(run.ending)} for run in runs]
            for side, runs in zip(("baseline", "candidate"), comparison.failed, strict=True)
        },
        "left_out": [_left_out(run) for run in comparison.left_out],
        "perhaps_one_job": [list(names) for names in comparison.unclear],
    }


def _losses(comparison: Comparison) -> dict[str, Any]:
    losses, lost = comparison.losses, comparison.lost
    reason = losses if isinstance(losses, str) else None
    return {
        "losses": asdict(losses) if isinstance(losses, LossAgreement) else None,
        "losses_reason": word("loss_reasons", reason) if reason else None,
        "losses_reason_code": reason,
        "losses_not_finite": {
            side: asdict(one) if one else None for side, one in zip(("baseline", "candidate"), lost, strict=True)
        },
    }


def _changes(changes: Sequence[Change]) -> dict[str, Any]:
    return {
        "changes": [asdict(change) for change in changes if change.is_candidate],
        "incidental": [asdict(change) for change in changes if change.incidental and not change.one_sided],
        "told_by_one_side": [asdict(change) for change in changes if change.one_sided],
    }


def less_documents(less: Sequence[Less]) -> list[dict[str, Any]]:
    """The kinds of work of which the candidate does less; what has no limit is null."""
    sides = ({"baseline": _finite(one.baseline), "candidate": _finite(one.candidate)} for one in less)
    return [{"kind": one.kind, "name": one.name, **both} for one, both in zip(less, sides, strict=True)]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _side(side: Side) -> dict[str, Any]:
    runs = run_documents(
        side.runs.select("run_id", "name", "release", *(n for n in ANNOTATION_COLUMNS if n in side.runs.columns))
    )
    return {"asked": side.asked, "releases": side.releases, "runs": runs}


def _left_out(run: LeftOut) -> dict[str, Any]:
    return {
        "name": called(run),
        "run_id": run.run_id,
        "reason": word("left_out", run.reason),
        "reason_code": run.reason,
    }


def _field(field: Field) -> dict[str, Any]:
    sides = {"baseline": list(field.baseline), "candidate": list(field.candidate)}
    return {"state": field.state, **sides, "allowed": field.allowed}


def _finding(finding: Finding, comparison: Comparison) -> dict[str, Any]:
    effect = asdict(finding.effect) if finding.effect else None
    judged = finding in comparison.verdicts and not comparison.refused
    verdict = {"verdict": finding.verdict, "reason": sentence(finding), "reason_code": finding.reason}
    judgement: dict[str, Any] = verdict if judged else {}
    if finding in comparison.verdicts:
        judgement["p_family"] = finding.p_family
        judgement |= {"odd_runs": comparison.worse_runs(finding), "noise": _noise(comparison, finding.metric.column)}
        judgement |= _outliers(finding, comparison)
    return {
        "unit": finding.metric.unit,
        "runs": list(finding.runs),
        "effect": effect,
        "threshold": finding.threshold,
        **judgement,
    }


def _outliers(finding: Finding, comparison: Comparison) -> dict[str, Any]:
    """Outlying runs, the verdict with them, and the finding without them."""
    rest = finding.rest
    named = [{"name": name, "side": one.side, "off": one.off} for one, name in comparison.outliers(finding)]
    if rest is None:
        return {"outliers": named, "without_outliers": None}
    effect = asdict(rest.effect) if rest.effect else None
    without = {"runs": list(rest.runs), "effect": effect, "verdict": rest.verdict, "reason_code": rest.reason}
    return {"outliers": named, "verdict_with_outliers": finding.before or finding.verdict, "without_outliers": without}


def _noise(comparison: Comparison, column: str) -> dict[str, Any] | None:
    noise = comparison.noises[column]
    return asdict(noise) if noise else None
