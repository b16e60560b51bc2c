"""Steps that were done and kept but that no line prints: a later start begins after the last printed step.

So are those of lines that are missing within a start, as in an excerpt. Comes in: rows of starts, events. Goes out:
their time at the baseline, and a warning where the log of the job that did them is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import polars as pl

from analysis.run.exclusion_reasons import OF_THE_RUN, ROW_MS
from analysis.run.frame_filters import only, starts_of, with_known
from analysis.run.remaining_time import is_end_printed, is_last_line
from analysis.run.restarts import JUMP, SPLIT_SHARE, STAMP_MS
from logparse.findings import Note, warning

MISSING_LINES = "step_lines_missing"
# An excerpt has no line for more than this share of its steps.
OF_AN_EXCERPT = 0.2
# A printed rate is far from the clock from this factor on, either way.
FAR = 2
SAMPLES = "logged_samples_per_second"
SAVES = ("save starts", "save ends")


def unprinted_seconds(before: pl.DataFrame, begun_after: int, room: float) -> float:
    """Seconds of the steps from the last of ``before`` to ``begun_after``, at most those that there is ``room`` for.

    They take as long as those with the last batch.
    """
    steps = begun_after - int(before["step"][-1])
    if steps <= 0:
        return 0.0
    of_batch = pl.col("global_batch_size").eq_missing(pl.col("global_batch_size").filter("counted").last())
    typical = before.select(pl.col("step_time_ms").filter("counted", of_batch).median()).item()
    return min(steps * typical / 1000, max(room, 0.0)) if isinstance(typical, float) else 0.0


def unprinted_within(start: pl.DataFrame) -> tuple[int, float]:
    """The steps whose lines are missing between those of a ``start``, as far as stamps have room, and their seconds."""
    typical = start["step_time_ms"].filter(start["counted"]).median()
    if not isinstance(typical, float) or typical <= 0:
        return 0, 0.0
    spans = start["step", "iterations", "timestamp", "step_time_ms"].with_columns(
        missing=pl.col("step").diff() - pl.col("iterations"), gap=pl.col("timestamp").diff()
    )
    if not (spans["missing"] > 0).any():
        return 0, 0.0
    room = (pl.col("gap").dt.total_microseconds() / 1000 - ROW_MS).clip(0)
    seconds = pl.min_horizontal(pl.col("missing") * typical, room) / 1000
    # Stamps are cut to seconds, and steps vary a little.
    steps = pl.min_horizontal("missing", ((room + STAMP_MS) * (1 + SPLIT_SHARE) / typical).floor())
    between = spans.filter(pl.col("missing") > 0).select(steps=steps.sum(), seconds=seconds.sum()).row(0)
    return int(between[0]), float(between[1])


def unprinted_between(rows: pl.DataFrame) -> int:
    """How many steps lie between the rows and the starts of ``rows``, as far as the stamps have room for.

    Between starts they are known by the checkpoints.
    """
    starts = [start for _, start in starts_of(stamped(rows))]
    found = sum(unprinted_within(start)[0] for start in starts)
    for before, start in pairwise(starts):
        first = start.row(0, named=True)
        typical = before["step_time_ms"].filter(before["counted"]).median()
        if before["lineage"][-1] != first["lineage"] or not isinstance(typical, float):
            continue
        gap: Any = first["timestamp"] - before["timestamp"].max()
        room = gap.total_seconds() * 1000 - first["step_time_ms"] * first["iterations"]
        found += max(0, min(first["step"] - first["iterations"] - before["step"][-1], int(room / typical)))
    return found


def stamped(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with a stamp that cover steps."""
    return with_known(rows, "timestamp", "iterations")


def last_saved(before: pl.DataFrame, events: pl.DataFrame) -> int:
    """The last step that a save after the last row of ``before`` shows; that row's own step where none does."""
    source, line, step = before["source", "line_number", "step"].row(-1)
    save = (events["kind"] == SAVES[0]) | (events["kind"] == SAVES[1])
    after = save & (events["source"] == source) & (events["line_number"] > line)
    saved: Any = events["step"].filter(after).max()
    return max(int(saved or 0), int(step))


def last_done(before: pl.DataFrame, events: pl.DataFrame) -> int:
    """The last step that a save after the last row of ``before`` shows, or the end of a training with a plan."""
    planned: Any = before["train_steps"].last(ignore_nulls=True)
    saved = last_saved(before, events)
    completed = planned is not None and is_last_line(before) and is_end_printed(before, events)
    return max(saved, int(planned)) if completed else saved


def describe_missing_logs(steps: pl.DataFrame, events: pl.DataFrame) -> Iterator[Note]:
    """A warning for each start that goes on from a step that no line of the log reaches, printed or saved."""
    read = steps["segment", "lineage", "source", "line_number", "step", "iterations", "excluded_reason"]
    own = only(read, OF_THE_RUN & pl.col("iterations").is_not_null())
    for (_, before), (_, start) in pairwise(starts_of(own)):
        first = start.row(0, named=True)
        begun_after, every = first["step"] - first["iterations"], before["iterations"].max()
        # Few starts are ahead of the last printed step, and only those need the saves.
        ahead = before["lineage"][-1] == first["lineage"] and begun_after - int(before["step"][-1]) > (every or 0)
        if ahead and begun_after - last_saved(before, events) > (every or 0):
            where = {"source": first["source"], "line": first["line_number"]}
            yield warning("log_missing", first=before["step"][-1] + 1, last=begun_after, **where)


def describe_missing_lines(steps: pl.DataFrame) -> Iterator[Note]:
    """A warning where many steps of a start have no line, as in an excerpt: lines are further apart than most."""
    read = only(steps["segment", "step"], ~steps["copied"])
    jump = pl.col("step").diff().over("segment")
    every = pl.col("step").diff().quantile(0.25, "lower").over("segment")
    jumps = read.select("segment", jump=jump, interval=every)
    over = jumps["jump"] > JUMP * jumps["interval"]
    missing = float((jumps["jump"] - jumps["interval"]).filter(over).sum())
    done: Any = jumps["jump"].sum()
    if missing > OF_AN_EXCERPT * int(done):
        # The first line of a start is of steps too.
        first = int(jumps.drop_nulls().unique("segment")["interval"].sum())
        yield warning(MISSING_LINES, n=round(missing), of=int(done) + first)
        yield from _printed_unlike_clock(steps)


def _printed_unlike_clock(steps: pl.DataFrame) -> Iterator[Note]:
    """A warning where no step has a time, and the clock from line to line is far from the printed samples/s."""
    own = steps.filter(~pl.col("copied")).drop_nulls(["timestamp", "global_batch_size", SAMPLES])
    if own["segment"].n_unique() != 1 or steps["step_time_ms"].is_not_null().any():
        return
    first, last = own.row(0, named=True), own.row(-1, named=True)
    printed: Any = own[SAMPLES].median()
    seconds = (last["timestamp"] - first["timestamp"]).total_seconds()
    samples = (last["step"] - first["step"]) * last["global_batch_size"]
    if min(printed, samples, seconds) > 0 and not 1 / FAR < (ratio := printed * seconds / samples) < FAR:
        yield warning("printed_rate_unlike_clock", printed=printed, by_clock=samples / seconds, ratio=ratio)
