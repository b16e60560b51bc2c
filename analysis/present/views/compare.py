"""What people are shown of a comparison: the verdict, what it rests on, what changed. Parts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from analysis.compare.comparability import Change, Field
from analysis.compare.comparison import Comparison, LossAgreement, Side
from analysis.compare.independent_records import LeftOut
from analysis.compare.verdict import Effect, Finding
from analysis.compare.work_difference import Less
from analysis.metrics import Metric
from analysis.present.metric_names import titled
from analysis.present.parts import Heading, Part, Sentence, Sentences, Table
from analysis.present.views.remarks import remark_sentences, remarks
from analysis.present.words import fill, word
from analysis.stats.mann_whitney import RESAMPLES
from analysis.stats.noise import FEWEST_RUNS, Noise
from logparse.language import some, tr

if TYPE_CHECKING:
    from analysis.charts.comparison import Overlay

# Settings that are listed; a log of another framework version may differ in hundreds.
MOST_CHANGES = 30
# Characters of a value that is shown whole.
LONGEST = 36
# Losses that end further apart, as a share of the baseline's, are those of other data, or another model.
OTHER_DATA = 0.5


def compose_comparison(comparison: Comparison) -> list[Part]:
    """All parts, the answer first."""
    return [*compose_answer(comparison), *compose_notes(comparison)]


def compose_answer(comparison: Comparison) -> list[Part]:
    """The verdict, whether the sides may be compared, how they differ, what changed."""
    return [
        Heading(title(comparison), "title"),
        Sentence(tr("job: {name}", name=comparison.job)),
        *(Sentence(_side(name, side)) for name, side in _sides(comparison)),
        *_fields(comparison),
        _effects(comparison),
        *(Sentence(sentence(finding)) for finding in comparison.decisive if not comparison.refused),
        *(Sentence(text, "warning") for text in _warnings(comparison)),
        *_losses(comparison),
        *_changes(comparison),
        *(part for _, side in _sides(comparison) for part in remark_sentences(side.runs["run_id"], remarks(side.runs))),
    ]


def compose_notes(comparison: Comparison) -> list[Part]:
    """What the numbers rest on."""
    return [_infos(_notes(comparison))]


def compose_drawn(comparison: Comparison, drawn: Overlay) -> list[Part]:
    """The runs of each side that a page draws, each with what it is judged by."""
    metrics = [finding.metric for finding in comparison.verdicts]
    headings = (tr("run"), tr("side"), tr("release"), *map(titled, metrics), tr("rows that count"))
    rows = [_drawn(run, name, metrics) for name, runs in drawn.runs.items() for run in runs.iter_rows(named=True)]
    return [Heading(tr("runs in the charts"), "title"), _infos(_limits(comparison, drawn)), Table(headings, rows)]


def _infos(texts: Iterable[str]) -> Sentences:
    return Sentences([Sentence(text, "info") for text in texts])


def _limits(comparison: Comparison, drawn: Overlay) -> Iterator[str]:
    yield tr("drawn are the rows that count: no warm-up, no stall, nothing done twice")
    if drawn.merged > 1:
        yield tr("a point is the mean of up to {n} neighbouring rows", n=drawn.merged)
    for name, side in _sides(comparison):
        lines, runs = len(drawn.runs[name]), len(side.runs)
        if lines < runs:
            yield tr(
                "{side}: only {drawn} of {runs} runs are drawn, the last that can be read",
                side=word("sides", name),
                drawn=lines,
                runs=runs,
            )


def _drawn(run: Mapping[str, Any], side: str, metrics: Sequence[Metric]) -> tuple[str, ...]:
    values = ((metric, run[metric.column]) for metric in metrics)
    numbers = ("-" if value is None else metric.text(value) for metric, value in values)
    return (
        f"{run['name']} ({run['run_id'][:12]})",
        word("sides", side),
        run["release"] or "-",
        *numbers,
        f"{run['counted_rows']:,}",
    )


def sentence(finding: Finding) -> str:
    """The verdict on one metric with its reason."""
    title, verdict = tr(finding.metric.label), word("verdicts", finding.verdict)
    return tr(
        "{metric}: {verdict} ({reason})", metric=title, verdict=verdict, reason=word("verdict_reasons", finding.reason)
    )


def page_title(comparison: Comparison) -> str:
    """What a page about it is called."""
    sides = {"candidate": comparison.candidate.asked, "baseline": comparison.baseline.asked}
    return tr("{candidate} compared with {baseline}", **sides)


def title(comparison: Comparison) -> str:
    """The verdict on all that is judged."""
    if comparison.verdict is None:
        return tr("not comparable, so no verdict")
    return tr("verdict: {verdict}", verdict=word("verdicts", comparison.verdict))


def _sides(comparison: Comparison) -> tuple[tuple[str, Side], ...]:
    return (("baseline", comparison.baseline), ("candidate", comparison.candidate))


def _heads() -> tuple[str, str]:
    return word("sides", "baseline"), word("sides", "candidate")


def _side(name: str, side: Side) -> str:
    return tr("{side}: {asked}, runs: {runs}", side=word("sides", name), asked=side.asked, runs=len(side.runs))


def _fields(comparison: Comparison) -> Iterator[Part]:
    different = [f for f in comparison.fields if f.state == "different"]
    decisive = [f.name for f in comparison.refused if f.state == "unknown"]
    unknown = [f.name for f in comparison.fields if f.state == "unknown" and f.name not in decisive]
    equal = sum(f.state == "equal" for f in comparison.fields)
    yield Sentence(tr("comparable? {equal} of {all} fields are equal", equal=equal, all=len(comparison.fields)))
    if different:
        yield Table((tr("field"), *_heads()), tuple(_field(f) for f in different))
    if decisive:
        yield Sentence(tr("not known, and no verdict without them: {names}", names=", ".join(decisive)), "warning")
    if unknown:
        yield Sentence(tr("not known, so neither equal nor different: {names}", names=", ".join(unknown)), "warning")


def _field(field: Field) -> tuple[str, str, str]:
    name = tr("{name} (allowed)", name=field.name) if field.allowed else field.name
    return name, _values(field.baseline), _values(field.candidate)


def _values(values: tuple[object, ...]) -> str:
    return ", ".join("-" if value is None else str(value) for value in values) or "-"


def _effects(comparison: Comparison) -> Table:
    headings = ("", *_heads(), tr("change"), tr("interval"), "p", tr("runs"))
    findings = (f for f in comparison.findings if f.effect or f in comparison.verdicts)
    return Table(headings, tuple(_effect(finding) for finding in findings))


def _effect(finding: Finding) -> tuple[str, ...]:
    metric, effect = finding.metric, finding.effect
    title = titled(metric)
    runs = f"{finding.runs[0]} + {finding.runs[1]}"
    if effect is None:
        return (title, "-", "-", "-", "-", "-", runs)
    sides = (metric.text(value) for value in (effect.baseline, effect.candidate))
    return (title, *sides, f"{effect.change:+.2%}", _interval(finding), _p(effect), runs)


def _p(effect: Effect) -> str:
    """The smaller p, and of which direction it is."""
    if effect.p_worse is None or effect.p_better is None:
        return "-"
    if effect.p_worse <= effect.p_better:
        return tr("{p} worse", p=f"{effect.p_worse:.2g}")
    return tr("{p} better", p=f"{effect.p_better:.2g}")


def _interval(finding: Finding) -> str:
    effect = finding.effect
    if effect is None or effect.low is None or effect.high is None:
        return "-"
    return tr("{low} to {high}", low=f"{effect.low:+.2%}", high=f"{effect.high:+.2%}")


def _losses(comparison: Comparison) -> Iterator[Part]:
    losses = comparison.losses
    if losses is None:
        return
    if not isinstance(losses, LossAgreement):
        yield Sentence(tr("losses not compared: {reason}", reason=word("loss_reasons", losses)), "warning")
        return
    if losses.undefined:
        yield Sentence(tr("at {n} more steps only the baseline's loss is 0", n=losses.undefined), "warning")
    if losses.largest == 0:
        yield Sentence(tr("losses: the same at all {steps} steps that both did", steps=losses.steps))
        return
    if losses.final > OTHER_DATA:
        text = tr(
            "other data or another model: at the last of {steps} equal steps the losses are {final} apart",
            steps=losses.steps,
            final=f"{losses.final:,.0%}",
        )
        yield Sentence(text, "warning")
        return
    yield Sentence(
        tr(
            "losses at {steps} equal steps: {largest} apart at most (step {at}), {final} at the last (step {last})",
            steps=losses.steps,
            largest=f"{losses.largest:.3%}",
            at=losses.largest_at,
            final=f"{losses.final:.3%}",
            last=losses.final_at,
        )
    )


def less_work(less: Less) -> str:
    """In what the candidate does less, on each side."""
    code = "experts_limited" if less.kind == "experts" and math.isinf(less.baseline) else less.kind
    return fill("less_work", code, asdict(less))


def _warnings(comparison: Comparison) -> Iterator[str]:
    yield from map(less_work, comparison.less_work)
    for (name, _), lost in zip(_sides(comparison), comparison.lost, strict=True):
        if lost:
            yield tr(
                "{side}: in {lost} of {runs} runs the loss is not finite, from step {step} on",
                side=word("sides", name),
                lost=lost.lost,
                runs=lost.runs,
                step=lost.step,
            )
    for finding in comparison.verdicts:
        if finding.worse_runs:
            yield tr(
                "{metric}: {n} of {runs} runs of the candidate are worse than all of the baseline by more than the "
                "threshold: {names}",
                metric=tr(finding.metric.label),
                n=len(finding.worse_runs),
                runs=finding.runs[1],
                names=some(comparison.worse_runs(finding)),
            )
        yield from _outliers(comparison, finding)
    if comparison.unclear:
        pairs = [tr("{first} and {second}", first=first, second=second) for first, second in comparison.unclear]
        yield tr("the same losses and no clocks, so perhaps one job that is counted twice: {names}", names=some(pairs))


def _outliers(comparison: Comparison, finding: Finding) -> Iterator[str]:
    """The runs that are off, and the verdict with and without them."""
    if finding.rest is None:
        return
    names = [
        tr("{name} of the {side} ({off})", name=name, side=word("sides", one.side), off=f"{one.off:+.1%}")
        for one, name in comparison.outliers(finding)
    ]
    yield tr(
        "{metric}: off by far are {names}; with them: {before}, without: {after}, {change}",
        metric=tr(finding.metric.label),
        names=some(names),
        before=word("verdicts", finding.before or finding.verdict),
        after=word("verdicts", finding.rest.verdict),
        change=_change_without(finding.rest),
    )


def _change_without(rest: Finding) -> str:
    runs = f"{rest.runs[0]} + {rest.runs[1]}"
    change = f"{rest.effect.change:+.2%}" if rest.effect else "-"
    return tr("{change} with {runs} runs", change=change, runs=runs)


def _changes(comparison: Comparison) -> Iterator[Part]:
    changes = [change for change in comparison.changes if change.is_candidate]
    incidental = [change.name for change in comparison.changes if change.incidental and not change.one_sided]
    one_sided = [change.name for change in comparison.changes if change.one_sided]
    if changes:
        yield Heading(tr("changed between the sides, so candidates for the cause"))
        yield Table(("", *_heads()), tuple(_change(c) for c in changes[:MOST_CHANGES]), prose={1, 2}, headed=True)
    else:
        text = tr("no setting, version or label is one in most runs of one side and another in most of the other")
        yield Sentence(text)
    more = len(changes) - MOST_CHANGES
    notes = [tr("{n} more; --json has all", n=more)] if more > 0 else []
    if incidental:
        notes.append(tr("places, names and seeds differ, which makes no step slower: {names}", names=some(incidental)))
    if one_sided:
        notes.append(tr("only one side tells, so perhaps unchanged: {names}", names=some(one_sided)))
    yield _infos(notes)


def _change(change: Change) -> tuple[str, str, str]:
    return f"{word('change_kinds', change.kind)} {change.name}", *_both(change)


def _both(change: Change) -> tuple[str, str]:
    """The value of each side; where only most of its runs have it, of how many."""
    return _most(change.baseline, *change.counts[0]), _most(change.candidate, *change.counts[1])


def _most(values: Sequence[str], n: int, runs: int) -> str:
    if not values:
        return "-"
    value = folded(values[0])
    return value if n == runs else tr("{value} in {n} of {runs}", value=value, n=n, runs=runs)


def folded(value: str) -> str:
    """A value of any length in one that can be compared at a glance: its beginning and its end."""
    return value if len(value) <= LONGEST else f"{value[: LONGEST // 2]} … {value[-LONGEST // 3 :]}"


def describe_change(change: Change) -> str:
    """A change in one line."""
    return f"{change.name}: {' -> '.join(_both(change))}"


def _notes(comparison: Comparison) -> Iterator[str]:
    for run in comparison.left_out:
        yield tr("left out: {name}: {why}", name=called(run), why=word("left_out", run.reason))
    effects = [f.effect for f in comparison.findings if f.effect]
    for confidence, method in sorted({(e.confidence, e.method) for e in effects if e.confidence and e.method}):
        yield fill("p_methods", method, {"percent": confidence, "n": RESAMPLES})
    if comparison.threshold is None and any(finding.effect for finding in comparison.verdicts):
        yield _thresholds(comparison)
    if any(effect.p_worse is None for effect in effects):
        yield tr("too few runs: noise between them cannot be told from a change; the threshold decides alone")
    if len(comparison.verdicts) > 1:
        yield tr(
            "{n} metrics are {n} tests: the first may be wrong in 5 of 100 cases, any of the others in 5 (Holm)",
            n=len(comparison.verdicts),
        )
    for finding in comparison.asked_for:
        noise = _noise(comparison.noises[finding.metric.column], finding)
        named = len(comparison.primary) > 1
        yield tr("{metric}: {told}", metric=tr(finding.metric.label), told=noise) if named else noise


def _thresholds(comparison: Comparison) -> str:
    """The threshold of each metric, from the noise between runs."""
    return tr(
        "threshold: twice the noise between runs, within limits (--threshold gives another): {names}",
        names=tr(", ").join(f"{tr(f.metric.label)} {f.threshold:.2%}" for f in comparison.verdicts if f.effect),
    )


def called(run: LeftOut) -> str:
    """A run that does not count; records of one job may have one name."""
    return f"{run.name} ({run.run_id[:12]})" if run.reason == "same_job" else run.name


def _noise(noise: Noise | None, finding: Finding) -> str:
    runs = finding.runs
    if noise is None:
        return tr("noise between runs of one release: unknown, no release has two runs that tell it")
    noise_text = tr(
        "noise between runs of one release: {spread} (standard deviation, {runs} runs of {groups} groups)",
        spread=f"{noise.spread:.2%}",
        runs=noise.runs,
        groups=noise.releases,
    )
    if min(runs) < FEWEST_RUNS or noise.spread == 0:
        return noise_text
    visible = tr(
        "{n} + {m} runs show a change of {visible} in 80 of 100 cases; {threshold} takes {needed} runs a side",
        n=runs[0],
        m=runs[1],
        visible=f"{noise.visible(*runs):.2%}",
        threshold=f"{finding.threshold:.2%}",
        needed=noise.needed(finding.threshold) if finding.threshold else "-",
    )
    return tr("; ").join((noise_text, visible))
