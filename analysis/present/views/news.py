"""What is new tonight, in at most ten lines of text or as JSON, for a chat. Empty where nothing is new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from analysis.nightly.gate_jobs import JobVerdict, verdict_of
from analysis.nightly.metric_verdict import MetricNight
from analysis.nightly.run_links import run_url
from analysis.present.numbers import signed_percent
from analysis.present.views.compare import describe_change
from analysis.present.views.jobs import failure, news_line, title
from analysis.present.views.regressions import run_document
from analysis.present.words import word
from logparse.language import tr
from logparse.schema import SCHEMA_VERSION

# Lines of a message; metrics and changed settings that are named in one of them.
MOST_LINES, MOST_METRICS, MOST_CHANGES = 10, 3, 3


def has_news(jobs: Sequence[JobVerdict]) -> bool:
    """Whether a job became worse tonight, or recovered."""
    return any(job.news in ("new", "cleared") for job in jobs)


def news_text(jobs: Sequence[JobVerdict], template: str | None) -> str:
    """The verdict, the counts, and a line for each job with news; no more than MOST_LINES lines."""
    lines = [line for job in jobs for line in _lines(job, template)]
    room = MOST_LINES - 2
    if len(lines) > room:
        lines = [*lines[: room - 1], tr("{n} more", n=len(lines) - room + 1)]
    return "\n".join([title(jobs), *news_line(jobs), *lines])


def _lines(job: JobVerdict, template: str | None) -> Iterator[str]:
    if job.news == "cleared":
        yield tr("cleared: {job}", job=job.name)
    if job.news != "new":
        return
    owners = tr(" (owned by {names})", names=", ".join(job.owners)) if job.owners else ""
    what = failure(job.failed) if job.failed else tr(", ").join(map(_metric, new_metrics(job)[:MOST_METRICS]))
    url = run_url(template, _first_bad(job))
    yield tr("new: {job}{owners}: {what}", job=job.name, owners=owners, what=what) + (f" {url}" if url else "")
    if job.changes and not job.failed:
        names = "; ".join(describe_change(change) for change in job.changes[:MOST_CHANGES])
        yield tr("probable cause: {names}", names=names)


def new_metrics(job: JobVerdict) -> list[MetricNight]:
    """The metrics that became worse tonight."""
    return [metric for metric in job.metrics if metric.is_new]


def _metric(metric: MetricNight) -> str:
    label = tr(metric.metric.label)
    change = metric.night.change if metric.night else None
    return label if change is None else f"{label} {signed_percent(change)}"


def _first_bad(job: JobVerdict) -> dict[str, Any]:
    ids = job.runs["run_id"].to_list()
    return job.runs.row(ids.index(job.began) if job.began else len(ids) - 1, named=True)


def news_document(jobs: Sequence[JobVerdict], template: str | None) -> dict[str, Any]:
    """The message as JSON; ``text`` is what a chat shows."""
    return {
        "schema_version": SCHEMA_VERSION,
        "text": news_text(jobs, template),
        "verdict": verdict_of(jobs),
        "news": [_document(job, template) for job in jobs if job.news in ("new", "cleared")],
    }


def _document(job: JobVerdict, template: str | None) -> dict[str, Any]:
    return {
        "job": job.name,
        "owners": list(job.owners),
        "news": job.news,
        "verdict": job.verdict,
        "failed": word("left_out", job.failed.reason) if job.failed else None,
        "metrics": {m.metric.column: m.night.change if m.night else None for m in new_metrics(job)},
        "first_bad": run_document(_first_bad(job), template) if job.news == "new" else None,
        "changes": [describe_change(change) for change in job.changes[:MOST_CHANGES]],
    }
