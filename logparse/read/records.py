"""Lines beside the step lines to frames: events, evaluations, memory, timers. Decoded as columns, like the steps."""

from __future__ import annotations

import polars as pl
import regex

from logparse.formats._base import TIMESTAMP, LogFormat, Record
from logparse.schema import FLOAT, RECORD_COLUMNS, conform


def decode_records(lines: pl.DataFrame, steps: pl.DataFrame, fmt: LogFormat) -> dict[str, pl.DataFrame]:
    """Every frame of ``RECORD_COLUMNS``, in order of the lines; empty where the log has no such line.

    A timer names no step, nor does a save of MindFormers: it belongs to the step line before it.
    """
    frames = {}
    for name, columns in RECORD_COLUMNS.items():
        rows = [_decode(lines, record) for record in fmt.records if record.frame == name]
        frame = conform(pl.concat(rows, how="diagonal_relaxed") if rows else _EMPTY, columns)
        frames[name] = frame.sort("source", "line_number", maintain_order=True)
    frames["memory"] = pl.concat([frames["memory"], _memory_of_steps(steps)])
    timers, events = frames["timers"], frames["events"]
    frames["timers"] = timers.with_columns(step=_last_step(timers, steps))
    saves = pl.col("kind").is_in(["save starts", "save ends"])
    frames["events"] = events.with_columns(
        step=pl.when(saves).then(pl.coalesce("step", _last_step(events, steps))).otherwise("step")
    )
    return frames


_EMPTY = pl.DataFrame({"source": []}, schema={"source": pl.String})


def _decode(lines: pl.DataFrame, record: Record) -> pl.DataFrame:
    groups = list(regex.compile(record.pattern).groupindex)
    dtypes = {c.name: c.dtype for c in RECORD_COLUMNS[record.frame]}
    text = pl.col("text").str.extract_all(record.pattern) if record.every else pl.concat_list("text")
    found = (
        lines.filter(pl.col("text").str.contains(record.marker, literal=True))
        .select("source", "line_number", timestamp=clock(pl.col("text")), text=text)
        .explode("text")
        .filter(pl.col("text").str.contains(record.pattern))
    )
    if groups:
        found = found.with_columns(pl.col("text").str.extract_groups(record.pattern).alias("groups")).unnest("groups")
    scaled = [_finite(pl.col(g).cast(pl.Float64, strict=False)) * record.scale for g in groups if dtypes[g] == FLOAT]
    whole = [pl.col(g).cast(dtypes[g], strict=False) for g in groups if dtypes[g] != FLOAT]
    fixed = [pl.lit(value).alias(name) for name, value in record.fixed.items()]
    return found.with_columns(*scaled, *whole, *fixed).drop("text")


def _finite(value: pl.Expr) -> pl.Expr:
    """Null for a number of hundreds of digits, which no clock or memory has."""
    return pl.when(value.abs() < 2**53).then(value)


def _memory_of_steps(steps: pl.DataFrame) -> pl.DataFrame:
    """Memory that MindSpeed-LLM's FSDP2 backend prints on the step line: the most over all ranks."""
    allocated, reserved = pl.col("max_memory_allocated_bytes"), pl.col("max_memory_reserved_bytes")
    rows = steps.filter(allocated.is_not_null() | reserved.is_not_null()).with_columns(
        kind=pl.lit("measured"), max_allocated_bytes=allocated, max_reserved_bytes=reserved
    )
    return conform(rows, RECORD_COLUMNS["memory"])


def clock(text: pl.Expr) -> pl.Expr:
    """The last time stamp of a text, whatever the logger's layout around it."""
    printed = text.str.extract(rf"^.*({TIMESTAMP})", 1).str.replace(",", ".").str.replace("T", " ")
    return printed.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False)


def _last_step(rows: pl.DataFrame, steps: pl.DataFrame) -> pl.Series:
    """The step of the step line before each row, of the same file."""
    before = steps.select("source", "line_number", before="step").sort("line_number")
    numbered = rows.select("source", "line_number").with_row_index().sort("line_number")
    joined = numbered.join_asof(before, on="line_number", by="source", strategy="backward", check_sortedness=False)
    return joined.sort("index")["before"]
