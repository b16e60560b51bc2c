"""What is new tonight, in at most ten lines of text or as JSON, for a chat. Empty where nothing is new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from analysis.nightly.job_verdict import JobVerdict, verdict_of
from analysis.present.views.compare import describe_change
from analysis.present.views.job_news import MOST_CHANGES, cause_text, first_bad, new_text, other_news, url_of
from analysis.present.views.jobs import news_line, title
from analysis.present.views.regressions import run_document
from analysis.present.words import word
from logparse.language import tr
from logparse.schema import SCHEMA_VERSION

# Lines of a message.
MOST_LINES = 10


def has_news(jobs: Sequence[JobVerdict]) -> bool:
    """Whether a job became worse tonight, recovered, is missing, or can no longer be compared."""
    return any(_kind(job) for job in jobs)


def _kind(job: JobVerdict) -> str | None:
    """What is new of a job; None where nothing is."""
    if job.news in ("new", "cleared"):
        return job.news
    if job.cleared:
        return "cleared"
    if job.changed_tonight:
        return "not_comparable" if job.refused else "changed"
    if job.ended_tonight:
        return "ended"
    return "missing" if job.missing and not job.missing_before and not job.is_idle else None


def news_text(jobs: Sequence[JobVerdict], template: str | None) -> str:
    """The verdict, the counts, and a line for each job with news; no more than MOST_LINES lines."""
    lines = [line for job in jobs for line in _lines(job, template)]
    room = MOST_LINES - 2
    if len(lines) > room:
        lines = [*lines[: room - 1], tr("{n} more", n=len(lines) - room + 1)]
    return "\n".join([title(jobs), news_line(jobs), *lines])


def _lines(job: JobVerdict, template: str | None) -> Iterator[str]:
    yield from other_news(job, first=True)
    if job.news != "new":
        return
    url = url_of(job, template)
    yield new_text(job) + (f" {url}" if url else "")
    if cause := cause_text(job):
        yield cause


def news_document(jobs: Sequence[JobVerdict], template: str | None) -> dict[str, Any]:
    """The message as JSON; ``text`` is what a chat shows."""
    return {
        "schema_version": SCHEMA_VERSION,
        "text": news_text(jobs, template),
        "verdict": verdict_of(jobs),
        "news": [_document(job, template) for job in jobs if _kind(job)],
    }


def _document(job: JobVerdict, template: str | None) -> dict[str, Any]:
    return {
        "job": job.name,
        "owners": list(job.owners),
        "news": _kind(job),
        "verdict": job.verdict,
        "failed": word("left_out", job.failed.reason) if job.failed else None,
        "metrics": {m.metric.column: m.night.change if m.night else None for m in job.new_metrics},
        "first_bad": run_document(first_bad(job), template) if job.news == "new" else None,
        "changes": [] if job.worse_before else list(map(describe_change, job.changes[:MOST_CHANGES])),
    }
