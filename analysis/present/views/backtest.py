"""Nights of the past as they would have been judged, for people and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from analysis.nightly.job_verdict import JobVerdict, News, verdict_of
from analysis.nightly.past_nights import JudgedNight
from analysis.present.parts import Heading, Part, Sentence, Table
from analysis.present.words import word
from logparse.language import some, tr
from logparse.schema import SCHEMA_VERSION

# Whether the jobs of a night fail the gate.
Fails = Callable[[Sequence[JobVerdict]], bool]
# Jobs that are named in a cell.
MOST_NAMED = 3


def compose_backtest(nights: Sequence[JudgedNight], fails: Fails) -> list[Part]:
    """How many nights fail, then a row for each night."""
    failed = sum(fails(night.jobs) for night in nights)
    new = sum(bool(_named(night, "new")) for night in nights)
    headings = (tr("night"), tr("verdict"), tr("exit"), tr("new"), tr("open"), tr("cleared"), tr("what is new"))
    rows = [_row(night, fails) for night in nights]
    return [
        Heading(tr("backtest of {n} nights", n=len(nights)), "title"),
        Sentence(tr("nights that fail the gate: {failed}; nights with something new: {new}", failed=failed, new=new)),
        Table(headings, rows, prose={1, 6}, headed=True),
    ]


def _row(night: JudgedNight, fails: Fails) -> tuple[str, ...]:
    verdict = verdict_of(night.jobs) if night.jobs else None
    counts = (str(len(_named(night, news))) for news in ("new", "still_open", "cleared"))
    what = night.problem or some([_what(job) for job in _named(night, "new")], MOST_NAMED) or "-"
    return (
        f"{night.day}",
        word("verdicts", verdict) if verdict else "-",
        str(int(fails(night.jobs))),
        *counts,
        what,
    )


def _named(night: JudgedNight, news: News) -> list[JobVerdict]:
    return [job for job in night.jobs if job.news == news]


def _what(job: JobVerdict) -> str:
    if job.failed:
        return tr("{job}: {what}", job=job.name, what=word("verdicts", "crashed"))
    metrics = tr(", ").join(tr(metric.metric.label) for metric in job.new_metrics)
    return tr("{job}: {what}", job=job.name, what=metrics)


def document(nights: Sequence[JudgedNight], fails: Fails) -> dict[str, Any]:
    """The document, the same in every language."""
    return {"schema_version": SCHEMA_VERSION, "nights": [_document(night, fails) for night in nights]}


def _document(night: JudgedNight, fails: Fails) -> dict[str, Any]:
    new = {
        job.name: ["crashed"] if job.failed else [metric.metric.column for metric in job.new_metrics]
        for job in _named(night, "new")
    }
    return {
        "day": night.day.isoformat(),
        "verdict": verdict_of(night.jobs) if night.jobs else None,
        "fails": fails(night.jobs),
        "new": new,
        "still_open": [job.name for job in _named(night, "still_open")],
        "cleared": [job.name for job in _named(night, "cleared")],
        "problem": night.problem or None,
    }
