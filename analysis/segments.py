"""Starts of a run: where a process began, which steps it did again, what each row stands for.

Comes in: step rows, the lines on which processes began, events. Goes out: the rows with ``segment``, ``lineage``,
``iterations`` and ``replayed``, and one row per start. Which rows count is decided in ``window``.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from logparse.schema import SEGMENT_COLUMNS, conform

# A stamp is cut to a second, and reading data and logging take a little beside the steps.
STAMP_MS, SPLIT_SHARE = 1000, 0.1


def number_starts(steps: pl.DataFrame, starts: pl.DataFrame) -> pl.DataFrame:
    """Add ``segment`` (number of the start, over all files) and ``copied`` (the same step printed once more).

    A start is a step number that does not grow, a line of ``starts`` (source, line_number) between two rows, or a file
    that does not go on where the one before ended.
    """
    lines = starts.select("source", begun=pl.col("line_number")).sort("begun")
    known = steps.join_asof(
        lines, left_on="line_number", right_on="begun", by="source", strategy="backward", check_sortedness=False
    )
    twice = _same_as_before()
    back = (pl.col("step") <= pl.col("step").shift(1)) & ~twice
    other = pl.col("source") != pl.col("source").shift(1)
    again = pl.col("begun").is_not_null() & (other | pl.col("begun").ne_missing(pl.col("begun").shift(1)))
    begins = (back | again | (other & ~_goes_on())).fill_null(False) & (pl.int_range(pl.len()) > 0)
    numbered = known.with_columns(segment=begins.cum_sum().cast(pl.Int64), twice=twice).drop("begun")
    return numbered.with_columns(copied=pl.col("source").is_in(_copied_files(numbered)) | pl.col("twice")).drop("twice")


def _goes_on() -> pl.Expr:
    """A row whose stamp lies its own time behind the row before: no process began between them, which takes longer."""
    gap = pl.col("timestamp").diff().dt.total_microseconds() / 1000
    time = pl.col("step_time_ms") * pl.col("step").diff()
    return ((gap - time).abs() <= STAMP_MS + SPLIT_SHARE * time).fill_null(False)


def _same_as_before() -> pl.Expr:
    """A line that one file holds twice in a row, as two handlers of one logger write it."""
    time = pl.col("elapsed_time_per_iteration_ms")
    same = (pl.col("source") == pl.col("source").shift(1)) & (pl.col("step") == pl.col("step").shift(1))
    return (same & (time == time.shift(1)) & pl.col("loss").eq_missing(pl.col("loss").shift(1))).fill_null(False)


def _copied_files(steps: pl.DataFrame) -> list[str]:
    """Files whose steps a file with more rows holds too: every rank of MindFormers prints every step.

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
    return copies


def _span(rows: pl.DataFrame) -> tuple[Any, Any]:
    return rows["timestamp"].min(), rows["timestamp"].max()


def _overlap(one: tuple[Any, Any], other: tuple[Any, Any]) -> bool:
    """Whether two spans of time overlap; without a clock they may."""
    return None in (*one, *other) or (one[0] <= other[1] and other[0] <= one[1])


def trace_starts(steps: pl.DataFrame, events: pl.DataFrame, log_interval: int | None) -> pl.DataFrame:
    """Add ``lineage``, ``iterations`` and ``replayed`` to rows that ``number_starts`` has numbered.

    A start that goes on from a later step than its lineage's first continues it; one that begins at the beginning
    again is a run of its own in the same file. ``iterations`` is how many steps the row's time is the mean of.
    ``replayed`` rows end at a step that an earlier start of the lineage had reached.
    """
    first = pl.col("step").first().over("segment")
    heads = (
        steps.filter(~pl.col("copied"))
        .group_by("segment", maintain_order=True)
        .agg(pl.col("step").first(), last=pl.col("step").max())
    )
    lineages = heads.select("segment", *_lineages(heads["step"].to_list(), heads["last"].to_list()))
    traced = steps.join(lineages, on="segment", how="left", maintain_order="left")
    between = traced.filter(~pl.col("copied")).select(pl.col("step").diff().over("segment").median()).item()
    usual = max(1, int(between or 1), log_interval or 1)
    loaded = _loaded_step(traced, events)
    # Without a word of a checkpoint, only a row near the beginning of training stands for all steps before it.
    begun = pl.coalesce(pl.when(loaded < first).then(loaded), pl.when(first <= usual).then(0))
    own = pl.coalesce(pl.col("step").diff().over("segment"), first - begun, pl.lit(max(1, int(between or 1))))
    return traced.with_columns(iterations=own.clip(1), replayed=(pl.col("step") <= pl.col("reached")).fill_null(False))


def _lineages(first: list[int], last: list[int]) -> tuple[pl.Series, pl.Series]:
    """For each start its lineage and the step that earlier starts of the lineage had reached."""
    lineages: list[int] = []
    reached: list[int | None] = []
    lineage, begin, furthest = -1, 0, 0
    for head, tail in zip(first, last, strict=True):
        fresh = lineage < 0 or head <= begin
        if fresh:
            lineage, begin, furthest = lineage + 1, head, 0
        lineages.append(lineage)
        reached.append(None if fresh else furthest)
        furthest = max(furthest, tail)
    return pl.Series("lineage", lineages, pl.Int64), pl.Series("reached", reached, pl.Int64)


def _loaded_step(steps: pl.DataFrame, events: pl.DataFrame) -> pl.Expr:
    """The step of the checkpoint that the row's start loaded; null where no line tells."""
    loads = (
        events.filter(pl.col("kind") == "checkpoint loaded").select("source", "line_number", loaded="step").drop_nulls()
    )
    if loads.is_empty():
        return pl.lit(None, pl.Int64)
    heads = (
        steps.group_by("segment", maintain_order=True).agg(pl.col("source", "line_number").first()).sort("line_number")
    )
    found = heads.join_asof(
        loads.sort("line_number"), on="line_number", by="source", strategy="backward", check_sortedness=False
    )
    known = found.drop_nulls("loaded")
    return pl.col("segment").replace_strict(known["segment"], known["loaded"], default=None, return_dtype=pl.Int64)


def list_segments(steps: pl.DataFrame) -> pl.DataFrame:
    """One row per start: where it is, the steps it covers, how many it did again and how many its end lost."""
    rows = (
        steps.filter(~pl.col("copied"))
        .group_by("segment", maintain_order=True)
        .agg(
            pl.col("run", "source", "line_number", "lineage").first(),
            pl.col("timestamp").min().alias("first_timestamp"),
            pl.col("timestamp").max().alias("last_timestamp"),
            pl.col("step").first().alias("first_step"),
            pl.col("step").last().alias("last_step"),
            pl.len().alias("rows"),
            pl.col("iterations").filter("replayed").sum().alias("replayed_steps"),
            (pl.col("excluded_reason") == "warm-up").sum().alias("warm_up_rows"),
            (pl.col("step_time_ms") * pl.col("iterations")).sum().alias("step_time_sum_ms"),
        )
    )
    following = pl.col("replayed_steps").shift(-1).over("lineage").fill_null(0)
    return conform(rows.with_columns(lost_steps=following), SEGMENT_COLUMNS)
