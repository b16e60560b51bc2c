"""What became worse in a job tonight, in words: for the first lines of the gate and for messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analysis.compare.independent_records import LeftOut
from analysis.nightly.gate_jobs import JobVerdict
from analysis.nightly.metric_verdict import MetricNight
from analysis.nightly.run_links import run_url
from analysis.present.numbers import signed_percent
from analysis.present.parts import Sentence
from analysis.present.views.compare import describe_change
from analysis.present.views.ending import ending_clauses
from analysis.present.words import word
from logparse.language import tr

# Metrics and changed settings that are named in a line; jobs that have one.
MOST_METRICS, MOST_CHANGES, MOST_JOBS = 3, 3, 3


def first_lines(jobs: Sequence[JobVerdict]) -> Iterator[Sentence]:
    """For the first jobs that became worse tonight: what, since when, the probable cause, and what to do."""
    new = [job for job in jobs if job.news == "new"]
    for job in new[:MOST_JOBS]:
        yield Sentence(new_text(job), "warning")
        if cause := cause_text(job):
            yield Sentence(cause, "info")
    accepting = next((job for job in new if not job.failed), None)
    if accepting:
        run = first_bad(accepting)["run_id"][:12]
        yield Sentence(tr("to accept it: logparse history accept {run} --reason TEXT", run=run), "info")


def new_text(job: JobVerdict) -> str:
    """What became worse, of whom, and since which run."""
    owners = tr(" (owned by {names})", names=", ".join(job.owners)) if job.owners else ""
    if job.failed:
        return tr("new: {job}{owners}: {what}", job=job.name, owners=owners, what=failure(job.failed))
    what = tr(", ").join(map(_metric, job.new_metrics[:MOST_METRICS]))
    fields = {"job": job.name, "owners": owners, "what": what, "run": run_text(first_bad(job))}
    return tr("new: {job}{owners}: {what} since run {run}", **fields)


def cause_text(job: JobVerdict) -> str:
    """The changes that are the likeliest causes; empty where none is known."""
    if job.failed or not job.changes:
        return ""
    names = "; ".join(describe_change(change) for change in job.changes[:MOST_CHANGES])
    more = len(job.changes) - MOST_CHANGES
    text = tr("probable cause: {names}", names=names)
    return tr("{names}; and {n} more", names=text, n=more) if more > 0 else text


def failure(run: LeftOut) -> str:
    """Why the newest run has no numbers to judge."""
    why = tr("; ").join([word("left_out", run.reason), *ending_clauses(run.ending)])
    return tr("the newest run, {name} ({run}), failed: {why}", name=run.name, run=run.run_id[:12], why=why)


def _metric(metric: MetricNight) -> str:
    label = tr(metric.metric.label)
    change = metric.night.change if metric.night else None
    return label if change is None else f"{label} {signed_percent(change)}"


def first_bad(job: JobVerdict) -> Mapping[str, Any]:
    """The row of the run at which the job became worse."""
    ids = job.runs["run_id"].to_list()
    return job.runs.row(ids.index(job.began) if job.began else len(ids) - 1, named=True)


def run_text(run: Mapping[str, Any]) -> str:
    """A run by its id, release and day."""
    return f"{run['run_id'][:12]} ({run['release']}, {run['when']:%Y-%m-%d})"


def url_of(job: JobVerdict, template: str | None) -> str | None:
    """The address of the run at which the job became worse."""
    return run_url(template, first_bad(job))
