"""How far the losses of two sides may be apart: ``loss_mre<=0.02``, a target like those of a run.

Comes in: text, and a SameLoss. Goes out: Requirements, and a Judgement for each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from analysis.compare.same_loss import LossDifference, SameLoss
from analysis.metrics import DISTANCES
from analysis.run.checks.target_verdicts import Judgement
from analysis.run.checks.targets import RequiredFigure, Requirement, gather_requirements
from logparse.findings import Note, info

# Every figure by its name.
FIGURES = {name: RequiredFigure(name, name, metric) for name, metric in DISTANCES.items()}


def gather_tolerances(layers: Iterable[tuple[Sequence[str], str | None]]) -> tuple[Requirement, ...]:
    """What flags and the project file require, each with the file it is from. Raises as ``parse_requirement``."""
    return gather_requirements(layers, FIGURES)


def join_tolerances(strong: Sequence[Requirement], weak: Sequence[Requirement]) -> tuple[Requirement, ...]:
    """Both, but of one figure only what ``strong`` says."""
    names = {tolerance.figure.name for tolerance in strong}
    return (*strong, *(tolerance for tolerance in weak if tolerance.figure.name not in names))


def judge_losses(same: SameLoss, tolerances: Sequence[Requirement]) -> tuple[Judgement, ...]:
    """Hold the losses of two sides against each of ``tolerances``."""
    return tuple(_judge(same, tolerance) for tolerance in tolerances)


def _judge(same: SameLoss, tolerance: Requirement) -> Judgement:
    """A loss that only the candidate has lost is infinitely far away. An unknown figure has its reason."""
    column, _, distance = tolerance.figure.name.rpartition("_")
    difference = same.of(column)
    if difference is None:
        return Judgement(tolerance, None, (info("no_common_value", axis=same.axis),))
    if difference.lost_from is not None:
        return Judgement(tolerance, math.inf, (info("value_lost", axis=same.axis, at=difference.lost_from),))
    value = _value(difference, distance)
    why: tuple[Note, ...] = (info("baseline_is_zero"),) if value is None else ()
    return Judgement(tolerance, value, why)


def _value(difference: LossDifference, distance: str) -> float | None:
    values = {
        "mre": difference.mean_relative,
        "mae": difference.mean_absolute,
        "largest": difference.largest,
    }
    return values[distance]
