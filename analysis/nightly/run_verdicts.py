"""The verdict on every recorded run, by those before it and what is accepted today, for lists.

Comes in: the runs of a history and a Policy. Goes out: a verdict for each run that counts. The final loss is left to
the gate, because it takes the steps of all runs; a loss that is no longer finite is known without.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from itertools import product

import polars as pl

from analysis.compare.comparison import measured
from analysis.compare.independent_records import fill_from_job, find_jobs, sample_of
from analysis.compare.verdict import Verdict, find_metric, worst_of
from analysis.history.events import Acceptance
from analysis.history.selection import select_runs
from analysis.metrics import FINAL_LOSS
from analysis.nightly.cluster_nights import nights_slow_together
from analysis.nightly.job_facts import is_known
from analysis.nightly.job_runs import FAILED, block_of, in_time, name_jobs, unnamed, without_failed
from analysis.nightly.metric_verdict import MetricRuns, verdicts_by_run
from analysis.nightly.policy import BaselineRule, JobRule, Policy
from analysis.nightly.trend import split_series
from logparse.errors import UsageError
from logparse.light_dataclass import replace


def verdicts_of_runs(
    runs: pl.DataFrame, wanted: pl.Series, policy: Policy, acceptances: Mapping[str, Sequence[Acceptance]]
) -> dict[str, Verdict]:
    """The verdicts by run id, of all runs in the series of the ``wanted``.

    A run that does not count or whose time is unknown has none. Each run is judged by the newest
    runs before it, whatever baseline the policy names.
    """
    same = find_jobs(runs)
    records = in_time(fill_from_job(runs, same)).drop_nulls("when")
    by_run: dict[str, list[Verdict]] = {}
    samples = [(rule, without_failed(job, sample_of(job, same), rule)) for rule, job in _jobs(records, policy)]
    together = nights_slow_together(in_time(sample.runs) for _, sample in samples)
    for rule, sample in samples:
        for run in sample.left_out:
            # A run that completed did not crash, however few steps it has.
            if run.reason in FAILED and not (run.ending and run.ending.state == "completed"):
                by_run.setdefault(run.run_id, []).append("crashed")
        for series in split_series(sample.runs):
            if series["run_id"].is_in(wanted.to_list()).any():
                judged = _of_series(series.sort("when", "recorded_at", "run_id"), rule, acceptances, together)
                for run_id, verdicts in judged.items():
                    by_run.setdefault(run_id, []).extend(verdicts)
    return {run_id: worst_of(verdicts) for run_id, verdicts in by_run.items()}


def _jobs(runs: pl.DataFrame, policy: Policy) -> Iterator[tuple[JobRule, pl.DataFrame]]:
    jobs = name_jobs(runs, policy, lambda every, rule: select_runs(every, rule.select) if rule.select else every)
    yield from jobs
    # Of unrelated runs one is not half of another.
    yield from ((policy.rest, series) for series in split_series(unnamed(runs, jobs)))


def _block_of(runs: pl.DataFrame, rule: JobRule) -> pl.Expr:
    """As in the gate, but a missing label does not stop a list."""
    try:
        return block_of(runs, rule.block_by)
    except UsageError:
        return block_of(runs, None)


def _of_series(
    runs: pl.DataFrame, rule: JobRule, acceptances: Mapping[str, Sequence[Acceptance]], together: Collection[date]
) -> dict[str, list[Verdict]]:
    """The verdict on each metric that a run has; on the nights ``together`` most jobs are slow."""
    lost = dict(runs.select("run_id", pl.col("loss_lost_at").is_not_null()).iter_rows())
    by_run: dict[str, list[Verdict]] = {run_id: ["regression"] if lost[run_id] else [] for run_id in runs["run_id"]}
    placed = runs.with_columns(block=_block_of(runs, rule), when=pl.coalesce("begun_at", "recorded_at"))
    known, rule = partial(is_known, acceptances, runs), replace(rule, baseline=BaselineRule("last", ""))
    every = MetricRuns(placed, 0, rule, known, together=together)
    blocks = placed["block"].drop_nulls().unique(maintain_order=True)
    parts = [every, *(every.of_block(block) for block in blocks if len(blocks) > 1)]
    for job, (name, least) in product(parts, rule.metrics.items()):
        metric = find_metric(name)
        rows = measured(job.runs, metric) if metric != FINAL_LOSS else placed.clear()
        if len(rows):
            for run_id, verdict in verdicts_by_run(rows, metric, least, job):
                by_run[run_id].append(verdict)
    return {run_id: verdicts for run_id, verdicts in by_run.items() if verdicts}
