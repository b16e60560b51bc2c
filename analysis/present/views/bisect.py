"""What people are shown of a bisection: what may be the cause, what recorded runs say, what to run next. Parts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from analysis.compare.bisect import Bisection, Placement, Trial
from analysis.compare.comparability import Change
from analysis.compare.side_level import SideLevel
from analysis.present.metric_names import titled
from analysis.present.parts import Heading, Part, Sentence, Sentences, Table
from analysis.present.views.compare import folded
from analysis.present.words import word
from logparse.language import some, tr

# Candidates and runs that are listed; a log of another framework version may differ in hundreds.
MOST_LISTED = 30


def compose_plan(plan: Bisection, good: str, bad: str) -> list[Part]:
    """The answer, both sides, the candidates, the runs; ``good`` and ``bad`` are the sides as the user gave them."""
    return [
        Heading(_title(plan), "title"),
        *(Sentence(text) for text in _answer(plan, good)),
        Sentence(tr("job: {name}", name=plan.job)),
        Sentence(tr("good: {asked}, runs: {runs}, {value}", asked=good, **_level(plan.good, plan))),
        Sentence(tr("bad: {asked}, runs: {runs}, {value}", asked=bad, **_level(plan.bad, plan))),
        *_candidates(plan),
        *_trials(plan),
        Sentences([Sentence(text, "info") for text in _notes(plan)]),
    ]


def _title(plan: Bisection) -> str:
    match plan.outcome:
        case "no_candidate":
            return tr("nothing to try: no version, setting or label differs that both sides tell")
        case "contradiction":
            return tr("no single change explains it: several causes together, or one that no log tells")
        case "cause":
            return tr("cause, as far as logs tell: {change}", change=_change_text(plan.remain[0]))
        case "not_apart":
            return tr("the two sides are too close to tell of which a run is")
        case "next":
            return tr("candidates that remain: {n} of {all}", n=len(plan.remain), all=len(plan.candidates))


def _answer(plan: Bisection, good: str) -> Iterator[str]:
    match plan.outcome:
        case "cause":
            yield tr("{metric}: {change} with it", metric=tr(plan.metric.label), change=f"{plan.effect:+.2%}")
        case "contradiction":
            yield tr("a run that was off may be left out: `logparse history exclude RUN --reason TEXT`")
        case "not_apart":
            yield tr("record more runs of each side")
        case "next":
            values = ", ".join(f"{change.name} {change.candidate[0]}" for change in plan.to_try)
            yield tr("next: run with {values}, all else as in {good}, and record it", values=values, good=good)
            yield tr("runs still needed at most: {n}", n=plan.runs_needed)


def _change_text(change: Change) -> str:
    values = f"{folded(change.baseline[0])} -> {folded(change.candidate[0])}"
    return f"{word('change_kinds', change.kind)} {change.name}, {values}"


def _level(level: SideLevel, plan: Bisection) -> dict[str, str]:
    return {"runs": str(level.runs), "value": f"{plan.metric.text(level.value)} {plan.metric.shown_unit}"}


def _candidates(plan: Bisection) -> Iterator[Table]:
    rows = tuple(_candidate(change, plan) for change in plan.candidates[:MOST_LISTED])
    if rows:
        headings = (tr("in the order of trying"), tr("good"), tr("bad"), "")
        yield Table(headings, rows, prose={1, 2, 3}, headed=True)


def _candidate(change: Change, plan: Bisection) -> tuple[str, ...]:
    name = f"{word('change_kinds', change.kind)} {change.name}"
    state = tr("remains") if change in plan.remain else tr("excluded")
    return name, folded(change.baseline[0]), folded(change.candidate[0]), state


def _trials(plan: Bisection) -> Iterator[Table]:
    placed = [trial for trial in plan.trials if trial.placement != "other"]
    if placed:
        headings = (tr("recorded run"), titled(plan.metric), tr("as the bad side"), tr("it is"), tr("remain"))
        yield Table(
            headings, tuple(_trial(trial, plan) for trial in placed[-MOST_LISTED:]), prose={2, 3, 4}, headed=True
        )


def _trial(trial: Trial, plan: Bisection) -> tuple[str, ...]:
    run = trial.run
    return (
        run.run_id[:12],
        plan.metric.text(run.value),
        _names(run.as_bad),
        _placement(trial.placement),
        _names(trial.remain) or "-",
    )


def _placement(placement: Placement) -> str:
    words = {"good": tr("as good as GOOD"), "bad": tr("as bad as BAD")}
    return words.get(placement, tr("neither, excludes nothing"))


def _names(changes: Sequence[Change]) -> str:
    return some([change.name for change in changes], 4)


def _notes(plan: Bisection) -> Iterator[str]:
    if plan.candidates:
        yield tr("one single change is taken for the cause; settings are tried first, since a flag changes them")
    if plan.trials:
        yield tr(
            "a run is as good within {good} of that side, as bad within {bad}, if beyond 99 of 100 of the other",
            good=f"{math.expm1(plan.good.near):.2%}",
            bad=f"{math.expm1(plan.bad.near):.2%}",
        )
    others = [trial.run for trial in plan.trials if trial.placement == "other"]
    if others:
        yield tr(
            "runs that have what neither side has, and so exclude nothing: {n}, such as {run} with {names}",
            n=len(others),
            run=others[-1].run_id[:12],
            names=some(others[-1].other_values, 4),
        )
    if plan.one_sided:
        yield tr("only one side tells, so perhaps unchanged: {names}", names=some(plan.one_sided))
    more = len(plan.candidates) - MOST_LISTED
    if more > 0:
        yield tr("{n} more; --json has all", n=more)
