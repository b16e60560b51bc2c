"""When a log begins: the first time stamp of a file, on any line.

Comes in: the lines of a file before its first step line. Goes out: an event where the stamp can be of the same clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import groupby

import polars as pl

from logparse.decode.values import clock, collected
from logparse.decode.yearless_clock import RunClock
from logparse.findings import Note, warning
from logparse.inputs.stamps import moment
from logparse.light_dataclass import dataclass
from logparse.schema import EVENT_COLUMNS, FIRST_YEAR, INT, TEXT, TIME, conform

# A logger prints its stamp at the beginning of a line; the text after it may name any date.
WITHIN = 100
# No start-up takes longer. Stamps whole hours apart are of two time zones, as in a container's log.
LONGEST, NEAR, ADJACENT = timedelta(days=1), timedelta(minutes=10), timedelta(minutes=2)
# A stamp this much later than one after it is no line that a thread printed late; zones differ by a multiple of ZONES.
BACK, ZONES = timedelta(minutes=1), timedelta(minutes=30)
# Lines of a file that may have a stamp and wait for those of other files; more are read at once, to save memory.
MOST_WAITING = 200
NO_STAMPS = pl.DataFrame(schema={"source": TEXT, "line_number": INT, "first": TIME, "last": TIME})


def first_stamps(lines: pl.DataFrame, first_step: int | None) -> pl.DataFrame:
    """The line of the earliest stamp before the line ``first_step``, and the ``last`` stamp before it.

    At most two rows: loggers that print no year have a clock of their own. Lines of threads and ranks can be out of
    order by minutes; an earlier date is of another clock.
    """
    return _stamps_of(timed_lines(lines, first_step))


def timed_lines(lines: pl.DataFrame, first_step: int | None) -> pl.DataFrame:
    """Those of ``lines`` before the line ``first_step`` that may have a stamp, each with the text that may hold it."""
    text, line = pl.col("text").str.slice(0, WITHIN), pl.col("line_number")
    before = pl.lit(value=True) if first_step is None else line < first_step
    timed = before & (text.str.contains(r"\d\d:\d\d:\d\d") | pl.col("clock").is_not_null())
    return collected(lines.lazy().filter(timed).select("source", "line_number", text, "clock"))


@dataclass(frozen=True)
class TimedLines:
    """The lines of a file that may have a stamp, or where they are many, its first ``stamps``."""

    lines: pl.DataFrame | None = None
    stamps: pl.DataFrame | None = None

    @classmethod
    def of(cls, lines: pl.DataFrame, first_step: int | None) -> TimedLines:
        """Those of ``lines`` before the line ``first_step``."""
        timed = timed_lines(lines, first_step)
        if len(timed) > MOST_WAITING:
            return cls(stamps=_stamps_of(timed))
        # In memory of their own, or they would keep that of the whole block.
        return cls(timed.with_columns(text=pl.Series(timed["text"].to_list(), dtype=pl.String)) if len(timed) else None)


def stamps_of_files(files: Sequence[TimedLines]) -> pl.DataFrame:
    """``first_stamps`` of each file, in their order. Those of many small files are read together."""
    frames = [NO_STAMPS]
    for waits, group in groupby(files, key=lambda file: file.stamps is None):
        some = list(group)
        if not waits:
            frames += [file.stamps for file in some if file.stamps is not None]
        elif lines := [file.lines for file in some if file.lines is not None]:
            frames.append(_stamps_of(pl.concat(lines)))
    return pl.concat(frames)


def _stamps_of(timed: pl.DataFrame) -> pl.DataFrame:
    """The first stamps of each file by its ``timed`` lines."""
    if timed.is_empty():
        return NO_STAMPS
    text = pl.col("text")
    stamp = pl.coalesce(clock(text), moment(_printed_by_date(text), "%b %d %H:%M:%S %Y"), "clock")
    stamped = timed.lazy().select("source", "line_number", stamp=stamp).drop_nulls("stamp")
    # Stamps with a year and those without are of two clocks.
    dated = pl.col("stamp").dt.year() >= FIRST_YEAR
    return collected(_earliest(stamped.with_columns(undated=~dated)))


def _earliest(stamped: pl.LazyFrame) -> pl.LazyFrame:
    """The line of the earliest of the stamps of each clock of each file."""
    stamp, zone, of_clock = pl.col("stamp"), pl.col("zone"), ("source", "undated")
    apart = _of_two_zones(stamp.diff(), ADJACENT).fill_null(value=False)
    last_zone = stamped.with_columns(zone=apart.cum_sum().over(of_clock), last=stamp.last().over(of_clock))
    last_zone = last_zone.filter(zone == zone.max().over(of_clock))
    near = last_zone.filter(stamp >= stamp.first().over(of_clock) - NEAR)
    first = near.filter(stamp == stamp.min().over(of_clock)).unique(of_clock, keep="first", maintain_order=True)
    ordered = first.sort(pl.col("source").rle_id(), "undated", maintain_order=True)
    return ordered.select("source", "line_number", first="stamp", last="last")


def _printed_by_date(text: pl.Expr) -> pl.Expr:
    """A stamp as ``date`` prints it: ``Tue Aug 18 04:03:03 CEST 2026``. The zone is that of the host."""
    stamp = text.str.extract_groups(r"[A-Z][a-z]{2} ([A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d)(?: [A-Z]{2,5})? (\d{4})\b")
    return pl.concat_str(stamp.struct.field("1").str.replace(r" +", " "), stamp.struct.field("2"), separator=" ")


def find_begins(
    stamps: pl.DataFrame, steps: pl.DataFrame, clock: RunClock
) -> tuple[pl.DataFrame | None, Sequence[Note]]:
    """The events ``log begins`` of the files with ``stamps``, None without any, and the warnings about these stamps."""
    if stamps.is_empty():
        return None, ()
    begins = _begins_of_files(stamps, steps, clock)
    return _log_begins(begins), tuple(_describe_begins(begins))


def _begins_of_files(stamps: pl.DataFrame, steps: pl.DataFrame, clock: RunClock) -> pl.DataFrame:
    """The ``stamps`` by the ``clock`` of files with stamped step lines, with the first of these and its time."""
    first_ms = pl.col("elapsed_time_per_iteration_ms").first().fill_null(0)
    names = ("source", "timestamp", "elapsed_time_per_iteration_ms")
    stamped = steps.lazy().select(names).drop_nulls("timestamp").group_by("source", maintain_order=True)
    mine = stamps.lazy().with_columns(clock.kept("first"), clock.kept("last")).drop_nulls()
    first_steps = stamped.agg(step_stamp=pl.col("timestamp").first(), ms=first_ms)
    return collected(mine.join(first_steps, on="source"))


def _log_begins(begins: pl.DataFrame) -> pl.DataFrame:
    """Events of the kind ``log begins``, where the stamps of ``begins`` can be of the clock of the steps."""
    first, last, stamp = pl.col("first"), pl.col("last"), pl.col("step_stamp")
    off = stamp - last - pl.duration(milliseconds="ms")
    likely = (first <= stamp) & (stamp - first <= LONGEST) & (last <= stamp) & ~_of_two_zones(off, NEAR)
    events = begins.lazy().filter(likely).select("source", "line_number", timestamp="first", kind=pl.lit("log begins"))
    return conform(collected(events), EVENT_COLUMNS)


def _describe_begins(begins: pl.DataFrame) -> Iterator[Note]:
    """A warning for each file with a stamp before its first step line that is later than that line's."""
    back = pl.col("first") - pl.col("step_stamp")
    # By a zone, a stamp would be later by half an hour or a multiple, less the time from it to the first step.
    by_zone = ZONES - pl.duration(seconds=back.dt.total_seconds() % int(ZONES.total_seconds()))
    later = begins.lazy().filter((back > BACK) & (back < LONGEST) & (by_zone > ZONES / 2))
    late = later.select("source", "line_number", back.dt.total_seconds())
    for source, line, seconds in collected(late).iter_rows():
        yield warning("stamps_go_back", source=source, line=line, seconds=seconds)


def _of_two_zones(apart: pl.Expr, near: timedelta) -> pl.Expr:
    """Stamps whole hours apart, but for a moment ``near``."""
    hours = (apart.dt.total_seconds() / 3600).round()
    return (hours != 0) & ((apart - pl.duration(hours=hours)).abs() <= near)
