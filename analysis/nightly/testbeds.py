"""The verdicts on a job by testbed: all its runs together, and the runs of each block, such as a node, by themselves.

Comes in: the runs of a job with their block. Goes out: the verdicts on its metrics by block, None for all together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from analysis.compare.verdict import VERDICTS, find_metric
from analysis.nightly.job_steps import JobStep, StepContext, find_job_steps
from analysis.nightly.metric_verdict import MetricNight, MetricRuns, judge_newest
from logparse.light_dataclass import replace

Testbeds = Mapping[str | None, tuple[MetricNight, ...]]


def judge_testbeds(job: MetricRuns) -> dict[str | None, tuple[MetricNight, ...]]:
    """The verdicts on the newest run of all, and of each block that ran tonight, where there are several."""
    found: dict[str | None, tuple[MetricNight, ...]] = {None: _judge(job)}
    blocks = job.runs["block"].drop_nulls().unique(maintain_order=True)
    if len(blocks) > 1:
        ran = job.runs.filter(pl.col("run_id").is_in(job.tonight))["block"].drop_nulls().unique(maintain_order=True)
        found |= {block: _judge(job.of_block(block), block) for block in sorted(ran)}
    return found


def _judge(job: MetricRuns, block: str | None = None) -> tuple[MetricNight, ...]:
    nights = (judge_newest(find_metric(name), least, job) for name, least in job.rule.metrics.items())
    return tuple(replace(night, block=block) for night in nights if night is not None)


def worst_of_testbeds(testbeds: Testbeds) -> tuple[MetricNight, ...]:
    """The worst verdict on each metric. Its p is worth as many times as much as testbeds are judged."""
    every = [night for nights in testbeds.values() for night in nights]
    columns = dict.fromkeys(night.metric.column for night in every)
    return tuple(_worst([night for night in every if night.metric.column == column]) for column in columns)


def _worst(nights: Sequence[MetricNight]) -> MetricNight:
    judged = [night for night in nights if night.verdict != "insufficient data"]
    worst = min(judged or nights, key=lambda night: VERDICTS.index(night.verdict))
    return replace(worst, p=None if worst.p is None else min(1.0, worst.p * len(nights)))


def find_steps_of_testbeds(runs: pl.DataFrame, testbeds: Testbeds, context: StepContext) -> tuple[JobStep, ...]:
    """The steps of all runs together, then those of a block alone. ``runs`` have a column ``block``."""
    common = find_job_steps(runs, testbeds[None], context)
    found = list(common)
    for block, metrics in testbeds.items():
        if block is not None:
            mine = find_job_steps(runs.filter(pl.col("block") == block), metrics, context, block)
            found += [step for step in mine if not any(_is_same(runs, step, other) for other in common)]
    return tuple(found)


def _is_same(runs: pl.DataFrame, step: JobStep, common: JobStep) -> bool:
    """Whether the step of a block is that of all blocks: it begins with it, or with the next runs of its block."""
    ids = runs["run_id"].to_list()
    near = 2 * runs["block"].n_unique()
    return common.is_open == step.is_open and abs(ids.index(step.began) - ids.index(common.began)) <= near
