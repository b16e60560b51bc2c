"""Which of the changes between a good and a bad side made it slower, and which run to do next to find out.

Comes in: the changes between two sides, the times of their runs, and recorded runs that are neither. Goes out: a
Bisection.

The search assumes one single cause. A run that has some candidates as GOOD has them and others as BAD has them is a
trial. If it is as slow as BAD, it excludes those it has as GOOD. If it is as fast as GOOD, it excludes those it has as
BAD. Each run that is asked for halves the remaining candidates. If the same half is like neither side twice, each half
has a cause: then each candidate is tried by itself. So it is if the only candidate that remains explains a part of the
change, or if none remains. How much a candidate explains follows from all trials together: effects on logarithms add.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from analysis.compare.comparability import Change, Kind
from analysis.compare.side_level import SideLevel, are_apart, levels
from analysis.metrics import Metric
from logparse.errors import UsageError
from logparse.language import tr
from logparse.light_dataclass import dataclass

Placement = Literal["good", "bad", "between", "other"]
Outcome = Literal["no_candidate", "not_apart", "next", "several", "causes", "part", "cause", "contradiction"]
# So many runs with one half of the candidates that are like neither side show that both halves have a cause.
REPEATS = 2
# Numbers closer than this are equal.
CLOSE = 1e-6
# The key of the whole change among the runs.
WHOLE = ""
# What to try first: a setting is a flag of the next run, and the likeliest to be changed unnoticed; a label, such as a
# node, takes a place to run; a version takes an installation.
ORDER: tuple[Kind, ...] = ("setting", "label", "version")


@dataclass(frozen=True)
class OtherRun:
    """A recorded run that is of neither side. ``as_good`` and ``as_bad`` are the candidates it has as GOOD or as BAD.

    ``other_values`` are names of what it has as neither: a third version of a candidate, or another setting.
    """

    run_id: str
    name: str
    release: str | None
    value: float
    as_good: tuple[Change, ...]
    as_bad: tuple[Change, ...]
    other_values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trial:
    """A recorded run with its ``placement``, and the candidates that ``remain`` after it.

    ``placement`` is "between" if the run may be of both sides or of none. It is "other" if something else differs as
    well, which may be the cause. Neither excludes a candidate.
    """

    run: OtherRun
    placement: Placement
    remain: tuple[Change, ...]


@dataclass(frozen=True)
class Share:
    """How much of the change is explained, and the rest. ``reach`` is how far chance may take the rest. Logarithms."""

    explained: float
    rest: float
    reach: float

    @property
    def is_all(self) -> bool:
        """Whether the rest is no more than the noise between runs."""
        return abs(self.rest) <= self.reach


@dataclass(frozen=True)
class Bisection:
    """The possible causes, the evidence of recorded runs, and what to run next.

    ``candidates`` and ``remain`` are in the order of trying; ``one_sided`` are names that only one side prints.
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
        if len(self.remain) > 1 and len(self._runs_with(self.half)) < REPEATS:
            return "next"
        if len(self.remain) == 1:
            share = self._share(self.remain)
            if share is None and len(self.candidates) > 1:
                return "next"
            if share is None or share.is_all:
                return "cause"
        if self.untried:
            return "several" if len(self.remain) > 1 else "part" if self.remain else "contradiction"
        return "causes" if len(self.effects) > 1 else "cause" if self.effects else "contradiction"

    @property
    def half(self) -> tuple[Change, ...]:
        """Half of the candidates that remain."""
        return self.remain[: len(self.remain) // 2]

    @property
    def other_half(self) -> tuple[Change, ...]:
        """The candidates that remain without ``half``."""
        return self.remain[len(self.half) :]

    @property
    def pool(self) -> tuple[Change, ...]:
        """The candidates that are tried by themselves: those that remain, or all if they explain it no longer."""
        return self.remain if len(self.remain) > 1 else self.candidates

    @property
    def untried(self) -> tuple[Change, ...]:
        """The candidates of the pool that no trial has as BAD by itself, those that remain first."""
        ordered = sorted(self.pool, key=lambda change: change not in self.remain)
        return tuple(change for change in ordered if not self._runs_with((change,)))

    @property
    def effects(self) -> dict[Change, float]:
        """The relative change by each candidate of the pool by itself, beyond the noise, largest first."""
        shares = ((change, self._share((change,))) for change in self.pool if change not in self.untried)
        logs = {c: share.explained for c, share in shares if share and abs(share.explained) > self.good.reach}
        ordered = sorted(logs.items(), key=lambda one: -one[1] * self.metric.direction)
        return {change: math.expm1(log) for change, log in ordered}

    @property
    def named(self) -> tuple[Change, ...]:
        """The candidates that are named as causes."""
        if self.outcome not in ("cause", "causes", "part"):
            return ()
        return self.remain if len(self.remain) == 1 and self.untried else tuple(self.effects) or self.remain

    @property
    def share(self) -> Share | None:
        """How much of the change the named candidates explain; None if no trial shows it."""
        return self._share(self.named) if self.named else None

    def _share(self, changes: Sequence[Change]) -> Share | None:
        """How much ``changes`` explain: a sum of runs, each over the good side. None if no trial shows it."""
        weights: dict[str, float] = {}
        for change in changes:
            of_change = self._weights(change)
            if of_change is None:
                return None
            weights = {key: weights.get(key, 0.0) + of_change.get(key, 0.0) for key in weights | of_change}
        whole, of_bad = self.bad.log - self.good.log, weights.pop(WHOLE, 0.0)
        logs = {trial.run.run_id: math.log(trial.run.value) - self.good.log for trial in self.trials}
        explained = sum(weight * logs[run_id] for run_id, weight in weights.items()) + of_bad * whole
        of_good = 1 - of_bad - sum(weights.values())
        of_runs = sum(weight**2 for weight in weights.values())
        variance = of_runs + (1 - of_bad) ** 2 / self.bad.runs + of_good**2 / self.good.runs
        reach = self.good.reach * math.sqrt(variance / (1 + 1 / self.good.runs))
        return Share(explained, whole - explained, reach)

    def _weights(self, change: Change) -> dict[str, float] | None:
        """The weights of runs whose sum is the effect of ``change``, and of the bad side as WHOLE.

        They are the runs with it alone as BAD, else those of the least squares over all trials. None if these do not
        separate it from other candidates.
        """
        if alone := self._runs_with((change,)):
            return {run.run_id: 1 / len(alone) for run in alone}
        import numpy as np

        number = len(self.candidates)
        runs = [trial.run for trial in self.trials if trial.placement != "other"]
        runs = [run for run in runs if len(run.as_good) + len(run.as_bad) == number]
        if not runs:
            return None
        rows = np.array([[c in run.as_bad for c in self.candidates] for run in runs] + [[True] * number], np.float64)
        wanted = np.eye(number)[self.candidates.index(change)]
        weights = wanted @ np.linalg.pinv(rows)
        if np.abs(weights @ rows - wanted).max() > CLOSE:
            return None
        return dict(zip([*(run.run_id for run in runs), WHOLE], weights.tolist(), strict=True))

    def _runs_with(self, changes: Sequence[Change]) -> list[OtherRun]:
        """The trials that have just these candidates of the pool as BAD. None of them excludes one of these."""
        runs = [trial.run for trial in self.trials if trial.placement != "other"]
        return [run for run in runs if {c for c in run.as_bad if c in self.pool} == set(changes)]

    @property
    def to_try(self) -> tuple[Change, ...]:
        """The candidates that the next run has as BAD, all else as GOOD: half of those that remain, or one."""
        if self.outcome == "next":
            return self.half or self.remain
        return self.untried[:1] if self.outcome in ("several", "part", "contradiction") else ()

    @property
    def runs_needed(self) -> int:
        """How many runs are needed at most, if each is as GOOD or as BAD: log2 of the remaining candidates.

        If there are several causes, one for each candidate that was not tried by itself.
        """
        if self.outcome == "next":
            return max(len(self.remain) - 1, 1).bit_length()
        return len(self.untried) if self.outcome in ("several", "part", "contradiction") else 0


def make_plan(
    metric: Metric,
    job: str,
    changes: Sequence[Change],
    sides: tuple[Sequence[float], Sequence[float]],
    recorded: Sequence[OtherRun],
) -> Bisection:
    """The plan for the values of the good and of the bad side, in the light of what is recorded.

    Raises UsageError if the sides have too few runs to show how far runs are apart, or if BAD is better than GOOD.
    """
    good, bad = levels(*sides)
    if (bad.log - good.log) * metric.direction < 0 and are_apart(good, bad):
        values = f"{metric.text(good.value)} {metric.shown_unit}", f"{metric.text(bad.value)} {metric.shown_unit}"
        raise UsageError(
            tr("the bad side ({bad}) is better than the good side ({good})", good=values[0], bad=values[1]),
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
        placement = _placement(run, good, bad)
        if placement in ("good", "bad"):
            excluded = run.as_bad if placement == "good" else run.as_good
            remain = tuple(change for change in remain if change not in excluded)
        trials.append(Trial(run, placement, remain))
    return trials


def _placement(run: OtherRun, good: SideLevel, bad: SideLevel) -> Placement:
    if run.other_values:
        return "other"
    log = math.log(run.value)
    if abs(log - good.log) <= good.near and not bad.holds(log):
        return "good"
    return "bad" if abs(log - bad.log) <= bad.near and not good.holds(log) else "between"
