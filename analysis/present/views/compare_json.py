"""The JSON document of comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analysis.compare.comparability import Field
from analysis.compare.comparison import Comparison, Side
from analysis.compare.same_loss import SameLoss
from analysis.compare.verdict import Finding
from analysis.compare.work_difference import Less
from analysis.history.annotations import ANNOTATION_COLUMNS
from analysis.present.as_json import pick
from analysis.present.views.compare import called, sentence
from analysis.present.views.history import run_documents
from analysis.present.views.requirements import judgement_documents
from analysis.present.views.same_loss import loss_document
from analysis.present.words import word
from logparse.language import speaking
from logparse.schema import SCHEMA_VERSION

SIDES = ("baseline", "candidate")
COMPARISON = """schema_version job verdict threshold baseline candidate comparable fields metrics losses losses_reason
 losses_reason_code loss requirements losses_not_finite changes incidental told_by_one_side less_work noise failed
 left_out perhaps_one_job"""


def document(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """The whole document, the same in every language; several comparisons are a list."""
    with speaking("en"):
        documents = [_comparison(one) for one in comparisons]
    return documents[0] if len(documents) == 1 else {"schema_version": SCHEMA_VERSION, "comparisons": documents}


def _comparison(comparison: Comparison) -> dict[str, Any]:
    changes, reason = comparison.changes, comparison.loss.reason if comparison.loss else None
    return pick(
        comparison,
        COMPARISON,
        schema_version=SCHEMA_VERSION,
        threshold=comparison.asked_for[0].threshold,
        baseline=_side(comparison.baseline),
        candidate=_side(comparison.candidate),
        comparable=not comparison.refused,
        fields={field.name: _field(field) for field in comparison.fields},
        metrics={finding.metric.column: _finding(finding, comparison) for finding in comparison.findings},
        losses=None if reason else _agreement(comparison.loss),
        losses_reason=word("loss_reasons", reason) if reason else None,
        losses_reason_code=reason,
        loss=loss_document(comparison.loss),
        requirements=judgement_documents(comparison.tolerances),
        losses_not_finite=dict(zip(SIDES, comparison.lost, strict=True)),
        changes=[change for change in changes if change.is_candidate],
        incidental=[change for change in changes if change.incidental and not change.one_sided],
        told_by_one_side=[change for change in changes if change.one_sided],
        less_work=less_documents(comparison.less_work),
        noise=comparison.noises[comparison.judged[0]],
        failed={
            side: [pick(run, "run_id name ending") for run in runs]
            for side, runs in zip(SIDES, comparison.failed, strict=True)
        },
        left_out=[
            pick(
                run,
                "name run_id reason reason_code",
                name=called(run),
                reason=word("left_out", run.reason),
                reason_code=run.reason,
            )
            for run in comparison.left_out
        ],
        perhaps_one_job=comparison.unclear,
    )


def _agreement(same: SameLoss | None) -> dict[str, Any] | None:
    """The training loss in the places where it is defined."""
    loss = same.of("loss") if same else None
    if loss is None:
        return None
    names = "steps largest largest_at final final_at undefined"
    return pick(loss, names, steps=loss.places - loss.undefined)


def less_documents(less: Sequence[Less]) -> list[dict[str, Any]]:
    """The kinds of work of which the candidate does less; what has no limit is null."""
    return [pick(one, "kind name baseline candidate") for one in less]


def _side(side: Side) -> dict[str, Any]:
    columns = ("run_id", "name", "release", *(name for name in ANNOTATION_COLUMNS if name in side.runs.columns))
    return pick(side, "asked releases runs", runs=run_documents(side.runs.select(columns)))


def _field(field: Field) -> dict[str, Any]:
    return pick(field, "state baseline candidate allowed")


def _finding(finding: Finding, comparison: Comparison) -> dict[str, Any]:
    unit = finding.metric.unit
    if finding not in comparison.verdicts:
        return pick(finding, "unit runs effect threshold", unit=unit)
    verdict = "" if comparison.refused else "verdict reason reason_code "
    judged = pick(
        finding,
        f"unit runs effect threshold {verdict}p_family odd_runs noise",
        unit=unit,
        reason=sentence(finding),
        reason_code=finding.reason,
        odd_runs=comparison.worse_runs(finding),
        noise=comparison.noises[finding.metric.column],
    )
    return judged | _outliers(finding, comparison)


def _outliers(finding: Finding, comparison: Comparison) -> dict[str, Any]:
    """Outlying runs, the verdict with them, and the finding without them."""
    rest = finding.rest
    outliers = [pick(one, "name side off", name=name) for one, name in comparison.outliers(finding)]
    if rest is None:
        return {"outliers": outliers, "without_outliers": None}
    without = pick(rest, "runs effect verdict reason_code", reason_code=rest.reason)
    return {
        "outliers": outliers,
        "verdict_with_outliers": finding.before or finding.verdict,
        "without_outliers": without,
    }
