"""When a log begins: the first time stamp of a file, on any line.

Comes in: the lines of a file before its first step line. Goes out: an event where the stamp can be of the same clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

import polars as pl

from logparse.decode.values import clock, moment
from logparse.findings import Note, warning
from logparse.schema import EVENT_COLUMNS, FIRST_YEAR, INT, TEXT, TIME, conform

# A logger prints its stamp at the beginning of a line; the text after it may name any date.
WITHIN = 100
# No start-up takes longer. Stamps whole hours apart are of two time zones, as in a container's log.
LONGEST, NEAR, ADJACENT = timedelta(days=1), timedelta(minutes=10), timedelta(minutes=2)
# A stamp this much later than one after it is no line that a thread printed late; zones differ by a multiple of ZONES.
BACK, ZONES = timedelta(minutes=1), timedelta(minutes=30)
BEGINS = pl.Schema({"source": TEXT, "line_number": INT, "first": TIME, "last": TIME})


def first_stamps(lines: pl.DataFrame, first_step: int | None) -> pl.DataFrame:
    """The line of the earliest stamp before the line ``first_step``, and the ``last`` stamp before it.

    At most two rows: loggers that print no year have a clock of their own. Lines of threads and ranks can be out of
    order by minutes; an earlier date is of another clock.
    """
    before = lines if first_step is None else lines.filter(pl.col("line_number") < first_step)
    text = pl.col("text").str.slice(0, WITHIN)
    stamp = pl.coalesce(clock(text), moment(_printed_by_date(text), "%b %d %H:%M:%S %Y"))
    timed = before.filter(text.str.contains(r"\d\d:\d\d:\d\d"))
    read = timed.with_columns(stamp=stamp).drop_nulls("stamp") if len(timed) else timed
    if read.is_empty():
        return pl.DataFrame(schema=BEGINS)
    kinds = read.with_columns(dated=pl.col("stamp").dt.year() >= FIRST_YEAR).partition_by("dated", include_key=False)
    return pl.concat(map(_earliest, kinds))


def _earliest(stamped: pl.DataFrame) -> pl.DataFrame:
    """The line of the earliest of stamps that are all with a year, or all without."""
    zone = _of_two_zones(pl.col("stamp").diff(), ADJACENT).fill_null(value=False).cum_sum()
    mine = stamped.with_columns(zone=zone).filter(pl.col("zone") == pl.col("zone").max())
    near = mine.filter(pl.col("stamp") >= pl.col("stamp").first() - NEAR)
    earliest = near.filter(pl.col("stamp") == pl.col("stamp").min()).head(1)
    begins = earliest.select("source", "line_number", first="stamp")
    return begins.with_columns(last=pl.lit(stamped["stamp"].last(), pl.Datetime("us")))


def _printed_by_date(text: pl.Expr) -> pl.Expr:
    """A stamp as ``date`` prints it: ``Tue Aug 18 04:03:03 CEST 2026``. The zone is that of the host."""
    stamp = text.str.extract_groups(r"[A-Z][a-z]{2} ([A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d)(?: [A-Z]{2,5})? (\d{4})\b")
    return pl.concat_str(stamp.struct.field("1").str.replace(r" +", " "), stamp.struct.field("2"), separator=" ")


def log_begins(file_stamps: Sequence[pl.DataFrame], steps: pl.DataFrame) -> pl.DataFrame:
    """Events of the kind ``log begins``, for files with stamped step lines."""
    stamped = pl.concat([pl.DataFrame(schema=BEGINS), *file_stamps])
    if stamped.is_empty():
        return conform(stamped, EVENT_COLUMNS)
    begins = _with_steps(stamped, steps)
    first, last, stamp = pl.col("first"), pl.col("last"), pl.col("step_stamp")
    off = stamp - last - pl.duration(milliseconds="ms")
    likely = begins.filter((first <= stamp) & (stamp - first <= LONGEST) & (last <= stamp) & ~_of_two_zones(off, NEAR))
    return conform(likely.select("source", "line_number", timestamp="first", kind=pl.lit("log begins")), EVENT_COLUMNS)


def describe_begins(file_stamps: Sequence[pl.DataFrame], steps: pl.DataFrame) -> Iterator[Note]:
    """A warning for each file with a stamp before its first step line that is later than that line's."""
    begins = _with_steps(pl.concat([pl.DataFrame(schema=BEGINS), *file_stamps]), steps)
    back = pl.col("first") - pl.col("step_stamp")
    # By a zone, a stamp would be later by half an hour or a multiple, less the time from it to the first step.
    by_zone = ZONES - pl.duration(seconds=back.dt.total_seconds() % int(ZONES.total_seconds()))
    later = begins.filter((back > BACK) & (back < LONGEST) & (by_zone > ZONES / 2))
    for source, line, seconds in later.select("source", "line_number", back.dt.total_seconds()).iter_rows():
        yield warning("stamps_go_back", source=source, line=line, seconds=seconds)


def _with_steps(stamped: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """The rows of files with stamped step lines, with the stamp of the first of these and its time."""
    steps_begin = (
        steps.drop_nulls("timestamp")
        .group_by("source", maintain_order=True)
        .agg(step_stamp=pl.col("timestamp").first(), ms=pl.col("elapsed_time_per_iteration_ms").first().fill_null(0))
    )
    return stamped.join(steps_begin, on="source")


def _of_two_zones(apart: pl.Expr, near: timedelta) -> pl.Expr:
    """Stamps whole hours apart, but for a moment ``near``."""
    hours = (apart.dt.total_seconds() / 3600).round()
    return (hours != 0) & ((apart - pl.duration(hours=hours)).abs() <= near)
