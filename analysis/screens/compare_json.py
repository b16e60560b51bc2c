"""The JSON document of a comparison: the names users script against. Adding is free, renaming is not."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from analysis.compare.comparable import Field
from analysis.compare.comparison import Comparison, LossAgreement, Side
from analysis.compare.verdict import Finding
from analysis.screens.compare import sentence
from logparse.schema import SCHEMA_VERSION


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """The whole document."""
    losses = comparison.losses
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": comparison.verdict,
        "threshold": comparison.threshold,
        "baseline": _side(comparison.baseline),
        "candidate": _side(comparison.candidate),
        "comparable": not comparison.refused,
        "fields": {field.name: _field(field) for field in comparison.fields},
        "metrics": {finding.metric.column: _finding(finding, comparison) for finding in comparison.findings},
        "losses": asdict(losses) if isinstance(losses, LossAgreement) else None,
        "losses_reason": losses if isinstance(losses, str) else None,
        "losses_not_finite": {
            side: asdict(lost) if lost else None
            for side, lost in zip(("baseline", "candidate"), comparison.lost, strict=True)
        },
        "changes": [asdict(change) for change in comparison.changes if not change.one_sided],
        "told_by_one_side": [asdict(change) for change in comparison.changes if change.one_sided],
        "noise": _noise(comparison, comparison.judged[0]),
        "left_out": [{"name": name, "reason": reason} for name, reason in comparison.left_out],
        "perhaps_one_job": [list(names) for names in comparison.unclear],
    }


def _side(side: Side) -> dict[str, Any]:
    shown = side.runs.select("run_id", "name", "release").to_dicts()
    return {"asked": side.asked, "releases": side.releases, "runs": shown}


def _field(field: Field) -> dict[str, Any]:
    sides = {"baseline": list(field.baseline), "candidate": list(field.candidate)}
    return {"state": field.state, **sides, "allowed": field.allowed}


def _finding(finding: Finding, comparison: Comparison) -> dict[str, Any]:
    effect = asdict(finding.effect) if finding.effect else None
    judged = finding in comparison.verdicts and not comparison.refused
    told: dict[str, Any] = {"verdict": finding.verdict, "reason": sentence(finding)} if judged else {}
    if finding in comparison.verdicts:
        told |= {"odd_runs": comparison.odd(finding), "noise": _noise(comparison, finding.metric.column)}
    return {"unit": finding.metric.unit, "runs": list(finding.runs), "effect": effect, **told}


def _noise(comparison: Comparison, column: str) -> dict[str, Any] | None:
    noise = comparison.noises[column]
    return asdict(noise) if noise else None
