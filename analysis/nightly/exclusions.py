"""What excluded runs hide: a regression that they carry, or that was accepted at one of them.

Comes in: the runs of a job that count, those that are excluded, and the verdicts without these. Goes out: a Hidden for
each metric that has another verdict with the excluded runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

import polars as pl

from analysis.compare.independent_records import has_enough_rows, job_labels
from analysis.compare.verdict import find_metric
from analysis.history.events import Acceptance
from analysis.history.selection import select_runs
from analysis.metrics import FINAL_LOSS, Metric
from analysis.nightly.job_facts import is_known
from analysis.nightly.job_runs import block_of, comparable_with_newest, ids_of_tonight, in_time, place_baseline
from analysis.nightly.metric_verdict import MetricNight, MetricRuns, judge_newest
from analysis.nightly.policy import JobRule
from logparse.errors import UsageError
from logparse.light_dataclass import dataclass


@dataclass(frozen=True)
class Hidden:
    """The verdict on ``metric`` follows from the exclusion of ``run_id`` for ``reason``.

    With that run it is a regression by ``change``; or, ``accepted`` says that, a regression that is accepted at it.
    """

    metric: Metric
    run_id: str
    reason: str
    change: float | None
    accepted: bool


def find_hidden(
    runs: pl.DataFrame,
    excluded: pl.DataFrame,
    rule: JobRule,
    verdicts: Sequence[MetricNight],
    acceptances: Mapping[str, Sequence[Acceptance]],
) -> Iterator[Hidden]:
    """What the runs of ``excluded`` that are of the job of ``runs`` hide.

    The final loss is left out, because it takes the steps of all runs.
    """
    mine = _of_job(runs, excluded, rule)
    if mine.is_empty():
        return
    every = comparable_with_newest(in_time(pl.concat([runs, mine.select(runs.columns)])))[0]
    reasons = dict(mine.select("run_id", "excluded").iter_rows())
    for without in verdicts:
        name = without.metric.column
        with_all = (
            None if without.metric == FINAL_LOSS else _judged(name, every, rule, partial(is_known, acceptances, every))
        )
        if with_all is not None and with_all.verdict == "regression" and without.verdict != "regression":
            yield from _hidden(with_all, every, reasons)
        elif with_all is not None and with_all.verdict != "regression" and without.verdict == "regression":
            yield from _cancelled(without, reasons, acceptances)


def _of_job(runs: pl.DataFrame, excluded: pl.DataFrame, rule: JobRule) -> pl.DataFrame:
    """The excluded runs of a job that would count."""
    if excluded.is_empty():
        return excluded
    with suppress(UsageError):
        excluded = select_runs(excluded, rule.select) if rule.select else excluded
    labels = dict(job_labels(excluded).iter_rows())
    label = dict(job_labels(runs.tail(1)).iter_rows()).get(runs["run_id"][-1])
    same_job = [run_id for run_id in excluded["run_id"] if rule.select or labels.get(run_id) == label]
    whole = has_enough_rows() & pl.col("crashed_at").is_null()
    return in_time(excluded.filter(pl.col("run_id").is_in(same_job) & whole)).drop_nulls("when")


def _judged(
    name: str, runs: pl.DataFrame, rule: JobRule, is_accepted: Callable[[str, str], bool]
) -> MetricNight | None:
    """The verdict on the newest of ``runs``; None where their baseline cannot be placed."""
    with suppress(UsageError):
        before, fixed = place_baseline(runs, rule)
        ordered = before.with_columns(block=block_of(before, rule.block_by))
        job = MetricRuns(ordered, fixed, rule, is_accepted, ids_of_tonight(runs))
        return judge_newest(find_metric(name), rule.metrics[name], job)
    return None


def _hidden(regression: MetricNight, runs: pl.DataFrame, reasons: Mapping[str, str]) -> Iterator[Hidden]:
    """The first excluded run of an open regression."""
    ids = runs["run_id"].to_list()
    since = ids[ids.index(regression.began) :] if regression.began in ids else ids
    first = next((run_id for run_id in since if run_id in reasons), None)
    if first is not None:
        change = regression.night.change if regression.night else None
        yield Hidden(regression.metric, first, reasons[first], change, accepted=False)


def _cancelled(
    without: MetricNight, reasons: Mapping[str, str], acceptances: Mapping[str, Sequence[Acceptance]]
) -> Iterator[Hidden]:
    """The excluded run at which the regression was accepted."""
    first = next((run_id for run_id in reasons if acceptances.get(run_id)), None)
    if first is not None:
        change = without.night.change if without.night else None
        yield Hidden(without.metric, first, reasons[first], change, accepted=True)
