"""An estimate as parts for people and as a document for programs. Comes in: a PlannedJob. Nothing is computed here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from analysis.estimate.job import Estimate, Section, Smallest
from analysis.estimate.layout_search import Fit
from analysis.estimate.worked_figure import Figure
from analysis.present.as_json import fact_document, note_document
from analysis.present.numbers import percent, step_time, three
from analysis.present.parts import Heading, Part, Sentence, Sentences, Table
from analysis.present.words import describe_origin, say, word, words
from analysis.run.checks.planned_job import PlannedJob
from logparse.language import msg, speaking, tr
from logparse.schema import SCHEMA_VERSION

GB = 1e9
DAY = 86400
# Layouts of the short answer.
LAYOUTS_SHOWN = 5


def short_parts(planned: PlannedJob) -> list[Part]:
    """Whether it fits, some layouts, and the step time; a job without a layout has all its parts."""
    result = planned.result
    if result.fit is None or not result.layouts:
        return estimate_parts(planned)
    best = sorted(result.layouts, key=lambda fit: not fit.fits)[:LAYOUTS_SHOWN]
    more = len(result.layouts) - len(best)
    hint = tr("-v shows {n} more layouts, all stages and every formula", n=more) if more else tr("-v shows all stages")
    return [
        Heading(tr("estimate: {name}", name=_name(planned)), "title"),
        *_verdict(result),
        _layouts(best),
        *_step(planned),
        Sentences([Sentence(say(note), "info") for note in result.notes]),
        Sentence(hint),
    ]


def _step(planned: PlannedJob) -> Iterator[Sentence]:
    """The step time at the given utilization, else at the published rate."""
    seconds, at = planned.result.value("step_time"), planned.published
    if seconds is not None:
        yield Sentence(tr("step time: {time} at the given utilization", time=step_time(float(seconds) * 1000)))
    if at is None:
        return
    rate = three(at.row.tokens_per_second_per_device or 0.0)
    mfu = tr(" (MFU {share})", share=percent(at.mfu)) if at.mfu is not None else ""
    text = tr(
        "step time: {time} at the rate that {publisher} publishes for {devices} devices: {rate} tokens/s/p{mfu}",
        time=step_time(at.seconds * 1000),
        publisher=at.row.publisher,
        devices=at.row.devices,
        rate=rate,
        mfu=mfu,
    )
    yield Sentence(text)


def estimate_parts(planned: PlannedJob) -> list[Part]:
    """All parts, whether it fits first."""
    result = planned.result
    return [
        Heading(tr("estimate: {name}", name=_name(planned)), "title"),
        *_verdict(result),
        *([_stages(result, result.fit)] if result.fit else []),
        *([_layouts(result.layouts)] if result.layouts else []),
        *_step(planned),
        *(part for section in result.sections for part in _section(section)),
        Heading(tr("inputs")),
        Table(
            (tr("quantity"), tr("value"), tr("origin")),
            tuple((n, str(fact.value), describe_origin(fact.origin)) for n, fact in planned.facts.items()),
            prose={2},
        ),
        Sentences([Sentence(say(note), "info") for note in result.notes]),
    ]


def _name(planned: PlannedJob) -> str:
    return planned.name or tr("a model")


def _verdict(result: Estimate) -> Iterator[Sentence]:
    fit = result.fit
    if fit is None:
        return
    fields = {"layout": str(fit.layout), "devices": fit.layout.devices, "gb": _gb(fit.worst.total_bytes)}
    if fit.memory_bytes is None:
        yield Sentence(tr("{layout} on {devices} devices needs up to {gb} GB per device", **fields))
    elif fit.fits:
        fitting = tr(
            "{layout} on {devices} devices fits: up to {gb} GB of {memory}", **fields, memory=_gb(fit.memory_bytes)
        )
        yield Sentence(fitting)
    else:
        yield Sentence(_overflow(fit, fit.memory_bytes), "warning")
    yield from _fewest(result.fewest, fit)


def _fewest(fewest: Smallest, fit: Fit) -> Iterator[Sentence]:
    """The smallest layouts that fit, and what would help where none does."""
    laid_out, at_all, recomputed = fewest.laid_out, fewest.at_all, fewest.recomputed
    if laid_out is None and fit.fits is False:
        given = msg("no layout fits with the given sizes")
        if at_all is None and recomputed is None:
            given = msg("no layout fits, even with --recompute full: give a smaller --micro-batch-size or --cp above 1")
        yield Sentence(tr(given), "warning")
    if laid_out and at_all and at_all.layout.devices == laid_out.layout.devices:
        yield Sentence(tr("smallest layout that fits: {layout}", layout=_sized(laid_out)))
        return
    for smallest, text in (
        (laid_out, msg("smallest layout that fits with the given sizes: {layout}")),
        (at_all, msg("smallest layout that fits with any sizes: {layout}")),
        (recomputed, msg("smallest layout that fits with --recompute full: {layout}")),
    ):
        if smallest:
            yield Sentence(tr(text, layout=_sized(smallest)))


def _sized(fit: Fit) -> str:
    return tr("{layout}, {devices} devices", layout=str(fit.layout), devices=f"{fit.layout.devices:,}")


def _overflow(fit: Fit, memory_bytes: float) -> str:
    worst = fit.worst
    fullest = {
        "stage": worst.stage,
        "gb": _gb(worst.total_bytes),
        "memory": _gb(memory_bytes),
        "over": _gb(worst.total_bytes - memory_bytes),
    }
    if len(fit.overflows) == 1:
        return tr("stage {stage} does not fit: {gb} GB of {memory}, {over} GB too much", **fullest)
    return tr(
        "stages {names} do not fit; the largest is {stage}: {gb} GB of {memory}, {over} GB too much",
        names=tr(", ").join(map(str, fit.overflows)),
        **fullest,
    )


def _stages(result: Estimate, fit: Fit) -> Table:
    headings = (
        tr("stage"),
        tr("layers"),
        tr("parameters"),
        tr("state GB"),
        tr("in flight"),
        tr("activations GB"),
        "GB",
        tr("activations by rule, GB"),
        tr("fits"),
    )
    rule = result.rule or (None,) * len(fit.stages)
    rows = (
        (
            str(stage.stage),
            str(stage.layers),
            f"{stage.parameters:,.0f}",
            _gb(stage.state_bytes),
            f"{stage.in_flight:g}",
            _gb(stage.activation_bytes),
            _gb(stage.total_bytes),
            "-" if by_rule is None else _gb(by_rule),
            _yes(None if fit.memory_bytes is None else stage.stage not in fit.overflows),
        )
        for stage, by_rule in zip(fit.stages, rule, strict=True)
    )
    return Table(headings, tuple(rows))


def _layouts(layouts: Sequence[Fit]) -> Table:
    headings = (tr("layout"), tr("devices"), tr("largest stage"), "GB", tr("stages that do not fit"), tr("fits"))
    rows = (
        (
            str(fit.layout),
            str(fit.layout.devices),
            str(fit.worst.stage),
            _gb(fit.worst.total_bytes),
            tr(", ").join(map(str, fit.overflows)) or "-",
            _yes(fit.fits),
        )
        for fit in layouts
    )
    return Table(headings, tuple(rows))


def _section(section: Section) -> Iterator[Part]:
    rows = (
        (word("figures", figure.label), shown(figure), worked(figure) or _needs(figure)) for figure in section.figures
    )
    yield Heading(word("sections", section.name))
    yield Table((tr("quantity"), tr("value"), tr("calculation")), tuple(rows), prose={2})


def worked(figure: Figure) -> str:
    """The formula with its own numbers, or the sum of its terms; empty where the value is unknown."""
    if not figure.terms:
        return figure.worked
    return " + ".join(f"{_times(t.again)}{t.value:.6g} ({tr(t.name)})" for t in figure.terms)


def _needs(figure: Figure) -> str:
    return tr("needs {flags}", flags=tr(", ").join(map(_input_name, figure.missing)))


def _input_name(name: str) -> str:
    """An input that a figure needs and does not have: its flag, or the words of a code."""
    return word("lacking", name) if name in words("en")["lacking"] else name


def shown(figure: Figure) -> str:
    """A figure's value with its unit, as a person reads it."""
    value = figure.value
    if value is None:
        return "-"
    forms = {
        "bytes": lambda: f"{_gb(value)} GB",
        "parameters": lambda: f"{value:,.0f}",
        "devices": lambda: f"{value:,.0f}",
        "FLOPs": lambda: f"{value:.5g}",
        "ratio": lambda: percent(value, 2),
        "s": lambda: tr("{n} days", n=f"{value / DAY:,.2f}") if value >= DAY else tr("{n} s", n=f"{value:,.3g}"),
    }
    return forms[figure.unit]()


def _gb(size: float) -> str:
    return f"{size / GB:,.2f}"


def _yes(answer: bool | None) -> str:
    return "-" if answer is None else tr("yes") if answer else tr("NO")


def estimate_document(planned: PlannedJob) -> dict[str, Any]:
    """The JSON document, the same in every language: figures by name, stages, layouts, what it was computed with."""
    result = planned.result
    with speaking("en"):
        return {
            "schema_version": SCHEMA_VERSION,
            "name": _name(planned),
            "context": {quantity: fact_document(fact) for quantity, fact in planned.facts.items()},
            "figures": {f.name: _figure(f) for section in result.sections for f in section.figures},
            "layout": _fit(result.fit, result.rule),
            "layouts": [_fit(fit) for fit in result.layouts],
            "smallest": _fit(result.smallest),
            "smallest_at_all": _fit(result.fewest.at_all),
            "smallest_recomputed": _fit(result.fewest.recomputed),
            "notes": [note_document(note) for note in result.notes],
        }


def _figure(figure: Figure) -> dict[str, Any]:
    return {
        "unit": figure.unit,
        "value": figure.value,
        "formula": figure.formula,
        "worked": worked(figure),
        "source": figure.source,
        "lacks": [_input_name(name) for name in figure.missing],
    }


def _fit(fit: Fit | None, rule: tuple[float, ...] | None = None) -> dict[str, Any] | None:
    if fit is None:
        return None
    stages = [asdict(stage) | {"total_bytes": stage.total_bytes} for stage in fit.stages]
    for stage, by_rule in zip(stages, rule or (), strict=False):
        stage["rule_bytes"] = by_rule
    document = {"devices": fit.layout.devices, **asdict(fit.layout), "memory_bytes": fit.memory_bytes, "fits": fit.fits}
    return document | {"overflows": list(fit.overflows), "stages": stages}


def _times(again: float) -> str:
    """How often a term counts of which a share of the forward pass runs again."""
    if not again:
        return ""
    return "4/3 x " if math.isclose(again, 1) else f"{3 + again:.4g}/3 x "
