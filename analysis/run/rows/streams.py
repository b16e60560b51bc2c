"""Several runs in one file: those that write to it at the same time, and those that follow each other.

Comes in: step rows with ``copied``. Goes out: which stream a row is of. A restart falls back once and goes on from
there; streams come back to where they were, again and again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from analysis.run.rows.corrupt_rows import LONGEST_REST
from logparse.findings import Note, warning
from logparse.light_dataclass import dataclass

# A stream has at least so many rows; streams take turns at least so often, and the steps fall as often.
FEWEST_ROWS, FEWEST_TURNS = 3, 2
# Streams that may go on: those used last. More runs never write to one file.
MOST_RECENT = 16
# How far a row may be after the last one of its stream, in steps between two rows.
REACH = 1.5
# Runs that take strict turns: rows of one run are at most so many lines apart.
MOST_TURNS = 4
# Rows that print each step again took longer together than the clock by this much: several processes did them at once.
AT_ONCE = 1.5
# Trainings whose median steps differ by more than this are no retries of one job.
OTHER_PACE = 1.2


@dataclass(frozen=True)
class MixedRun:
    """The rows ``at`` of one run among those of the file ``source``, from step ``first`` to ``last``."""

    source: str
    at: tuple[int, ...]
    first: int
    last: int


def find_streams(steps: pl.DataFrame) -> list[MixedRun]:
    """The streams of each file in which several take turns; empty where its runs only follow each other."""
    read = steps.select("source", "step", "loss", "step_time_ms", "timestamp", "copied").with_row_index("at")
    rows = read.filter(~pl.col("copied")).drop_nulls("step")
    return [stream for file in rows.partition_by("source", maintain_order=True) for stream in _streams_of(file)]


def _streams_of(rows: pl.DataFrame) -> list[MixedRun]:
    rise = rows["step"].diff()
    falls = int(((rise <= 0) if _at_once(rows) else (rise < 0)).sum())
    between = _between(rows["step"]) if falls >= FEWEST_TURNS and not _begin_anew(rows["step"]) else None
    if between is None:
        return []
    followed, turns = _follow(rows["step"], rows["loss"], REACH * between)
    if turns < FEWEST_TURNS:
        return []
    streams = [stream for stream in _joined(followed, rows) if len(stream.at) >= FEWEST_ROWS]
    return streams if len(streams) > 1 else []


def _begin_anew(steps: pl.Series) -> bool:
    """Whether the steps rise from the first one of a training to its last, each time: trainings follow each other."""
    rise = pl.col("step").diff()
    parts = pl.DataFrame({"step": steps}).with_columns(part=(rise < 0).fill_null(value=False).cum_sum())
    each = parts.group_by("part").agg(pl.col("step").first(), between=rise.median(), n=pl.len())
    anew = (pl.col("step") <= pl.col("between")) & (pl.col("n") > FEWEST_ROWS)
    return bool(each.select(anew.fill_null(value=False).all()).item())


def _at_once(rows: pl.DataFrame) -> bool:
    """Whether the rows took longer together than the clock allows one process."""
    stamps = rows["timestamp"].drop_nulls()
    if len(stamps) < 2:
        return False
    passed = (stamps.max() - stamps.min()).total_seconds()  # type: ignore[operator, union-attr]
    return float(rows["step_time_ms"].sum()) / 1000 > AT_ONCE * passed > 0


def _between(steps: pl.Series) -> int | None:
    """Steps between two rows of one run.

    Where runs take strict turns, the row before is of another run: rows further back are compared too.
    """
    rises = [steps.diff(lines) for lines in range(1, MOST_TURNS + 1)]
    typical = [rise.filter(rise > 0).mode().min() for rise in rises]
    return min((rise for rise in typical if isinstance(rise, int)), default=None)


class _Row(NamedTuple):
    """The last row of a stream."""

    stream: int
    at: int
    step: int
    loss: float | None


def _follow(steps: pl.Series, losses: pl.Series, reach: float) -> tuple[list[list[int]], int]:
    """The rows of each stream, and how often two streams take turns: one goes on that had rows since the other began.

    A restart that passes the step where its run broke off is no turn: the run was silent since the restart began.
    """
    rise = steps.diff()
    breaks = [*((rise <= 0) | (rise > reach)).fill_null(value=True).arg_true(), len(steps)]
    step, loss = steps.to_list(), losses.to_list()
    streams: list[list[int]] = []
    turns, at = 0, 0
    # The stream used last first.
    recent: list[_Row] = []
    while at < len(step):
        near = _nearest([last for last in recent if 0 < step[at] - last.step <= reach], at, loss[at])
        stream = len(streams) if near is None else near.stream
        if near is None:
            streams.append([])
        else:
            before = streams[recent[0].stream]
            recent.remove(near)
            # Numbers that are damaged make streams of one row each, which are no turns.
            turns += len(before) > 1 and before[0] < near.at < before[-1]
        end = _end_of_stretch(step, at, breaks[bisect_right(breaks, at)], recent)
        streams[stream].extend(range(at, end))
        recent = [_Row(stream, end - 1, step[end - 1], loss[end - 1]), *recent[: MOST_RECENT - 1]]
        at = end
    return streams, turns


def _end_of_stretch(steps: Sequence[int], begin: int, end: int, others: Sequence[_Row]) -> int:
    """The row up to which a stream goes on alone: before ``end``, or where one of ``others`` is at the same step."""
    for other in others:
        level = bisect_left(steps, other.step, begin, end)
        if level < end and steps[level] == other.step:
            end = level + 1
    return end


def _nearest(recent: Sequence[_Row], at: int, loss: float | None) -> _Row | None:
    """The stream that row ``at`` goes on: the one used last, of those at its step the one with the nearest loss."""
    if len(recent) < 2:
        return recent[0] if recent else None
    level = [last for last in reversed(recent) if last.step == recent[0].step]
    if loss is None or any(last.loss is None for last in level):
        # Runs that take strict turns keep their order.
        return next((last for last in level if at - last.at <= MOST_TURNS), recent[0])
    return min(level, key=lambda last: abs(loss - (last.loss or 0.0)))


def _joined(followed: Sequence[Sequence[int]], rows: pl.DataFrame) -> list[MixedRun]:
    """The streams, those of a restart joined to the run that it goes on from: the last that fell silent before it."""
    source, at, steps = rows["source"][0], rows["at"].to_list(), rows["step"].to_list()
    streams: list[list[int]] = []
    for indices in followed:
        silent = [stream for stream in streams if stream[-1] < indices[0]]
        if silent:
            max(silent, key=lambda stream: stream[-1]).extend(indices)
        else:
            streams.append(list(indices))
    return [
        MixedRun(source, tuple(at[i] for i in stream), min(steps[i] for i in stream), max(steps[i] for i in stream))
        for stream in streams
    ]


def trainings_in_turn(steps: pl.DataFrame) -> list[MixedRun]:
    """The trainings of one file that follow each other, where each but the last did all its planned steps.

    Where no line prints a plan, the trainings are complete if all of them end at the same step. Those that differ in
    pace or batch are no retries of one job. Rows further apart than a job rests, with no start between, are of two too;
    so are rows between which more or fewer samples were consumed than batches of either size have.
    """
    if steps["source"].n_unique() != 1:
        return []
    rows = steps.with_row_index("at").filter(pl.col("lineage").is_not_null() & ~pl.col("copied"))
    stamp = pl.col("timestamp").forward_fill()
    rested = (stamp.diff() > LONGEST_REST).fill_null(value=False) | _of_other_samples()
    same_start = pl.col("segment") == pl.col("segment").shift(1)
    apart = rows.with_columns(lineage=(rested & same_start).fill_null(value=False).cum_sum())
    if apart["lineage"].n_unique() > 1:
        return _runs_of(_by_lineage(apart))
    parts = _by_lineage(rows)
    same_end = parts["planned"].is_null().all() and parts["last"].n_unique() == 1
    finished = (parts["last"] == parts["planned"])[:-1].fill_null(value=False)
    return _runs_of(parts) if len(parts) > 1 and (same_end or finished.all() or _differ(parts)) else []


def _of_other_samples() -> pl.Expr:
    """Whether the batch changes, and the samples since the row before are too many or too few for both batches."""
    batch, samples = pl.col("global_batch_size"), pl.col("consumed_samples")
    mean = samples.diff() / pl.col("step").diff()
    both = batch, batch.shift(1)
    within = mean.is_between(pl.min_horizontal(both), pl.max_horizontal(both))
    # Both count from their first step on.
    alone = (samples == batch * pl.col("step")) & (samples == batch * pl.col("step")).shift(1)
    return ((batch != batch.shift(1)) & ~within & alone).fill_null(value=False)


def _differ(parts: pl.DataFrame) -> bool:
    """Whether any two of the trainings, each of several timed steps, differ in pace or in the batch."""
    paces: list[float | None] = parts["pace"].to_list()
    timed = [pace for pace in paces if pace]
    other_batch = not parts["batch"].has_nulls() and parts["batch"].n_unique() > 1
    return len(timed) == len(paces) and (max(timed) > OTHER_PACE * min(timed) or other_batch)


def _by_lineage(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by("lineage", maintain_order=True).agg(
        "at",
        pl.col("source").first(),
        first=pl.col("step").min(),
        last=pl.col("step").max(),
        planned=pl.col("train_steps").max(),
        # The first step of a training is slow.
        pace=pl.col("step_time_ms").slice(1).median(),
        batch=pl.col("global_batch_size").max(),
    )


def _runs_of(parts: pl.DataFrame) -> list[MixedRun]:
    read = parts.select("source", "at", "first", "last").iter_rows()
    return [MixedRun(source, tuple(at), first, last) for source, at, first, last in read]


def describe_streams(streams: Sequence[MixedRun]) -> list[Note]:
    """A warning for each file to which several runs write."""
    files: dict[str, list[MixedRun]] = {}
    for stream in streams:
        files.setdefault(stream.source, []).append(stream)
    return [
        warning("runs_mixed", source=source, n=len(several), spans=[[s.first, s.last] for s in several])
        for source, several in files.items()
    ]
