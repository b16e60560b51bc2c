"""What became worse in a job tonight, in words: for the first lines of the gate and for messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from shlex import quote
from typing import Any

from analysis.compare.comparability import Field
from analysis.compare.independent_records import LeftOut
from analysis.compare.verdict import VERDICTS
from analysis.nightly.job_verdict import EndedSeries, JobVerdict, how_much_worse
from analysis.nightly.metric_verdict import MetricNight
from analysis.nightly.run_links import run_url
from analysis.present.numbers import percent, signed_percent
from analysis.present.parts import Sentence
from analysis.present.views.compare import describe_change
from analysis.present.views.ending import ending_clauses
from analysis.present.words import word
from analysis.stats.prediction import FEWEST, RECENT
from logparse.language import some, tr

# Metrics and changed settings that are named in a line, and jobs that have one.
MOST_METRICS, MOST_CHANGES, MOST_JOBS = 3, 3, 4
# A smaller share is 0.
LEAST_SHARE = 5e-5


def first_lines(
    jobs: Sequence[JobVerdict], template: str | None = None, history: str | None = None
) -> Iterator[Sentence]:
    """What is new tonight and what is still open: what, since when, the probable cause; then what to do.

    Last what to watch. ``template`` is the address of a run, ``history`` the one that commands must name.
    """
    ordered = sorted(jobs, key=severity)
    new = [job for job in ordered if job.news == "new"]
    still = [job for job in ordered if job.news == "still_open"]
    for job in new[:MOST_JOBS]:
        yield Sentence(new_text(job), "warning", link=url_of(job, template))
        if cause := cause_text(job):
            yield Sentence(cause, "info")
    if len(new) > MOST_JOBS:
        yield Sentence(tr("new too: {names}", names=_names(new[MOST_JOBS:])), "warning")
    yield from _open_lines(still, max(0, MOST_JOBS - len(new)))
    yield from (Sentence(text, "warning") for text in _other_lines(jobs))
    yield from (Sentence(text, "info") for text in _what_to_do(new, still, history))
    yield from (Sentence(text, "info") for text in _watch_lines(jobs_to_watch(ordered)))
    yield from (Sentence(text, "info") for text in _few_nights(ordered))


def severity(job: JobVerdict) -> tuple[int, bool, float]:
    """The order of jobs: crashed, then by the verdict, NaN first, then the largest change."""
    place = VERDICTS.index(job.verdict) if job.verdict else len(VERDICTS)
    size = how_much_worse(job.decisive) if job.decisive and not job.failed else 0.0
    return place, not any(metric.is_at_once for metric in job.metrics), -size


def jobs_to_watch(jobs: Sequence[JobVerdict]) -> list[JobVerdict]:
    """Those that are suspicious."""
    return [job for job in jobs if job.verdict == "suspicious"]


def _watch_lines(jobs: Sequence[JobVerdict]) -> Iterator[str]:
    """What is not confirmed yet, and over how many nights its change is; the next nights decide."""
    for job in jobs[:MOST_JOBS]:
        what, nights = "-", 1
        if job.decisive:
            what, nights = _metric(job.decisive), job.decisive.night.nights if job.decisive.night else 1
        over = tr("one night") if nights == 1 else tr("over {n} nights", n=nights)
        yield tr("watch {job}: {what}, {over}, unconfirmed", job=job.name, what=what, over=over)
    if len(jobs) > MOST_JOBS:
        yield tr("watch too: {names}", names=some([job.name for job in jobs[MOST_JOBS:]]))


def _few_nights(jobs: Sequence[JobVerdict]) -> Iterator[str]:
    """How short the history is, where that limits what to watch, or the verdict on all jobs."""
    watched = min((len(job.runs) for job in jobs_to_watch(jobs)), default=RECENT)
    if watched < RECENT:
        text = tr(
            "only {n} nights of history; with fewer than {most} the expected range is rough", n=watched, most=RECENT
        )
        yield text
    nights = max(len(job.runs) for job in jobs)
    if nights <= FEWEST and not any(job.is_idle for job in jobs):
        yield tr("only {n} nights of history; a verdict needs {least}", n=nights, least=FEWEST + 1)


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
    names = [tr(one.metric.label) for step in job.cleared for one in step.steps]
    if job.runs_again:
        names.insert(0, tr("it runs again (failed nights before: {n})", n=job.failed_before))
    if names and not job.failed:
        yield tr("cleared: {job}{owners}: {what}", job=job.name, owners=owners, what=tr(", ").join(names))
    if job.ended_lately and (job.ended_tonight or not first):
        yield ended_text(job.ended_lately)
    if job.missing and not job.is_idle and not (first and job.missing_before):
        when = f"{job.newest_when:%Y-%m-%d %H:%M}"
        yield tr("missing tonight: {job}{owners}: its newest run began {when}", job=job.name, owners=owners, when=when)
    if job.refused:
        what = refused_text(job)
        yield tr("not comparable: {job}{owners}: {what}", job=job.name, owners=owners, what=what)
    elif job.changed and (job.changed_tonight or not first):
        fields = {"job": job.name, "owners": owners, "what": _fields(job.changed), "run": job.runs["run_id"][0][:12]}
        yield tr("changed: {job}{owners}: {what} since run {run}, which begins a new baseline", **fields)


def _open_lines(jobs: Sequence[JobVerdict], most: int) -> Iterator[Sentence]:
    """The jobs that are still worse, in the given order; where there is no room, their names."""
    yield from (Sentence(_open_text(job), "warning") for job in jobs[:most])
    if rest := jobs[most:]:
        yield Sentence(tr("still open: {names}", names=_names(rest)), "warning")


def _names(jobs: Sequence[JobVerdict]) -> str:
    known = [{"job": job.name, "day": f"{_since(job):%Y-%m-%d}", "run": _short_id(job)} for job in jobs]
    return some([tr("{job} since {day} (run {run})", **one) for one in known])


def _since(job: JobVerdict) -> datetime:
    """When the job became worse, or failed for the first time in a row."""
    when: datetime = job.failed_since if job.failed and job.failed_since else first_bad(job)["when"]
    return when


def _open_text(job: JobVerdict) -> str:
    day, name = f"{_since(job):%Y-%m-%d}", job.name
    if job.failed:
        fields = {"what": word("left_out", job.failed.reason), "n": job.failed_nights, "run": _short_id(job)}
        return tr("open since {day}: {job}: {what}, {n} nights in a row, newest run {run}", day=day, job=name, **fields)
    what = _metric(job.decisive) if job.decisive else "-"
    text = tr("open since {day} (run {run}): {job}: {what}", day=day, run=_short_id(job), job=name, what=what)
    inside = all(metric.is_inside for metric in job.metrics if metric.is_open)
    return tr("; ").join([text, *[tr("tonight as expected")] * inside, *_cause_clause(job)])


def _cause_clause(job: JobVerdict) -> Iterator[str]:
    """The likeliest cause in a few words."""
    if job.worse_before:
        yield tr("it became worse slowly, no probable cause")
    elif job.changes:
        yield tr("probable cause: {names}", names=describe_change(job.changes[0]))
    elif is_searched(job):
        yield tr("no recorded change that night")


def is_searched(job: JobVerdict) -> bool:
    """Whether the changes at the run at which the job became worse were looked for, and no other cause is known."""
    return job.began is not None and not job.less_work


def _short_id(job: JobVerdict) -> str:
    """The run to look at: that which failed, or at which the job became worse."""
    run_id: str = job.failed.run_id if job.failed else first_bad(job)["run_id"]
    return run_id[:12]


def _what_to_do(new: Sequence[JobVerdict], still: Sequence[JobVerdict], history: str | None) -> Iterator[str]:
    """The commands to go on with."""
    place = f" --history {quote(history)}" if history else ""
    worse = [job for job in (*new, *still) if not job.failed]
    if crashed := next((job for job in (*new, *still) if job.failed), None):
        yield tr("to see how it failed: logparse history show {run}{place}", run=_short_id(crashed), place=place)
    if len(worse) == 1:
        yield tr(
            "if intended: logparse history accept {run} --reason TEXT{place}", run=_short_id(worse[0]), place=place
        )
    elif worse:
        yield tr("if intended: logparse history accept RUN --reason TEXT{place}", place=place)
    if any(not job.failed for job in still):
        yield tr("for first bad runs and owners: logparse history regressions{place}", place=place)


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
        "the newest run, {run}, is a different job: {fields}; "
        "if intended: logparse history accept {run} --reason TEXT; else define a separate job for it",
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
    """The changes that are the likeliest causes; empty where none was looked for."""
    if job.failed and job.failed_nights <= 1:
        return ""
    if not job.changes:
        return tr("no recorded change that night") if is_searched(job) else ""
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
    night = metric.night
    if night is None or night.change is None:
        return label
    if metric.metric.offset and night.level is not None:
        share = (night.level + metric.metric.offset) * (1 + night.change) - metric.metric.offset
        fields = {"now": percent(share, 2), "then": percent(night.level, 2) if night.level > LEAST_SHARE else "0"}
        return tr("{label} {now} (before {then})", label=label, **fields)
    return f"{label} {signed_percent(night.change)}"


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
