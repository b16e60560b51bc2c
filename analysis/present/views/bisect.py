"""What people are shown of a bisection: what may be the cause, what recorded runs say, what to run next. Parts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from analysis.compare.bisect import Bisection, Placement, Trial
from analysis.compare.comparability import Change
from analysis.compare.side_level import SideLevel
from analysis.present.as_json import pick
from analysis.present.console import folded_to
from analysis.present.metric_names import titled
from analysis.present.numbers import percent, signed_percent
from analysis.present.parts import Heading, Part, Sentence, Sentences, Table
from analysis.present.views.compare import folded
from analysis.present.words import word
from logparse.language import some, tr
from logparse.schema import SCHEMA_VERSION

# Columns of a name and of a value; of a heading and of names in the table of runs: a terminal of 100 columns holds all.
NAME, VALUE = 36, 24
HEADING, NAMES = 26, 22
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
            return tr("nothing to try: no version, setting or label differs between the sides")
        case "contradiction":
            return tr("no single change explains it: there are several causes, or the cause is not in the logs")
        case "cause":
            return tr("cause according to the logs: {change}", change=_change_text(plan.named[0]))
        case "part":
            return tr("a part of the cause: {change}", change=_change_text(plan.named[0]))
        case "several":
            halves = (some([change.name for change in half]) for half in (plan.half, plan.other_half))
            first, second = halves
            return tr("more than one cause: one within {first}, one within {second}", first=first, second=second)
        case "causes":
            names = (f"{change.name} {signed_percent(by)}" for change, by in plan.effects.items())
            return tr("more than one cause; effect of each change by itself: {names}", names=tr(", ").join(names))
        case "not_apart":
            return tr("the two sides are too close to classify a run")
        case "next":
            return tr("remaining candidates: {n} of {all}", n=len(plan.remain), all=len(plan.candidates))


def _answer(plan: Bisection, good: str) -> Iterator[str]:
    if plan.outcome == "contradiction":
        yield tr("to exclude an outlier: `logparse history exclude RUN --reason TEXT`")
    if plan.outcome == "not_apart":
        yield tr("record more runs of each side")
    if plan.named:
        yield _share(plan)
    if plan.to_try:
        values = tr(", ").join(f"{change.name} {change.candidate[0]}" for change in plan.to_try)
        yield tr("next: run with {values}, everything else as in {good}, and record it", values=values, good=good)
        yield tr("runs still needed: at most {n}", n=plan.runs_needed)


def _share(plan: Bisection) -> str:
    """How much of the change the named candidates explain, and where the rest is."""
    share, fields = plan.share, {"metric": tr(plan.metric.label), "change": signed_percent(plan.effect)}
    if share is None:
        return tr("effect on {metric}: {change}", **fields)
    fields["part"] = signed_percent(math.expm1(share.explained))
    if share.is_all:
        return tr("explained change in {metric}: {part} of {change}", **fields)
    rest = signed_percent(math.expm1(share.rest))
    text = tr("explained change in {metric}: {part} of {change}; the rest, {rest}, lies elsewhere", rest=rest, **fields)
    if plan.to_try:
        return text
    return tr("{text}: in changes that act only together, or that are not in the logs", text=text)


def _change_text(change: Change) -> str:
    values = f"{folded(change.baseline[0])} -> {folded(change.candidate[0])}"
    return f"{word('change_kinds', change.kind)} {change.name}, {values}"


def _level(level: SideLevel, plan: Bisection) -> dict[str, str]:
    return {"runs": str(level.runs), "value": f"{plan.metric.text(level.value)} {plan.metric.shown_unit}"}


def _candidates(plan: Bisection) -> Iterator[Table]:
    rows = tuple(_candidate(change, plan) for change in plan.candidates[:MOST_LISTED])
    if rows:
        headings = (tr("candidate, in order of trial"), tr("good"), tr("bad"), "")
        yield Table(headings, rows, prose={1, 2, 3}, headed=True)


def _candidate(change: Change, plan: Bisection) -> tuple[str, ...]:
    name = f"{word('change_kinds', change.kind)} {change.name}"
    state = tr("remains") if change in plan.remain else tr("excluded")
    values = (folded_to(folded(value), VALUE) for value in (change.baseline[0], change.candidate[0]))
    return folded_to(name, NAME), *values, state


def _trials(plan: Bisection) -> Iterator[Table]:
    placed = [trial for trial in plan.trials if trial.placement != "other"]
    if placed:
        headings = (
            tr("recorded run"),
            folded_to(titled(plan.metric), HEADING),
            tr("values of BAD"),
            tr("result"),
            tr("remaining candidates"),
        )
        yield Table(
            headings, tuple(_trial(trial, plan) for trial in placed[-MOST_LISTED:]), prose={2, 3, 4}, headed=True
        )


def _trial(trial: Trial, plan: Bisection) -> tuple[str, ...]:
    run = trial.run
    return (
        run.run_id[:12],
        plan.metric.text(run.value),
        folded_to(_names(run.as_bad), NAMES),
        _placement(trial.placement),
        folded_to(_names(trial.remain), NAMES),
    )


def _placement(placement: Placement) -> str:
    words = {"good": tr("like GOOD"), "bad": tr("like BAD")}
    return words.get(placement, tr("neither"))


def _names(changes: Sequence[Change]) -> str:
    return some([change.name for change in changes], 4)


def _notes(plan: Bisection) -> Iterator[str]:
    if plan.candidates:
        yield tr("assumption: one change is the cause; settings come first because a flag changes them")
    if plan.trials:
        yield tr(
            "a run is like GOOD within {good}, like BAD within {bad}, and outside 99 of 100 runs of the other side",
            good=percent(math.expm1(plan.good.near), 2),
            bad=percent(math.expm1(plan.bad.near), 2),
        )
    elsewhere = [trial.run for trial in plan.trials if trial.placement == "other"]
    if elsewhere:
        yield tr(
            "ignored runs, with values that neither side has: {n}, for example {run} with {names}",
            n=len(elsewhere),
            run=elsewhere[-1].run_id[:12],
            names=some(elsewhere[-1].other_values, 4),
        )
    if plan.one_sided:
        yield tr("known for one side only: {names}", names=some(plan.one_sided))
    more = len(plan.candidates) - MOST_LISTED
    if more > 0:
        yield tr("{n} more; --json lists all", n=more)


KEYS = """schema_version job metric unit outcome good bad effect named explained rest rest_is_noise candidates trials
 next runs_needed only_one_side_tells"""


def document(plan: Bisection) -> dict[str, Any]:
    """The JSON document; it holds no sentence."""
    share = plan.share
    return pick(
        plan,
        KEYS,
        named=[change.name for change in plan.named],
        explained=math.expm1(share.explained) if share else None,
        rest=math.expm1(share.rest) if share else None,
        rest_is_noise=share.is_all if share else None,
        schema_version=SCHEMA_VERSION,
        metric=plan.metric.column,
        unit=plan.metric.unit,
        good=_level_document(plan.good),
        bad=_level_document(plan.bad),
        candidates=[
            pick(c, "kind name good bad remains", good=c.baseline[0], bad=c.candidate[0], remains=c in plan.remain)
            for c in plan.candidates
        ],
        trials=[_trial_document(trial, plan) for trial in plan.trials],
        next=[pick(change, "kind name value", value=change.candidate[0]) for change in plan.to_try],
        only_one_side_tells=plan.one_sided,
    )


def _level_document(level: SideLevel) -> dict[str, Any]:
    return pick(level, "value reach near runs")


def _trial_document(trial: Trial, plan: Bisection) -> dict[str, Any]:
    return pick(
        trial.run,
        "run_id name release value change stands as_good as_bad beside remain",
        change=trial.run.value / plan.good.value - 1,
        stands=trial.placement,
        as_good=[change.name for change in trial.run.as_good],
        as_bad=[change.name for change in trial.run.as_bad],
        beside=trial.run.other_values,
        remain=[change.name for change in trial.remain],
    )
