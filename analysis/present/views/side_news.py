"""What a gate of two sides found, in at most ten lines of text or as JSON, for a chat. Empty where nothing is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from analysis.compare.comparison import Comparison, Side
from analysis.compare.refusal import reason_of_refusal
from analysis.compare.verdict import WRONG, Finding, Verdict, worst_of
from analysis.nightly.run_links import run_url
from analysis.present.numbers import signed_percent
from analysis.present.views.compare import describe_change
from analysis.present.views.job_news import MOST_CHANGES, MOST_METRICS
from analysis.present.views.news import MOST_LINES
from analysis.present.words import word
from logparse.language import tr
from logparse.schema import SCHEMA_VERSION


def has_wrong(compared: Sequence[Comparison]) -> bool:
    """Whether a job became worse, crashed, does less work, or cannot be compared."""
    return any(map(is_wrong, compared))


def is_wrong(one: Comparison) -> bool:
    """Whether the job became worse, crashed, does less work, or cannot be compared."""
    return bool(one.refused) or one.verdict in WRONG


def sides_document(compared: Sequence[Comparison], template: str | None) -> dict[str, Any]:
    """The message as JSON; ``text`` is what a chat shows, ``template`` the address of a run."""
    wrong = [one for one in compared if is_wrong(one)]
    return {
        "schema_version": SCHEMA_VERSION,
        "text": _text(compared, wrong, template),
        "verdict": _verdict(compared),
        "news": [_document(one, template) for one in wrong],
    }


def _verdict(compared: Sequence[Comparison]) -> Verdict | None:
    verdicts = [one.verdict for one in compared if one.verdict]
    return worst_of(verdicts) if verdicts else None


def _text(compared: Sequence[Comparison], wrong: Sequence[Comparison], template: str | None) -> str:
    verdict = _verdict(compared)
    names = (compared[0].baseline.asked, compared[0].candidate.asked)
    head = [
        tr("verdict: {verdict}", verdict=word("verdicts", verdict)) if verdict else tr("no verdict"),
        tr("{new} compared with {old}", old=names[0], new=names[1]),
    ]
    lines = [line for one in wrong for line in _lines(one, template)]
    room = MOST_LINES - len(head)
    if len(lines) > room:
        lines = [*lines[: room - 1], tr("{n} more", n=len(lines) - room + 1)]
    return "\n".join([*head, *lines])


def _lines(one: Comparison, template: str | None) -> Iterator[str]:
    url = _url(one.candidate, template)
    text = finding_text(one)
    yield f"{text} {url}" if url else text
    if causes := causes_text(one):
        yield causes


def finding_text(one: Comparison) -> str:
    """The verdict on a job, with the metrics that it is on, or why it cannot be compared."""
    why = reason_of_refusal(one) if one.refused else tr(", ").join(map(_metric, _wrong_findings(one)[:MOST_METRICS]))
    fields = {"job": one.job, "verdict": word("verdicts", one.verdict) if one.verdict else tr("not comparable")}
    return tr("{job}: {verdict}: {metrics}", metrics=why, **fields) if why else tr("{job}: {verdict}", **fields)


def causes_text(one: Comparison) -> str:
    """The changes that may explain it; empty where there is none."""
    causes = [] if one.refused else _causes(one)
    return tr("probable cause: {names}", names="; ".join(causes)) if causes else ""


def _wrong_findings(one: Comparison) -> list[Finding]:
    return [] if one.refused else [finding for finding in one.decisive if finding.verdict in WRONG]


def _metric(finding: Finding) -> str:
    label = tr(finding.metric.label)
    return f"{label} {signed_percent(finding.effect.change)}" if finding.effect else label


def _causes(one: Comparison) -> list[str]:
    return [describe_change(change) for change in one.changes if change.is_candidate][:MOST_CHANGES]


def _url(side: Side, template: str | None) -> str | None:
    """The address of the newest run of a side."""
    newest = side.runs.row(-1, named=True) if len(side.runs) else None
    return run_url(template, newest) if newest else None


def _document(one: Comparison, template: str | None) -> dict[str, Any]:
    return {
        "job": one.job,
        "verdict": one.verdict,
        "metrics": {f.metric.column: f.effect.change if f.effect else None for f in _wrong_findings(one)},
        "refused": [field.name for field in one.refused],
        "candidate_url": _url(one.candidate, template),
        "changes": _causes(one),
    }
