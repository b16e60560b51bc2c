"""What people are shown of a comparison: the verdict, what it rests on, what changed. Parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from analysis.compare.comparability import Change, Field
from analysis.compare.comparison import Comparison, Side
from analysis.compare.final_loss import LAST
from analysis.compare.independent_records import LeftOut
from analysis.compare.refusal import reason_of_refusal
from analysis.compare.verdict import Finding
from analysis.compare.work_difference import Less
from analysis.metrics import FINAL_LOSS, Metric
from analysis.present.metric_names import titled
from analysis.present.numbers import percent, signed_percent
from analysis.present.parts import Cell, Heading, Part, Sentence, Sentences, Table
from analysis.present.views.ending import ending_clauses
from analysis.present.views.remarks import remark_sentences, remarks
from analysis.present.views.requirements import judgement_sentences
from analysis.present.views.same_loss import compose_loss_section
from analysis.present.words import fill, word
from analysis.stats.mann_whitney import RESAMPLES
from analysis.stats.noise import FEWEST_RUNS, Noise
from logparse.language import some, tr

if TYPE_CHECKING:
    from analysis.charts.comparison import Overlay

# Reasons of a verdict on a metric that became better by more than the threshold.
BETTER = ("faster", "declared_faster")
# Verdicts that have a colour.
MARKED = ("regression", "suspicious")
LOSS = FINAL_LOSS.column
# Settings that are listed; a log of another framework version may differ in hundreds.
MOST_CHANGES = 30
# Settings of one side that are named; of more only the number is shown.
FEW = 8
# Failed runs of a side that are named; the others are counted.
MOST_FAILED = 3
# Settings that are named in one sentence.
MOST_NAMED = 8
# Characters of a value that is shown whole.
LONGEST = 36
# A change that is no more than +0.00 % is neither worse nor better.
SHOWN_DIGITS = 4


def compose_comparison(comparison: Comparison, details: bool = False) -> list[Part]:
    """All parts, the answer first; ``details`` adds the p-values and how they were computed."""
    return [*compose_answer(comparison, details), *compose_notes(comparison, details)]


def compose_answer(comparison: Comparison, details: bool = False) -> list[Part]:
    """The verdict, whether the sides may be compared, how they differ, what changed."""
    return [
        Heading(title(comparison), "title"),
        *(Sentence(text, "warning") for text in _few_runs(comparison)),
        *([Sentence(reason_of_refusal(comparison), "warning")] if comparison.refused else []),
        *judgement_sentences(comparison.tolerances),
        Sentence(tr("job: {name}", name=comparison.job)),
        *(Sentence(_side(name, side)) for name, side in _sides(comparison)),
        *(Sentence(text, "warning") for text in failure_texts(comparison)),
        *_fields(comparison),
        _effects(comparison, details),
        *(Sentence(sentence(finding)) for finding in comparison.decisive if not comparison.refused),
        *(Sentence(text, "warning") for text in _warnings(comparison)),
        *compose_loss_section(comparison),
        *(() if comparison.refused else _changes(comparison)),
        *(part for _, side in _sides(comparison) for part in remark_sentences(side.runs["run_id"], remarks(side.runs))),
    ]


def compose_notes(comparison: Comparison, details: bool = False) -> list[Part]:
    """What the numbers rest on; with ``details`` also the statistical tests."""
    if comparison.refused and not details:
        return []
    return [_infos([*_notes(comparison), *(_tests(comparison) if details else ())])]


def compose_drawn(comparison: Comparison, drawn: Overlay) -> list[Part]:
    """The runs of each side that a page draws, each with what it is judged by."""
    metrics = [finding.metric for finding in comparison.verdicts]
    titles = [_title_of(metric, comparison) for metric in metrics]
    headings = (tr("run"), tr("side"), tr("release"), *titles, tr("counted rows"))
    drawn_runs = [(name, run) for name, runs in drawn.runs.items() for run in runs.iter_rows(named=True)]
    # That of a record is its last loss; the one that is judged is taken at the common steps.
    losses = dict(row for _, side in _sides(comparison) for row in side.runs.select("run_id", LOSS).iter_rows())
    rows = [_drawn(run | {LOSS: losses.get(run["run_id"])}, name, metrics) for name, run in drawn_runs]
    return [Heading(tr("runs in the charts"), "title"), _infos(_limits(comparison, drawn)), Table(headings, rows)]


def _infos(texts: Iterable[str]) -> Sentences:
    return Sentences([Sentence(text, "info") for text in texts])


def _limits(comparison: Comparison, drawn: Overlay) -> Iterator[str]:
    yield tr("the charts show counted rows only: no warm-up, stalls or replayed steps")
    if drawn.merged > 1:
        yield tr("a point is the mean of up to {n} adjacent rows", n=drawn.merged)
    for name, side in _sides(comparison):
        lines, runs = len(drawn.runs[name]), len(side.runs)
        if lines < runs:
            yield tr(
                "{side}: the charts show the last {drawn} readable runs of {runs}",
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


def is_untested(finding: Finding) -> bool:
    """Whether the runs are too few for a test, so that the threshold decides alone."""
    return finding.effect is not None and finding.effect.p_worse is None


def _few_runs(comparison: Comparison) -> Iterator[str]:
    """What runs can show that are too few for a test."""
    finding = next(filter(is_untested, comparison.asked_for), None)
    if finding is None or comparison.refused:
        return
    noise = comparison.noises[finding.metric.column]
    fields = {
        "n": finding.runs[0],
        "m": finding.runs[1],
        "metric": tr(finding.metric.label),
        "threshold": percent(finding.threshold, 2),
        "least": FEWEST_RUNS,
    }
    if noise is None or not noise.spread:
        yield tr(
            "{n} + {m} runs do not show the noise: a change of {metric} below the threshold of {threshold} goes "
            "unnoticed, and a larger one may be noise; record at least {least} runs per side",
            **fields,
        )
        return
    yield tr(
        "{n} + {m} runs are too few for a test: they can show a change of {metric} from {visible} on (power 80 %), and "
        "the threshold of {threshold} decides alone; record at least {least} runs per side",
        visible=percent(noise.visible(*finding.runs), 2),
        **fields,
    )


def page_title(comparison: Comparison) -> str:
    """What a page about it is called."""
    sides = {"candidate": comparison.candidate.asked, "baseline": comparison.baseline.asked}
    return tr("{candidate} compared with {baseline}", **sides)


def title(comparison: Comparison) -> str:
    """The verdict on all that is judged."""
    if comparison.verdict is None:
        return tr("no verdict: not comparable")
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
    yield Sentence(tr("comparability: {equal} of {all} fields are equal", equal=equal, all=len(comparison.fields)))
    if different:
        yield Table((tr("field"), *_heads()), tuple(_field(f) for f in different))
    if decisive:
        yield Sentence(tr("unknown but required for a verdict: {names}", names=tr(", ").join(decisive)), "warning")
    if unknown:
        yield Sentence(tr("unknown, not compared: {names}", names=tr(", ").join(unknown)), "warning")


def _field(field: Field) -> tuple[str, str, str]:
    name = tr("{name} (allowed)", name=field.name) if field.allowed else field.name
    return name, _values(field.baseline), _values(field.candidate)


def _values(values: tuple[object, ...]) -> str:
    return tr(", ").join("-" if value is None else str(value) for value in values) or "-"


def _effects(comparison: Comparison, details: bool) -> Table:
    """A row for each metric; ``details`` adds p and the numbers of runs, which differ where a run has no value."""
    findings = [f for f in comparison.findings if f.effect or f in comparison.verdicts]
    baseline, candidate = _heads()
    columns: list[tuple[str, Callable[[Finding], Cell | str]]] = [
        ("", lambda f: _title_of(f.metric, comparison)),
        (baseline, lambda f: f.metric.text(f.effect.baseline if f.effect else None)),
        (candidate, lambda f: f.metric.text(f.effect.candidate if f.effect else None)),
        (tr("change"), lambda f: signed_percent(f.effect.change) if f.effect else "-"),
    ]
    if any(f.effect and f.effect.low is not None for f in findings):
        columns.append((tr("interval"), _interval))
    columns.append((tr("verdict"), partial(_outcome, comparison)))
    if details:
        columns.append(("p", _p))
    if details or len({f.runs for f in findings}) > 1:
        columns.append((tr("runs"), lambda f: f"{f.runs[0]} + {f.runs[1]}"))
    rows = [[text(finding) for _, text in columns] for finding in findings]
    return Table([heading for heading, _ in columns], rows, headed=True)


def _title_of(metric: Metric, comparison: Comparison) -> str:
    """The metric with its unit; of the final loss also over what it is taken."""
    if metric != FINAL_LOSS:
        return titled(metric)
    if _have_other_steps(comparison):
        return tr("final loss (mean, last {n} common token counts)", n=LAST)
    return tr("final loss (mean, last {n} common steps)", n=LAST)


def _have_other_steps(comparison: Comparison) -> bool:
    """Whether a step of one side has other tokens than one of the other side."""
    return any(f.state == "different" and f.name in ("global_batch_size", "seq_length") for f in comparison.fields)


def _has_unjudged_loss(comparison: Comparison) -> bool:
    """Whether both sides print a loss that was to be compared, but has no common place."""
    if LOSS not in comparison.noises or not _have_other_steps(comparison):
        return False
    judged = any(finding.metric == FINAL_LOSS and finding.effect for finding in comparison.findings)
    return not judged and all(side.details[LOSS].is_not_null().any() for _, side in _sides(comparison))


def _outcome(comparison: Comparison, finding: Finding) -> Cell | str:
    """The verdict on a metric that is judged, in one or two words."""
    if comparison.refused or finding not in comparison.verdicts:
        return "-"
    if finding.reason in BETTER:
        return Cell(tr("improvement"), mark="improvement")
    if finding.verdict == "no regression":
        return tr("no change")
    return Cell(word("verdicts", finding.verdict), mark=finding.verdict if finding.verdict in MARKED else "")


def _p(finding: Finding) -> str:
    """The smaller p, and of which direction it is."""
    effect = finding.effect
    if effect is None or effect.p_worse is None or effect.p_better is None or not round(effect.change, SHOWN_DIGITS):
        return "-"
    if effect.p_worse <= effect.p_better:
        return tr("{p} worse", p=f"{effect.p_worse:.2g}")
    return tr("{p} better", p=f"{effect.p_better:.2g}")


def _interval(finding: Finding) -> str:
    effect = finding.effect
    if effect is None or effect.low is None or effect.high is None:
        return "-"
    return tr("{low} to {high}", low=signed_percent(effect.low), high=signed_percent(effect.high))


def less_work(less: Less) -> str:
    """In what the candidate does less, on each side."""
    code = f"{less.kind}_limited" if math.isinf(less.baseline) else less.kind
    return fill("less_work", code, asdict(less))


def failure_texts(comparison: Comparison) -> Iterator[str]:
    """The runs of each side that failed: the first ones with their lines, the others counted."""
    for (name, _), failed in zip(_sides(comparison), comparison.failed, strict=True):
        side = word("sides", name)
        for run in failed[:MOST_FAILED]:
            ending = tr("; ").join(ending_clauses(run.ending))
            yield tr("{side}: {name} did not complete: {ending}", side=side, name=run.name, ending=ending)
        if len(failed) > MOST_FAILED:
            yield tr("{side}: {n} more runs did not complete", side=side, n=len(failed) - MOST_FAILED)


def _warnings(comparison: Comparison) -> Iterator[str]:
    yield from map(less_work, comparison.less_work)
    for (name, _), lost in zip(_sides(comparison), comparison.lost, strict=True):
        if lost:
            yield tr(
                "{side}: the loss is not finite in {lost} of {runs} runs, from step {step}",
                side=word("sides", name),
                lost=lost.lost,
                runs=lost.runs,
                step=lost.step,
            )
    for finding in comparison.verdicts:
        if finding.worse_runs:
            yield tr(
                "{metric}: {n} of {runs} candidate runs are worse than every baseline run by more than the threshold: "
                "{names}",
                metric=tr(finding.metric.label),
                n=len(finding.worse_runs),
                runs=finding.runs[1],
                names=some(comparison.worse_runs(finding)),
            )
        yield from _outliers(comparison, finding)
    if comparison.unclear:
        pairs = [tr("{first} and {second}", first=first, second=second) for first, second in comparison.unclear]
        yield tr("identical losses and no timestamps, possibly one job counted twice: {names}", names=some(pairs))


def _outliers(comparison: Comparison, finding: Finding) -> Iterator[str]:
    """The runs that are off, and the verdict with and without them."""
    if finding.rest is None:
        return
    names = [
        tr("{name} of the {side} ({off})", name=name, side=word("sides", one.side), off=signed_percent(one.off, 1))
        for one, name in comparison.outliers(finding)
    ]
    yield tr(
        "{metric}: outliers: {names}; with them: {before}, without: {after}, {change}",
        metric=tr(finding.metric.label),
        names=some(names),
        before=word("verdicts", finding.before or finding.verdict),
        after=word("verdicts", finding.rest.verdict),
        change=_change_without(finding.rest),
    )


def _change_without(rest: Finding) -> str:
    runs = f"{rest.runs[0]} + {rest.runs[1]}"
    change = signed_percent(rest.effect.change) if rest.effect else "-"
    return tr("{change} with {runs} runs", change=change, runs=runs)


def _changes(comparison: Comparison) -> Iterator[Part]:
    changes = [change for change in comparison.changes if change.is_candidate]
    incidental = [change.name for change in comparison.changes if change.incidental and not change.one_sided]
    one_sided = [change.name for change in comparison.changes if change.one_sided]
    if changes:
        yield Heading(tr("differences that may explain it"))
        yield Table(("", *_heads()), tuple(_change(c) for c in changes[:MOST_CHANGES]), prose={1, 2}, headed=True)
    else:
        text = tr("no setting, version or label differs between most runs of the two sides")
        yield Sentence(text)
    more = len(changes) - MOST_CHANGES
    notes = [tr("{n} more; --json lists all", n=more)] if more > 0 else []
    if incidental:
        notes.append(tr("paths, names and seeds that differ, without effect on speed: {names}", names=some(incidental)))
    if one_sided:
        notes.append(_printed_by_one(one_sided))
    yield _infos(notes)


def _printed_by_one(names: Sequence[str]) -> str:
    """What only one side prints: the names of a few, the number of many."""
    if len(names) <= FEW:
        return tr("printed by one side only, not compared: {names}", names=tr(", ").join(names))
    return tr("printed by one side only, not compared: {n} settings; --json lists them", n=len(names))


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


def folded(value: str, longest: int = LONGEST) -> str:
    """A value of any length in one that can be compared at a glance: its beginning and its end."""
    return value if len(value) <= longest else f"{value[: longest // 2]} … {value[-longest // 3 :]}"


def describe_change(change: Change) -> str:
    """A change in one line."""
    return f"{change.name}: {' -> '.join(_both(change))}"


def named_changes(changes: Sequence[Change]) -> str:
    """Changes in one line, the likeliest causes first, and how many more there are."""
    text = "; ".join(describe_change(change) for change in changes[:MOST_NAMED])
    more = len(changes) - MOST_NAMED
    return tr("{names}; and {n} more", names=text, n=more) if more > 0 else text


def _notes(comparison: Comparison) -> Iterator[str]:
    for run in comparison.left_out:
        yield tr("excluded: {name}: {why}", name=called(run), why=word("left_out", run.reason))
    if comparison.threshold is None and any(finding.effect for finding in comparison.verdicts):
        yield _thresholds(comparison)
    if _has_unjudged_loss(comparison):
        yield tr("final loss not judged: the sides have other batches, and no common token counts")
    for finding in comparison.asked_for:
        noise = _noise(comparison.noises[finding.metric.column], finding)
        with_metric = len(comparison.primary) > 1
        yield tr("{metric}: {text}", metric=tr(finding.metric.label), text=noise) if with_metric else noise


def _tests(comparison: Comparison) -> Iterator[str]:
    """How the intervals and the p-values were computed."""
    effects = [f.effect for f in comparison.findings if f.effect]
    for confidence, method in sorted({(e.confidence, e.method) for e in effects if e.confidence and e.method}):
        yield fill("p_methods", method, {"percent": confidence, "n": RESAMPLES})
    if len(comparison.verdicts) > 1:
        yield tr(
            "{n} metrics, {n} tests: 5 % error for the first and 5 % for all others together (Holm)",
            n=len(comparison.verdicts),
        )


def _thresholds(comparison: Comparison) -> str:
    """The threshold of each metric, from the noise between runs."""
    return tr(
        "threshold: twice the noise between runs, within limits (set it with --threshold): {names}",
        names=tr(", ").join(f"{tr(f.metric.label)} {percent(f.threshold, 2)}" for f in comparison.verdicts if f.effect),
    )


def called(run: LeftOut) -> str:
    """A run that does not count; records of one job may have one name."""
    return f"{run.name} ({run.run_id[:12]})" if run.reason == "same_job" else run.name


def _noise(noise: Noise | None, finding: Finding) -> str:
    runs = finding.runs
    if noise is None:
        return tr("noise between runs of one release: unknown, no release has two usable runs")
    noise_text = tr(
        "noise between runs of one release: {spread} (standard deviation, {runs} runs of {groups} groups)",
        spread=percent(noise.spread, 2),
        runs=noise.runs,
        groups=noise.releases,
    )
    if min(runs) < FEWEST_RUNS or noise.spread == 0:
        return noise_text
    visible = tr(
        "{n} + {m} runs can detect {visible} (power 80 %); {threshold} needs {needed} runs per side",
        n=runs[0],
        m=runs[1],
        visible=percent(noise.visible(*runs), 2),
        threshold=percent(finding.threshold, 2),
        needed=noise.needed(finding.threshold) if finding.threshold else "-",
    )
    return tr("; ").join((noise_text, visible))
