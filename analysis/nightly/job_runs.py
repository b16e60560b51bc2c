"""Which runs are of a job, which of them can be compared with its newest, and which give its expectation.

Comes in: runs of a history and a rule. Goes out: runs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from operator import itemgetter

import polars as pl

from analysis.compare.comparability import SHAPE, Field, check_fields
from analysis.compare.comparison import measured
from analysis.compare.independent_records import LeftOut, Observations, job_labels
from analysis.compare.job_name import series_names
from analysis.compare.verdict import find_metric
from analysis.history.kept_endings import KEPT_ENDING, read_ending
from analysis.history.selection import select_runs
from analysis.nightly.nights import nights_of
from analysis.nightly.policy import BaselineRule, JobRule, Policy
from analysis.nightly.trend import split_series
from analysis.stats.prediction import FEWEST, KEPT
from logparse.errors import UsageError
from logparse.language import tr

# Of a run that did not do all its steps, so few of the step lines of a typical run of the job are a failure.
HALF = 0.5
# Why a run is left out that did not do its steps.
FAILED = ("crashed", "too_few_steps", "half_run")
# A job is missing tonight if it had no run for so many of its typical intervals.
MISSING_AFTER = 1.5
# A run that is early by less of an interval is still the next one.
DUE = 0.9
# Series that differ in more fields are of different jobs, unless somebody named the job.
MOST_FIELDS = 3
# A job that had no run for so long before the newest of the history is not judged.
MOST_IDLE_DAYS = 14


def in_time(runs: pl.DataFrame) -> pl.DataFrame:
    """``runs`` in the order of time, with the column ``when``."""
    return runs.with_columns(when=pl.coalesce("begun_at", "recorded_at")).sort("when", "recorded_at", "run_id")


def ids_of_tonight(runs: pl.DataFrame) -> frozenset[str]:
    """The ids of the runs of the newest night, of ``runs`` in the order of time."""
    night = nights_of(runs["when"])
    return frozenset(runs["run_id"].filter(night == night[-1]))


def split_jobs(runs: pl.DataFrame, policy: Policy) -> list[tuple[JobRule, pl.DataFrame]]:
    """Each named job with its runs, then each comparable series of the runs that have no named job."""
    if runs.is_empty():
        raise nothing_to_judge()
    jobs = name_jobs(runs, policy, _selected)
    series = [in_time(one) for one in split_series(unnamed(runs, jobs))]
    chains = chain_series(series)
    unnamed_jobs = zip(series_names([series[chain[-1]] for chain in chains]), chains, strict=True)
    return [
        *(part for rule, mine in jobs for part in _parts(rule, mine)),
        *(
            (replace(policy.rest, name=name, of_series=True), in_time(pl.concat([series[at] for at in chain])))
            for name, chain in unnamed_jobs
        ),
    ]


def chain_series(series: Sequence[pl.DataFrame]) -> list[list[int]]:
    """The places of the series of one job each, the one that runs now last: of a job whose settings changed."""
    next_of: dict[int, int] = {}
    for at, old in enumerate(series):
        later = [other for other in range(len(series)) if other != at and goes_on(old, series[other])]
        if later:
            next_of[at] = min(later, key=lambda other: len(differing(old, series[other])))
    chains: dict[int, list[int]] = {}
    for at in sorted(range(len(series)), key=lambda one: series[one]["when"][-1]):
        end = at
        while end in next_of:
            end = next_of[end]
        chains.setdefault(end, []).append(at)
    return list(chains.values())


def goes_on(old: pl.DataFrame, new: pl.DataFrame) -> bool:
    """Whether the job of the series ``old`` goes on with other settings in ``new``: instead of it, not next to it."""
    last = old["when"][-1]
    later = new["when"].filter(new["when"] > last)
    if len(old) <= FEWEST or later.is_empty() or (later[0] - last).days > MOST_IDLE_DAYS:
        return False
    if new["when"].is_between(old["when"].tail(KEPT)[0], last).any():
        return False
    fields = differing(old, new)
    return 0 < len(fields) <= MOST_FIELDS and not any(field.name in SHAPE for field in fields)


def differing(before: pl.DataFrame, after: pl.DataFrame) -> tuple[Field, ...]:
    """The fields that differ between two series."""
    return tuple(field for field in check_fields(before, after) if field.state == "different")


def name_jobs(
    runs: pl.DataFrame, policy: Policy, select: Callable[[pl.DataFrame, JobRule], pl.DataFrame]
) -> list[tuple[JobRule, pl.DataFrame]]:
    """The jobs of the policy, then those that the label ``job`` of other runs names, with their runs."""
    chosen = [(rule, select(runs, rule)) for rule in policy.jobs]
    rest = unnamed(runs, chosen)
    labels = job_labels(rest)
    labelled = rest.join(labels, on="run_id", maintain_order="left").partition_by("label", as_dict=True)
    names = dict(sorted(((str(name), mine.drop("label")) for (name,), mine in labelled.items()), key=itemgetter(0)))
    return [*chosen, *((replace(policy.rest, name=name), mine) for name, mine in names.items())]


def unnamed(runs: pl.DataFrame, named: Sequence[tuple[JobRule, pl.DataFrame]]) -> pl.DataFrame:
    """Those of ``runs`` that are of no named job."""
    return runs.filter(~pl.col("run_id").is_in([run_id for _, mine in named for run_id in mine["run_id"]]))


def _parts(rule: JobRule, runs: pl.DataFrame) -> list[tuple[JobRule, pl.DataFrame]]:
    """A job whose runs are of several series that still run is as many jobs; a new one of few runs is none yet."""
    series = [in_time(one) for one in split_series(runs)]
    ends = runs["when"].max() - timedelta(days=MOST_IDLE_DAYS)  # type: ignore[operator]
    running = [one for one in series if one["when"][-1] >= ends and len(one) > FEWEST]
    running = [one for one in running if not any(_replaces(other, one) for other in running)]
    if len(running) < 2 or runs["run_id"][-1] not in {one["run_id"][-1] for one in running}:
        return [(rule, runs)]
    names = (f"{rule.name}: {name}" for name in series_names(running))
    return [(replace(rule, name=name), one) for name, one in zip(names, running, strict=True)]


def _replaces(newer: pl.DataFrame, older: pl.DataFrame) -> bool:
    """Whether a series of a job began after another ended, which is overdue: the job has other settings since."""
    return newer["when"][0] > older["when"][-1] and is_missing(older, newer["when"].to_list())


def nothing_to_judge() -> UsageError:
    """The error of a history without a run that counts."""
    remedy = tr("record one with `logparse record LOG --history DIR --release NAME`")
    return UsageError(tr("the history has no run to judge"), remedy=remedy)


def _selected(runs: pl.DataFrame, rule: JobRule) -> pl.DataFrame:
    chosen = select_runs(runs, rule.select) if rule.select else runs
    if chosen.is_empty():
        raise UsageError(
            tr("job {job} selects no run", job=rule.name),
            where=rule.select,
            remedy=tr("`logparse history list` lists the recorded runs"),
        )
    return chosen


def comparable_with_newest(runs: pl.DataFrame) -> tuple[pl.DataFrame, tuple[Field, ...]]:
    """Those that can be compared with the newest; where these are few, the fields in which the run before differs."""
    newest = runs["run_id"][-1]
    mine = next(in_time(one) for one in split_series(runs) if newest in one["run_id"])
    if len(mine) > FEWEST or len(mine) == len(runs):
        return mine, ()
    others = runs.filter(~pl.col("run_id").is_in(mine["run_id"].to_list()))
    before = next(in_time(one) for one in split_series(others) if others["run_id"][-1] in one["run_id"])
    return mine, tuple(field for field in check_fields(before.tail(KEPT), mine) if field.refused)


def without_failed(records: pl.DataFrame, sample: Observations, rule: JobRule) -> Observations:
    """``sample`` of ``records`` without the runs that failed: they show nothing about the speed of the job.

    A run failed if it crashed, has fewer step lines than ``rule`` asks for, or stopped before half of them.
    """
    lines = pl.col("step_lines")
    halved = (pl.col("last_step") < pl.col("planned_steps")) & (lines < HALF * lines.median())
    reason = (
        pl.when(pl.col("crashed_at").is_not_null())
        .then(pl.lit("crashed"))
        .when(lines < rule.min_steps)
        .then(pl.lit("too_few_steps"))
        .when(halved)
        .then(pl.lit("half_run"))
    )
    same = [run.run_id for run in sample.left_out if run.reason == "same_job"]
    each = records.filter(~pl.col("run_id").is_in(same))
    failed = each.select("run_id", "name", *KEPT_ENDING, reason=reason).drop_nulls("reason")
    names = failed["run_id"].to_list()
    left_out = [run for run in sample.left_out if run.run_id not in names]
    runs = sample.runs.filter(~pl.col("run_id").is_in(names))
    # Of a job whose runs all failed the newest is judged: it says so.
    judged = runs if len(runs) else sample.runs
    rows = failed.iter_rows(named=True)
    failures = (LeftOut(row["run_id"], row["name"], row["reason"], read_ending(row)) for row in rows)
    return Observations(judged, (*left_out, *failures))


def is_missing(runs: pl.DataFrame, pace: Sequence[datetime]) -> bool:
    """Whether the job should have run again by the last time of ``pace``, the runs of the job that ran last.

    On the first night its last run is longer ago than usually, when the other job ran, by half of an interval.
    """
    times = runs["when"].tail(KEPT).to_list()
    typical = runs["when"].tail(KEPT).diff().median()
    if not isinstance(typical, timedelta) or not pace:
        return False
    ago = pace[-1] - times[-1]
    if ago > MISSING_AFTER * typical:
        return True
    waits = [when - times[at - 1] for when in pace[-KEPT:-1] if (at := bisect_right(times, when))]
    is_due = len(waits) >= FEWEST and ago >= DUE * typical
    return is_due and ago > sorted(waits)[len(waits) // 2] + typical / 2


def usable_baseline(runs: pl.DataFrame, rule: JobRule) -> JobRule:
    """``rule``, with the newest runs as baseline if ``best`` finds no release with enough runs, as in nightlies."""
    if rule.baseline.kind != "best" or len(_best(runs, rule)):
        return rule
    return replace(rule, baseline=BaselineRule("last", f"last {KEPT}"))


def place_baseline(runs: pl.DataFrame, rule: JobRule) -> tuple[pl.DataFrame, int]:
    """The runs in the order in which they are watched, and how many of them are a baseline that stays.

    Raises UsageError where a baseline is named and is not there.
    """
    kind, newest = rule.baseline.kind, runs.tail(1)
    if kind == "last":
        return runs, 0
    if kind == "since":
        return pl.concat([runs[:-1].filter(pl.col("when").dt.date() >= rule.baseline.day), newest]), 0
    if kind == "same release":
        return runs.filter(pl.col("release") == newest["release"][0]), 0
    chosen = _best(runs, rule) if kind == "best" else select_runs(runs, rule.baseline.text)
    if newest["run_id"][0] in chosen["run_id"]:
        problem = tr(
            "the baseline of job {job} ({text}) contains the run to judge", job=rule.name, text=rule.baseline.text
        )
        raise UsageError(problem, remedy=tr("give earlier runs, or use last {n}", n=KEPT))
    if chosen.is_empty():
        problem = tr("job {job} has no run of its baseline ({text})", job=rule.name, text=rule.baseline.text)
        raise UsageError(problem, remedy=tr("`logparse history list` lists the recorded runs"))
    if len(chosen) < FEWEST:
        problem = tr(
            "the baseline of job {job} ({text}) has {n} runs", job=rule.name, text=rule.baseline.text, n=len(chosen)
        )
        raise UsageError(problem, remedy=tr("at least {n} runs are needed to estimate the noise", n=FEWEST))
    after = runs.filter((pl.col("when") > chosen["when"].max()) & ~pl.col("run_id").is_in(chosen["run_id"].to_list()))
    watched = after if newest["run_id"][0] in after["run_id"] else pl.concat([after, newest])
    return pl.concat([chosen, watched]), len(chosen)


def _best(runs: pl.DataFrame, rule: JobRule) -> pl.DataFrame:
    """The release with the best median of the first metric, of those with enough runs and not that of the newest."""
    metric = find_metric(next(iter(rule.metrics)))
    value = pl.col(metric.column).median() * metric.direction
    earlier = measured(runs, metric).filter(pl.col("release") != runs["release"][-1])
    medians = earlier.group_by("release").agg(value.alias("value"), pl.len().alias("runs"))
    best = medians.filter(pl.col("runs") >= FEWEST).sort("value", "release")["release"]
    return runs.filter(pl.col("release") == best[0]) if len(best) else runs.clear()


def block_of(runs: pl.DataFrame, label: str | None) -> pl.Expr:
    """The value of a label, of which runs are compared with each other; null for all where there is none.

    Raises UsageError for a label that no run has.
    """
    labels = runs.select(pl.col("labels").explode(empty_as_null=False).struct.field("name")).to_series()
    if label is not None and label not in labels:
        raise UsageError(
            tr("no run has the label {name}", name=label), remedy=tr("`logparse history list` lists the recorded runs")
        )
    if label is None:
        return pl.lit(None, pl.String)
    value = pl.element().filter(pl.element().struct.field("name") == label).struct.field("value").first()
    return pl.col("labels").list.eval(value).list.first()
