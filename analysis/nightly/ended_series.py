"""Series that ended while a regression was open: the job no longer runs, or it is another one since.

Comes in: runs of a job, or of all jobs. Goes out: the series that another one follows, and what differs between them.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from analysis.compare.comparability import Field, check_fields
from analysis.nightly.job_runs import MOST_IDLE_DAYS, in_time
from analysis.nightly.trend import split_series
from analysis.stats.prediction import FEWEST

# A series that ended earlier is no longer looked at.
MOST_ENDED_DAYS = 90
# A series of no named job that differs in more fields is another job.
MOST_FIELDS = 3


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


def differing(before: pl.DataFrame, after: pl.DataFrame) -> tuple[Field, ...]:
    """The fields that differ between two series."""
    return tuple(field for field in check_fields(before, after) if field.state == "different")
