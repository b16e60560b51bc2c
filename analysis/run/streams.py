"""Several runs in one file: those that write to it at the same time, and those that follow each other.

Comes in: step rows with ``copied``. Goes out: which stream a row is of. A restart falls back once and goes on from
there; streams come back to where they were, again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from analysis.run.corrupt_rows import LONGEST_REST
from logparse.findings import Note, warning

# A stream has at least so many rows, and streams take turns at least so often.
FEWEST_ROWS, FEWEST_TURNS = 3, 3
# Streams that may go on: those used last. More runs never write to one file.
MOST_RECENT = 16
# How far a row may be after the last one of its stream, in steps between two rows.
REACH = 1.5
# Runs that take strict turns: rows of one run are at most so many lines apart.
MOST_TURNS = 4
# Rows that print each step again took longer together than the clock by this much: several processes did them at once.
AT_ONCE = 1.5


@dataclass(frozen=True)
class MixedRun:
    """The rows ``at`` of one run among those of the file ``source``, from step ``first`` to ``last``."""

    source: str
    at: tuple[int, ...]
    first: int
    last: int


def find_streams(steps: pl.DataFrame) -> list[MixedRun]:
    """The streams of each file in which several take turns; empty where every file is of one run."""
    read = steps.select("source", "step", "loss", "step_time_ms", "timestamp", "copied").with_row_index("at")
    own = read.filter(~pl.col("copied")).drop_nulls("step")
    return [stream for file in own.partition_by("source", maintain_order=True) for stream in _of_file(file)]


def _of_file(rows: pl.DataFrame) -> list[MixedRun]:
    """The streams of a file, unless each of the trainings in it is of one run: then they only follow each other."""
    streams = _streams_of(rows)
    trainings = _trainings(rows) if streams else []
    return streams if len(trainings) < 2 or any(map(_streams_of, trainings)) else []


def _trainings(rows: pl.DataFrame) -> list[pl.DataFrame]:
    """``rows`` cut where the steps fall back to where the file began, or further."""
    step = pl.col("step")
    first = pl.when(step <= step.cum_min()).then(step)
    fresh = ((step.diff() <= 0) & (first <= step.first())).fill_null(value=False)
    return rows.with_columns(training=fresh.cum_sum()).partition_by("training", include_key=False)


def _streams_of(rows: pl.DataFrame) -> list[MixedRun]:
    rise = rows["step"].diff()
    falls = int(((rise <= 0) if _at_once(rows) else (rise < 0)).sum())
    between = _between(rows["step"]) if falls >= FEWEST_TURNS - 1 else None
    if between is None:
        return []
    places, turns = _follow(rows["step"].to_list(), rows["loss"].to_list(), REACH * between)
    if turns < FEWEST_TURNS:
        return []
    streams = [stream for stream in _joined(places, rows) if len(stream.at) >= FEWEST_ROWS]
    return streams if len(streams) > 1 else []


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


def _follow(steps: Sequence[int], losses: Sequence[float | None], reach: float) -> tuple[list[int], int]:
    """The stream of each row, and how often a stream goes on after rows of another one that goes on itself."""
    rows: list[int] = []
    places: list[int] = []
    turns = 0
    # Streams with their last steps and losses, the one used last first.
    recent: list[tuple[int, int, float | None]] = []
    for step, loss in zip(steps, losses, strict=True):
        near = _nearest([stream for stream in recent if 0 < step - stream[1] <= reach], loss)
        if near is None:
            place = len(rows)
            rows.append(0)
        else:
            place = near[0]
            recent.remove(near)
            # Numbers that are damaged make streams of one row each, which are no turns.
            turns += place != places[-1] and rows[places[-1]] > 1
        rows[place] += 1
        places.append(place)
        recent = [(place, step, loss), *recent[: MOST_RECENT - 1]]
    return places, turns


def _nearest(
    streams: Sequence[tuple[int, int, float | None]], loss: float | None
) -> tuple[int, int, float | None] | None:
    """The stream that a row goes on: the one used last; of those at the same step the one with the nearest loss."""
    if not streams:
        return None
    # Without losses the runs are taken to keep their order.
    level = [stream for stream in reversed(streams) if stream[1] == streams[0][1]]

    def distance(stream: tuple[int, int, float | None]) -> float:
        return 0.0 if loss is None or stream[2] is None else abs(loss - stream[2])

    return min(level, key=distance)


def _joined(places: Sequence[int], rows: pl.DataFrame) -> list[MixedRun]:
    """The streams, those of a restart joined to the run that it goes on from: the last that fell silent before it."""
    source, at, steps = rows["source"][0], rows["at"].to_list(), rows["step"].to_list()
    members: dict[int, list[int]] = {}
    for index, place in enumerate(places):
        members.setdefault(place, []).append(index)
    streams: list[list[int]] = []
    for indices in members.values():
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

    Where no line prints a plan, the trainings are complete if all of them end at the same step. Rows further apart than
    a job rests, with no start between, are of two trainings too.
    """
    if steps["source"].n_unique() != 1:
        return []
    own = steps.with_row_index("at").filter(pl.col("lineage").is_not_null() & ~pl.col("copied"))
    stamp = pl.col("timestamp").forward_fill()
    rested = (stamp.diff() > LONGEST_REST) & (pl.col("segment") == pl.col("segment").shift(1))
    apart = own.with_columns(lineage=rested.fill_null(value=False).cum_sum())
    if apart["lineage"].n_unique() > 1:
        return _runs_of(_by_lineage(apart))
    parts = _by_lineage(own)
    same_end = parts["planned"].is_null().all() and parts["last"].n_unique() == 1
    finished = (parts["last"] == parts["planned"])[:-1].fill_null(value=False)
    return _runs_of(parts) if len(parts) > 1 and (same_end or finished.all()) else []


def _by_lineage(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by("lineage", maintain_order=True).agg(
        "at",
        pl.col("source").first(),
        first=pl.col("step").min(),
        last=pl.col("step").max(),
        planned=pl.col("train_steps").max(),
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
