"""One run against those before it: what a night should bring, and whether one that is off is confirmed by the next.

Comes in: positive numbers, one per run in the order of time. Goes out: a Night for each. All work is on logarithms.

The runs before give a level and a spread that a few runs that are off do not move (winsorized, Tukey 1962), and
Student's t the distance that a further run of the same kind stays within. A run beyond it is off: one night, which
proves nothing. Runs in a row that are away to the same side, beyond a nearer bound, are judged together. The last
nights of the row confirm a change where chance does not take their mean so far; three of them need less proof where
accidents are so rare that three in a row are none. Each night brings its share of that evidence: much if it is nearer
to the others than to the level, else less than none. The share has a limit, as an accident is enough for any one night:
the limit is low where runs before were half as far away. A night of another size than the others is an accident, and
brings none.
Runs that are away join the level only when a night within it shows that they were nights alone. A level that is
confirmed to be better is the new one after FEWEST nights; one that is worse never is, unless somebody accepts it. A
change stays open until as many nights show that it ended (Page, Biometrika 41, 1954), or one, if it is young; no night
before that joins the level.

Noise may last for several nights. Thirty runs show the correlation of neighbours poorly, and a guess costs a fifth of
the findings: only as much as is certain counts. Where the noise hides a change of MOST_DETECTABLE, the series is
unstable: nights below what it can detect are no part of a change. benchmarks/nights_of_eight_jobs.py counts the false
alarms.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from operator import mul
from statistics import median, median_low
from typing import Literal

from analysis.stats.incomplete_beta import t_quantile, t_tail

# learning: too few runs before it. accepted: confirmed, and a user accepted it. cleared: a confirmed change ended.
# drifted: as expected, but the newest runs are worse than the oldest of the level.
State = Literal["learning", "expected", "off", "confirmed", "accepted", "cleared", "drifted"]
# Chance of a run to be off to one side, or away, and of the mean of those in a row to be as far, in runs of one level.
OFF, AWAY, CONFIRMED = 0.007, 0.16, 0.0001
# Three nights that are worse may be likelier by chance, as many times as three accidents in a row are rarer than
# RARE_ROW, and at most MOST_LASTING times: benchmarks/nights_of_eight_jobs.py.
THIRD, RARE_ROW, MOST_LASTING = 3, 0.0032, 36.0
# Noise may bring a night of a change below the smallest change: one that reaches this share of it is nearly away.
NEARLY = 0.85
# Some noise has long tails, such as one pause in a short run. Where earlier nights were off, a change needs so many in
# a row that they are off by accident with this chance. Three of one size are so less often than that says, as most
# accidents last a night or two: the chance OF_THREE suffices, if MATURE runs show how often there is one. Where one
# night suffices, SEEN of them must have been.
BY_ACCIDENT, OF_THREE, SEEN, MATURE = 0.002, 0.03, 2, 20
# Nights of one change are within so many spreads of the one in the middle, or such a share of its distance: others are
# accidents, and no evidence. Where these are no more than the share CALM, the bound is wider.
OF_ONE_SIZE, OF_ONE_SIZE_CALM, CALM, SHARE_OF_SIZE = 2.0, 3.2, 0.06, 0.25
# A job is given as many accidents as those it had do not exclude (86 of 100, a quantile), in so many nights more: few
# nights do not show how often it has any.
NOT_EXCLUDED, OF_NIGHTS = 1.1, 25.0
# The share of accidents in a row with a night on which most jobs of a cluster are slow.
TOGETHER = 0.1
# The chance that nights of a change seem to show its end. Until it is FEWEST nights old one night suffices, and less
# proof: most false alarms end on the next night.
ENDED, ENDED_YOUNG = 0.03, 0.2
# A series is unstable that shows a change of this size in fewer than 80 of 100 cases (a quantile) by the third night.
MOST_DETECTABLE, Z_POWER = 0.05, 0.8416
# Of the correlation of neighbours so many standard errors less are certain; of fewer runs nothing.
CERTAIN, FEWEST_TO_CORRELATE, MOST_CORRELATION = 1.6449, 10, 0.9
# Nights of one change are at most so many times as far away as the one in the middle.
CONSISTENT = 2.0
# So many of the newest runs are compared with the oldest of their level, which shows a drift of at least so much. The
# threshold is higher than that of a night: levels of runs wander a little.
# Drift that was found ends below LEAST_DRIFT over STILL.
RECENT, LEAST_DRIFT, STILL = 10, 0.008, 2.0
# The standard error of a median in that of a mean.
OF_MEDIAN = 1.2533
# Fewer runs show no spread.
FEWEST = 5
# The newest runs of a level that give the expectation, and the nights that confirm.
KEPT, CONFIRM = 30, 2
# A smaller change is not reported, however certain.
LEAST_CHANGE = 0.005
# Deviations beyond which a run is taken for one at this distance: those by the median, then those of the runs left.
# Of a normal distribution half lie within 1 / 1.4826 deviations, and of few runs a little less (Croux, Rousseeuw 1992:
# n / (n - 0.8)).
WINSORIZED, TO_DEVIATIONS, FEW = (3.5, 2.5), 1.4826, 0.8
# Logarithms closer than this are equal, and no p is less. A mean that is nearer, in errors, is no evidence.
LEAST, LEAST_P, FAR = 1e-9, 1e-300, 2.0


@dataclass(frozen=True)
class Expectation:
    """The expectation for the next run: ``level`` and ``spread`` of the logarithms of so many ``runs``.

    Only the last ``own`` of them give the level where they are fewer: it is a new one. ``correlation`` is that of
    neighbours.
    """

    level: float
    spread: float
    runs: int
    own: int
    correlation: float = 0.0

    def reach(self, p: float, nights: int = 1) -> float:
        """The distance from the level that the mean of so many nights exceeds to one side with the chance ``p``."""
        return _quantile(self.runs - 1, 1 - p) * self._error(nights)

    def p(self, distance: float, nights: int = 1) -> float:
        """The chance of their mean to be so far above the level."""
        return t_tail(self.runs - 1, distance / self._error(nights))

    def detectable(self, chance: float) -> float:
        """The distance that runs in a row show by the third night in 80 of 100 cases."""
        return self.reach(chance, THIRD) + Z_POWER * self._error(THIRD)

    def evidence(self, distances: Sequence[float], most: float, spreads: float) -> float:
        """Minus the logarithm of ``p`` of their mean, to which each of ``distances`` adds at most ``most``.

        Each adds as much as it is more likely at their mean than at the level, and nothing if it is more than
        so many ``spreads`` from the one in the middle. All are positive.
        """
        nights, mean, middle = len(distances), _mean(distances), median(distances)
        unit = -math.log(max(self.p(mean, nights), LEAST_P)) / (nights * mean**2 / 2)
        apart = max(spreads * max(self.spread, LEAST), SHARE_OF_SIZE * middle)
        return math.fsum(
            min(unit * mean * (one - mean / 2), most if abs(one - middle) <= apart else 0.0) for one in distances
        )

    def is_far(self, distance: float, nights: int) -> bool:
        """Whether the mean of so many nights may be evidence at all."""
        return distance > FAR * self._error(nights)

    def _error(self, nights: int) -> float:
        """The standard deviation of the mean of so many nights minus the level."""
        by, own = self.correlation, self.own
        of_mean = 1 + 2 * sum((1 - lag / nights) * by**lag for lag in range(1, nights)) if by else 1.0
        return max(self.spread, LEAST) * math.sqrt(of_mean / nights + (1 + by) / (1 - by) / own)


@cache
def _quantile(freedom: int, p: float) -> float:
    """That of Student's t: nights ask for the same ones again and again."""
    return t_quantile(freedom, p)


def expect(logs: Sequence[float], own: int | None = None) -> Expectation:
    """The expectation of at least two logarithms; the last ``own`` of them give the level, all of them the spread."""
    values = list(logs)
    if own is not None and own < len(values):
        # Of a new level its few runs alone; what they differ by is as before.
        by = median(values[-own:]) - median(values[:-own])
        values[:-own] = [value + by for value in values[:-own]]
    runs, middle = len(values), median(values)
    spread = median([abs(value - middle) for value in values]) * TO_DEVIATIONS * runs / (runs - FEW)
    mean, distances, squares = _moments(values)
    # The median distance of few runs is a poor spread: it bounds the runs for a better one, which bounds them again.
    for most in WINSORIZED if spread > 0 else ():
        low, high = middle - most * spread, middle + most * spread
        if min(values) < low or max(values) > high:
            values = [low if value < low else high if value > high else value for value in values]
            mean, distances, squares = _moments(values)
        middle, spread = mean, math.sqrt(squares / (runs - 1))
    level = mean if own is None else _mean(values[-own:])
    correlation = _certain_correlation(distances, squares)
    return Expectation(level, math.sqrt(squares / (runs - 1)), runs, min(own or runs, runs), correlation)


def _moments(values: Sequence[float]) -> tuple[float, list[float], float]:
    """The mean, the distances from it, and the sum of their squares."""
    mean = _mean(values)
    distances = [value - mean for value in values]
    return mean, distances, math.fsum(map(mul, distances, distances))


# A series is watched several times, and many a metric is the same on all nights.
_expect = lru_cache(2048)(expect)


def _certain_correlation(distances: Sequence[float], squares: float) -> float:
    """The correlation of neighbours that is certain, in 95 of 100 cases; 0 for none.

    ``distances`` from the mean are in the order of time; ``squares`` is the sum of theirs.
    """
    runs = len(distances)
    if runs < FEWEST_TO_CORRELATE or squares <= runs * LEAST**2:
        return 0.0
    raw = math.fsum(map(mul, distances, distances[1:])) / squares
    # The mean is of the same runs (Marriott, Pope, Biometrika 1954).
    known = max(-MOST_CORRELATION, min(raw + (1 + 4 * raw) / runs, MOST_CORRELATION))
    return max(0.0, known - CERTAIN * math.sqrt((1 - known**2) / runs))


@dataclass(frozen=True)
class Night:
    """A run against the runs before it. ``level``, ``low`` and ``high`` are its expectation.

    ``change`` is the relative distance from the level: of the mean of the ``nights`` that are off in a row, or of the
    run itself. ``own_change`` is always that of the run itself. ``p`` is the chance of ``change``, to its own side, in
    runs of one level, times the numbers of nights that were tried. ``runs`` are the number of runs in the expectation.
    Numbers are None if these are too few. ``detectable`` is the change that the noise lets be seen by the third night.
    ``confirmed_for`` counts the runs since a change or drift was found, with that one. ``drift`` is
    the relative change from the oldest runs of the level to the newest.
    """

    state: State
    runs: int
    level: float | None = None
    low: float | None = None
    high: float | None = None
    change: float | None = None
    p: float | None = None
    nights: int = 0
    own_change: float | None = None
    confirmed_for: int = 0
    drift: float | None = None
    detectable: float | None = None

    @property
    def is_unstable(self) -> bool:
        """Whether the noise hides a change that matters: smaller ones than ``detectable`` are no alarm."""
        return self.detectable is not None and self.detectable > MOST_DETECTABLE


def watch(
    values: Sequence[float],
    worse: Literal[1, -1],
    least: float = LEAST_CHANGE,
    confirm: int = CONFIRM,
    kept: int = KEPT,
    fixed: int = 0,
    blocks: Sequence[Hashable] | None = None,
    accepted: Collection[int] = (),
    accident: float = 0.0,
    chance: float = CONFIRMED,
    away: float = AWAY,
    nights: Sequence[Hashable] | None = None,
    together: Collection[Hashable] = (),
) -> list[Night]:
    """A Night for each of ``values``, positive numbers in the order of time.

    ``worse`` is 1 where more is worse. A change below ``least`` is none. The newest ``kept`` runs of the level give the
    expectation; if ``fixed`` is set, only the first ``fixed`` runs, the baseline, do. Runs of one of ``blocks``, such
    as a node, are compared with those of the same block. ``accepted`` are places of runs whose change is accepted: from
    there on it is the level. At least the share ``accident`` of runs is taken to be off by accident. A change that
    ``chance`` explains with a higher probability is not confirmed; a run that ``away`` explains so is no part of one.
    ``nights`` says which runs are of one night: they share its accidents. On nights ``together`` most jobs are slow.
    """
    watcher = _Watcher(worse, least, confirm, kept, fixed, accident, chance, away, together)
    placed = enumerate(zip(values, blocks or [None] * len(values), nights or range(len(values)), strict=True))
    return [
        watcher.see(math.log(value), block, place, place in accepted, night) for place, (value, block, night) in placed
    ]


@dataclass(frozen=True)
class _Seen:
    """A run that was seen: its logarithm, block and night, its distance from the level, and whether that is away.

    One that ``is_near`` counts as away, but is so only nearly.
    """

    log: float
    block: Hashable
    night: Hashable
    distance: float
    is_away: bool
    is_near: bool = False


@dataclass
class _Watcher:
    """Judges run after run. ``levels`` are logarithms by block; ``away`` the runs since the first that is away.

    ``confirmed_for`` counts runs since the change was confirmed, with that one; ``known_from`` is accepted. After
    ``last_away`` runs none is away. The last ``back`` runs are evidence for the level before; ``evidence`` is the
    logarithm of their likelihood ratio. ``origins`` are the places of the oldest runs of each level that drift is
    measured from; ``drifting`` counts runs since it was found.
    ``own`` are the numbers of runs of a new level, by block; what is before them are shifted runs of the level before.
    ``ended`` are the distances of the runs of changes that ended: they were accidents.
    """

    worse: int
    least: float
    confirm: int
    kept: int
    fixed: int
    accident: float = 0.0
    chance: float = CONFIRMED
    bound: float = AWAY
    together: Collection[Hashable] = ()
    levels: dict[Hashable, list[float]] = field(default_factory=dict)
    away: list[_Seen] = field(default_factory=list)
    confirmed_for: int = 0
    known_from: int | None = None
    last_away: int = 0
    back: int = 0
    evidence: float = 0.0
    origins: dict[Hashable, int] = field(default_factory=dict)
    drifting: int = 0
    own: dict[Hashable, int] = field(default_factory=dict)
    ended: list[float] = field(default_factory=list)

    def see(self, log: float, block: Hashable, place: int, known: bool, of_night: Hashable) -> Night:
        """The next run, whose change is accepted if it is ``known``."""
        night = self._judged(log, block, place, known, of_night)
        return night if self.confirmed_for or night.state not in ("expected", "off") else self._drifted(night, block)

    def _judged(self, log: float, block: Hashable, place: int, known: bool, of_night: Hashable) -> Night:
        level = self.levels.setdefault(block, [])
        if len(level) < FEWEST or place < self.fixed:
            level.append(log)
            return Night("learning", len(level) - 1)
        before = level if self.fixed else level[-self.kept :]
        expectation = _expect(tuple(before), self.own.get(block))
        distance = log - expectation.level
        near, bound = self._bounds(expectation)
        run = _Seen(log, block, of_night, distance, abs(distance) > bound)
        if self.confirmed_for:
            return self._while_open(run, expectation, known)
        if near < abs(distance) <= bound:
            run = replace(run, is_away=True, is_near=True)
        self._leave_near(run)
        if self.away and not self._continues(run):
            self._end()
        if not run.is_away:
            self._keep(run)
            if known:
                self.origins[block] = len(level) - 1
            return self._night(expectation, "expected", [distance])
        self._add(run, known)
        return self._sequence(run, expectation)

    def _bounds(self, expectation: Expectation) -> tuple[float, float]:
        """The distances beyond which a run is nearly away, and away; one distance in an unstable series."""
        least, reach = self._least_of(expectation), expectation.reach(self.bound)
        share = NEARLY if least <= math.log1p(self.least) else 1.0
        return max(reach, share * least), max(reach, least)

    def _leave_near(self, run: _Seen) -> None:
        """Let runs that are nearly away be runs of the level after THIRD nights: slow drift is no change."""
        if any(one.is_near for one in self.away):
            nights = list(dict.fromkeys(one.night for one in (*self.away, run)))
            old = [at for at, one in enumerate(self.away) if one.is_near and one.night in nights[:-THIRD]]
            self._cut(old[-1] + 1 if old else 0)

    def _least_of(self, expectation: Expectation) -> float:
        """The smallest change: one that matters, and that the noise of an unstable series lets be seen."""
        least, detectable = math.log1p(self.least), expectation.detectable(self.chance)
        return max(least, detectable) if detectable > math.log1p(MOST_DETECTABLE) else least

    def _continues(self, run: _Seen) -> bool:
        """Whether a run may be of the same change as those that are away."""
        return run.is_away and run.distance * self.away[0].distance > 0

    def _add(self, run: _Seen, known: bool) -> None:
        self.away.append(run)
        if known and self.known_from is None:
            self.known_from = len(self.away) - 1

    def _sequence(self, run: _Seen, expectation: Expectation) -> Night:
        """The newest of the runs that are away, and what is made of them."""
        distances = [away.distance for away in self.away]
        has_start = self.known_from is not None and not self._is_better
        if runs := self._confirming(expectation):
            self._cut(len(distances) - runs)
            return self._confirm(self._night(expectation, "off", distances[-runs:]), has_start)
        if has_start:
            return self._night(expectation, "accepted", distances)
        if self._is_off(run, expectation):
            since = next(at for at, away in enumerate(self.away) if self._is_off(away, expectation))
            return replace(self._night(expectation, "off", distances[since:]), nights=len(distances) - since)
        return replace(self._night(expectation, "expected", [run.distance]), nights=0)

    def _confirming(self, expectation: Expectation) -> int:
        """How many of the last runs that are away confirm a change, as few as suffice; 0 if they do not.

        Of more runs than give an expectation, those of whole nights.
        """
        nights, least = 0, self._least_of(expectation)
        for runs, run in enumerate(reversed(self.away), 1):
            before = self.away[-runs - 1].night if runs < len(self.away) else None
            nights += runs == 1 or run.night != self.away[1 - runs].night
            if nights < self.confirm or (runs > self.kept and run.night == before):
                continue
            distances = _consistent([abs(away.distance) for away in self.away[-runs:]])
            mean = _mean(distances)
            if mean < least or not expectation.is_far(mean, runs):
                continue
            rate = self._accidents(expectation, mean, runs)
            needed = self._needed(rate, self.away[-runs:], expectation)
            if nights > max(THIRD, self.confirm, math.ceil(needed)):
                break
            lasting = lasting_of(rate) if nights >= THIRD and not self._is_better else 1.0
            wanted = -math.log(self.chance * lasting)
            most = wanted * nights / needed / runs
            if nights >= needed and expectation.evidence(distances, most, of_one_size(rate)) >= wanted:
                return runs
        return 0

    def _cut(self, runs: int) -> None:
        """Let the first ``runs`` that are away be runs of the level: the change began after them."""
        for run in self.away[:runs]:
            self._keep(run)
        del self.away[:runs]
        if self.known_from is not None:
            self.known_from = max(0, self.known_from - runs)

    def _confirm(self, night: Night, known: bool) -> Night:
        """The night of a confirmed change, which is the new level if it is accepted, or better than what follows."""
        if not self.confirmed_for:
            self.last_away = len(self.away)
        self.confirmed_for += 1
        night = replace(night, state="accepted" if known else "confirmed", confirmed_for=self.confirmed_for)
        adopted = self._is_better and not self.fixed and not self.back and len(self.away) >= FEWEST
        if known or adopted:
            self._restart()
        return night

    def _is_off(self, run: _Seen, expectation: Expectation) -> bool:
        return run.is_away and abs(run.distance) > max(expectation.reach(OFF), self._least_of(expectation))

    def _while_open(self, run: _Seen, expectation: Expectation, known: bool) -> Night:
        """A run after a confirmed change, which stays open until as much shows that it ended as showed that it began.

        The test compares the level before with that of the change.
        """
        # Nights between that were not away are left out: they would make the change so small that nothing ends it.
        change = median(away.distance for away in self.away[: self.last_away] if away.is_away)
        self._add(run, known)
        gain = change * (change / 2 - run.distance) / max(expectation.spread, LEAST) ** 2
        self.evidence = max(0.0, self.evidence + gain)
        self.back = self.back + 1 if self.evidence else 0
        if self._is_off(run, expectation) and run.distance * change > 0:
            self.last_away, self.back, self.evidence = len(self.away), 0, 0.0
        is_young = self.last_away <= FEWEST
        wanted = -math.log(ENDED_YOUNG if is_young else ENDED)
        if self.evidence >= wanted and (is_young or self.back >= self.confirm):
            return self._clear()
        better = self._is_better and not self.fixed
        changed = [away.distance for away in self.away[: len(self.away) - self.back]]
        night = replace(self._night(expectation, "confirmed", changed), own_change=math.expm1(run.distance))
        confirmed = self._confirm(night, self.known_from is not None and not better)
        return self._as_new_level(run, expectation, change) if better else confirmed

    def _as_new_level(self, run: _Seen, expectation: Expectation, change: float) -> Night:
        """A run after a better level was reported, which is the expectation although it is not adopted yet."""
        new = replace(expectation, level=expectation.level + change)
        distance = run.distance - change
        is_off = abs(distance) > max(new.reach(OFF), math.log1p(self.least))
        return replace(self._night(new, "off" if is_off else "expected", [distance]), nights=int(is_off))

    def _clear(self) -> Night:
        """End an open change: the runs that ended it are runs of the level, those since its beginning are not."""
        back = self.away[-self.back :]
        self.ended += [run.distance for run in self.away[: -self.back]]
        self._forget()
        night = [self.see(run.log, run.block, self.fixed, known=False, of_night=run.night) for run in back][-1]
        return replace(night, state="cleared") if night.state == "expected" else night

    def _accidents(self, expectation: Expectation, distance: float, runs: int) -> float:
        """The share of nights that are off by accident, by how often those before the last ``runs`` were half as far.

        0 where too few were seen to ask for more than one night.
        """
        row, last = self.away[:-runs], self.away[-runs:]
        half = 0.0 if self.accident else distance / 2
        least, side = max(expectation.reach(OFF), half), math.copysign(1, last[0].distance)
        level = (log - expectation.level for log in self.levels[last[-1].block])
        every = [*level, *(run.distance for run in row), *self.ended]
        far = sum(side * one >= least for one in every)
        if self.confirm == 1 and far < SEEN:
            return 0.0
        return max(most_accidents(far) / (len(every) + OF_NIGHTS), self.accident)

    def _needed(self, accidents: float, last: Sequence[_Seen], expectation: Expectation) -> float:
        """The nights in a row that are no accident, where such a share of nights are."""
        if not accidents:
            return 1.0
        rate = max(accidents, TOGETHER if any(run.night in self.together for run in last) else 0.0)
        few = expectation.runs < MATURE or len({run.night for run in last}) < THIRD
        chance = BY_ACCIDENT if few or self.accident else OF_THREE
        return math.log(chance) / math.log(rate)

    @property
    def _is_better(self) -> bool:
        return _mean([run.distance for run in self.away]) * self.worse < 0

    def _drifted(self, night: Night, block: Hashable) -> Night:
        """``night``, or the night of a slow drift: the newest runs against the oldest since the level was accepted."""
        level = self.levels[block][self.origins.get(block, 0) :]
        if self.fixed or len(level) < self.kept + RECENT:
            return night
        by = median(level[-RECENT:]) - median(level[: self.kept])
        least = math.log1p(max(self.least, LEAST_DRIFT)) / (STILL if self.drifting else 1.0)
        if by * self.worse < least or not (self.drifting or self._is_drift(by, level)):
            self.drifting = 0
            return night
        self.drifting += 1
        return replace(night, state="drifted", drift=math.expm1(by), confirmed_for=self.drifting)

    def _is_drift(self, by: float, level: Sequence[float]) -> bool:
        """Whether chance does not explain a change ``by`` so much; each newest part of the level was tried."""
        searched = max(1.0, (len(level) - self.kept) / RECENT)
        return searched * expect(level[: self.kept]).p(abs(by) / OF_MEDIAN, RECENT) <= CONFIRMED

    def _night(self, expectation: Expectation, state: State, distances: Sequence[float]) -> Night:
        mean, reach = _mean(distances), expectation.reach(OFF)
        level, low, high = (math.exp(expectation.level + by) for by in (0.0, -reach, reach))
        consistent = _consistent(distances)
        p = min(1.0, len(consistent) * expectation.p(abs(_mean(consistent)), len(consistent)))
        own, detectable = math.expm1(distances[-1]), math.expm1(expectation.detectable(self.chance))
        return Night(
            *(state, expectation.runs, level, low, high, math.expm1(mean), p, len(self.away), own),
            detectable=detectable,
        )

    def _keep(self, run: _Seen) -> None:
        if not self.fixed:
            self.levels[run.block].append(run.log)
            if run.block in self.own:
                self.own[run.block] += 1

    def _end(self) -> None:
        """Nights alone that were away are runs of the level as any other."""
        for place, run in enumerate(self.away):
            self._keep(run)
            if place == self.known_from:
                self.origins[run.block] = len(self.levels[run.block]) - 1
        self._forget()

    def _forget(self) -> None:
        self.away.clear()
        self.confirmed_for, self.known_from = 0, None
        self.back, self.evidence = 0, 0.0

    def _restart(self) -> None:
        """Make the runs that were off the level, of every block; the runs before it still give the spread.

        If the change is accepted, only the runs from the accepted one on.
        """
        away = self.away[self.known_from or 0 :]
        by = _mean([run.distance for run in away])
        for block, logs in self.levels.items():
            new = [run.log for run in away if run.block == block]
            logs[:] = [*(log + by for log in logs[len(new) :]), *new]
            if new:
                self.own[block] = len(new)
                self.origins[block] = len(logs) - len(new)
        self._forget()


def lasting_of(accidents: float) -> float:
    """How many times likelier by chance THIRD nights may be, where such a share of nights are off by accident."""
    rarer = RARE_ROW / accidents**THIRD if accidents else MOST_LASTING
    return max(1.0, min(rarer, MOST_LASTING))


def of_one_size(accidents: float) -> float:
    """How many spreads nights of one change are apart at most, where such a share of nights are off by accident."""
    return OF_ONE_SIZE if accidents > CALM else OF_ONE_SIZE_CALM


def _consistent(distances: Sequence[float]) -> list[float]:
    """``distances`` to one side, none farther than nights of one change are: others are accidents of any size."""
    if len(distances) == 1:
        return list(distances)
    most = CONSISTENT * median_low(map(abs, distances))
    return [max(-most, min(distance, most)) for distance in distances]


def most_accidents(seen: int) -> float:
    """The most accidents to expect where ``seen`` were counted, with a confidence of 86 %; 2.0 for none.

    It is the upper limit of a Poisson count (Garwood, Biometrika 28, 1936), by the approximation of Wilson and Hilferty
    (1931) to its gamma quantile.
    """
    shape = seen + 1
    return shape * (1 - 1 / (9 * shape) + NOT_EXCLUDED / (3 * math.sqrt(shape))) ** 3


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
