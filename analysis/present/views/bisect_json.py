"""The JSON document of a bisection: the names users script against. Adding is free, renaming is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analysis.compare.bisect import Bisection, Trial
from analysis.compare.comparability import Change
from analysis.compare.side_level import SideLevel
from logparse.schema import SCHEMA_VERSION


def document(plan: Bisection) -> dict[str, Any]:
    """The whole document; it holds no sentence."""
    return {
        "schema_version": SCHEMA_VERSION,
        "job": plan.job,
        "metric": plan.metric.column,
        "unit": plan.metric.unit,
        "outcome": plan.outcome,
        "good": _level(plan.good),
        "bad": _level(plan.bad),
        "effect": plan.effect,
        "candidates": [{**_change(c), "remains": c in plan.remain} for c in plan.candidates],
        "trials": [_trial(trial, plan) for trial in plan.trials],
        "next": [{"kind": c.kind, "name": c.name, "value": c.candidate[0]} for c in plan.to_try],
        "runs_needed": plan.runs_needed,
        "only_one_side_tells": list(plan.one_sided),
    }


def _level(level: SideLevel) -> dict[str, Any]:
    return {"value": level.value, "reach": level.reach, "near": level.near, "runs": level.runs}


def _change(change: Change) -> dict[str, str]:
    return {"kind": change.kind, "name": change.name, "good": change.baseline[0], "bad": change.candidate[0]}


def _trial(trial: Trial, plan: Bisection) -> dict[str, Any]:
    run = trial.run
    return {
        "run_id": run.run_id,
        "name": run.name,
        "release": run.release,
        "value": run.value,
        "change": run.value / plan.good.value - 1,
        "stands": trial.placement,
        "as_good": _names(run.as_good),
        "as_bad": _names(run.as_bad),
        "beside": list(run.other_values),
        "remain": _names(trial.remain),
    }


def _names(changes: Sequence[Change]) -> list[str]:
    return [change.name for change in changes]
