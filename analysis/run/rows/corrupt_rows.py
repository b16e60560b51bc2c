"""Damaged rows: a step number or a clock that cannot be, between neighbours that agree.

Comes in: step rows with ``begun`` and ``copied``. Goes out: ``damaged`` where the step number cannot be, and rows
without the clocks and batches that cannot be. Numbers that go back and stay back are a restart, not damage.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import polars as pl

from analysis.run.rows.frame_filters import only, with_known
from logparse.findings import Note, warning

# Rows that agree are at most this many typical distances apart: a line between them may be missing too.
AGREE_WITHIN = 3
# By how much a stamp may be out of order, as when two threads write; and how long a job may rest in one file.
OUT_OF_ORDER, LONGEST_REST = timedelta(minutes=1), timedelta(days=30)
SHOWN = 3


def mark_damage(steps: pl.DataFrame) -> pl.DataFrame:
    """Add ``damaged``; forget a clock that is out of line and a batch that is not above 0."""
    read = steps["source", "begun", "copied", "step", "train_steps", "timestamp"].with_row_index("at")
    uncopied = only(read, ~read["copied"])
    numbers, stamps = (
        pl.int_range(pl.len(), dtype=pl.UInt32).is_in(pl.lit(places).implode()) if len(places) else pl.lit(value=False)
        for places in (_numbers_out_of_line(uncopied), _stamps_out_of_line(uncopied))
    )
    return steps.with_columns(
        damaged=numbers,
        timestamp=pl.when(~stamps).then("timestamp"),
        global_batch_size=pl.when(pl.col("global_batch_size") > 0).then("global_batch_size"),
    )


def _numbers_out_of_line(own: pl.DataFrame) -> pl.Series:
    """Places of steps above those asked for, then of lone ones among the rest."""
    # The median too, because on one line it may be the last step that is damaged.
    last = pl.max_horizontal("train_steps", pl.col("train_steps").median().over("source"))
    beyond = (pl.col("step") > last).fill_null(False)
    # Where most steps are above it, that number means something else.
    out = own.select(beyond & ~(beyond.mean().over("source") > 0.5)).to_series()
    in_line = only(own, ~out)
    rising = in_line.with_columns(rise=pl.col("step").diff().over("source", "begun"))
    places = own["at"].filter(out)
    # Between numbers that never fall each lies between its neighbours.
    if not (rising["rise"] < 0).any():
        return places
    # A selection computes a repeated expression once; a filter does not.
    return pl.concat([places, in_line["at"].filter(rising.select(_number_out_of_line()).to_series())])


def _number_out_of_line() -> pl.Expr:
    """A step that does not lie between the step before and the step after, which follow each other."""
    step, rise = pl.col("step"), pl.col("rise")
    before, after = (step.shift(rows).over("source", "begun") for rows in (1, -1))
    typical = rise.filter(rise > 0).median().over("source")
    agree = (before < after) & (after - before <= AGREE_WITHIN * typical)
    return (agree & ~step.is_between(before, after)).fill_null(False)


def _stamps_out_of_line(own: pl.DataFrame) -> pl.Series:
    """Places of lone clocks: those between two rows first, because they would mislead about the ends of files."""
    stamped = with_known(own["at", "source", "timestamp"], "timestamp")
    places = []
    stamp = pl.col("timestamp")
    for rest in (None, LONGEST_REST):
        before, after = (stamp.shift(rows).over("source") for rows in (1, -1))
        near = stamped.with_columns(before=before, after=after, several=pl.len().over("source") > 2)
        out = near.select(_stamp_out_of_line(rest)).to_series()
        places.append(stamped["at"].filter(out))
        stamped = only(stamped, ~out)
    return pl.concat(places)


def _stamp_out_of_line(rest: timedelta | None) -> pl.Expr:
    """A clock outside its neighbours, which are in order; at an end of a file, over ``rest`` from its one neighbour.

    Of two clocks alone none is known to be the wrong one.
    """
    stamp, longest = pl.col("timestamp"), pl.lit(rest, pl.Duration("us"))
    begin = pl.col("before").fill_null(pl.col("after") - longest)
    end = pl.col("after").fill_null(pl.col("before") + longest)
    outside = (stamp < begin - OUT_OF_ORDER) | (stamp > end + OUT_OF_ORDER)
    return ((begin <= end) & outside & pl.col("several")).fill_null(False)


def describe_damage(printed: pl.DataFrame, marked: pl.DataFrame) -> Iterator[Note]:
    """Notes on each kind of damage: what was ``printed``, on which of the first lines, and how many more there are."""
    codes = {
        "step": ("step_damaged", "more_steps_damaged"),
        "timestamp": ("stamp_damaged", "more_stamps_damaged"),
        "global_batch_size": ("batch_damaged", "more_batches_damaged"),
    }
    forgotten = {name: pl.lit(printed[name]).is_not_null() & pl.col(name).is_null() for name in codes}
    lost = marked.select(**forgotten | {"step": pl.col("damaged")})
    for name, (one, more) in codes.items():
        if lost[name].any():
            yield from name_first(name, printed.filter(lost[name]), one, more)


def name_first(column: str, rows: pl.DataFrame, one: str, more: str) -> Iterator[Note]:
    """A note ``one`` for each of the first ``rows``, and a note ``more`` with the number of the others."""
    for source, line, value in rows["source", "line_number", column].head(SHOWN).iter_rows():
        yield warning(one, value=value, source=source, line=line)
    if len(rows) > SHOWN:
        yield warning(more, n=len(rows) - SHOWN)
