"""The recorded runs that show which of the changes between two sides is the cause.

Comes in: two sides and a history. Goes out: a Bisection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from analysis.compare.bisect import Bisection, OtherRun, make_plan
from analysis.compare.comparability import FIELDS, Change, fill_implied, list_changes
from analysis.compare.comparison import Comparison, Side, all_runs, compare, measured, values_of
from analysis.compare.independent_records import find_jobs, sample_of
from analysis.compare.refusal import refuse_incomparable
from analysis.metrics import Metric

Settings = Callable[[Sequence[str]], pl.DataFrame]
# Recorded runs that are looked at: the newest, of which a history may hold thousands.
MOST_LOOKED_AT = 200


def find_plan(
    good: Side,
    bad: Side,
    metric: Metric,
    allowed: Sequence[str] = (),
    others: pl.DataFrame | None = None,
    settings: Settings | None = None,
) -> Bisection:
    """The plan to find the cause; ``others`` are the runs of the history, whose ``settings`` are read by their ids.

    Raises UsageError where the sides cannot be compared, have too few runs, or BAD is better than GOOD.
    """
    result = compare(good, bad, [metric], 0.0, allowed, others, everything=False)
    refuse_incomparable(result)
    sides = values_of(result.baseline.runs, metric), values_of(result.candidate.runs, metric)
    recorded: list[OtherRun] = []
    if others is not None and settings is not None and any(change.is_candidate for change in result.changes):
        runs = _neither(good, bad, metric, others)
        rows = settings(runs["run_id"].to_list())
        recorded = [_recorded(run, rows, result, metric) for run in runs.iter_rows(named=True)]
    return make_plan(metric, result.job, result.changes, sides, [run for run in recorded if _is_trial(run)])


def _is_trial(run: OtherRun) -> bool:
    """Whether it has candidates of both sides, or those of one side along with a value that neither side has."""
    mixed = bool(run.as_good and run.as_bad)
    return mixed or bool(run.other_values and (run.as_good or run.as_bad))


def _neither(good: Side, bad: Side, metric: Metric, others: pl.DataFrame) -> pl.DataFrame:
    """The newest runs of the same work that count, without the jobs of both sides, in the order of recording."""
    every_run = all_runs((good.runs, bad.runs), others)
    jobs = find_jobs(every_run)
    theirs = every_run.drop_nulls("side").select(jobs.named()).to_series().to_list()
    rest = sample_of(every_run.filter(pl.col("side").is_null() & ~jobs.named().is_in(theirs)), jobs).runs
    filled, asked = fill_implied(measured(rest, metric)), fill_implied(every_run.drop_nulls("side"))
    comparable = pl.all_horizontal(pl.col(n).is_in(asked[n].unique().to_list(), nulls_equal=True) for n in FIELDS)
    chosen = filled.filter(comparable)["run_id"].to_list()
    return others.filter(pl.col("run_id").is_in(chosen)).tail(MOST_LOOKED_AT)


def _recorded(run: Mapping[str, Any], rows: pl.DataFrame, result: Comparison, metric: Metric) -> OtherRun:
    """A run with its values as GOOD, as BAD, and as neither; ``rows`` are whole rows of the recorded runs."""
    mine = rows.filter(pl.col("run_id") == run["run_id"])
    unlike_good, unlike_bad = (_unlike(side.details, mine) for side in (result.baseline, result.candidate))
    candidates = {(change.kind, change.name): change for change in result.changes if change.is_candidate}
    as_good = tuple(change for key, change in candidates.items() if key in unlike_bad and key not in unlike_good)
    as_bad = tuple(change for key, change in candidates.items() if key in unlike_good and key not in unlike_bad)
    other_values = tuple(f"{c.name} {c.candidate[0]}" for key, c in unlike_good.items() if key in unlike_bad)
    return OtherRun(run["run_id"], run["name"], run["release"], run[metric.column], as_good, as_bad, other_values)


def _unlike(side: pl.DataFrame, run: pl.DataFrame) -> dict[tuple[str, str], Change]:
    return {(change.kind, change.name): change for change in list_changes(side, run) if change.is_candidate}
