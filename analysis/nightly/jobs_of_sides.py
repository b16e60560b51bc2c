"""Two releases of many jobs: the runs of both sides, job by job, as the gate without sides parts them.

Comes in: two sides and a Policy. Goes out: a pair of sides for each job that is on both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from analysis.compare.comparison import Side
from analysis.compare.independent_records import fill_from_job, find_jobs, has_enough_rows
from analysis.compare.job_name import series_names
from analysis.compare.operands import MOST_SETTINGS_RUNS
from analysis.history.selection import select_runs
from analysis.nightly.job_runs import in_time, name_jobs, unnamed
from analysis.nightly.policy import JobRule, Policy
from analysis.nightly.trend import split_series
from logparse.light_dataclass import dataclass, replace

# Fewer jobs on both sides need no table.
SEVERAL = 2
Settings = Callable[[Sequence[str]], pl.DataFrame]


@dataclass(frozen=True)
class JobSides:
    """The two sides of a job, and further runs of it, from which its noise is learnt."""

    name: str
    baseline: Side
    candidate: Side
    others: pl.DataFrame | None


@dataclass(frozen=True)
class JobsOfSides:
    """The jobs that are on both sides, and the names of those on one side alone."""

    both: tuple[JobSides, ...]
    without_baseline: tuple[str, ...]
    without_candidate: tuple[str, ...]


def split_sides(
    sides: Sequence[Side],
    policy: Policy,
    others: pl.DataFrame | None,
    settings: Settings | None,
    allowed: Sequence[str] = (),
) -> JobsOfSides | None:
    """The jobs of both sides; None unless several are on both. Fields that are ``allowed`` to differ part no job."""
    ids = [set(side.runs["run_id"]) for side in sides]
    if ids[0] & ids[1]:
        return None
    frames = [side.runs for side in sides] + ([others] if others is not None else [])
    columns = [name for name in sides[0].runs.columns if all(name in frame.columns for frame in frames)]
    runs = pl.concat([frame.select(columns) for frame in frames]).unique("run_id", keep="first", maintain_order=True)
    jobs: list[JobSides] = []
    lone: tuple[list[str], list[str]] = ([], [])
    for name, mine in _jobs(runs, policy, allowed):
        here = [mine & one for one in ids]
        if all(here):
            old, new = (_part(side, one, settings) for side, one in zip(sides, here, strict=True))
            rest = None if others is None else others.filter(pl.col("run_id").is_in(list(mine)))
            jobs.append(JobSides(name, old, new, rest))
        elif any(here):
            lone[0 if here[1] else 1].append(name)
    if len(jobs) < SEVERAL:
        return None
    return JobsOfSides(tuple(jobs), *map(tuple, lone))


def _jobs(runs: pl.DataFrame, policy: Policy, allowed: Sequence[str]) -> list[tuple[str, set[str]]]:
    """The ids of the runs of each job by its name: those that the policy or a label names, then each series."""
    filled = in_time(fill_from_job(runs, find_jobs(runs)))
    jobs = name_jobs(filled, policy, _selected)
    fields = [name for name in allowed if name in filled.columns]
    rest = unnamed(filled, jobs)
    same = rest.with_columns(pl.lit(None, rest.schema[name]).alias(name) for name in fields)
    series = [rest.filter(pl.col("run_id").is_in(one["run_id"].to_list())) for one in split_series(same)]
    return [
        *((rule.name or "-", set(mine["run_id"])) for rule, mine in jobs),
        *((name, set(one["run_id"])) for name, one in zip(series_names(series), series, strict=True)),
    ]


def _selected(runs: pl.DataFrame, rule: JobRule) -> pl.DataFrame:
    return select_runs(runs, rule.select) if rule.select else runs


def _part(side: Side, run_ids: set[str], settings: Settings | None) -> Side:
    """The runs of a side that are of one job, with their details."""
    runs = side.runs.filter(pl.col("run_id").is_in(list(run_ids)))
    details = side.details.filter(pl.col("run_id").is_in(list(run_ids)))
    if settings is not None and side.releases:
        enough = runs.filter(has_enough_rows())
        details = settings((enough if len(enough) else runs).tail(MOST_SETTINGS_RUNS)["run_id"].to_list())
    return replace(side, runs=runs, details=details)
