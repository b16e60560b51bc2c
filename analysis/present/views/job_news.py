"""What became worse in a job tonight, in words: for the first lines of the gate and for messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from shlex import quote
from typing import Any

from analysis.compare.comparability import Field
from analysis.compare.independent_records import LeftOut
from analysis.compare.verdict import VERDICTS
from analysis.nightly.cluster_nights import find_slow_night
from analysis.nightly.job_verdict import EndedSeries, JobVerdict, how_much_worse
from analysis.nightly.metric_verdict import MetricNight
from analysis.nightly.run_links import run_url
from analysis.present.numbers import percent, signed_percent
from analysis.present.parts import Sentence
from analysis.present.views.compare import describe_change, folded, less_work
from analysis.present.views.ending import ending_clauses
from analysis.present.views.noise_lines import slow_night_text, unstable_lines
from analysis.present.words import word
from analysis.stats.prediction import FEWEST, RECENT
from logparse.language import some, tr

# Metrics and changed settings that are named in a line, jobs that have a line of a kind, and lines of open changes.
MOST_METRICS, MOST_CHANGES, MOST_JOBS, MOST_OPEN = 3, 3, 4, 8
# Causes of open changes that have a line each.
MOST_CAUSES = 2
# Characters of a name that is shown whole in the line of a job.
LONGEST_NAME = 44
# Why a metric is suspicious that the next nights decide on.
UNDECIDED = ("one_night", "one_of_many")
# A smaller share is 0.
LEAST_SHARE = 5e-5


def first_lines(
    jobs: Sequence[JobVerdict], template: str | None = None, history: str | None = None
) -> Iterator[Sentence]:
    """What is new tonight: what, since when, the probable cause, what to do. Then what is open, and what to watch.

    An open change has one line, also where a job has several. ``template`` is the address of a run, ``history`` the one
    that commands must name.
    """
    ordered = sorted((part for job in jobs for part in job.by_step()), key=severity)
    new, still = ([job for job in ordered if job.news == news] for news in ("new", "still_open"))
    together = find_slow_night(jobs)
    if together:
        yield Sentence(slow_night_text(together), "warning")
    yield from _new_lines(new, template)
    yield from _infos(_what_to_do(new, history))
    yield from (Sentence(text, "warning") for text in _other_lines(jobs))
    yield from _open_lines(still)
    if not new:
        yield from _infos(_what_to_do(still, history))
    if any(not job.failed for job in still):
        yield from _infos(
            [tr("for first bad runs and owners: logparse history regressions{place}", place=_at(history))]
        )
    alone = [job for job in jobs_to_watch(ordered) if not together or job.name not in together.names]
    yield from _watch_lines(alone)
    yield from _infos([*unstable_lines(jobs), *_few_nights(ordered)])


def _infos(texts: Iterable[str]) -> Iterator[Sentence]:
    return (Sentence(text, "info") for text in texts)


def _new_lines(new: Sequence[JobVerdict], template: str | None) -> Iterator[Sentence]:
    """The jobs that became worse tonight; neighbours with the same cause share its line."""
    for cause, group in groupby(new[:MOST_JOBS], cause_text):
        jobs = list(group)
        yield from (Sentence(new_text(job), "warning", link=url_of(job, template)) for job in jobs)
        if cause:
            yield Sentence(_of_all(jobs, cause), "info")
    if len(new) > MOST_JOBS:
        yield Sentence(tr("new too: {names}", names=_names(new[MOST_JOBS:])), "warning")


def _of_all(jobs: Sequence[JobVerdict], text: str) -> str:
    """``text``, which holds of so many lines above it."""
    if len(jobs) == 2:
        return tr("both: {text}", text=text)
    return tr("all {n}: {text}", n=len(jobs), text=text) if len(jobs) > 1 else text


def severity(job: JobVerdict) -> tuple[int, bool, float]:
    """The order of jobs: crashed, then by the verdict, NaN first, then the largest change."""
    place = VERDICTS.index(job.verdict) if job.verdict else len(VERDICTS)
    size = how_much_worse(job.decisive) if job.decisive and not job.failed else 0.0
    return place, not any(metric.is_at_once for metric in job.metrics), -size


def jobs_to_watch(jobs: Sequence[JobVerdict]) -> list[JobVerdict]:
    """Those that are suspicious."""
    return [job for job in jobs if job.verdict == "suspicious"]


def _watch_lines(jobs: Sequence[JobVerdict]) -> Iterator[Sentence]:
    """What is not confirmed yet, and over how many nights its change is; the next nights decide."""
    for job in jobs[:MOST_JOBS]:
        metric, what, nights, why = job.decisive, "-", 1, tr("unconfirmed")
        if metric:
            what, nights = _size_first(metric), metric.night.nights if metric.night else 1
            why = why if metric.reason in UNDECIDED else word("night_reasons", metric.reason)
        over = tr("one night") if nights == 1 else tr("over {n} nights", n=nights)
        text = tr("watch {job}: {what}, {over}, {why}", job=name_in_line(job), what=what, over=over, why=why)
        yield Sentence(text, "info", cut=1)
    if len(jobs) > MOST_JOBS:
        yield Sentence(tr("watch too: {names}", names=some([job.name for job in jobs[MOST_JOBS:]])), "info")


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
        fields = {
            "job": job.name,
            "owners": owners,
            "what": changed_fields(job.changed),
            "run": job.runs["run_id"][0][:12],
        }
        yield tr("changed: {job}{owners}: {what} since run {run}, which begins a new baseline", **fields)


def _open_lines(still: Sequence[JobVerdict]) -> Iterator[Sentence]:
    """The changes that are still open, a line each; neighbours with the same cause share its line.

    Of few causes each has a line; else that of a single change follows it, as far as there is room.
    """
    groups = [(cause, list(group)) for cause, group in groupby(still[:MOST_OPEN], _cause_clause)]
    for cause, jobs in groups:
        own_line = cause and (len(jobs) > 1 or len(groups) <= MOST_CAUSES)
        inline = [cause] if cause and not own_line else []
        yield from (Sentence(tr("; ").join([_open_text(job), *inline]), "warning", cut=1) for job in jobs)
        if own_line:
            yield Sentence(_of_all(jobs, cause), "info", cut=1)
    if rest := still[MOST_OPEN:]:
        yield Sentence(tr("still open: {names}", names=_names(rest)), "warning", cut=2)


def _names(jobs: Sequence[JobVerdict]) -> str:
    known = [{"job": job.name, "day": f"{_since(job):%Y-%m-%d}", "run": _short_id(job)} for job in jobs]
    return some([tr("{job} since {day} (run {run})", **one) for one in known])


def _since(job: JobVerdict) -> datetime:
    """When the job became worse, or failed for the first time in a row."""
    when: datetime = job.failed_since if job.failed and job.failed_since else first_bad(job)["when"]
    return when


def _open_text(job: JobVerdict) -> str:
    """What is open of a job, the size before the name of the metric: the line may be cut at its end."""
    day = f"{_since(job):%Y-%m-%d}"
    if job.failed:
        what = word("left_out", job.failed.reason)
        fields = {"day": day, "job": name_in_line(job), "what": what, "n": job.failed_nights, "run": _short_id(job)}
        return tr("open since {day}: {job}: {what}, {n} nights in a row, newest run {run}", **fields)
    what = _size_first(job.decisive) if job.decisive else "-"
    text = tr("open since {day}: {job}: {what}", day=day, job=name_in_line(job), what=what)
    inside = all(metric.is_inside for metric in job.metrics if metric.is_open)
    return tr("; ").join([text, *[tr("tonight as expected")] * inside])


def name_in_line(job: JobVerdict) -> str:
    """The name of a job, as long as a line has room for."""
    return folded(job.name, LONGEST_NAME)


def _cause_clause(job: JobVerdict) -> str:
    """The likeliest cause in a few words; empty where none was looked for."""
    if job.failed:
        return ""
    if job.worse_before:
        return tr("it became worse slowly, no probable cause")
    if job.changes:
        return tr("probable cause: {names}", names=describe_change(job.changes[0]))
    return tr("no recorded change that night") if is_searched(job) else ""


def is_searched(job: JobVerdict) -> bool:
    """Whether the changes at the run at which the job became worse were looked for, and no other cause is known."""
    return job.began is not None and not job.less_work


def _short_id(job: JobVerdict) -> str:
    """The run to look at: that which failed, or at which the job became worse."""
    run_id: str = job.failed.run_id if job.failed else first_bad(job)["run_id"]
    return run_id[:12]


def _what_to_do(jobs: Sequence[JobVerdict], history: str | None) -> Iterator[str]:
    """The commands to go on with."""
    worse = [job for job in jobs if not job.failed]
    if crashed := next((job for job in jobs if job.failed), None):
        fields = {"run": _short_id(crashed), "place": _at(history)}
        yield tr("to see how it failed: logparse history show {run}{place}", **fields)
    if worse:
        run = _short_id(worse[0]) if len(worse) == 1 else "RUN"
        yield tr("if intended: logparse history accept {run} --reason TEXT{place}", run=run, place=_at(history))


def _at(history: str | None) -> str:
    """The flag of a command that must name the history."""
    return f" --history {quote(history)}" if history else ""


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
    return tr("changed: {fields}", fields=changed_fields(fields)) if fields else tr("no later run")


def changed_fields(fields: Sequence[Field]) -> str:
    """The fields that changed, each with its values before and since."""
    return "; ".join(f"{f.name} {_values(f.baseline)} -> {_values(f.candidate)}" for f in fields)


def refused_text(job: JobVerdict) -> str:
    """Why the newest run cannot be compared with those before it, and what to do."""
    return tr(
        "the newest run, {run}, is a different job: {fields}; "
        "if intended: logparse history accept {run} --reason TEXT; else define a separate job for it",
        run=job.newest["run_id"][:12],
        fields=changed_fields(job.refused),
    )


def _values(values: tuple[object, ...]) -> str:
    return tr(", ").join("-" if value is None else str(value) for value in values) or "-"


def new_text(job: JobVerdict) -> str:
    """What became worse, of whom, and since which run."""
    owners = owners_text(job)
    if job.failed and job.failed_tonight:
        return tr("new: {job}{owners}: {what}", job=job.name, owners=owners, what=failure(job.failed))
    what = tr(", ").join(map(_metric, job.new_metrics[:MOST_METRICS]))
    if any(metric.verdict == "less work" for metric in job.new_metrics):
        what = tr("; ").join([*map(less_work, job.less_work), what])
    fields = {"job": job.name, "owners": owners, "what": what, "run": run_text(first_bad(job))}
    text = tr("new: {job}{owners}: {what} since run {run}", **fields)
    a_day = job.leading.a_day if job.leading else None
    return tr("{text}, slowly: {change} a day", text=text, change=signed_percent(a_day)) if a_day else text


def cause_text(job: JobVerdict) -> str:
    """The changes that are the likeliest causes; empty where none was looked for."""
    if job.failed and job.failed_tonight:
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


def _size_first(metric: MetricNight) -> str:
    """A metric after the size of its change."""
    return " ".join([*filter(None, [_size(metric)]), tr(metric.metric.label)])


def _size(metric: MetricNight) -> str:
    """The change of a metric, or the share that it is now; empty where it is unknown."""
    night = metric.night
    if night is None or night.change is None:
        return ""
    if metric.metric.offset and night.level is not None:
        return percent((night.level + metric.metric.offset) * (1 + night.change) - metric.metric.offset, 2)
    return signed_percent(night.change if night.drift is None else night.drift)


def _metric(metric: MetricNight) -> str:
    """A metric with its change, or with what a share was before."""
    label, size, level = tr(metric.metric.label), _size(metric), metric.night.level if metric.night else None
    if size and metric.metric.offset and level is not None:
        then = percent(level, 2) if level > LEAST_SHARE else "0"
        return tr("{label} {now} (before {then})", label=label, now=size, then=then)
    return f"{label} {size}" if size else label


def first_bad(job: JobVerdict) -> Mapping[str, Any]:
    """The row of the run at which the job became worse."""
    ids = job.runs["run_id"].to_list()
    return job.runs.row(ids.index(job.began) if job.began else len(ids) - 1, named=True)


def run_text(run: Mapping[str, Any]) -> str:
    """A run by its id, release and day."""
    return f"{run['run_id'][:12]} ({run['release']}, {run['when']:%Y-%m-%d})"


def url_of(job: JobVerdict, template: str | None) -> str | None:
    """The address of the run at which the job became worse, or of which it failed, if it is known."""
    if job.failed and job.failed_tonight:
        return run_url(template, job.failed_row) if job.failed_row else None
    return run_url(template, first_bad(job))
