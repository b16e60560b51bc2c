"""Steps that were done and kept but that no line prints: a later start begins after the last printed step.

So are those of lines that are missing within a start, as in an excerpt. Comes in: rows of starts, events. Goes out:
their time at the baseline, and a warning where the log of the job that did them is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from analysis.run.rows.exclusion_reasons import OF_THE_RUN, ROW_MS
from analysis.run.rows.frame_filters import only
from analysis.run.rows.restarts import JUMP, SPLIT_SHARE, STAMP_MS
from analysis.run.useful.remaining_time import is_end_printed, is_last_line
from logparse.findings import Note, warning

MISSING_LINES = "step_lines_missing"
# An excerpt has no line for more than this share of its steps.
OF_AN_EXCERPT = 0.2
# A printed rate is far from the clock from this factor on, either way.
FAR = 2
SAMPLES = "logged_samples_per_second"
SAVES = ("save starts", "save ends")


def outline_starts(rows: pl.DataFrame) -> pl.DataFrame:
    """Each start of ``rows``: its first and last row, and its typical times."""
    counted, time, batch = pl.col("counted"), pl.col("step_time_ms"), pl.col("global_batch_size")
    return rows.group_by("segment", maintain_order=True).agg(
        pl.col("lineage").first(),
        begun_after=(pl.col("step") - pl.col("iterations")).first(),
        begin=pl.col("timestamp").first(),
        row_ms=ROW_MS.first(),
        last_step=pl.col("step").last(),
        last_stamp=pl.col("timestamp").last(),
        end=pl.col("timestamp").max(),
        typical_ms=time.filter(counted).median(),
        last_batch_ms=time.filter(counted, batch.eq_missing(batch.filter(counted).last())).median(),
    )


def unprinted_within(rows: pl.DataFrame, starts: pl.DataFrame) -> dict[int, tuple[int, float]]:
    """By start, the steps whose lines are missing between its rows, as far as stamps have room, and their seconds.

    ``starts`` are the ``outline_starts`` of ``rows``.
    """
    missing = pl.col("step").diff() - pl.col("iterations")
    gap = pl.col("timestamp").diff().dt.total_microseconds() / 1000
    same = pl.col("segment") == pl.col("segment").shift(1)
    before = rows.select("segment", missing=missing, room=(gap - ROW_MS).clip(0), same=same)
    jumps = before.filter("same", pl.col("missing") > 0)
    if jumps.is_empty():
        return {}
    missing, room, typical = pl.col("missing"), pl.col("room"), pl.col("typical_ms")
    # Stamps are cut to seconds, and steps vary a little.
    steps = pl.min_horizontal(missing, ((room + STAMP_MS) * (1 + SPLIT_SHARE) / typical).floor())
    seconds = pl.min_horizontal(missing * typical, room) / 1000
    paced = jumps.join(starts.filter(typical > 0).select("segment", "typical_ms"), on="segment")
    of_start = paced.group_by("segment").agg(steps.sum().cast(pl.Int64), seconds.sum().alias("seconds"))
    return {segment: (n, of_steps) for segment, n, of_steps in of_start.iter_rows()}


def unprinted_seconds(before: Mapping[str, Any], begun_after: int, room: float) -> float:
    """Seconds of the steps from the last of a start to ``begun_after``, at most those that there is ``room`` for.

    They take as long as those with the last batch. ``before`` is the row of the start in ``outline_starts``.
    """
    steps, typical = begun_after - before["last_step"], before["last_batch_ms"]
    return min(steps * typical / 1000, max(room, 0.0)) if steps > 0 and typical is not None else 0.0


def unprinted_between(rows: pl.DataFrame) -> int:
    """How many steps lie between the rows and the starts of ``rows``, as far as the stamps have room for.

    Between starts they are known by the checkpoints.
    """
    rows = stamped(rows)
    starts = outline_starts(rows)
    within = sum(steps for steps, _ in unprinted_within(rows, starts).values())
    if len(starts) < 2:
        return within
    gap = (pl.col("begin") - pl.col("end").shift(1)).dt.total_microseconds() / 1e6 * 1000
    fitting = ((gap - pl.col("row_ms")) / pl.col("typical_ms").shift(1)).cast(pl.Int64, strict=False)
    steps = pl.min_horizontal(pl.col("begun_after") - pl.col("last_step").shift(1), fitting).clip(0)
    goes_on = (pl.col("lineage") == pl.col("lineage").shift(1)) & pl.col("typical_ms").shift(1).is_not_null()
    return within + int(starts.select(steps.filter(goes_on).sum()).item())


def stamped(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with a stamp that cover steps."""
    return only(rows, pl.col("timestamp").is_not_null() & pl.col("iterations").is_not_null())


def last_saved(source: str, line: int, step: int, events: pl.DataFrame) -> int:
    """The last step that a save after the row of a ``step`` shows; that step where none does."""
    save = (events["kind"] == SAVES[0]) | (events["kind"] == SAVES[1])
    after = save & (events["source"] == source) & (events["line_number"] > line)
    saved: Any = events["step"].filter(after).max()
    return max(int(saved or 0), step)


def last_done(rows: pl.DataFrame, events: pl.DataFrame) -> int:
    """The last step that a save after the last of ``rows`` shows, or the end of a training with a plan."""
    planned: Any = rows["train_steps"].last(ignore_nulls=True)
    source, line, step = rows["source", "line_number", "step"].row(-1)
    saved = last_saved(source, line, step, events)
    completed = planned is not None and is_last_line(rows) and is_end_printed(rows, events)
    return max(saved, int(planned)) if completed else saved


def describe_missing_logs(steps: pl.DataFrame, events: pl.DataFrame) -> Iterator[Note]:
    """A warning for each start that goes on from a step that no line of the log reaches, printed or saved."""
    read = steps["segment", "lineage", "source", "line_number", "step", "iterations", "excluded_reason"]
    if read["segment"].n_unique() < 2:
        return
    rows = only(read, OF_THE_RUN & pl.col("iterations").is_not_null())
    starts = rows.group_by("segment", maintain_order=True).agg(
        pl.col("lineage", "source", "line_number").first(),
        pl.col("source", "line_number", "step").last().name.prefix("last_"),
        begun_after=(pl.col("step") - pl.col("iterations")).first(),
        every=pl.col("iterations").max(),
    )
    same = pl.col("lineage") == pl.col("lineage").shift(1)
    pairs = starts.with_columns(pl.col("^last_.*$").shift(1), pl.col("every").shift(1), same=same)
    # Few starts are ahead of the last printed step, and only those need the saves.
    ahead = pairs.filter("same", pl.col("begun_after") - pl.col("last_step") > pl.col("every"))
    for start in ahead.iter_rows(named=True):
        saved = last_saved(start["last_source"], start["last_line_number"], start["last_step"], events)
        if start["begun_after"] - saved > start["every"]:
            where = {"source": start["source"], "line": start["line_number"]}
            yield warning("log_missing", first=start["last_step"] + 1, last=start["begun_after"], **where)


def describe_missing_lines(steps: pl.DataFrame) -> Iterator[Note]:
    """A warning where many steps of a start have no line, as in an excerpt: lines are further apart than most.

    Each step has a line, or the distance between two lines comes again: one such distance may be any.
    """
    read = only(steps["segment", "step", "copied"], ~pl.col("copied"))
    jump = pl.col("step").diff().over("segment")
    first = pl.int_range(pl.len()).over("segment") == 0
    every = jump.quantile(0.25, "lower").over("segment")
    jumps = read.select("segment", "step", jump=jump, interval=every, first=first)
    again = pl.when("first").then("step").otherwise("jump") == pl.col("interval")
    is_sure = (pl.col("interval") == 1) | (again.sum().over("segment") > 1)
    of_lines = jumps.select("jump", "interval", sure=is_sure & (pl.col("jump") > JUMP * pl.col("interval")))
    missing = float((of_lines["jump"] - of_lines["interval"]).filter(of_lines["sure"]).sum())
    done: Any = of_lines["jump"].sum()
    # Where lines of several writers take turns, steps go back too.
    if OF_AN_EXCERPT * int(done) < missing < int(done):
        # The first line of a start is of steps too.
        begun = jumps.filter("first", pl.col("interval").is_not_null())
        before: Any = begun.select(pl.min_horizontal("interval", "step").sum()).item()
        yield warning(MISSING_LINES, n=round(missing), of=int(done) + int(before or 0))
        yield from _printed_unlike_clock(steps)


def _printed_unlike_clock(steps: pl.DataFrame) -> Iterator[Note]:
    """A warning where no step has a time, and the clock from line to line is far from the printed samples/s."""
    rows = steps.filter(~pl.col("copied")).drop_nulls(["timestamp", "global_batch_size", SAMPLES])
    if rows["segment"].n_unique() != 1 or steps["step_time_ms"].is_not_null().any():
        return
    first, last = rows.row(0, named=True), rows.row(-1, named=True)
    printed: Any = rows[SAMPLES].median()
    seconds = (last["timestamp"] - first["timestamp"]).total_seconds()
    samples = (last["step"] - first["step"]) * last["global_batch_size"]
    if min(printed, samples, seconds) > 0 and not 1 / FAR < (ratio := printed * seconds / samples) < FAR:
        yield warning("printed_rate_unlike_clock", printed=printed, by_clock=samples / seconds, ratio=ratio)
