"""Which of the changes between a good and a bad side made it slower, and which run to do next to find out.

Comes in: the changes between two sides, the times of their runs, and recorded runs that are neither. Goes out: a
Bisection.

The search assumes one single cause. A run that has some candidates as GOOD has them and others as BAD has them is a
trial. If it is as slow as BAD, it excludes those it has as GOOD. If it is as fast as GOOD, it excludes those it has as
BAD. Each run that is asked for halves the remaining candidates. If the same half is like neither side twice, each half
has a cause: then each candidate is tried by itself.
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
Outcome = Literal["no_candidate", "not_apart", "next", "several", "causes", "cause", "contradiction"]
# So many runs with one half of the candidates that are like neither side show that both halves have a cause.
REPEATS = 2
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
        if len(self.remain) > 1:
            if len(self._runs_with(self.half)) < REPEATS:
                return "next"
            return "several" if self.untried else "causes"
        return "cause" if self.remain else "contradiction"

    @property
    def half(self) -> tuple[Change, ...]:
        """Half of the candidates that remain."""
        return self.remain[: len(self.remain) // 2]

    @property
    def other_half(self) -> tuple[Change, ...]:
        """The candidates that remain without ``half``."""
        return self.remain[len(self.half) :]

    @property
    def untried(self) -> tuple[Change, ...]:
        """The remaining candidates that no trial has as BAD by itself."""
        return tuple(change for change in self.remain if not self._runs_with((change,)))

    @property
    def effects(self) -> dict[Change, float]:
        """The relative change by each remaining candidate that trials have as BAD by itself, largest first."""
        logs = {change: [math.log(run.value) for run in self._runs_with((change,))] for change in self.remain}
        means = {change: sum(values) / len(values) for change, values in logs.items() if values}
        ordered = sorted(means.items(), key=lambda one: -one[1] * self.metric.direction)
        return {change: math.expm1(log - self.good.log) for change, log in ordered}

    def _runs_with(self, changes: Sequence[Change]) -> list[OtherRun]:
        """The trials that have just these of the remaining candidates as BAD. None of them excludes one of these."""
        runs = [trial.run for trial in self.trials if trial.placement != "other"]
        return [run for run in runs if {c for c in run.as_bad if c in self.remain} == set(changes)]

    @property
    def to_try(self) -> tuple[Change, ...]:
        """The candidates that the next run has as BAD, all else as GOOD: half of those that remain, or one."""
        if self.outcome == "several":
            return self.untried[:1]
        return self.half if self.outcome == "next" else ()

    @property
    def runs_needed(self) -> int:
        """How many runs are needed at most, if each is as GOOD or as BAD: log2 of the remaining candidates.

        If there are several causes, one for each candidate that was not tried by itself.
        """
        return len(self.untried) if self.outcome == "several" else max(len(self.remain) - 1, 0).bit_length()


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
