"""The newest run of every job for people and for the files of the gate. Parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from analysis.compare.independent_records import LeftOut
from analysis.compare.verdict import VERDICTS, Verdict
from analysis.nightly.cluster_nights import find_slow_night
from analysis.nightly.exclusions import Hidden
from analysis.nightly.exports import JudgedJobs
from analysis.nightly.job_facts import AcceptedChange
from analysis.nightly.job_runs import MOST_IDLE_DAYS
from analysis.nightly.job_steps import JobStep
from analysis.nightly.job_verdict import NEWS, EndedSeries, JobVerdict, verdict_of
from analysis.nightly.metric_verdict import MetricNight
from analysis.present.as_json import pick
from analysis.present.markdown import markdown
from analysis.present.metric_names import titled
from analysis.present.numbers import percent, signed_percent
from analysis.present.parts import Heading, Part, Sentence, Sentences, Table
from analysis.present.views.compare import less_work, named_changes
from analysis.present.views.compare_json import less_documents
from analysis.present.views.job_news import (
    UNDECIDED,
    changed_fields,
    failure,
    first_lines,
    jobs_to_watch,
    name_in_line,
    not_the_cause,
    other_news,
    owners_text,
    refused_text,
    run_text,
    severity,
    url_of,
)
from analysis.present.views.regressions import field_documents
from analysis.present.views.remarks import remark_sentences, remarks
from analysis.present.views.requirements import judgement_cases, judgement_documents, judgement_sentences, missed
from analysis.present.views.short_names import shorten_names
from analysis.present.words import word
from analysis.stats.prediction import FEWEST, RECENT
from logparse.language import speaking, tr
from logparse.light_dataclass import replace
from logparse.schema import SCHEMA_VERSION

# What needs no sentence of its own.
QUIET = ("as_expected", "one_night_better", "confirmed_better", "learning")
# Jobs that are named in one sentence, and rows of the table of a screen.
MOST_NAMED, MOST_ROWS = 5, 12


def compose_jobs(
    jobs: Sequence[JobVerdict], template: str | None = None, history: str | None = None, details: bool = True
) -> list[Part]:
    """The verdict on all, what is new, open and to watch, and a row for each other job.

    With ``details`` a row for each job, a sentence for each metric that needs one, what the numbers rest on.
    ``template`` is the address of a run, which is linked where a regression is named. ``history`` is the one that
    commands must name, because no setting does.
    """
    short, shared = shorten_names(jobs)
    head: list[Part] = [
        Heading(tr("; ").join([title(jobs), news_line(jobs)]), "title"),
        *(sentence for job in jobs for sentence in judgement_sentences(missed(job.tolerances), job.name)),
        *first_lines(short, template, history),
        Sentence(_counted(jobs, shared)),
    ]
    if not details:
        return [*head, *_tables(_not_named(short), accepted_size, MOST_ROWS), Sentences(list(_short_notes(short)))]
    return [
        *head,
        *_tables(short, accepted_change),
        *(part for job in jobs for part in _job_parts(job, template)),
        Sentences([Sentence(text, "info") for text in (*_notes(short), *_tests(short))]),
    ]


def _not_named(jobs: Sequence[JobVerdict]) -> list[JobVerdict]:
    """The jobs of which the first lines do not give the size of a change: the table has them."""
    return [replace(job, name=name_in_line(job)) for job in jobs if job.news not in ("new", "still_open")]


def _short_notes(jobs: Sequence[JobVerdict]) -> Iterator[Sentence]:
    if names := [job.name for job in jobs if job.hidden]:
        yield Sentence(tr("open regressions if excluded runs count: {names}", names=_some(names)), "warning")
    yield from (Sentence(text, "info") for text in _notes(jobs))
    yield Sentence(tr("-v shows every metric, its expected range, and all that changed"), "info")


def title(jobs: Sequence[JobVerdict]) -> str:
    """The verdict on all jobs that have one. Suspicious jobs are no alarm."""
    verdict = verdict_of(jobs)
    if verdict != "suspicious":
        return tr("verdict: {verdict}", verdict=word("verdicts", verdict)) if verdict else tr("no verdict")
    watched = jobs_to_watch(jobs)
    if all(job.decisive is not None and job.decisive.reason in UNDECIDED for job in watched):
        return tr("verdict: no regression; jobs to watch: {n}; the next nights confirm or clear them", n=len(watched))
    return tr("verdict: no regression; jobs to watch: {n}", n=len(watched))


def news_line(jobs: Sequence[JobVerdict]) -> str:
    """How many changes for the worse are new tonight, are still open, and ended."""
    counts = Counter(part.news for job in jobs for part in job.by_step())
    counts["cleared"] = sum(bool(job.cleared) or job.runs_again for job in jobs)
    has_other_news = any(True for job in jobs for _ in other_news(job, first=False))
    if (
        not has_other_news
        and not any(counts[news] for news in NEWS)
        and not any(missed(job.tolerances) for job in jobs)
    ):
        if unknown := sum(job.verdict == "insufficient data" for job in jobs):
            return tr("nothing new, nothing open; jobs with too few runs for a verdict: {n}", n=unknown)
        return tr("nothing new, nothing open: nothing to do tonight")
    numbers = {"new": counts["new"], "open": counts["still_open"], "cleared": counts["cleared"]}
    return tr("new tonight: {new}; still open: {open}; cleared: {cleared}", **numbers)


def _counted(jobs: Sequence[JobVerdict], shared: str) -> str:
    counts = Counter(job.verdict for job in jobs)
    parts = [tr("{n} {verdict}", n=counts[v], verdict=word("verdicts", v)) for v in VERDICTS if counts[v]]
    if refused := sum(bool(job.refused) for job in jobs):
        parts.append(tr("{n} not comparable", n=refused))
    if idle := sum(job.is_idle and not job.refused for job in jobs):
        parts.append(tr("{n} idle", n=idle))
    if missing := sum(job.missing and not job.is_idle for job in jobs):
        parts.append(tr("{n} missing tonight", n=missing))
    text = tr("jobs: {n} ({parts})", n=len(jobs), parts=tr(", ").join(parts))
    return tr("{text}; all: {shared}", text=text, shared=shared) if shared else text


def _tables(
    jobs: Sequence[JobVerdict], text_of: Callable[[AcceptedChange], str], most: int | None = None
) -> Iterator[Part]:
    """A row for each job, the worst first, in a table for each metric that jobs are first judged by.

    A row has the numbers of the metric that decides; what is refused has none. ``text_of`` is what it has of an
    accepted change. ``most`` rows are shown.
    """
    every = [job for job in jobs if job.metrics and job.verdict != "insufficient data"]
    judged = sorted(every, key=severity)[:most]
    for metric in dict.fromkeys(job.metrics[0].metric for job in judged):
        rows = tuple(_row(job, text_of) for job in judged if job.metrics[0].metric == metric)
        headings = (tr("job"), tr("verdict"), tr("newest"), tr("expected"), tr("change"))
        yield Table(headings, rows, caption=titled(metric), prose={1}, headed=True)
    if len(judged) < len(every):
        yield Sentence(tr("jobs that are not shown, none of them worse: {n}", n=len(every) - len(judged)), "info")


def _row(job: JobVerdict, text_of: Callable[[AcceptedChange], str]) -> tuple[str, ...]:
    first = job.decisive or job.metrics[0]
    verdict = tr("; ").join((_named_verdict(job), *dict.fromkeys(map(text_of, job.accepted))))
    if job.failed:
        return (job.name, verdict, "-", "-", "-")
    newest = first.metric.text(first.value)
    if first.metric != job.metrics[0].metric:
        newest = f"{newest} {first.metric.shown_unit}".rstrip()
    return (job.name, verdict, newest, _expected(first), _change(first))


def _named_verdict(job: JobVerdict) -> str:
    """The verdict on a job, with the metric that it is on where that is not the one of the table."""
    if not job.verdict:
        return "-"
    verdict = word("verdicts", job.verdict)
    metric = job.decisive
    if job.failed or metric is None or metric.metric == job.metrics[0].metric:
        return verdict
    return tr("{verdict}: {metric}", verdict=verdict, metric=tr(metric.metric.label))


def _expected(metric: MetricNight) -> str:
    night = metric.night
    if night is None or night.low is None or night.high is None:
        return "-"
    return tr("{low} to {high}", low=metric.metric.text(night.low), high=metric.metric.text(night.high))


def _change(metric: MetricNight) -> str:
    return "-" if metric.night is None or metric.night.own_change is None else signed_percent(metric.night.own_change)


def _job_parts(job: JobVerdict, template: str | None) -> Iterator[Part]:
    """For a job that is not as expected: what is not, since when, and what changed then."""
    sentences = list(_warnings(job))
    if not sentences:
        return
    yield Heading(job.name + owners_text(job))
    yield from (Sentence(text, "warning") for text in sentences)
    if job.changes:
        began = _run_text(job, job.began) if job.began else "-"
        names = named_changes(job.changes)
        changed = tr("changed at run {run} or next to it: {names}", run=began, names=names)
        yield Sentence(not_the_cause(names) if job.worse_before else changed, "warning")
    if job.began and (url := url_of(job, template)):
        yield Sentence(tr("the run at which it became worse"), "info", link=url)
    yield from remark_sentences(_named(job), remarks(job.runs))


def _named(job: JobVerdict) -> list[str]:
    """The runs that the sentences name."""
    ids = [job.newest["run_id"], *(metric.began for metric in job.metrics if metric.began)]
    return list(dict.fromkeys(ids))


def _warnings(job: JobVerdict) -> Iterator[str]:
    if job.failed:
        yield failure(job.failed)
    if job.refused:
        yield refusal(job)
    yield from (sentence(job, metric) for metric in job.metrics if metric.reason not in QUIET)
    yield from map(accepted, job.accepted)
    yield from map(hidden, job.hidden)
    yield from map(less_work, job.less_work)
    if job.missing and not job.is_idle:
        yield tr("missing tonight: its newest run began {when}", when=f"{job.newest_when:%Y-%m-%d %H:%M}")
    for run in job.left_out:
        if run == job.failed:
            continue
        yield tr("a later run, {name}, is not used: {why}", name=run.name, why=word("left_out", run.reason))


def accepted(known: AcceptedChange) -> str:
    """A change that is accepted, with its metric, the run, until when, and why."""
    fields = {"metric": tr(known.metric.label), "run": known.acceptance.run_id[:12]}
    return tr("{metric}: {text}, at run {run}", text=accepted_change(known), **fields)


def accepted_change(known: AcceptedChange) -> str:
    """How large an accepted change is, until when it is accepted, and why."""
    acceptance = known.acceptance
    limits = [
        tr("until {limit}", limit=limit) for limit in (acceptance.until, acceptance.until_release) if limit is not None
    ]
    return tr(
        "{change}, accepted {until} ({reason})",
        change=_how_much(known),
        until=tr(", ").join(limits) or tr("permanently"),
        reason=tr(", ").join(text for text in (acceptance.reason, acceptance.issue) if text),
    )


def accepted_size(known: AcceptedChange) -> str:
    """How large an accepted change is."""
    return tr("{change}, accepted", change=_how_much(known))


def _how_much(known: AcceptedChange) -> str:
    change = known.change
    if known.fields:
        return changed_fields(known.fields)
    if change is None:
        return tr("change unknown")
    if change * known.metric.direction <= 0:
        return signed_percent(change, 1)
    slower = known.metric.unit == "ms" or known.metric.rated
    amount = percent(abs(change))
    return tr("{amount} slower", amount=amount) if slower else tr("{amount} worse", amount=amount)


def hidden(found: Hidden) -> str:
    """What the exclusion of a run hides or cancels."""
    fields = {
        "metric": tr(found.metric.label),
        "run": found.run_id[:12],
        "reason": found.reason,
        "change": "-" if found.change is None else signed_percent(found.change),
    }
    if found.accepted:
        return tr("{metric}: {change} was accepted at run {run}, which is now excluded ({reason})", **fields)
    return tr("{metric}: {change} is an open regression if run {run} counts; it is excluded ({reason})", **fields)


def refusal(job: JobVerdict) -> str:
    """Why a job has no verdict: its newest run cannot be compared with those before it, or it no longer runs."""
    if job.is_idle:
        return tr("no run for {n} days", n=job.idle_days)
    return refused_text(job)


def sentence(job: JobVerdict, metric: MetricNight) -> str:
    """The verdict on one metric of a job with its reason, and since which run."""
    verdict = tr(
        "{metric}: {verdict} ({reason})",
        metric=tr(metric.metric.label),
        verdict=word("verdicts", metric.verdict),
        reason=word("night_reasons", metric.reason),
    )
    if metric.night is None or metric.night.change is None:
        return verdict
    value = tr(
        "{text}: {value}, expected {expected}, {change}",
        text=verdict,
        value=f"{metric.metric.text(metric.value)} {metric.metric.shown_unit}".rstrip(),
        expected=_expected(metric),
        change=_change(metric),
    )
    if metric.night.drift is not None:
        change, runs = signed_percent(metric.night.drift), RECENT
        return tr("{text}; {change} from the oldest runs to the last {n}", text=value, change=change, n=runs)
    if not metric.began:
        return value
    if metric.night.nights == 1:
        return tr("{text}, p {p}", text=value, p=_p(metric))
    return tr(
        "{text}; {change} over {n} nights since run {run}, p {p}",
        text=value,
        change=signed_percent(metric.night.change),
        n=metric.night.nights,
        run=_run_text(job, metric.began),
        p=_p(metric),
    )


def _run_text(job: JobVerdict, run_id: str) -> str:
    """A run of the job, with its release and day."""
    return run_text(job.runs.row(job.runs["run_id"].to_list().index(run_id), named=True))


def _p(metric: MetricNight) -> str:
    return "-" if metric.night is None or metric.night.p is None else f"{metric.night.p:.1g}"


def _notes(jobs: Sequence[JobVerdict]) -> Iterator[str]:
    idle = [job.name for job in jobs if job.is_idle]
    if idle:
        yield tr("no run for more than {n} days: {names}", n=MOST_IDLE_DAYS, names=_some(idle))
    new = [job.name for job in jobs if job.verdict == "insufficient data"]
    if new:
        yield tr("too few earlier runs (at least {n} needed): {names}", n=FEWEST, names=_some(new))


def _tests(jobs: Sequence[JobVerdict]) -> Iterator[str]:
    """What the expected ranges and the verdicts rest on."""
    tests = sum(metric.p is not None for job in jobs for metric in job.metrics)
    yield tr("expected: range of 99 of 100 runs like the earlier ones; the next run must confirm one outside it")
    if tests > 1:
        yield tr(
            "{n} metrics of {jobs} jobs are tested; the error over all confirmed changes is 5 % (Holm)",
            n=tests,
            jobs=len(jobs),
        )


def _some(names: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    first = tr("; ").join(names[:MOST_NAMED])
    return tr("{names} and {n} more", names=first, n=len(names) - MOST_NAMED) if len(names) > MOST_NAMED else first


def judged_jobs(
    jobs: Sequence[JobVerdict],
    strict: bool,
    failing: frozenset[Verdict],
    only_new: bool = False,
    template: str | None = None,
    history: str | None = None,
) -> JudgedJobs:
    """``jobs`` with what their files say in words; ``template`` and ``history`` as for compose_jobs."""

    def sentence_of(job: JobVerdict, metric: MetricNight) -> str:
        with speaking("en"):
            return sentence(job, metric)

    def refusal_of(job: JobVerdict) -> str:
        with speaking("en"):
            return refusal(job)

    def failure_of(run: LeftOut) -> str:
        with speaking("en"):
            return failure(run)

    with speaking("en"):
        details = markdown(compose_jobs(jobs, template, history))
    summary = markdown(compose_jobs(jobs, template, history))
    required = {job.name: judgement_cases(job.tolerances) for job in jobs}
    return JudgedJobs(
        jobs, strict, failing, only_new, summary, details, sentence_of, refusal_of, failure_of, required=required
    )


# The keys of a job; all but these few are attributes of its verdict.
JOB = """name owners baseline verdict news runs newest metrics comparable refused refusal idle_days accepted hidden
 ended failed failed_nights missing missing_before less_work requirements since worse_before changes changed steps
 testbeds left_out"""
STEP = (
    "state is_news since last_good ended block metrics drift change_a_day slow causes reason issue until until_release"
)
TESTBED = "verdict value change"
RUN = ("run_id", "name", "release", "when")
ACCEPTANCE = ("reason", "issue", "until", "until_release")
ACCEPTED = "metric change since reason issue until until_release text"
METRIC = "verdict reason reason_code unit value threshold expected since p_worse p_family"


def document(jobs: Sequence[JobVerdict]) -> dict[str, Any]:
    """The JSON document, the same in every language."""
    with speaking("en"):
        documents = [_job(job) for job in jobs]
    slow = find_slow_night(jobs)
    night = pick(slow, "names jobs change p nights") if slow else None
    return {"schema_version": SCHEMA_VERSION, "verdict": verdict_of(jobs), "slow_night": night, "jobs": documents}


def _job(job: JobVerdict) -> dict[str, Any]:
    return pick(
        job,
        JOB,
        runs=len(job.runs),
        newest={key: job.newest[key] for key in RUN},
        metrics={metric.metric.column: _metric_document(job, metric) for metric in job.metrics},
        comparable=not job.refused,
        refused=field_documents(job.refused),
        refusal=refusal(job) if job.refused or job.is_idle else None,
        accepted=[
            pick(
                one.acceptance,
                ACCEPTED,
                metric=one.metric.column,
                change=one.change,
                since=one.acceptance.run_id,
                text=accepted_change(one),
            )
            for one in job.accepted
        ],
        hidden=[
            pick(one, "metric change run_id excluded accepted", metric=one.metric.column, excluded=one.reason)
            for one in job.hidden
        ],
        ended=_ended(job.ended) if job.ended else None,
        less_work=less_documents(job.less_work),
        requirements=judgement_documents(job.tolerances),
        since=job.began,
        changed=field_documents(job.changed),
        steps=[_step(job, step) for step in job.steps],
        testbeds={
            block: {one.metric.column: pick(one, TESTBED, change=_change_of(one)) for one in metrics}
            for block, metrics in job.testbeds.items()
            if block is not None
        },
    )


def _step(job: JobVerdict, step: JobStep) -> dict[str, Any]:
    """A change of the level of a job."""
    ids = job.runs["run_id"].to_list()
    at = ids.index(step.began)
    acceptance = step.acceptance
    return pick(
        step,
        STEP,
        since={key: job.runs.row(at, named=True)[key] for key in RUN},
        last_good={key: job.runs.row(at - 1, named=True)[key] for key in RUN} if at else None,
        metrics=step.changes,
        drift=step.is_drift,
        change_a_day=step.a_day,
        slow=step.is_slow,
        causes=step.causes,
        **{name: getattr(acceptance, name) if acceptance else None for name in ACCEPTANCE},
    )


def _change_of(metric: MetricNight) -> float | None:
    return metric.night.change if metric.night else None


def _ended(ended: EndedSeries) -> dict[str, Any]:
    """An open regression of a series that ended."""
    return pick(
        ended,
        "name since last_run when metrics changed",
        name=ended.job.name,
        since=ended.job.began,
        last_run=ended.job.newest["run_id"],
        metrics={m.metric.column: m.night.change if m.night else None for m in ended.job.metrics if m.is_open},
        changed=field_documents(ended.fields),
    )


def _metric_document(job: JobVerdict, metric: MetricNight) -> dict[str, Any]:
    return pick(
        metric,
        METRIC,
        reason=sentence(job, metric),
        reason_code=metric.reason,
        unit=metric.metric.unit,
        threshold=metric.least,
        expected=metric.night,
        since=metric.began,
        p_worse=metric.p,
    )
