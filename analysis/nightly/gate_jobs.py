"""The newest run of every job against those before it: the gate of a night.

Comes in: the runs of a history and a Policy. Goes out: a JobVerdict for each job. The metrics of all jobs are one
family of tests, held together by Holm's procedure, as those of one comparison are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import takewhile
from typing import Any, Literal

import polars as pl

from analysis.compare.comparability import Change, Field
from analysis.compare.comparison import measured
from analysis.compare.final_loss import LAST, final_losses
from analysis.compare.independent_records import LeftOut, Observations, fill_from_job, find_jobs, sample_of
from analysis.compare.job_name import job_name
from analysis.compare.multiple_testing import step_down
from analysis.compare.verdict import CLOSE, Verdict, find_metric, worst_of
from analysis.compare.work_difference import Less, compared_work, flatters, is_setting_of_work
from analysis.history.events import Acceptance
from analysis.metrics import FINAL_LOSS, Metric
from analysis.nightly.change_start import changes_around, is_slow_growth, place_start
from analysis.nightly.ended_series import (
    MOST_ENDED_DAYS,
    EndedSeries,
    differing,
    find_predecessor,
    find_successor,
)
from analysis.nightly.exclusions import Hidden, find_hidden
from analysis.nightly.job_runs import (
    FAILED,
    MOST_IDLE_DAYS,
    block_of,
    comparable_with_newest,
    in_time,
    is_missing,
    nothing_to_judge,
    place_baseline,
    split_jobs,
    usable_baseline,
    without_failed,
)
from analysis.nightly.metric_verdict import MetricNight, judge_newest
from analysis.nightly.policy import JobRule, Policy
from analysis.stats.noise import LEVEL
from analysis.stats.prediction import FEWEST, KEPT
from logparse.errors import InputError, UsageError
from logparse.language import tr
from logparse.light_dataclass import dataclass, field, replace

# Runs whose losses are read: those that give the expectation, and as many that may be off.
LOSSES_READ = 2 * KEPT
# What is new of a job. The order is that of the first line.
News = Literal["new", "still_open", "cleared"]
NEWS: tuple[News, ...] = ("new", "still_open", "cleared")

# Days in which a job that became idle with an open regression is named.
WEEK = 7
# Metrics show one change from runs so near to each other.
OF_ONE_CHANGE = 2
# Kinds of work that settings show, not results.
BY_SETTINGS = ("samples", "length", "tokens", "attention", "weights", "experts", "window", "layers")
# Metrics of the result, which other settings change than those of the speed.
OF_RESULT = ("final_loss", "grad_norm", "nan_share", "skipped_share")


@dataclass(frozen=True)
class AcceptedChange:
    """A change that is accepted today: that of ``metric`` from the runs before the accepted one to those since."""

    metric: Metric
    change: float | None
    acceptance: Acceptance


@dataclass(frozen=True)
class JobVerdict:
    """The verdict on one job. ``runs`` are in the order of time, the newest last.

    ``refused`` are fields in which the newest run differs from those before; it is no run of the job then, and has no
    verdict. ``changes`` are the settings and versions that changed when a metric became worse. ``left_out`` are later
    runs that do not count. ``idle_days`` are the days from the newest run of the job to the newest of all jobs.
    ``less_work`` are the kinds of work of which the faster runs do less. ``failed`` is the newest run if it failed,
    ``failed_row`` its row; all of the last ``failed_nights`` runs failed, since ``failed_since``. ``missing`` says that
    a run of tonight is missing, ``missing_before`` that one was missing the night before too. The newest run of any
    kind began ``newest_when``. ``accepted`` are the changes that are accepted today. ``began`` is the run at which the
    job became worse, by all its metrics. ``worse_before`` says that it became worse in a straight line that begins
    before the ``changes``, so that none of them is the cause. ``hidden`` is what the exclusion of runs hides.
    ``ended`` is the series before, or that of an idle job, if it ended while a regression was open. All of the
    ``failed_before`` runs before the newest failed, in a row.
    """

    name: str
    owners: tuple[str, ...]
    baseline: str
    runs: pl.DataFrame
    metrics: tuple[MetricNight, ...]
    refused: tuple[Field, ...]
    changes: tuple[Change, ...]
    left_out: tuple[LeftOut, ...]
    idle_days: int = 0
    less_work: tuple[Less, ...] = ()
    failed: LeftOut | None = None
    missing: bool = False
    newest_when: datetime | None = None
    accepted: tuple[AcceptedChange, ...] = ()
    began: str | None = None
    hidden: tuple[Hidden, ...] = ()
    failed_nights: int = 0
    failed_since: datetime | None = None
    missing_before: bool = False
    failed_row: Mapping[str, Any] | None = None
    worse_before: bool = False
    ended: EndedSeries | None = None
    failed_before: int = 0

    @property
    def is_idle(self) -> bool:
        """Whether it no longer runs: the verdict on its last night does not apply to this one."""
        return self.idle_days > MOST_IDLE_DAYS

    @property
    def verdict(self) -> Verdict | None:
        """That of a run that failed, else the worst of all metrics that have enough data; None if refused or idle."""
        if self.is_idle:
            return None
        if self.failed:
            return "crashed"
        if self.refused:
            return None
        verdicts = [m.verdict for m in self.metrics if m.verdict != "insufficient data"]
        return worst_of(verdicts) if verdicts else "insufficient data"

    @property
    def news(self) -> News | None:
        """What changed tonight; None for a job that is as it was, or that has no verdict."""
        if self.verdict is None:
            return None
        if self.new_metrics or (self.failed and self.failed_nights <= 1):
            return "new"
        if self.failed or self.verdict in ("regression", "less work"):
            return "still_open"
        return "cleared" if self.runs_again or any(metric.reason == "cleared" for metric in self.metrics) else None

    @property
    def runs_again(self) -> bool:
        """Whether the run before failed and that of tonight did not."""
        return self.failed_before > 0 and not self.failed and not self.missing

    @property
    def new_metrics(self) -> list[MetricNight]:
        """The metrics that became worse tonight, but for those of a change that is open by another metric."""
        ids = self.runs["run_id"].to_list()
        begun = [(metric, ids.index(metric.began)) for metric in self.metrics if metric.began in ids]
        known = [at for metric, at in begun if metric.is_open and not metric.is_new]
        of_known = [metric for metric, at in begun if any(abs(at - other) <= OF_ONE_CHANGE for other in known)]
        new = [metric for metric in self.metrics if metric.is_new and metric not in of_known]
        return [metric for metric in new if not self._is_part_of_open(metric)]

    def _is_part_of_open(self, metric: MetricNight) -> bool:
        """Whether a time of steps became worse by no more than another one that is open: found later, not new."""
        times = (other for other in self.metrics if other.is_open and not other.is_new and other.metric.is_speed)
        return metric.metric.is_speed and any(how_much_worse(metric) <= how_much_worse(other) for other in times)

    @property
    def is_refused_first(self) -> bool:
        """Whether the newest run is the first that cannot be compared with those before."""
        return bool(self.refused) and len(self.runs) == 1

    @property
    def ended_lately(self) -> EndedSeries | None:
        """``ended`` until the series that follows has a verdict, or in the first week in which the job is idle."""
        lately = self.idle_days <= MOST_IDLE_DAYS + WEEK if self.is_idle else len(self.runs) <= FEWEST
        return self.ended if lately else None

    @property
    def ended_tonight(self) -> bool:
        """Whether that is news: on the first night of the series that follows, or on which the job is idle."""
        return self.ended is not None and (self.idle_days - MOST_IDLE_DAYS if self.is_idle else len(self.runs)) == 1

    @property
    def decisive(self) -> MetricNight | None:
        """The first metric with the verdict of the job; the first of all where another thing decides."""
        return next((m for m in self.metrics if m.verdict == self.verdict), next(iter(self.metrics), None))

    @property
    def newest(self) -> Mapping[str, Any]:
        """The row of the run that is judged."""
        return self.runs.row(-1, named=True)


def how_much_worse(metric: MetricNight) -> float:
    """How much worse a metric is, relative; negative where it is better."""
    return metric.metric.direction * ((metric.night.change if metric.night else None) or 0.0)


def verdict_of(jobs: Sequence[JobVerdict]) -> Verdict | None:
    """The worst of all jobs; None if one is refused and no other has a bad verdict."""
    verdicts = [job.verdict for job in jobs if job.verdict]
    worst = worst_of(verdicts) if verdicts else None
    good = worst in ("no regression", "insufficient data")
    return None if good and any(job.refused for job in jobs) else worst


@dataclass(frozen=True)
class HistoryOfJobs:
    """The data of a history other than the rows: whole rows by ids, the steps of a run, its acceptances.

    ``excluded`` are rows of runs that do not count, because somebody excluded them.
    """

    settings: Callable[[Sequence[str]], pl.DataFrame]
    steps: Callable[[str], pl.DataFrame]
    acceptances: Mapping[str, Sequence[Acceptance]] = field(default_factory=dict)
    excluded: pl.DataFrame | None = None


def judge_jobs(runs: pl.DataFrame, policy: Policy, kept: HistoryOfJobs) -> list[JobVerdict]:
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
    verdicts = [_judge(rule, job, sample, pace, kept) for rule, job, sample in jobs]
    verdicts = [_with_successor(job, [other.runs for other in verdicts]) for job in verdicts]
    held = iter(step_down([metric.p for job in verdicts for metric in job.metrics]))
    return [replace(job, metrics=tuple(_held(metric, next(held)) for metric in job.metrics)) for job in verdicts]


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
    rule: JobRule, records: pl.DataFrame, sample: Observations, pace: Sequence[datetime], kept: HistoryOfJobs
) -> JobVerdict:
    """``pace`` are the times of the job that ran last; the last of them is the newest of all jobs."""
    comparable, refused = comparable_with_newest(sample.runs)
    idle = (pace[-1] - records["when"][-1]).days
    left_out = _failed_since(records, sample, comparable["when"][-1])
    rule = usable_baseline(comparable, rule)
    failed = next((run for run in left_out if run.run_id == records["run_id"][-1] and run.reason in FAILED), None)
    nights, since = _failed_nights(records, sample) if failed else (0, None)
    missing = is_missing(records, pace)
    name = rule.name or job_name(comparable)
    refused = () if idle > MOST_IDLE_DAYS else refused
    job = JobVerdict(
        *(name, rule.owners, rule.baseline.text, comparable, (), refused, (), left_out, idle),
        failed=failed,
        missing=missing,
        missing_before=missing and is_missing(records, pace[:-1]),
        newest_when=records["when"][-1],
        accepted=tuple(_accepted(comparable, rule, kept.acceptances)),
        failed_nights=nights,
        failed_since=since,
        failed_row=records.row(-1, named=True) if failed else None,
        failed_before=_failed_nights(records[:-1], sample)[0] if _counts(records["run_id"][-1], sample) else 0,
    )
    job = replace(job, ended=_ended(rule, job, sample.runs, pace[-1], kept))
    if refused or job.is_idle:
        return job
    before, fixed = place_baseline(comparable, rule)
    read = pl.concat([before[:fixed].tail(KEPT), before[fixed:].tail(LOSSES_READ - min(fixed, KEPT))])
    losses = _losses(read, kept) if FINAL_LOSS.column in rule.metrics else {}
    lossy = pl.col("run_id").replace_strict(losses, default=None, return_dtype=pl.Float64)
    ordered = before.with_columns(final_loss=lossy, block=block_of(before, rule.block_by))
    metrics = _metrics(ordered, fixed, rule, comparable, kept)
    less = _less_work(comparable, metrics, kept)
    metrics = tuple(_explained(metric, less) for metric in metrics)
    job = replace(job, hidden=_hidden(comparable, rule, metrics, kept))
    worse = [metric for metric in metrics if metric.is_open and metric.began]
    start = place_start(comparable, worse)
    if start is None:
        return replace(job, metrics=metrics, less_work=less)
    of_result = not any(metric.is_open and metric.metric.column not in OF_RESULT for metric in metrics)
    changes = changes_around(comparable, start, kept.settings, of_result)
    if less:
        changes = tuple(sorted(changes, key=lambda change: not is_setting_of_work(change.name)))
    job = replace(job, metrics=metrics, changes=changes, less_work=less, began=comparable["run_id"][start])
    return replace(job, worse_before=bool(changes) and not less and is_slow_growth(comparable, start, worse))


def _ended(
    rule: JobRule, job: JobVerdict, runs: pl.DataFrame, now: datetime, kept: HistoryOfJobs
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
        last = _judge(replace(rule, metrics=metrics), old, sample, old["when"].to_list(), kept)
        if last.verdict == "regression":
            return EndedSeries(last, () if job.is_idle else differing(old, job.runs))
    return None


def _with_successor(job: JobVerdict, others: Sequence[pl.DataFrame]) -> JobVerdict:
    """``job`` with the fields in which the series differs that followed it, if it is idle."""
    if job.ended is None or not job.is_idle:
        return job
    return replace(job, ended=replace(job.ended, fields=find_successor(job.runs, others)))


def _metrics(
    ordered: pl.DataFrame, fixed: int, rule: JobRule, runs: pl.DataFrame, kept: HistoryOfJobs
) -> tuple[MetricNight, ...]:
    """The verdict on each metric of a job; work that increases starts a new level, as an acceptance does."""

    def judged(known_too: Collection[str] = ()) -> tuple[MetricNight, ...]:
        def known(name: str, run_id: str) -> bool:
            return run_id in known_too or is_known(kept.acceptances, runs, name, run_id)

        found = (
            judge_newest(find_metric(name), least, ordered, fixed, rule, partial(known, name))
            for name, least in rule.metrics.items()
        )
        return tuple(metric for metric in found if metric is not None)

    first = judged()
    since = _more_work(runs, first, kept)
    return tuple(map(_by_more, first, judged(since))) if since else first


def _more_work(runs: pl.DataFrame, metrics: Sequence[MetricNight], kept: HistoryOfJobs) -> list[str]:
    """The runs at which a time of steps became worse because the job does more work again; empty if it does not."""
    worse = [m for m in metrics if m.verdict == "regression" and m.metric.is_speed and m.began]
    start = place_start(runs, worse)
    if start is None:
        return []
    ids = runs["run_id"].to_list()
    sides = (ids[start : start + FEWEST], ids[max(0, start - FEWEST) : start])
    less = [one for one in _work_of_sides(sides, kept) if one.kind in BY_SETTINGS]
    began = [m.began for m in worse if m.began and flatters(m.metric, less)]
    return list(dict.fromkeys([*began, ids[start]])) if began else []


def _by_more(first: MetricNight, again: MetricNight) -> MetricNight:
    """What is reported of a metric: on its first night that it is slower because of more work, then the new level."""
    if not first.is_new or again.reason != "accepted":
        return again
    return replace(first, verdict="suspicious", reason="confirmed_by_more")


def _work_of_sides(sides: tuple[list[str], list[str]], kept: HistoryOfJobs) -> tuple[Less, ...]:
    """The kinds of work of which the runs of the second side do less."""
    rows = kept.settings([*sides[0], *sides[1]])
    done = [(rows.filter(pl.col("run_id").is_in(side)), _readable(side, kept)) for side in sides]
    return compared_work(done[0], done[1])


def _hidden(
    runs: pl.DataFrame, rule: JobRule, metrics: Sequence[MetricNight], kept: HistoryOfJobs
) -> tuple[Hidden, ...]:
    """What the verdicts on ``metrics`` owe to the exclusion of runs."""
    if kept.excluded is None:
        return ()
    return tuple(find_hidden(runs, kept.excluded, rule, metrics, kept.acceptances, is_known))


def _failed_since(records: pl.DataFrame, sample: Observations, when: datetime) -> tuple[LeftOut, ...]:
    """Runs after the newest that counts that failed, or of which too few rows count."""
    later = set(records.filter(pl.col("when") >= when)["run_id"])
    return tuple(run for run in sample.left_out if run.run_id in later and run.reason != "same_job")


def _failed_nights(records: pl.DataFrame, sample: Observations) -> tuple[int, datetime | None]:
    """How many of the newest runs failed in a row, and when the first of them began."""
    reasons = {run.run_id: run.reason for run in sample.left_out if run.reason != "same_job"}
    rows = [row for row in records.select("run_id", "when").iter_rows() if row[0] in reasons or _counts(row[0], sample)]
    failed = list(takewhile(lambda row: reasons.get(row[0]) in FAILED, reversed(rows)))
    return len(failed), failed[-1][1] if failed else None


def _counts(run_id: str, sample: Observations) -> bool:
    return run_id in sample.runs["run_id"]


def _accepted(
    runs: pl.DataFrame, rule: JobRule, acceptances: Mapping[str, Sequence[Acceptance]]
) -> Iterator[AcceptedChange]:
    """The changes of ``runs`` that are accepted on the day of the newest, one for each acceptance."""
    for at, run_id in enumerate(runs["run_id"]):
        for one in acceptances.get(run_id, ()):
            name = one.metric or next(iter(rule.metrics))
            if is_known({run_id: [one]}, runs, name, run_id):
                yield AcceptedChange(find_metric(name), _change_at(runs, at, find_metric(name)), one)


def _change_at(runs: pl.DataFrame, at: int, metric: Metric) -> float | None:
    """The relative change of the median, from the runs before one to those since."""
    sides = (runs[max(0, at - KEPT) : at], runs[at : at + KEPT])
    old, new = (measured(side, metric)[metric.column].median() for side in sides)
    return new / old - 1 if isinstance(old, float) and isinstance(new, float) and old else None


def is_known(acceptances: Mapping[str, Sequence[Acceptance]], runs: pl.DataFrame, metric: str, run_id: str) -> bool:
    """Whether what became worse at a run is accepted on the day of the newest, and no release since ends that."""
    day, accepted = runs["when"][-1].date(), acceptances.get(run_id, ())
    if not accepted:
        return False
    releases = set(runs["release"][runs["run_id"].to_list().index(run_id) + 1 :])
    return any(one.is_of(metric, day) and one.until_release not in releases for one in accepted)


def _losses(runs: pl.DataFrame, kept: HistoryOfJobs) -> dict[str, float | None]:
    """Losses at equal steps of the runs that did the last ones of the newest, such as none that ended earlier."""
    runs_with_steps = list(_readable(runs["run_id"].to_list(), kept))
    last = {run_id: set(steps.drop_nulls("loss")["step"]) for run_id, steps in runs_with_steps}
    wanted = set(sorted(last.get(runs["run_id"][-1], set()))[-LAST:])
    return final_losses((run_id, steps) for run_id, steps in runs_with_steps if wanted and wanted <= last[run_id])


def _readable(run_ids: Sequence[str], kept: HistoryOfJobs) -> Iterator[tuple[str, pl.DataFrame]]:
    for run_id in run_ids:
        with suppress(InputError):
            yield run_id, kept.steps(run_id)


def _held(metric: MetricNight, p: float | None) -> MetricNight:
    with_p = replace(metric, p_family=p)
    if metric.reason not in ("confirmed", "still_open") or p is None or p <= LEVEL + CLOSE:
        return with_p
    return replace(with_p, verdict="suspicious", reason="one_of_many")


def _less_work(runs: pl.DataFrame, metrics: Sequence[MetricNight], kept: HistoryOfJobs) -> tuple[Less, ...]:
    """The kinds of work of which runs do less since a metric became better than the runs before."""
    better = [metric.began for metric in metrics if metric.reason == "confirmed_faster" and metric.began]
    if not better:
        return ()
    return _work_of_sides(_sides_of(runs, better, KEPT), kept)


def _explained(metric: MetricNight, less: Sequence[Less]) -> MetricNight:
    if metric.reason != "confirmed_faster" or not flatters(metric.metric, less):
        return metric
    return replace(metric, verdict="less work", reason="confirmed_by_less")


def _sides_of(runs: pl.DataFrame, began: Sequence[str], most: int) -> tuple[list[str], list[str]]:
    """The ids of so many runs before the first of ``began``, and of those since."""
    ids = runs["run_id"].to_list()
    at = min(map(ids.index, began))
    return ids[max(0, at - most) : at], ids[at : at + most]
