"""The newest run of every job against those before it: the gate of a night.

Comes in: the runs of a history and a Policy. Goes out: a JobVerdict for each job. The first metric of all jobs is one
family of tests, and their other metrics are another, each held together by Holm's procedure as in one comparison.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import partial

import polars as pl

from analysis.compare.comparability import Field
from analysis.compare.independent_records import Observations, fill_from_job, find_jobs, sample_of
from analysis.compare.job_name import job_name
from analysis.compare.multiple_testing import step_down
from analysis.compare.verdict import CLOSE, DEFAULT_METRIC
from analysis.compare.work_difference import Less, flatters, is_setting_of_work
from analysis.metrics import FINAL_LOSS
from analysis.nightly.cluster_nights import nights_slow_together
from analysis.nightly.exclusions import Hidden, find_hidden
from analysis.nightly.job_facts import (
    LOSSES_READ,
    HistoryOfJobs,
    accepted_changes,
    by_effect,
    does_count,
    failed_nights,
    failed_since,
    is_known,
    judge_newest_losses,
    losses_at_the_end,
    work_of_sides,
)
from analysis.nightly.job_runs import (
    FAILED,
    MOST_FIELDS,
    MOST_IDLE_DAYS,
    block_of,
    comparable_with_newest,
    differing,
    ids_of_tonight,
    in_time,
    is_missing,
    nothing_to_judge,
    place_baseline,
    split_jobs,
    usable_baseline,
    without_failed,
)
from analysis.nightly.job_steps import JobStep, StepContext, find_job_steps
from analysis.nightly.job_verdict import EndedSeries, JobVerdict
from analysis.nightly.metric_verdict import MOST_ENDED_DAYS, MetricNight, MetricRuns
from analysis.nightly.policy import JobRule, Policy
from analysis.nightly.testbeds import Testbeds, find_steps_of_testbeds, judge_testbeds, worst_of_testbeds
from analysis.nightly.trend import split_series
from analysis.stats.noise import LEVEL
from analysis.stats.prediction import FEWEST, KEPT
from logparse.errors import UsageError
from logparse.language import tr
from logparse.light_dataclass import replace

# Kinds of work that settings show, not results.
BY_SETTINGS = ("samples", "length", "tokens", "attention", "weights", "experts", "window", "layers")


def judge_jobs(runs: pl.DataFrame, policy: Policy, history: HistoryOfJobs) -> list[JobVerdict]:
    """The verdict on the newest run of each job, in the order of the policy.

    Raises UsageError where a job selects no run that can be judged, or there is none at all.
    """
    same = find_jobs(runs)
    # Runs of old stores may have no time at all: nobody knows which is the newest.
    records = in_time(fill_from_job(runs, same)).drop_nulls("when")
    split = split_jobs(records, policy)
    samples = [(rule, job, without_failed(job, sample_of(job, same), rule)) for rule, job in split]
    jobs = [(rule, job, sample) for rule, job, sample in samples if _has_runs(rule, sample)]
    if not jobs:
        raise nothing_to_judge()
    # A clock that is ahead makes no other job idle.
    soon = datetime.now() + timedelta(days=1)
    last = max((records for _, records, _ in jobs), key=lambda records: min(records["when"][-1], soon))
    pace = [min(when, soon) for when in last["when"]]
    together = nights_slow_together(sample.runs for _, _, sample in jobs)
    verdicts = [_judge(rule, job, sample, pace, history, together) for rule, job, sample in jobs]
    verdicts = [_with_successor(job, [other.runs for other in verdicts]) for job in verdicts]
    first, others = (_step_down(verdicts, of_first) for of_first in (True, False))
    return [
        _without_held(job, tuple(_held(one, next(first if _is_first(one) else others)) for one in job.metrics))
        for job in verdicts
    ]


def _step_down(jobs: Sequence[JobVerdict], of_first: bool) -> Iterator[float | None]:
    """The p of the first metric of all jobs, or of their other metrics, by Holm's procedure."""
    return iter(step_down([one.p for job in jobs for one in job.metrics if _is_first(one) is of_first]))


def _is_first(metric: MetricNight) -> bool:
    return metric.metric.column == DEFAULT_METRIC


def _without_held(job: JobVerdict, metrics: tuple[MetricNight, ...]) -> JobVerdict:
    """``job`` with its metrics, and without open steps of those that are not significant among all tests."""
    names = {metric.metric for metric in metrics if metric.reason == "one_of_many"}
    steps = (step for step in job.steps if not step.is_open or any(one.metric not in names for one in step.steps))
    return replace(job, metrics=metrics, steps=tuple(steps))


def _has_runs(rule: JobRule, sample: Observations) -> bool:
    """Whether any run counts. Raises UsageError where none does of a job that the policy selects."""
    if len(sample.runs) or rule.select is None:
        return len(sample.runs) > 0
    raise UsageError(
        tr("job {job} has no run with enough counted rows", job=rule.name),
        where=rule.select,
        remedy=tr("`logparse history list` lists the recorded runs"),
    )


def _judge(
    rule: JobRule,
    records: pl.DataFrame,
    sample: Observations,
    pace: Sequence[datetime],
    history: HistoryOfJobs,
    together: Collection[date] = (),
) -> JobVerdict:
    """``pace`` are the times of the job that ran last; the last of them is the newest of all jobs.

    On the nights ``together`` most jobs are slow.
    """
    comparable, changed = comparable_with_newest(sample.runs)
    idle = (pace[-1] - records["when"][-1]).days
    left_out = failed_since(records, sample, comparable["when"][-1])
    rule = usable_baseline(comparable, rule)
    failed = next((run for run in left_out if run.run_id == records["run_id"][-1] and run.reason in FAILED), None)
    nights, since = failed_nights(records, sample) if failed else (0, None)
    missing = is_missing(records, pace)
    tonight = ids_of_tonight(records)
    effect, expired = by_effect(comparable, rule, history.acceptances)
    name = rule.name or job_name(comparable)
    changed = () if idle > MOST_IDLE_DAYS else changed
    is_settled = rule.of_series or not tonight.issuperset(comparable["run_id"]) or any(effect)
    refused = () if is_settled else changed
    job = JobVerdict(
        *(name, rule.owners, rule.baseline.text, comparable, (), refused, left_out, idle),
        failed=failed,
        missing=missing,
        missing_before=missing and is_missing(records, pace[:-1]),
        newest_when=records["when"][-1],
        accepted=tuple(accepted_changes(comparable, rule, history.acceptances, changed)),
        failed_nights=nights,
        failed_since=since,
        failed_row=records.row(-1, named=True) if failed else None,
        changed=changed,
        block_by=rule.block_by,
        failed_tonight=since is not None and since >= min(records.filter(pl.col("run_id").is_in(tonight))["when"]),
        failed_before=failed_nights(records[:-1], sample)[0] if does_count(records["run_id"][-1], sample) else 0,
    )
    job = replace(job, ended=_ended(rule, job, sample.runs, pace[-1], history))
    if refused or job.is_idle:
        return job
    before, fixed = place_baseline(comparable, rule)
    job = replace(job, tolerances=judge_newest_losses(before, rule, history))
    read = pl.concat([before[:fixed].tail(KEPT), before[fixed:].tail(LOSSES_READ - min(fixed, KEPT))])
    losses = losses_at_the_end(read, history) if FINAL_LOSS.column in rule.metrics else {}
    lossy = pl.col("run_id").replace_strict(losses, default=None, return_dtype=pl.Float64)
    ordered = before.with_columns(final_loss=lossy, block=block_of(before, rule.block_by))
    watched = MetricRuns(ordered, fixed, rule, partial(is_known, history.acceptances, comparable), tonight, together)
    testbeds = _judge_metrics(watched, comparable, history)
    metrics = worst_of_testbeds(testbeds)
    less = _less_work(comparable, metrics, history)
    testbeds = {block: tuple(_explained(metric, less) for metric in nights) for block, nights in testbeds.items()}
    metrics = tuple(_explained(metric, less) for metric in metrics)
    context = StepContext(history.settings, effect, expired)
    steps = find_steps_of_testbeds(
        comparable.with_columns(block=block_of(comparable, rule.block_by)), testbeds, context
    )
    if less:
        steps = tuple(map(_work_first, steps))
    hidden = _hidden(comparable, rule, metrics, history)
    metrics = tuple(_dated(metric, steps, comparable["run_id"].to_list()) for metric in metrics)
    return replace(job, metrics=metrics, steps=steps, less_work=less, hidden=hidden, testbeds=testbeds)


def _dated(metric: MetricNight, steps: Sequence[JobStep], ids: Sequence[str]) -> MetricNight:
    """``metric`` with the date at which all metrics together place the first of its open steps."""
    mine = (step for step in steps if step.is_open and metric.metric.column in step.changes and not step.is_drift)
    began = next((step.began for step in mine), None)
    if began is None or metric.night is None or metric.block is not None:
        return metric
    return replace(metric, began=began, night=replace(metric.night, nights=len(ids) - ids.index(began)))


def _work_first(step: JobStep) -> JobStep:
    """``step`` with settings of the work before its other causes."""
    return replace(step, causes=tuple(sorted(step.causes, key=lambda change: not is_setting_of_work(change.name))))


def _ended(
    rule: JobRule, job: JobVerdict, runs: pl.DataFrame, now: datetime, history: HistoryOfJobs
) -> EndedSeries | None:
    """The series before that of the newest run, or that of an idle job, if it ended while a regression was open.

    The final loss is left out, because it takes the steps of all runs.
    """
    old = job.runs if job.is_idle else find_predecessor(runs, job.runs)
    if old is None or (now - old["when"][-1]).days > MOST_ENDED_DAYS:
        return None
    metrics = {name: least for name, least in rule.metrics.items() if name != FINAL_LOSS.column}
    # A baseline of the new series may have no runs in the old one.
    with suppress(UsageError):
        sample = Observations(old, ())
        last = _judge(replace(rule, metrics=metrics), old, sample, old["when"].to_list(), history)
        if last.verdict == "regression":
            return EndedSeries(last, () if job.is_idle else differing(old, job.runs))
    return None


def _with_successor(job: JobVerdict, others: Sequence[pl.DataFrame]) -> JobVerdict:
    """``job`` with the fields in which the series differs that followed it, if it is idle."""
    if job.ended is None or not job.is_idle:
        return job
    return replace(job, ended=replace(job.ended, fields=find_successor(job.runs, others)))


def _judge_metrics(job: MetricRuns, runs: pl.DataFrame, history: HistoryOfJobs) -> Testbeds:
    """The verdicts on each metric by testbed; work that increases starts a new level, as an acceptance does."""
    first = judge_testbeds(job)
    since = _more_work(runs, first[None], history)
    if not since:
        return first

    def known(metric: str, run_id: str) -> bool:
        return run_id in since or job.known(metric, run_id)

    again = judge_testbeds(replace(job, known=known))
    return {block: tuple(map(_by_more, first[block], again[block])) for block in first}


def _more_work(runs: pl.DataFrame, metrics: Sequence[MetricNight], history: HistoryOfJobs) -> list[str]:
    """The runs at which a time of steps became worse because the job does more work again; empty if it does not."""
    ids = runs["run_id"].to_list()
    found: list[str] = []
    for step in find_job_steps(runs, metrics, None):
        times = [one for one in step.steps if one.is_open and one.metric.is_speed]
        if not times:
            continue
        start = ids.index(step.began)
        sides = (ids[start : start + FEWEST], ids[max(0, start - FEWEST) : start])
        less = [one for one in work_of_sides(sides, history) if one.kind in BY_SETTINGS]
        began = [one.began for one in times if flatters(one.metric, less)]
        found += [*began, step.began] if began else []
    return list(dict.fromkeys(found))


def _by_more(first: MetricNight, again: MetricNight) -> MetricNight:
    """What is reported of a metric: on its first night that it is slower because of more work, then the new level."""
    is_new = any(step.is_new and step.is_open for step in first.steps)
    if not is_new or any(step.is_open for step in again.steps):
        return again
    return replace(first, verdict="suspicious", reason="confirmed_by_more", steps=again.steps)


def _hidden(
    runs: pl.DataFrame, rule: JobRule, metrics: Sequence[MetricNight], history: HistoryOfJobs
) -> tuple[Hidden, ...]:
    """What the verdicts on ``metrics`` owe to the exclusion of runs."""
    if history.excluded is None:
        return ()
    return tuple(find_hidden(runs, history.excluded, rule, metrics, history.acceptances))


def _held(metric: MetricNight, p: float | None) -> MetricNight:
    with_p = replace(metric, p_family=p)
    if metric.reason not in ("confirmed", "still_open") or p is None or p <= LEVEL + CLOSE:
        return with_p
    return replace(with_p, verdict="suspicious", reason="one_of_many")


def _less_work(runs: pl.DataFrame, metrics: Sequence[MetricNight], history: HistoryOfJobs) -> tuple[Less, ...]:
    """The kinds of work of which runs do less since a metric became better than the runs before."""
    better = [metric.began for metric in metrics if metric.reason == "confirmed_faster" and metric.began]
    if not better:
        return ()
    return work_of_sides(_sides_of(runs, better, KEPT), history)


def _explained(metric: MetricNight, less: Sequence[Less]) -> MetricNight:
    if metric.reason != "confirmed_faster" or not flatters(metric.metric, less):
        return metric
    return replace(metric, verdict="less work", reason="confirmed_by_less")


def _sides_of(runs: pl.DataFrame, began: Sequence[str], most: int) -> tuple[list[str], list[str]]:
    """The ids of so many runs before the first of ``began``, and of those since."""
    ids = runs["run_id"].to_list()
    at = min(map(ids.index, began))
    return ids[max(0, at - most) : at], ids[at : at + most]


def find_predecessor(runs: pl.DataFrame, newest: pl.DataFrame) -> pl.DataFrame | None:
    """The series of ``runs`` that ended last before ``newest`` began."""
    series = map(in_time, split_series(runs.filter(~pl.col("run_id").is_in(newest["run_id"].to_list()))))
    ended = (one for one in series if len(one) > FEWEST and one["when"][-1] < newest["when"][0])
    return max(ended, key=lambda one: one["when"][-1], default=None)


def find_successor(runs: pl.DataFrame, others: Sequence[pl.DataFrame]) -> tuple[Field, ...]:
    """In what the series differs that followed ``runs``: of those of ``others`` the most similar; empty for none."""
    ended = runs["when"][-1]
    later = (one for one in others if one["when"][0] > ended and (one["when"][0] - ended).days <= MOST_IDLE_DAYS)
    fields = min((differing(runs, one) for one in later), key=len, default=())
    return fields if len(fields) <= MOST_FIELDS else ()
