"""Step lines that occur more than once in the input: lines of other ranks, and a log given or joined twice.

Comes in: step rows with ``begun``, the line on which their process printed its settings. Goes out: ``copied``. A step
that was done again has another time, is later, and is no copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import polars as pl

from logparse.findings import Note, warning

# Two ranks' times of one step differ by milliseconds; those of a step done again by more, in most rows.
RANKS_WITHIN, RANKS_WITHIN_MS, NEARLY_ALL = 0.005, 1.0, 0.9
# Ranks' clocks differ by less than this where they are set.
CLOCKS_WITHIN = timedelta(minutes=1)
_PROCESS = ("source", "begun")
_PRINTED = ("step", "loss", "elapsed_time_per_iteration_ms")
# What all nodes of a job print for a step, with the same digits; a norm may be missing.
_SHARED = ("loss", "learning_rate", "grad_norm")
# Two nodes are at most this share of the steps apart, by the clock or the lines; a run done again is further.
NODES_WITHIN = 0.25


def mark_copies(steps: pl.DataFrame) -> pl.DataFrame:
    """Add ``copied``: an earlier row, or one of another file, is of the same step by the same process."""
    if steps["step"].n_unique() == len(steps):
        return steps.with_columns(copied=pl.lit(value=False))
    files = _copied_files(steps)
    read = steps.select(*_PROCESS, *_PRINTED, "timestamp")
    rows = read.with_row_index("at").cast({"at": pl.Int64}).filter(~pl.col("source").is_in(files))
    twice = rows.filter(_same_as_before())["at"]
    rounds = _with_rounds(rows)
    ranks, again = rounds.filter(_of_merged_ranks())["at"], rounds.sort("at").filter(_joined_twice())["at"]
    nodes = _of_nodes(steps.with_row_index("at").cast({"at": pl.Int64}).filter(~pl.col("source").is_in(files)))
    at = pl.int_range(pl.len()).is_in(pl.concat([twice, ranks, again, nodes]).implode())
    return steps.with_columns(copied=pl.col("source").is_in(files) | at)


def _with_rounds(own: pl.DataFrame) -> pl.DataFrame:
    """Rows of repeated steps by process and step, each with its ``turn``; nearly all steps occur ``ranks`` times."""
    rounds = own.with_columns(twice=pl.col("step").is_duplicated())
    once = rounds.filter(~pl.col("twice")).select(*_PROCESS, times=pl.lit(1, pl.get_index_type()))
    several = rounds.filter("twice").drop("twice").sort(*_PROCESS, "step", maintain_order=True)
    steps = pl.concat([once, several.group_by(*_PROCESS, "step").agg(times=pl.len()).drop("step")])
    ranks = steps.group_by(_PROCESS).agg(ranks=pl.col("times").quantile(1 - NEARLY_ALL, "lower"))
    first = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in (*_PROCESS, "step"))
    place = pl.int_range(pl.len())
    again = several.with_columns(turn=place - pl.when(first).then(place).forward_fill())
    return again.join(ranks, on=_PROCESS, how="left", nulls_equal=True, maintain_order="left")


def _same_as_before() -> pl.Expr:
    """A line that one file holds twice in a row, as two handlers of one logger write it."""
    same = [pl.col(name) == pl.col(name).shift(1) for name in ("source", "step")]
    time, stamp, loss = (pl.col(name) for name in ("elapsed_time_per_iteration_ms", "timestamp", "loss"))
    # Where no line prints the time the clock and the loss must be the same.
    untimed = time.is_null() & time.shift(1).is_null() & (stamp == stamp.shift(1)) & (loss == loss.shift(1))
    same.append((time == time.shift(1)).fill_null(value=False) | untimed.fill_null(value=False))
    # After a crash, a second process can print the same numbers for a step: ``begun`` separates the two.
    same_or_missing = [pl.col(name).eq_missing(pl.col(name).shift(1)) for name in ("begun", "loss")]
    return pl.all_horizontal(*same, *same_or_missing).fill_null(False)


def _of_merged_ranks() -> pl.Expr:
    """A row of another rank, where a launcher collected the lines of all ranks: nearly all steps occur so many times.

    The first of so many rows close to each other is kept. A step done again begins a new round of them.
    """
    time, ranks = pl.col("elapsed_time_per_iteration_ms"), pl.col("ranks")

    def since(name: str) -> pl.Expr:
        return pl.when(pl.col("turn") > 0).then(pl.col(name) - pl.col(name).shift(1))

    clock = since("timestamp").dt.total_milliseconds().abs() <= pl.max_horizontal(time, pl.lit(1000.0))
    # A rank that has no loss prints none.
    took = since("elapsed_time_per_iteration_ms").abs()
    # Where each rank prints its own loss, the times that follow from one clock are the same.
    same = (since("loss") == 0).fill_null(took <= 0.05 * time) | (took == 0)
    # Two ranks may be one step apart.
    near = (since("at") < 2 * ranks) & clock.fill_null(True)
    return ((ranks > 1) & (pl.col("turn") % ranks != 0) & near & same).fill_null(False)


def _of_nodes(own: pl.DataFrame) -> pl.Series:
    """Rows of other nodes of one job in one file, in blocks or one node after the other: ``at`` of all but the first.

    Nearly all steps occur so many times, at once and with the same digits. A second run with the same seed has the
    same digits too, but begins later.
    """
    columns = ("at", "source", "step", *_SHARED, "timestamp")
    rows = own.select(columns).drop_nulls(["step", "loss", "learning_rate"])
    if rows.is_empty() or rows["step"].n_unique() == len(rows):
        return pl.Series("at", [], pl.Int64)
    stamped = not rows["timestamp"].has_nulls()
    rows = rows.sort("timestamp", maintain_order=True) if stamped else rows
    times = rows.group_by("source", "step").agg(times=pl.len())
    nodes = times.group_by("source").agg(
        nodes=pl.col("times").quantile(1 - NEARLY_ALL, "lower").cast(pl.Int64), steps=pl.len()
    )
    place, turn = pl.int_range(pl.len()).over("source"), pl.int_range(pl.len()).over("source", "step")
    placed = rows.with_columns(place=place, turn=turn).join(nodes, on="source", maintain_order="left")
    rounds = placed.filter(pl.col("nodes") > 1).with_columns(round=pl.col("turn") // pl.col("nodes"))
    later_turns = rounds.with_columns(there=_at_once()).filter(pl.col("turn") % pl.col("nodes") != 0)
    copied = later_turns.filter(pl.col("there").mean().over("source") >= NEARLY_ALL)["source"].unique()
    mine = rounds.filter(pl.col("source").is_in(copied.implode()) & _at_once())
    return mine.filter(pl.col("at") > pl.col("at").min().over(*_ROUND))["at"]


_ROUND = ("source", "step", "round")


def _at_once() -> pl.Expr:
    """Whether a row has the digits of the first of its step and round, at nearly the same place and time."""
    same = [pl.col(name).eq_missing(pl.col(name).first().over(*_ROUND)) for name in _SHARED]
    since = (pl.col("timestamp") - pl.col("timestamp").first().over(*_ROUND)).abs()
    near = pl.col("place") - pl.col("place").first().over(*_ROUND) <= NODES_WITHIN * pl.col("steps")
    return pl.all_horizontal(*same, near, (since <= CLOCKS_WITHIN).fill_null(value=True))


def _joined_twice() -> pl.Expr:
    """A row that occurs again with its clock or, where there is none, two or more that follow each other."""
    again = pl.col("at") - pl.col("at").first().over(*_PRINTED)
    stretch = (again > 0) & ((again == again.shift(1)) | (again == again.shift(-1)))
    stamped = pl.col("at") > pl.col("at").first().over(*_PRINTED, "timestamp")
    timed = pl.col("elapsed_time_per_iteration_ms").is_not_null()
    return timed & pl.when(pl.col("timestamp").is_null()).then(stretch).otherwise(stamped).fill_null(False)


def _copied_files(steps: pl.DataFrame) -> list[str]:
    """Files whose steps a file with more rows holds too: every rank of MindFormers prints every step.

    Two files that follow each other in time share few steps, two ranks nearly all. Files whose clocks do not overlap
    are copies only where the rows are the same: else the second ran later.
    """
    if steps["source"].n_unique() < 2:
        return []
    read = steps.select("source", *_PRINTED, "timestamp")
    files = {str(name[0]): rows.unique("step", keep="first") for name, rows in read.group_by("source")}
    order = sorted(files, key=lambda name: (-len(files[name]), name))
    kept: list[pl.DataFrame] = []
    copies: list[str] = []
    for name in order:
        if any(_holds(other, files[name]) for other in kept):
            copies.append(name)
        else:
            kept.append(files[name])
    return copies


def _holds(other: pl.DataFrame, mine: pl.DataFrame) -> bool:
    both = _shared(other, mine)
    if len(both) <= len(mine) / 2:
        return False
    overlap = _overlap(other, mine)
    return _share_of_same_times(both) >= NEARLY_ALL if overlap is None else overlap or _are_same(both)


def _shared(other: pl.DataFrame, mine: pl.DataFrame) -> pl.DataFrame:
    """One row per step that both hold, the other's columns with the ending ``_there``."""
    return mine.join(other, on="step", suffix="_there", maintain_order="left")


def _overlap(one: pl.DataFrame, other: pl.DataFrame) -> bool | None:
    """Whether two spans of time overlap; None without a clock."""
    stamp = pl.col("timestamp")
    (begin, end), (begun, ended) = (rows.select(stamp.min(), end=stamp.max()).row(0) for rows in (one, other))
    return None if None in (begin, begun) else begin <= ended and begun <= end


def _share_of_same_times(both: pl.DataFrame) -> float:
    """In how many of the rows with a time it is that of another rank; 1 where no row has one."""
    share = both.select(_same_time().mean()).item()
    return 1.0 if share is None else float(share)


def _same_time() -> pl.Expr:
    mine, there = (pl.col(f"elapsed_time_per_iteration_ms{end}") for end in ("", "_there"))
    return (mine - there).abs() <= pl.max_horizontal(RANKS_WITHIN * mine, pl.lit(RANKS_WITHIN_MS))


def _are_same(both: pl.DataFrame) -> bool:
    """Whether two ranks of one job print such rows: nearly all with the same loss and the same time."""
    share = both.select((_same_time() & (pl.col("loss") == pl.col("loss_there"))).fill_null(False).mean()).item()
    return len(both) > 1 and share is not None and share >= NEARLY_ALL


def clocks_apart(steps: pl.DataFrame) -> dict[str, timedelta]:
    """By how much the clock of a copied file is ahead of that of the rows that were kept, where it is another clock."""
    if not steps["copied"].any():
        return {}
    read = steps.select("source", "copied", *_PRINTED, "timestamp")
    copies = read.filter(pl.col("copied").all().over("source"))
    if copies.is_empty():
        return {}
    first_rows = read.filter(~pl.col("copied")).unique("step", keep="first")
    apart = {}
    for (name,), rows in copies.group_by("source", maintain_order=True):
        both = _shared(first_rows, rows.unique("step", keep="first"))
        ahead = both.select((pl.col("timestamp") - pl.col("timestamp_there")).median()).item() if len(both) else None
        if ahead is not None and abs(ahead) > CLOCKS_WITHIN and _are_same(both):
            apart[str(name)] = ahead
    return apart


def of_one_clock(events: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """The events without the stamps of copied files whose clock is another one."""
    apart = clocks_apart(steps)
    other = pl.col("source").is_in(list(apart))
    return events.with_columns(timestamp=pl.when(~other).then("timestamp")) if apart else events


def describe_copies(steps: pl.DataFrame) -> Iterator[Note]:
    """A note on each copied file that goes by another clock."""
    for name, ahead in clocks_apart(steps).items():
        seconds = ahead.total_seconds()
        yield warning("copy_ahead" if seconds > 0 else "copy_behind", name=name, seconds=abs(seconds))
