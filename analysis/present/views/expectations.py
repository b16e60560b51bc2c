"""A run against its plan and published rates: sentences for people, and the document for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

from analysis.estimate.assumptions import ASSUMED
from analysis.present.as_json import note_document, pick, plain
from analysis.present.numbers import percent
from analysis.present.parts import Sentence, Sentences
from analysis.present.words import sentences_of, word
from analysis.present.words.forms import NO_SHARE, of_peak
from analysis.published.match import MOST_SHOWN, Against, PublishedComparison
from analysis.run.checks.expectations import Expectations, Plan
from analysis.run.checks.memory_comparison import Planned
from analysis.run.run import Run
from logparse.findings import Note, info
from logparse.language import speaking, tr

# The finding of a row of memory that holds the stage and what was measured there.
STAGE = "memory_of_stage"


def expectation_sentences(expectations: Expectations) -> tuple[str, ...]:
    """Everything in words: against the plan, then against published rates."""
    return (*plan_sentences(expectations.plan), *published_sentences(expectations.published))


def list_expectations(run: Run) -> Sentences:
    """The run against its plan and against published rates."""
    return Sentences([Sentence(text) for text in expectation_sentences(run.expectations)])


def plan_sentences(plan: Plan) -> Iterator[str]:
    """A sentence for each row, one for the gap, one for what was assumed."""
    yield from (sentences_of(findings) for findings in _by_stages([row.findings for row in plan.rows]))
    if plan.gap:
        parts = tr(", ").join(f"{word('gap', part.part)} {of_peak(part.share)}" for part in plan.gap)
        yield tr("peak breakdown of steady steps: {parts}", parts=parts)
        if plan.gap[-1].share < -NO_SHARE:
            yield tr("the rest is negative: the peak or a pipeline setting is wrong")
    if plan.mfu_ceiling is not None and plan.mfu_ceiling < 1:
        most = percent(plan.mfu_ceiling)
        yield tr("maximum MFU with this pipeline and recomputation: {most}", most=most)
    if plan.assumed:
        taken = tr(", ").join(f"{name} {ASSUMED[name]}" for name in plan.assumed)
        yield tr("not in the log, assumed for the memory: {taken}", taken=taken)


def _by_stages(rows: Sequence[tuple[Note, ...]]) -> Iterator[tuple[Note, ...]]:
    """The findings of each row, those of stages that differ in nothing but the measured memory as one."""
    for rest, group in groupby(rows, key=lambda row: row[1:] if row[0].code == STAGE else None):
        stages = list(group)
        if not rest or len(stages) == 1:
            yield from stages
            continue
        sizes = [row[0].fields["measured_bytes"] for row in stages]
        ends = {"first": stages[0][0].fields["stage"], "last": stages[-1][0].fields["stage"]}
        yield info("memory_of_stages", **ends, low_bytes=min(sizes), high_bytes=max(sizes)), *rest


def published_sentences(compared: PublishedComparison) -> Iterator[str]:
    """A sentence for each of the first rows, or why no row matches."""
    yield from (sentences_of(against.findings) for against in compared.matches[:MOST_SHOWN])
    yield from (sentences_of(against.findings) for against in compared.differing)
    if compared.findings:
        yield sentences_of(compared.findings)


def expectations_document(expectations: Expectations) -> dict[str, Any]:
    """``planned`` and ``published`` of a run's document, the same in every language."""
    with speaking("en"):
        return {
            "planned": _planned_document(expectations.plan),
            "published": _published_document(expectations.published),
        }


def _planned_document(plan: Plan) -> dict[str, Any]:
    return {
        "rows": [_row(row) for row in plan.rows],
        "left": plain(plan.left),
        "gap": [{**asdict(part), "label": word("gap", part.part)} for part in plan.gap],
        "mfu_ceiling": plan.mfu_ceiling,
        "assumed": list(plan.assumed),
        "sentences": list(plan_sentences(plan)),
    }


def _row(row: Planned) -> dict[str, Any]:
    names = "name label unit planned planned_to measured"
    return pick(row, names, label=word("planned", row.name)) | _findings(row.findings)


def _published_document(compared: PublishedComparison) -> dict[str, Any]:
    """Rows of published rates go by their names."""
    return {
        "matches": [_match(match) for match in compared.matches],
        "differing": [{**_match(match), "differs_in": list(match.differs_in)} for match in compared.differing],
        "nearest": [row.name for row in compared.nearest],
        "findings": [note_document(note) for note in compared.findings],
        "sentences": list(published_sentences(compared)),
    }


def _match(match: Against) -> dict[str, Any]:
    return {"name": match.row.name, "share": match.share, **_findings(match.findings)}


def _findings(findings: tuple[Note, ...]) -> dict[str, Any]:
    return {"sentence": sentences_of(findings), "findings": [note_document(note) for note in findings]}
