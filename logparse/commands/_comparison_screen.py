"""What people are shown of a comparison: the verdict, what it rests on, what changed. Parts, as of ``_screen``."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.releases.comparable import Change, Field
from analysis.releases.comparison import Comparison, Side
from analysis.releases.verdict import FEWEST_RUNS, REASONS, Finding, Metric, Verdict
from logparse.commands._screen import Grid, Line, Part
from logparse.language import msg, tr

# Settings that are listed; a log of another framework version may differ in hundreds.
MOST_CHANGES = 30
# How many figures of a run's number tell it from another's.
SCALES = {"ms": (1.0, 1), "tokens/s/p": (1.0, 1), "TFLOP/s/p": (1.0, 2), "ratio": (100.0, 2), "bytes": (2**-30, 2)}
UNITS = {"ratio": "%", "bytes": "GiB"}
VERDICTS: dict[Verdict, str] = {
    "regression": msg("regression"),
    "suspicious": msg("suspicious"),
    "no regression": msg("no regression"),
    "insufficient data": msg("insufficient data"),
}
KINDS = {"setting": msg("setting"), "version": msg("version")}


def compose_comparison(comparison: Comparison) -> list[Part]:
    """All parts, the answer first."""
    return [
        Line(_title(comparison), "title"),
        *(Line(_side(name, side)) for name, side in _sides(comparison)),
        *_fields(comparison),
        _effects(comparison),
        *(Line(sentence(finding)) for finding in comparison.verdicts if not comparison.refused),
        *_losses(comparison),
        *_changes(comparison),
        *(Line(text, "info") for text in _notes(comparison)),
    ]


def sentence(finding: Finding) -> str:
    """The verdict on one metric with its reason."""
    reason = tr(REASONS[finding.reason])
    return f"{tr(finding.metric.title)}: {tr(VERDICTS[finding.verdict])} ({reason})"


def _title(comparison: Comparison) -> str:
    if comparison.verdict is None:
        return tr("not comparable, so no verdict")
    return tr("verdict: {verdict}", verdict=tr(VERDICTS[comparison.verdict]))


def _sides(comparison: Comparison) -> tuple[tuple[str, Side], ...]:
    return ((tr("baseline"), comparison.baseline), (tr("candidate"), comparison.candidate))


def _side(name: str, side: Side) -> str:
    return tr("{side}: {asked}, runs: {runs}", side=name, asked=side.asked, runs=len(side.runs))


def _fields(comparison: Comparison) -> Iterator[Part]:
    different = [f for f in comparison.fields if f.state == "different"]
    unknown = [f.name for f in comparison.fields if f.state == "unknown"]
    equal = len(comparison.fields) - len(different) - len(unknown)
    yield Line(tr("comparable? {equal} of {all} fields are equal", equal=equal, all=len(comparison.fields)))
    if different:
        yield Grid((tr("field"), tr("baseline"), tr("candidate")), tuple(_field(f) for f in different))
    if unknown:
        yield Line(tr("not known, so neither equal nor different: {names}", names=", ".join(unknown)), "warning")


def _field(field: Field) -> tuple[str, str, str]:
    name = tr("{name} (allowed)", name=field.name) if field.allowed else field.name
    return name, _values(field.baseline), _values(field.candidate)


def _values(values: tuple[object, ...]) -> str:
    return ", ".join("-" if value is None else str(value) for value in values) or "-"


def _effects(comparison: Comparison) -> Grid:
    headings = ("", tr("baseline"), tr("candidate"), tr("change"), tr("interval"), "p", tr("runs"))
    told = (f for f in comparison.findings if f.effect or f in comparison.verdicts)
    return Grid(headings, tuple(_effect(finding) for finding in told))


def _effect(finding: Finding) -> tuple[str, ...]:
    metric, effect = finding.metric, finding.effect
    title = titled(metric)
    runs = f"{finding.runs[0]} + {finding.runs[1]}"
    if effect is None:
        return (title, "-", "-", "-", "-", "-", runs)
    scale, digits = SCALES[metric.unit]
    sides = (f"{value * scale:,.{digits}f}" for value in (effect.baseline, effect.candidate))
    p = min((p for p in (effect.p_worse, effect.p_better) if p is not None), default=None)
    return (title, *sides, f"{effect.change:+.2%}", _interval(finding), "-" if p is None else f"{p:.2g}", runs)


def titled(metric: Metric) -> str:
    """A metric with its unit, which some are called by."""
    unit = UNITS.get(metric.unit, metric.unit)
    return tr(metric.title) if metric.title == unit else f"{tr(metric.title)}, {unit}"


def _interval(finding: Finding) -> str:
    effect = finding.effect
    if effect is None or effect.low is None or effect.high is None:
        return "-"
    return tr("{low} to {high}", low=f"{effect.low:+.2%}", high=f"{effect.high:+.2%}")


def _losses(comparison: Comparison) -> Iterator[Part]:
    losses = comparison.losses
    if losses is None:
        return
    if losses.largest == 0:
        yield Line(tr("losses: the same at all {steps} steps that both did", steps=losses.steps))
        return
    yield Line(
        tr(
            "losses at {steps} equal steps: {largest} apart at most (step {at}), {final} at the last (step {last})",
            steps=losses.steps,
            largest=f"{losses.largest:.3%}",
            at=losses.largest_at,
            final=f"{losses.final:.3%}",
            last=losses.final_at,
        )
    )


def _changes(comparison: Comparison) -> Iterator[Part]:
    if not comparison.changes:
        yield Line(tr("no setting and no version differs between all runs of one side and all of the other"))
        return
    yield Line(tr("changed between the sides, so candidates for the cause"), "heading")
    shown = comparison.changes[:MOST_CHANGES]
    yield Grid(
        ("", tr("baseline"), tr("candidate")),
        tuple((f"{tr(KINDS[c.kind])} {c.name}", _values(c.baseline), _values(c.candidate)) for c in shown),
    )
    if len(comparison.changes) > len(shown):
        yield Line(tr("{n} more; --json has all", n=len(comparison.changes) - len(shown)), "info")


def describe_change(change: Change) -> str:
    """A change in one line."""
    return f"{change.name}: {_values(change.baseline)} -> {_values(change.candidate)}"


def _notes(comparison: Comparison) -> Iterator[str]:
    yield from (tr("left out: {name}: {why}", name=n, why=tr(why)) for n, why in comparison.left_out)
    confidences = {f.effect.confidence for f in comparison.findings if f.effect and f.effect.confidence}
    for confidence in sorted(confidences):
        yield tr("interval: {percent} of Hodges-Lehmann; p: exact Mann-Whitney, one-sided", percent=f"{confidence:.1%}")
    if any(0 < min(f.runs) < FEWEST_RUNS for f in comparison.verdicts):
        yield tr(
            "fewer than 3 runs a side: noise between runs cannot be told from a change; the threshold decides alone"
        )
    if len(comparison.verdicts) > 1:
        yield tr("{n} metrics are {n} tests; each may be wrong in 5 of 100 cases", n=len(comparison.verdicts))
    yield _noise(comparison)


def _noise(comparison: Comparison) -> str:
    noise, runs = comparison.noise, comparison.verdicts[0].runs
    if noise is None:
        return tr("noise between runs of one release: unknown, no release has two runs")
    told = tr(
        "noise between runs of one release: {spread} (standard deviation, {runs} runs of {groups} groups)",
        spread=f"{noise.spread:.2%}",
        runs=noise.runs,
        groups=noise.releases,
    )
    if min(runs) < FEWEST_RUNS or noise.spread == 0:
        return told
    visible = tr(
        "{n} + {m} runs show a change of {visible} in 80 of 100 cases; {threshold} takes {needed} runs a side",
        n=runs[0],
        m=runs[1],
        visible=f"{noise.visible(*runs):.2%}",
        threshold=f"{comparison.threshold:.2%}",
        needed=noise.needed(comparison.threshold) if comparison.threshold else "-",
    )
    return f"{told}; {visible}"
