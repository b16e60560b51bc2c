"""Jobs that ended before the run began, in one file with it: a trial of a few steps before the real thing.

Comes in: step rows with ``copied`` and ``damaged``. Goes out: ``other_job``. What such a job did is no work of the run;
the time that it took is a part of the run's start-up.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from analysis.run.frame_filters import known
from logparse.findings import Note, info


def mark_other_jobs(steps: pl.DataFrame) -> pl.DataFrame:
    """Add ``other_job``: the row is of a job that did its last step, before a longer one began at the beginning."""
    if known(steps["train_steps"]).n_unique() < 2:
        return steps.with_columns(other_job=pl.lit(value=False))
    read = steps.select("source", "step", "train_steps", "copied", "damaged").with_row_index("at")
    own = read.filter(~pl.col("copied") & ~pl.col("damaged")).drop_nulls("train_steps")
    jobs = (
        own.with_columns(job=pl.struct("source", "train_steps").rle_id())
        .group_by("job", maintain_order=True)
        .agg("at", pl.col("source", "train_steps").first(), first=pl.col("step").first(), last=pl.col("step").last())
    )
    at = jobs.filter(_ended_before_a_longer_one())["at"].explode()
    return steps.with_columns(other_job=pl.int_range(pl.len(), dtype=pl.UInt32).is_in(at.implode()))


def _ended_before_a_longer_one() -> pl.Expr:
    ended = pl.col("last") == pl.col("train_steps")
    longer = pl.col("train_steps").shift(-1) > pl.col("train_steps")
    begins_anew = pl.col("first").shift(-1) <= pl.col("first")
    return (ended & longer & begins_anew & (pl.col("source").shift(-1) == pl.col("source"))).fill_null(value=False)


def describe_other_jobs(steps: pl.DataFrame) -> Iterator[Note]:
    """Notes on the lines of each other job, and on the steps that it was asked for."""
    if not steps["other_job"].any():
        return
    jobs = steps.filter("other_job").group_by("source", "train_steps", maintain_order=True)
    spans = jobs.agg(pl.col("line_number").first(), last=pl.col("line_number").last())
    for source, asked, first, last in spans.iter_rows():
        yield info("other_job_before", source=source, n=asked, line=first, last=last)
