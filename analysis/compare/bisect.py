"""Which of the changes between a good and a bad side made it slower, and which run to do next to find out.

Comes in: the changes between two sides, the times of their runs, and recorded runs that are neither. Goes out: a
Bisection.

One single change is taken for the cause. A run that has some candidates as GOOD has them and others as BAD has them is
a trial: where it is as slow as BAD the cause is none of those it has as GOOD, where it is as fast as GOOD none of those
it has as BAD. Each run that is asked for halves what remains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from analysis.compare.comparability import Change, Kind
from analysis.compare.side_level import SideLevel, are_apart, levels
from analysis.metrics import Metric
from logparse.errors import UsageError
from logparse.language import tr

Stands = Literal["good", "bad", "between", "other"]
Outcome = Literal["no_candidate", "not_apart", "next", "cause", "contradiction"]
# What to try first: a setting is a flag of the next run, and the likeliest to be changed unnoticed; a label, such as a
# node, takes a place to run; a version takes an installation.
ORDER: tuple[Kind, ...] = ("setting", "label", "version")


@dataclass(frozen=True)
class OtherRun:
    """A recorded run that is of neither side. ``as_good`` and ``as_bad`` are the candidates it has as GOOD or as BAD.

    ``beside`` are names of what it has as neither: a third version of a candidate, or another setting.
    """

    run_id: str
    name: str
    release: str | None
    value: float
    as_good: tuple[Change, ...]
    as_bad: tuple[Change, ...]
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trial:
    """A recorded run with where it stands, and the candidates that ``remain`` after it.

    ``stands`` is "between" where it may be of both sides or of none, and "other" where something else differs as well,
    which may be why: neither excludes anything.
    """

    run: OtherRun
    stands: Stands
    remain: tuple[Change, ...]


@dataclass(frozen=True)
class Bisection:
    """What may be the cause, what recorded runs say of it, and what to run next.

    ``candidates`` and ``remain`` are in the order of trying; ``one_sided`` are names that only one side tells.
    """

    metric: Metric
    job: str
    good: SideLevel
    bad: SideLevel
    candidates: tuple[Change, ...]
    trials: tuple[Trial, ...]
    one_sided: tuple[str, ...] = ()

    @property
    def remain(self) -> tuple[Change, ...]:
        """The candidates that no trial excludes."""
        return self.trials[-1].remain if self.trials else self.candidates

    @property
    def effect(self) -> float:
        """Relative change from the good side to the bad one."""
        return math.expm1(self.bad.log - self.good.log)

    @property
    def outcome(self) -> Outcome:
        """What is known by now."""
        if not self.candidates:
            return "no_candidate"
        if not are_apart(self.good, self.bad):
            return "not_apart"
        if len(self.remain) > 1:
            return "next"
        return "cause" if self.remain else "contradiction"

    @property
    def to_try(self) -> tuple[Change, ...]:
        """The candidates that the next run has as BAD, all else as GOOD: half of those that remain."""
        return self.remain[: len(self.remain) // 2] if self.outcome == "next" else ()

    @property
    def runs_needed(self) -> int:
        """How many runs are needed at most, if each can be told: the logarithm of those that remain, by 2."""
        return max(len(self.remain) - 1, 0).bit_length()


def make_plan(
    metric: Metric,
    job: str,
    changes: Sequence[Change],
    sides: tuple[Sequence[float], Sequence[float]],
    recorded: Sequence[OtherRun],
) -> Bisection:
    """The plan for the values of the good and of the bad side, in the light of what is recorded.

    Raises UsageError where the sides have too few runs to tell how far runs are apart, or BAD is better than GOOD.
    """
    good, bad = levels(*sides)
    if (bad.log - good.log) * metric.direction < 0 and are_apart(good, bad):
        values = f"{metric.text(good.value)} {metric.shown_unit}", f"{metric.text(bad.value)} {metric.shown_unit}"
        raise UsageError(
            tr("the bad side is better than the good one: {bad} after {good}", good=values[0], bad=values[1]),
            remedy=tr("give the good side first"),
        )
    candidates = sorted((c for c in changes if c.is_candidate), key=lambda change: ORDER.index(change.kind))
    trials = _judged(candidates, recorded, good, bad)
    one_sided = tuple(change.name for change in changes if change.one_sided)
    return Bisection(metric, job, good, bad, tuple(candidates), tuple(trials), one_sided)


def _judged(candidates: Sequence[Change], recorded: Sequence[OtherRun], good: SideLevel, bad: SideLevel) -> list[Trial]:
    """The trials in the order they are given, each with what remains after it."""
    remain, trials = tuple(candidates), []
    for run in recorded:
        stands = _stands(run, good, bad)
        if stands in ("good", "bad"):
            excluded = run.as_bad if stands == "good" else run.as_good
            remain = tuple(change for change in remain if change not in excluded)
        trials.append(Trial(run, stands, remain))
    return trials


def _stands(run: OtherRun, good: SideLevel, bad: SideLevel) -> Stands:
    if run.beside:
        return "other"
    log = math.log(run.value)
    if abs(log - good.log) <= good.near and not bad.holds(log):
        return "good"
    return "bad" if abs(log - bad.log) <= bad.near and not good.holds(log) else "between"
