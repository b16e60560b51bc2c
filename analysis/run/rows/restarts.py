"""Starts of a run: where a process began, which steps it did again, how many steps each row covers.

Comes in: step rows, the lines on which processes began, events. Goes out: the rows with ``segment``, ``lineage``,
``iterations`` and ``replayed``, and one row per start. Which rows count is decided in ``row_selection``.

``other_job``: a job that ended before the run began, in one file with it. What it did is no work of the run; the time
that it took is a part of the run's start-up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import polars as pl
import regex

from analysis.run.clock.interruptions import NO_PAUSES, Pauses, count_between
from analysis.run.rows.corrupt_rows import mark_damage
from analysis.run.rows.duplicates import mark_copies
from analysis.run.rows.exclusion_reasons import ROW_MS, TIMED, WARM_UP
from analysis.run.rows.frame_filters import known, only, with_known
from analysis.run.tables import SEGMENT_COLUMNS
from logparse.context.corrections import ended_by_start
from logparse.context.run_context import RunContext
from logparse.findings import Note, info
from logparse.schema import BEGINNINGS, conform

# A stamp is cut to a second, and reading data and logging take a little time between the steps.
STAMP_MS, SPLIT_SHARE = 1000, 0.1
# A step number that is so many intervals ahead has others between.
JUMP = 1.5
# A last row so many intervals ahead is of an excerpt: no trainer prints so much less at its end.
EXCERPT = 100
# A time that is this near to the mean of all steps of a jump may be that mean.
NEAR_MEAN = 0.01
# The first step of a process takes longer than this times one of the process before.
AS_FAST, LONGEST_PAUSE_MS = 1.25, 900_000
# More than the lines of a file.
LINES = 10**12
# Rows that print a step for the first time, undamaged.
OWN = ~pl.col("copied") & ~pl.col("damaged") & ~pl.col("other_job")


def number_starts(steps: pl.DataFrame, starts: pl.DataFrame, pauses: Pauses = NO_PAUSES) -> pl.DataFrame:
    """Add ``segment`` (number of the start, over all files) and why a row is in none; clocks that cannot be go.

    A start is a step number that does not grow, a line of ``starts`` (source, line_number) between two rows, or a file
    that does not go on where the one before ended, though ``pauses`` may lie between. Rows that are copied, damaged or
    of another job are of the start before them.
    """
    lines = starts.select("source", begun=pl.col("line_number")).sort("begun")
    places = steps["source", "line_number"].join_asof(
        lines, left_on="line_number", right_on="begun", by="source", strategy="backward", check_sortedness=False
    )
    known = steps.with_columns(
        places["begun"],
        beginning_shown=pl.lit(places["begun"]).is_not_null(),
        at_end=pl.col("source").is_in(ended_by_start(steps, starts)),
    )
    seen = mark_other_jobs(mark_damage(_without_begins_of_copies(mark_copies(known))))
    columns = ("copied", "damaged", "other_job", "source", "begun", "at_end", "step", "step_time_ms", "timestamp")
    read = seen[columns].with_row_index("at").with_columns(paused=_follows_pause(pauses))
    begins = only(read, OWN).select("at", segment=_begins(read["source"].n_unique() > 1).cum_sum().cast(pl.Int64))
    segment = pl.lit(read[["at"]].join(begins, on="at", how="left", maintain_order="left")["segment"])
    # Known to ascend, rows are grouped by it in a tenth of the time.
    return seen.select(pl.exclude("begun", "at_end"), segment=segment.forward_fill().fill_null(0).set_sorted())


def _follows_pause(pauses: Pauses) -> pl.Expr:
    """Whether a save or an evaluation lies between a row and the one before."""
    marks = sorted({*pauses.saved, *pauses.evaluated})
    return (count_between(marks, pl.col("step").shift(1), pl.col("step")) > 0).fill_null(value=False)


def _without_begins_of_copies(steps: pl.DataFrame) -> pl.DataFrame:
    """The rows without beginnings whose first rows are copies: a log that grew since it was appended to itself."""
    if not steps["copied"].any():
        return steps
    again = pl.col("copied").first().over("source", "begun") & pl.col("begun").is_not_null()
    begun = pl.when(~again).then("begun")
    return steps.with_columns(begun=pl.when(again).then(begun.forward_fill().over("source")).otherwise("begun"))


def lines_of_starts(settings: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """The lines (source, line_number) that show that a process began: of its ``settings``, and of its beginning."""
    begun = events.filter(pl.col("kind").is_in(BEGINNINGS)).select("source", "line_number")
    return pl.concat([settings.select("source", "line_number"), begun]).unique(maintain_order=True)


def _begins(several_files: bool) -> pl.Expr:
    """A row before which a process began, the first one apart."""
    back = pl.col("step") <= pl.col("step").shift(1)
    other = pl.col("source") != pl.col("source").shift(1)
    again = (other & pl.col("at_end").shift(1)) | pl.col("begun").is_not_null() & (
        other | pl.col("begun").ne_missing(pl.col("begun").shift(1))
    )
    elsewhere = other & ~_goes_on() if several_files else pl.lit(value=False)
    return (back | again | elsewhere).fill_null(False) & (pl.int_range(pl.len()) > 0)


def _goes_on() -> pl.Expr:
    """A row whose stamp is its own time after the row before: no process began between them, which takes longer.

    Else the next step of a file that shows no beginning: if a save or an evaluation of no more than LONGEST_PAUSE_MS
    lies between, or, without stamps, if it is no slower than the one before.
    """
    step, ms = pl.col("step"), pl.col("step_time_ms")
    rise = step - step.shift(1)
    follows = (rise == rise.shift(1)) | (rise == rise.shift(-1))
    stamp = pl.col("timestamp")
    passed = (stamp.diff().dt.total_microseconds() / 1000).fill_null(0.0)
    unstamped = stamp.is_null() & stamp.is_null().shift(1)
    near = unstamped | passed.is_between(0, LONGEST_PAUSE_MS + ms * rise)
    as_fast = unstamped & (ms <= AS_FAST * ms.shift(1))
    rotated = pl.col("begun").is_null() & follows & near & (as_fast | pl.col("paused"))
    stamped = pl.when(stamp.is_not_null()).then("step")
    gap = (stamp.backward_fill() - stamp.forward_fill().shift(1)).dt.total_microseconds() / 1000
    time = pl.col("step_time_ms") * (stamped.backward_fill() - stamped.forward_fill().shift(1))
    return (((gap - time).abs() <= STAMP_MS + SPLIT_SHARE * time).fill_null(False)) | rotated.fill_null(False)


def trace_starts(
    steps: pl.DataFrame, events: pl.DataFrame, log_interval: int | None, left_out: Collection[int] = ()
) -> pl.DataFrame:
    """Add ``lineage``, ``iterations``, ``replayed`` and ``replayed_steps`` to rows that ``number_starts`` has numbered.

    A start that goes on from a later step than its lineage's first continues it; one that begins at the beginning
    again is a run of its own in the same file. ``iterations`` is how many steps the row's time is the mean of, null
    where the row is a copy, of another job or its step is damaged. ``replayed`` rows end at a step that an earlier
    start of the lineage had reached; ``replayed_steps`` are those of the row's steps up to it. Steps ``left_out`` are
    passed over without work, as by Megatron's ``--iterations-to-skip``, and are in no row. So are those for which the
    clock has no room, and those whose lines are missing.
    """
    read = ("source", "line_number", "step", "segment", "copied", "damaged", "other_job", "timestamp", "step_time_ms")
    # Only a time that is computed has a resolution.
    computed = pl.col("time_resolution_ms").is_not_null() if "time_resolution_ms" in steps.columns else pl.lit(False)
    indexed = steps.select(*read, printed=~computed).with_row_index("at")
    own_rows = only(indexed, OWN)
    heads = own_rows.group_by("segment", maintain_order=True).agg(pl.col("step").first(), last=pl.col("step").max())
    lineages = heads[["segment"]].hstack([*_lineages(heads["step"].to_list(), heads["last"].to_list())])
    traced = own_rows.join(lineages, on="segment", how="left", maintain_order="left")
    iterations = _iterations(traced, events, log_interval)
    counted = _less(_fitting(traced.with_columns(iterations=iterations)), left_out)
    again = (pl.col("reached") - pl.col("step") + pl.col("iterations")).clip(0, pl.col("iterations"))
    replayed = pl.col("step") <= pl.col("reached")
    replays = counted.select("at", "iterations", replayed=replayed, replayed_steps=again.fill_null(0))
    joined = indexed["at", "segment"].join(
        lineages["segment", "lineage"], on="segment", how="left", maintain_order="left"
    )
    every = joined.join(replays, on="at", how="left", maintain_order="left")
    added = every["lineage", "iterations", "replayed", "replayed_steps"]
    return steps.hstack(added).with_columns(pl.col("replayed").fill_null(False))


def _fitting(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with the ``iterations`` that their time can be of, where step numbers jump ahead within a start."""
    gap = pl.col("timestamp").diff().over("segment").dt.total_microseconds() / 1000
    spaced = rows.with_columns(jump=pl.col("step").diff().over("segment"), gap=gap)
    rows = spaced.with_columns(interval=pl.col("jump").median().over("segment"))
    if not (rows["jump"] > JUMP * rows["interval"]).any():
        return rows
    jump, interval, gap = pl.col("jump"), pl.col("interval"), pl.col("gap")
    room = (gap + STAMP_MS) / pl.col("step_time_ms")
    jumps = (jump == pl.col("iterations")) & (jump > JUMP * interval)
    too_many = jumps & (gap >= 0) & (room < (1 - SPLIT_SHARE) * pl.col("iterations"))
    fitting = (gap / pl.col("step_time_ms")).round().cast(pl.Int64, strict=False).clip(1)
    whole_interval = interval.round().cast(pl.Int64).clip(1)
    missing = jumps & _follows_missing_lines(jump, interval, gap)
    return rows.with_columns(
        iterations=pl.when(missing.fill_null(value=False))
        .then(whole_interval)
        .when(too_many.fill_null(value=False))
        .then(fitting)
        .otherwise("iterations")
    )


def _follows_missing_lines(jump: pl.Expr, interval: pl.Expr, gap: pl.Expr) -> pl.Expr:
    """Whether a row that is a ``jump`` of steps ahead has a printed time of its own ``interval`` alone.

    The rows around it are an interval apart, or have jumps of another length: a new interval would repeat it. And
    ``gap``, the ms that passed, is not that time for all steps.
    """
    before, after = (
        (near == interval) | ((near > JUMP * interval) & (near != jump))
        for near in (jump.shift(n).over("segment") for n in (1, -1))
    )
    after = after.fill_null(jump > EXCERPT * interval)
    time = pl.col("step_time_ms") * jump
    mean = ((gap - time).abs() <= STAMP_MS + NEAR_MEAN * time).fill_null(value=False)
    # A line whose step is damaged is not missing.
    printed = pl.col("step_time_ms").is_not_null() & pl.col("printed") & (pl.col("at").diff() == 1)
    return printed & before.fill_null(value=True) & after & ~mean


def _less(rows: pl.DataFrame, left_out: Collection[int]) -> pl.DataFrame:
    """The rows without the steps ``left_out`` in their ``iterations``."""
    if not left_out:
        return rows
    jump = rows.select(pl.col("step").diff().over("segment")).to_series()
    within = count_between(sorted(left_out), rows["step"] - rows["iterations"] + 1, rows["step"] + 1)
    # The clock may have shown them already.
    whole = jump.is_null() | (jump == rows["iterations"])
    left = rows["iterations"] - within * whole.fill_null(value=False).cast(pl.Int64)
    return rows.with_columns(iterations=left.clip(1))


def left_out_steps(context: RunContext) -> frozenset[int]:
    """The steps that ``--iterations-to-skip`` names."""
    return frozenset(int(step) for step in regex.findall(r"\d+", str(context.get("iterations_to_skip") or "")))


def _iterations(own: pl.DataFrame, events: pl.DataFrame, log_interval: int | None) -> pl.Expr:
    """Steps since the row before of the same start, or since the checkpoint that the start loaded."""
    first, reached = pl.col("step").first().over("segment"), pl.col("reached")
    anywhere = own.select(pl.col("step").diff().over("segment").median()).item()
    # A start can log at another interval than the one before.
    of_start = pl.col("step").diff().median().over("segment")
    between = of_start.fill_null(anywhere or 1).cast(pl.Int64).clip(1)
    interval = between.clip(log_interval or 1)
    loaded = _step_begun_at(own, events)
    # Without a word of a checkpoint, only a row near the step that earlier starts had reached, or near the beginning of
    # training, covers all steps before it.
    begun = pl.coalesce(
        pl.when(loaded < first).then(loaded),
        pl.when((reached < first) & (first - reached <= interval)).then(reached),
        pl.when(first <= interval).then(0),
    )
    return pl.coalesce(pl.col("step").diff().over("segment"), first - begun, between).clip(1)


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


def _step_begun_at(steps: pl.DataFrame, events: pl.DataFrame) -> pl.Expr:
    """The step after which the row's start began, mostly that of its checkpoint; null where no line prints it."""
    begins = (events["kind"] == "checkpoint loaded") | (events["kind"] == "training starts")
    loads = events.select("source", "line_number", loaded="step").filter(begins).drop_nulls()
    if loads.is_empty():
        return pl.lit(None, pl.Int64)
    # The line can be at the end of the file before.
    files = {source: n for n, source in enumerate(steps["source"].unique(maintain_order=True))}
    place = pl.col("source").replace_strict(files, default=None, return_dtype=pl.Int64) * LINES + pl.col("line_number")
    rows = steps.with_columns(place=place).group_by("segment", maintain_order=True)
    heads = rows.agg(pl.col("place").first(), last=pl.col("place").last()).sort("place")
    loaded = heads.with_columns(before=pl.col("last").shift(1).fill_null(-1)).join_asof(
        loads.with_columns(place=place, printed=place).drop_nulls("place").sort("place"), on="place"
    )
    loaded = loaded.filter(pl.col("printed") > pl.col("before"))
    with_loaded = loaded.drop_nulls("loaded")
    return pl.col("segment").replace_strict(
        with_loaded["segment"], with_loaded["loaded"], default=None, return_dtype=pl.Int64
    )


def list_segments(steps: pl.DataFrame) -> pl.DataFrame:
    """One row per start: where it is, the steps it covers, how many it did again and how many its end lost."""
    rows = (
        with_known(steps, "iterations")
        .group_by("segment", maintain_order=True)
        .agg(
            pl.col("run", "source", "line_number", "lineage").first(),
            pl.col("timestamp").min().alias("first_timestamp"),
            pl.col("timestamp").max().alias("last_timestamp"),
            pl.col("step").first().alias("first_step"),
            pl.col("step").last().alias("last_step"),
            pl.len().alias("rows"),
            pl.col("replayed_steps").sum(),
            (pl.col("excluded_reason") == WARM_UP).sum().alias("warm_up_rows"),
            ROW_MS.filter(TIMED).sum().alias("step_time_sum_ms"),
        )
    )
    following = pl.col("replayed_steps").shift(-1).over("lineage").fill_null(0)
    return conform(rows.with_columns(lost_steps=following), SEGMENT_COLUMNS)


def mark_other_jobs(steps: pl.DataFrame) -> pl.DataFrame:
    """Add ``other_job``: the row is of a job that did its last step, before a longer one began at the beginning."""
    if known(steps["train_steps"]).n_unique() < 2:
        return steps.with_columns(other_job=pl.lit(value=False))
    read = steps.select("source", "step", "train_steps", "copied", "damaged").with_row_index("at")
    of_jobs = read.filter(~pl.col("copied") & ~pl.col("damaged")).drop_nulls("train_steps")
    jobs = (
        of_jobs.with_columns(job=pl.struct("source", "train_steps").rle_id())
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
