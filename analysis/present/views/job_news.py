"""What became worse in a job tonight, in words: for the first lines of the gate and for messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from analysis.compare.comparability import Field
from analysis.compare.independent_records import LeftOut
from analysis.nightly.ended_series import EndedSeries
from analysis.nightly.gate_jobs import JobVerdict
from analysis.nightly.metric_verdict import MetricNight
from analysis.nightly.run_links import run_url
from analysis.present.numbers import signed_percent
from analysis.present.parts import Sentence
from analysis.present.views.compare import describe_change
from analysis.present.views.ending import ending_clauses
from analysis.present.words import word
from logparse.language import some, tr

# Metrics and changed settings that are named in a line; jobs that have one, and open ones that have one.
MOST_METRICS, MOST_CHANGES, MOST_JOBS, MOST_OPEN = 3, 3, 3, 4


def first_lines(jobs: Sequence[JobVerdict], template: str | None = None) -> Iterator[Sentence]:
    """What is new tonight, then what is still open: what, since when, the probable cause, and what to do.

    ``template`` is the address of a run.
    """
    new = [job for job in jobs if job.news == "new"]
    for job in new[:MOST_JOBS]:
        yield Sentence(new_text(job), "warning", link=url_of(job, template))
        if cause := cause_text(job):
            yield Sentence(cause, "info")
    if len(new) > MOST_JOBS:
        yield Sentence(tr("new too: {names}", names=_names(new[MOST_JOBS:])), "warning")
    yield from (Sentence(text, "warning") for text in _other_lines(jobs))
    yield from (Sentence(text, "info") for text in _what_to_do(jobs, new))
    yield from _open_lines([job for job in jobs if job.news == "still_open"], MOST_OPEN - len(new))


def _other_lines(jobs: Sequence[JobVerdict]) -> Iterator[str]:
    """What is cleared, not comparable or missing; jobs that are missing together, as after an outage, in one line."""
    missing = [job for job in jobs if job.missing and not job.is_idle and not job.refused and job.news != "cleared"]
    together = missing if len(missing) > MOST_JOBS else []
    names = [job.name for job in together]
    yield from (text for job in jobs if job.name not in names for text in other_news(job, first=False))
    if together:
        yield tr("missing tonight: {names}", names=some(names))


def other_news(job: JobVerdict, first: bool) -> Iterator[str]:
    """What is cleared, missing or not comparable; with ``first`` only on the first night of it."""
    owners = owners_text(job)
    if job.news == "cleared":
        names = tr(", ").join(tr(m.metric.label) for m in job.metrics if m.reason == "cleared")
        yield tr("cleared: {job}{owners}: {what}", job=job.name, owners=owners, what=names)
    if job.ended_lately and (job.ended_tonight or not first):
        yield ended_text(job.ended_lately)
    if job.missing and not job.is_idle and not (first and job.missing_before):
        when = f"{job.newest_when:%Y-%m-%d %H:%M}"
        yield tr("missing tonight: {job}{owners}: its newest run began {when}", job=job.name, owners=owners, when=when)
    if job.refused and (job.is_refused_first or not first):
        what = refused_text(job)
        yield tr("not comparable: {job}{owners}: {what}", job=job.name, owners=owners, what=what)


def _open_lines(jobs: Sequence[JobVerdict], most: int) -> Iterator[Sentence]:
    """The jobs that are still worse, the newest regression first; where there is no room, their names."""
    if not jobs:
        return
    ordered = sorted(jobs, key=_since, reverse=True)
    lines = ordered[: most if len(ordered) <= most else max(0, most - 1)]
    yield from (Sentence(_open_text(job), "warning") for job in lines)
    if rest := ordered[len(lines) :]:
        yield Sentence(tr("still open: {names}", names=_names(rest)), "warning")


def _names(jobs: Sequence[JobVerdict]) -> str:
    return some([tr("{job} since {day}", job=job.name, day=f"{_since(job):%Y-%m-%d}") for job in jobs])


def _since(job: JobVerdict) -> datetime:
    """When the job became worse, or failed for the first time in a row."""
    when: datetime = job.failed_since if job.failed and job.failed_since else first_bad(job)["when"]
    return when


def _open_text(job: JobVerdict) -> str:
    fields = {"day": f"{_since(job):%Y-%m-%d}", "job": job.name}
    if job.failed:
        what = word("left_out", job.failed.reason)
        return tr("open since {day}: {job}: {what}, {n} nights in a row", what=what, n=job.failed_nights, **fields)
    found = job.decisive
    text = tr("open since {day}: {job}: {what}", what=_metric(found) if found else "-", **fields)
    if not job.changes or job.worse_before:
        return text
    return tr("{text}; perhaps {cause}", text=text, cause=describe_change(job.changes[0]))


def _what_to_do(jobs: Sequence[JobVerdict], new: Sequence[JobVerdict]) -> Iterator[str]:
    crashed = next((job.failed for job in new if job.failed), None)
    if crashed:
        yield tr("to see how it failed: logparse history show {run}", run=crashed.run_id[:12])
    accepting = next((job for job in new if not job.failed), None)
    if accepting:
        run = first_bad(accepting)["run_id"][:12]
        yield tr("to accept it: logparse history accept {run} --reason TEXT", run=run)
    elif any(job.news == "still_open" and not job.failed for job in jobs):
        yield tr("owners, first bad and last good runs: logparse history regressions")


def owners_text(job: JobVerdict) -> str:
    """Who is responsible, in parentheses; empty where nobody is named."""
    return tr(" (owned by {names})", names=", ".join(job.owners)) if job.owners else ""


def ended_text(ended: EndedSeries) -> str:
    """The open regression of a series that ended: of whom, since when, until when, and what changed then."""
    job, decisive = ended.job, ended.job.decisive
    return tr(
        "open since {day}, its series ended on {end} ({why}): {job}{owners}: {what}",
        day=f"{first_bad(job)['when']:%Y-%m-%d}",
        end=f"{ended.when:%Y-%m-%d}",
        why=ended_by(ended.fields),
        job=job.name,
        owners=owners_text(job),
        what=_metric(decisive) if decisive else "-",
    )


def ended_by(fields: Sequence[Field]) -> str:
    """Why a series ended: the fields that changed."""
    return tr("changed: {fields}", fields=_fields(fields)) if fields else tr("no later run")


def _fields(fields: Sequence[Field]) -> str:
    return "; ".join(f"{f.name} {_values(f.baseline)} -> {_values(f.candidate)}" for f in fields)


def refused_text(job: JobVerdict) -> str:
    """Why the newest run cannot be compared with those before it, and what to do."""
    return tr(
        "the newest run, {run}, is a different job: {fields}; define a separate job for it",
        run=job.newest["run_id"][:12],
        fields=_fields(job.refused),
    )


def _values(values: tuple[object, ...]) -> str:
    return tr(", ").join("-" if value is None else str(value) for value in values) or "-"


def new_text(job: JobVerdict) -> str:
    """What became worse, of whom, and since which run."""
    owners = owners_text(job)
    if job.failed and job.failed_nights <= 1:
        return tr("new: {job}{owners}: {what}", job=job.name, owners=owners, what=failure(job.failed))
    what = tr(", ").join(map(_metric, job.new_metrics[:MOST_METRICS]))
    fields = {"job": job.name, "owners": owners, "what": what, "run": run_text(first_bad(job))}
    return tr("new: {job}{owners}: {what} since run {run}", **fields)


def cause_text(job: JobVerdict) -> str:
    """The changes that are the likeliest causes; empty where none is known."""
    if (job.failed and job.failed_nights <= 1) or not job.changes:
        return ""
    names = "; ".join(describe_change(change) for change in job.changes[:MOST_CHANGES])
    more = len(job.changes) - MOST_CHANGES
    names = tr("{names}; and {n} more", names=names, n=more) if more > 0 else names
    return not_the_cause(names) if job.worse_before else tr("probable cause: {names}", names=names)


def not_the_cause(names: str) -> str:
    """What is reported of changes in the middle of a slow growth."""
    return tr("no probable cause: the job had slowly become worse before this changed: {names}", names=names)


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
    """The address of the run at which the job became worse, or of which it failed, if it is known."""
    if job.failed and job.failed_nights <= 1:
        return run_url(template, job.failed_row) if job.failed_row else None
    return run_url(template, first_bad(job))
