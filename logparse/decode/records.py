"""Lines other than step lines to frames: events, evaluations, memory, timers. Decoded as columns, like the steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from logparse.decode.values import clock, collected, finite, group_names, holds, since_1970, there
from logparse.formats._base import LogFormat, Record
from logparse.schema import FLOAT, RECORD_COLUMNS, TIME, conform

Found = dict[tuple[str, ...], pl.DataFrame]


def find_records(lines: pl.DataFrame, formats: Iterable[LogFormat]) -> Found:
    """The rows that a block of ``lines`` holds, by the key of their record; records without a line are left out."""
    records = {record.key: record for fmt in formats for record in fmt.records}
    text, markers = pl.col("text"), there(lines["text"], {record.marker for record in records.values()})
    if not markers:
        return {}
    present = {key: record for key, record in records.items() if record.marker in markers}
    marked = lines.lazy().filter(holds(text, *markers))
    stamped = collected(marked.select("source", "line_number", "text", timestamp=pl.coalesce(clock(text), "clock")))
    plans = [_decode(stamped.lazy(), record) for record in present.values()]
    return dict(zip(present, pl.collect_all(plans, optimizations=pl.QueryOptFlags.none()), strict=True))


def join_records(
    blocks: Sequence[Found], steps: pl.DataFrame, fmt: LogFormat, begins: pl.DataFrame | None = None
) -> dict[str, pl.DataFrame]:
    """Every frame of ``RECORD_COLUMNS``, in order of the lines; empty where the log has no such line.

    A timer names no step, nor does a save of MindFormers or an evaluation of MLPerf: they are of the step line before.
    """
    frames = {}
    for name, columns in RECORD_COLUMNS.items():
        mine = [record for record in fmt.records if record.frame == name]
        rows = [block[record.key].lazy() for record in mine for block in blocks if record.key in block]
        rows += [begins.lazy()] if name == "events" and begins is not None else []
        frames[name] = conform(_in_order(rows) if rows else pl.DataFrame(schema=_PLACE), columns)
    frames["losses"] = _without_step_lines(frames["losses"], steps, fmt)
    frames["memory"] = pl.concat([frames["memory"], _memory_of_steps(steps)])
    # A log can be cut between a step and what follows it, so that the last step of the file before counts too.
    ends = steps.group_by("source", maintain_order=True).agg(pl.col("step").last())
    file_before = dict(zip(ends["source"][1:], ends["step"], strict=False))
    of_file_before = pl.col("source").replace_strict(file_before, default=None, return_dtype=pl.Int64)
    before, saves = pl.coalesce("step", "before", of_file_before), pl.col("kind").is_in(["save starts", "save ends"])
    frames["evaluations"] = _with_step(frames["evaluations"], steps, before)
    frames["timers"] = _with_step(frames["timers"], steps, pl.col("before"))
    frames["events"] = _with_step(frames["events"], steps, pl.when(saves).then(before).otherwise("step"))
    return frames


_PLACE = {"source": pl.String, "line_number": pl.Int64}


def _in_order(rows: Sequence[pl.LazyFrame]) -> pl.DataFrame:
    return collected(pl.concat(rows, how="diagonal_relaxed").sort(*_PLACE, maintain_order=True))


def _decode(lines: pl.LazyFrame, record: Record) -> pl.LazyFrame:
    """The rows of ``record`` on ``lines`` that have their ``timestamp``, unless the record reads one itself."""
    groups = group_names(record.pattern)
    dtypes = {c.name: c.dtype for c in RECORD_COLUMNS[record.frame]}
    text = pl.col("text")
    rows = lines.filter(holds(text, record.marker))
    if record.every:
        rows = rows.with_columns(text.str.extract_all(record.pattern)).explode("text")
    # A group around the whole pattern shows whether it matches, so that each line is searched once.
    values = text.str.extract_groups(f"({record.pattern})").alias("values")
    own = [name for name in ("source", "line_number", "timestamp") if name not in groups]
    # In two steps, since the fields of an expression would each read it again.
    rows = rows.select(*own, values).unnest("values").filter(pl.col("1").is_not_null())
    scaled = [finite(pl.col(g).cast(pl.Float64, strict=False)) * record.scale for g in groups if dtypes[g] == FLOAT]
    whole = [pl.col(g).cast(dtypes[g], strict=False) for g in groups if dtypes[g] not in (FLOAT, TIME)]
    clock_read = since_1970(pl.col("timestamp")) if "timestamp" in groups else pl.col("timestamp")
    fixed = [pl.lit(value).alias(name) for name, value in record.fixed.items()]
    return rows.select("source", "line_number", clock_read, *scaled, *whole, *fixed)


def _without_step_lines(losses: pl.DataFrame, steps: pl.DataFrame, fmt: LogFormat) -> pl.DataFrame:
    """``losses`` without those of the rows of ``steps``: on a step line, or on the line before it that completes it."""
    taken = steps.select("source", "line_number")
    if any(one.belongs_to == "next" and "loss" in group_names(one.pattern) for one in fmt.companions):
        lines = losses.sort("line_number").select("source", "line_number", at="line_number")
        given = taken.sort("line_number").join_asof(lines, on="line_number", by="source", check_sortedness=False)
        taken = pl.concat([taken, given.select("source", line_number="at")])
    return losses.join(taken, on=("source", "line_number"), how="anti", maintain_order="left")


def _memory_of_steps(steps: pl.DataFrame) -> pl.DataFrame:
    """Memory that MindSpeed-LLM's FSDP2 backend prints on the step line: the most over all ranks."""
    allocated, reserved = pl.col("max_memory_allocated_bytes"), pl.col("max_memory_reserved_bytes")
    rows = steps.lazy().filter(allocated.is_not_null() | reserved.is_not_null())
    memory = rows.with_columns(kind=pl.lit("measured"), max_allocated_bytes=allocated, max_reserved_bytes=reserved)
    return conform(collected(memory), RECORD_COLUMNS["memory"])


def _with_step(rows: pl.DataFrame, steps: pl.DataFrame, step: pl.Expr) -> pl.DataFrame:
    """``rows`` with ``step``, which may use ``before``: that of the step line before each row, of the same file."""
    if rows.is_empty():
        return rows
    places = steps.lazy().select("source", "line_number", before="step").sort("line_number")
    marked = rows.lazy().join_asof(places, on="line_number", by="source", check_sortedness=False)
    return collected(marked.with_columns(step=step).drop("before"))
