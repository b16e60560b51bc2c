"""The JSON document of a comparison: the names users script against. Adding is free, renaming is not."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from analysis.releases.comparable import Field
from analysis.releases.comparison import Comparison, Side
from analysis.releases.verdict import Finding
from logparse.commands._comparison_screen import sentence
from logparse.schema import SCHEMA_VERSION


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """The whole document."""
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": comparison.verdict,
        "threshold": comparison.threshold,
        "baseline": _side(comparison.baseline),
        "candidate": _side(comparison.candidate),
        "comparable": not comparison.refused,
        "fields": {field.name: _field(field) for field in comparison.fields},
        "metrics": {finding.metric.column: _finding(finding, comparison) for finding in comparison.findings},
        "losses": asdict(comparison.losses) if comparison.losses else None,
        "changes": [asdict(change) for change in comparison.changes],
        "noise": asdict(comparison.noise) if comparison.noise else None,
        "left_out": [{"name": name, "reason": reason} for name, reason in comparison.left_out],
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
    told = {"verdict": finding.verdict, "reason": sentence(finding)} if judged else {}
    return {"unit": finding.metric.unit, "runs": list(finding.runs), "effect": effect, **told}
