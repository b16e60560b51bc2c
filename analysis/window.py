"""Which rows count: starts are numbered, and rows that would falsify a mean are marked with a reason, never deleted.

The rule: all rows but the first printed after each start (it holds compilation and warm-up), those with a NaN or a
skipped update, and copies that another rank printed of the same steps.
"""

from __future__ import annotations

from typing import Any

import polars as pl

FIRST = "first row after a start: holds compilation and warm-up"
SKIPPED = "an update was skipped"
NAN = "NaN"
NO_TIME = "no time on the line"
COPY = "printed by another rank too"

WINDOW_RULE = (
    "all rows but the first after each start, rows with a skipped update or a NaN, and copies from other ranks"
)


def mark_window(steps: pl.DataFrame, starts: pl.DataFrame | None = None) -> pl.DataFrame:
    """Add ``segment``, ``counted`` and ``excluded_reason`` to step rows.

    ``starts`` (source, line_number) are lines on which a process began, such as an argument dump; a step number that
    does not grow is a start too.
    """
    numbered = _with_segment(steps, starts)
    reason = (
        pl.when(_copied(numbered))
        .then(pl.lit(COPY))
        .when(pl.int_range(pl.len()).over("source", "segment") == 0)
        .then(pl.lit(FIRST))
        .when(~((pl.col("step_time_ms") > 0) & pl.col("step_time_ms").is_finite()).fill_null(False))
        .then(pl.lit(NO_TIME))
        .when((pl.col("nan_iterations").fill_null(0) > 0) | pl.col("loss").is_nan().fill_null(False))
        .then(pl.lit(NAN))
        .when((pl.col("skipped_iterations").fill_null(0) > 0) | pl.col("overflow").fill_null(False))
        .then(pl.lit(SKIPPED))
    )
    return numbered.with_columns(excluded_reason=reason).with_columns(counted=pl.col("excluded_reason").is_null())


def _with_segment(steps: pl.DataFrame, starts: pl.DataFrame | None) -> pl.DataFrame:
    """Number the starts over all files, in order of appearance."""
    if starts is None or starts.is_empty():
        known = steps.with_columns(begun=pl.lit(None, pl.Int64))
    else:
        lines = starts.select("source", begun=pl.col("line_number")).sort("begun")
        known = steps.join_asof(
            lines, left_on="line_number", right_on="begun", by="source", strategy="backward", check_sortedness=False
        )
    back = pl.col("step") <= pl.col("step").shift(1)
    again = pl.col("begun").ne_missing(pl.col("begun").shift(1))
    other = pl.col("source") != pl.col("source").shift(1)
    begins = (back | again | other).fill_null(False) & (pl.int_range(pl.len()) > 0)
    return known.with_columns(segment=begins.cum_sum().cast(pl.Int64)).drop("begun")


def _copied(steps: pl.DataFrame) -> pl.Expr:
    """Rows of a file whose steps a file with more rows holds too: every rank of MindFormers prints every step.

    Two files that follow each other in time share few steps, two ranks nearly all. Files whose clocks do not overlap
    are no copies: the second ran later.
    """
    files = {str(name[0]): (set(rows["step"]), _span(rows)) for name, rows in steps.group_by("source")}
    order = sorted(files, key=lambda name: (-len(files[name][0]), name))
    copies: list[str] = []
    for index, name in enumerate(order):
        (mine, span), kept = files[name], [other for other in order[:index] if other not in copies]
        if any(len(mine & files[o][0]) > len(mine) / 2 and _overlap(span, files[o][1]) for o in kept):
            copies.append(name)
    return pl.col("source").is_in(copies)


def _span(rows: pl.DataFrame) -> tuple[Any, Any]:
    return rows["timestamp"].min(), rows["timestamp"].max()


def _overlap(one: tuple[Any, Any], other: tuple[Any, Any]) -> bool:
    """Whether two spans of time overlap; without a clock they may."""
    return None in (*one, *other) or (one[0] <= other[1] and other[0] <= one[1])
