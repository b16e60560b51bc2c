"""One run as history keeps it: a summary row and its steps.

Comes in: an Analysis and what is known of the run. Goes out: a RunRecord. The run id is a hash of the printed steps,
so the same log is the same run whatever its file is called and however it is compressed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

import polars as pl

from analysis.history.kept_endings import keep_ending
from analysis.history.release_names import is_cut
from analysis.metrics import OF_ROWS, RATES
from analysis.run.result import Analysis
from analysis.run.rows.exclusion_reasons import OF_THE_RUN
from analysis.run.summary import finite_median, largest_memory, last_finite, quantile_of_steps, share_of_steps
from analysis.run.useful.useful_time import longest_stall
from logparse.context.relations import SUMMARY
from logparse.context.run_context import RunContext
from logparse.failures.ending import Ending
from logparse.findings import Origin
from logparse.light_dataclass import asdict, dataclass, field, replace
from logparse.masked_frames import mask_settings
from logparse.schema import FLOAT, INT, QUANTITIES, TEXT, TIME, Column, conform, is_dated

# History of the store's format. A version is raised where a column changes its name or meaning, not where one is added.
# 1: first released format.
# 2: origins and excluded_reason are codes with fields; they were words in the language of who recorded.
# 3: one MFU and HFU, of the real model; the share of the peak by the formula; rates with_stalls and wall_clock.
STORE_VERSION = 3
# Kinds of what a log prints that are no settings.
RESULTS = (SUMMARY, "parameters")

# What identifies a run: values that every version of logparse reads the same. Columns added later must stay out, and so
# must the settings, of which every version reads more. Runs of one setup differ in their times.
IDENTITY = (
    "timestamp",
    "step",
    "elapsed_time_per_iteration_ms",
    "global_batch_size",
    "consumed_samples",
    "loss",
    "learning_rate",
    "grad_norm",
)
# Rows that identify the beginning of a job: of two records with equal first rows one is a part of the other.
BEGINNING = 8
# Rows that identify any other part of it, and the files of its other ranks: the ends, and steps that every record of
# the job picks (Knuth's multiplicative hash of the step is least).
ENDS, PICKED, KNUTH = 4, 16, 2_654_435_761

_KINDS = {"int": INT, "float": FLOAT, "bool": pl.Boolean(), "text": TEXT}
_PAIRS = pl.List(pl.Struct({"name": pl.String, "value": pl.String}))
# An Origin, field by field.
_ORIGIN = pl.Struct({"kind": pl.String, "file": pl.String, "line": pl.Int64, "rule": pl.String})
_TRACED = pl.List(pl.Struct({"name": pl.String, "value": pl.String, "origin": _ORIGIN}))
_ORIGINS = pl.List(pl.Struct({"name": pl.String, "origin": _ORIGIN}))


def _rate_columns(name: str) -> tuple[Column, ...]:
    return (
        Column(f"{name}_step_time_ms", FLOAT, "ms", "time per useful step"),
        Column(f"{name}_step_time_low_ms", FLOAT, "ms", "lower end of its 95 % interval within the run"),
        Column(f"{name}_step_time_high_ms", FLOAT, "ms", "upper end of its 95 % interval within the run"),
        Column(f"{name}_steps", INT, "steps", "useful steps it covers"),
    )


# One row per recorded run. ``release`` is in the path, as in Hive partitions, and is added when a row is read.
RUN_COLUMNS = (
    Column("run_id", TEXT, "", "hash of what the log printed"),
    Column("begins", TEXT, "", "hash of its first rows: a longer record of the same job begins alike"),
    Column(
        "landmarks", _PAIRS, "", "some of its rows: clock, loss and time (ms) by step; other records of the job share"
    ),
    Column("name", TEXT, "", "name of the run"),
    Column("long_release", TEXT, "", "the release, where it is too long for the name of the folder"),
    Column("recorded_at", TIME, "", "when it was recorded, UTC"),
    Column("begun_at", TIME, "", "first clock in the log, zone unknown"),
    Column("format", TEXT, "", "format of the log"),
    Column("framework", TEXT, "", "framework that printed it"),
    Column("framework_version", TEXT, "", "its version, as far as the log tells"),
    Column("device", TEXT, "", "device that MFU was measured against"),
    Column("peak_tflops_per_second", FLOAT, "TFLOP/s", "its peak"),
    Column("formula", TEXT, "", "how FLOPs were counted"),
    Column("flops_per_iteration", FLOAT, "FLOP", "FLOPs of one step"),
    Column("step_lines", INT, "rows", "step lines that were read"),
    Column("counted_rows", INT, "rows", "rows that count"),
    *(column for name in RATES for column in _rate_columns(name)),
    *(
        Column(metric.column, FLOAT, metric.unit, f"median of the rows that count: {metric.meaning}")
        for metric in OF_ROWS
    ),
    Column("last_step", INT, "step", "last step that was done"),
    Column("planned_steps", INT, "step", "steps that it was asked to do"),
    Column("crashed_at", INT, "step", "last step of a run that crashed"),
    Column("ending_state", TEXT, "", "how the run ended"),
    Column("ending_family", TEXT, "", "what failed"),
    Column("ending", TEXT, "", "how it ended, why, and which rank"),
    Column("device_hours", FLOAT, "device-h", "devices times the time of the run"),
    Column("step_time_p95_ms", FLOAT, "ms", "95th percentile of the step times, stalls included"),
    Column("longest_stall_ms", FLOAT, "ms", "longest time that a stall took beyond its baseline"),
    Column("longest_stall_step", INT, "step", "step of that stall"),
    Column("goodput", FLOAT, "ratio", "useful steps over the clock"),
    Column("time_to_train_seconds", FLOAT, "s", "from the line that training starts to the one that it ended"),
    Column("final_loss", FLOAT, "", "last loss that was printed"),
    Column("grad_norm", FLOAT, "", "median gradient norm of the rows that count"),
    Column("skipped_share", FLOAT, "ratio", "steps whose update was skipped, of all"),
    Column("nan_share", FLOAT, "ratio", "steps with a NaN, of all"),
    Column("loss_lost_at", INT, "", "step from which on no loss is finite"),
    Column("max_memory_allocated_bytes", FLOAT, "bytes", "largest memory allocated on a device"),
    Column("max_memory_reserved_bytes", FLOAT, "bytes", "largest memory reserved on a device"),
    *(Column(q.name, _KINDS[q.kind], "", q.meaning) for q in QUANTITIES),
    Column("labels", _PAIRS, "", "what the user said of the run"),
    Column("versions", _TRACED, "", "software versions, and where each is from"),
    Column("settings", _PAIRS, "", "every setting the log printed, the first value of each"),
    Column("origins", _ORIGINS, "", "where the value of each quantity is from"),
    Column("logparse_version", TEXT, "", "version of logparse that recorded it"),
    Column("schema_version", INT, "", "version of this table"),
)
# Too large to be read where many runs are looked at.
HEAVY = ("settings", "origins")
# In these one recording of a run may differ from another although the user gave the same.
INCIDENTAL = (
    *("begins", "landmarks", "recorded_at", "name", "origins", "logparse_version", "schema_version"),
    # Kept since they are judged.
    *("grad_norm", "skipped_share", "nan_share", "last_step", "planned_steps", "crashed_at"),
    *("ending_state", "ending_family", "ending", "device_hours"),
    # Read from the header too, where step lines have no clock.
    "begun_at",
    *("step_time_p95_ms", "longest_stall_ms", "longest_stall_step"),
)
PAIRED = ("labels", "versions", "settings")
# The name of a file must distinguish contents, not runs: so much of the hash is enough.
SHORT_HASH = 8


@dataclass(frozen=True)
class RunIdentity:
    """The facts of a record other than its numbers. ``versions`` maps a name to value and origin.

    ``started_at`` is the clock of the header, for logs whose step lines have none.
    """

    release: str
    name: str
    format: str
    framework: str | None = None
    framework_version: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, tuple[str, Origin]] = field(default_factory=dict)
    recorded_at: datetime | None = None
    crashed_at: int | None = None
    ending: Ending | None = None
    started_at: datetime | None = None
    device_without_peak: str | None = None


@dataclass(frozen=True)
class RunRecord:
    """One run: ``summary`` has one row of RUN_COLUMNS, ``steps`` those of the schema."""

    release: str
    summary: pl.DataFrame
    steps: pl.DataFrame

    @property
    def run_id(self) -> str:
        """The hash it goes by."""
        return str(self.summary["run_id"].item())

    @property
    def row_hash(self) -> str:
        """Hash of the summary, 8 hexadecimal digits: equal if only the time of recording differs."""
        return row_hash(self.summary)

    def differences(self, kept: pl.DataFrame) -> list[str]:
        """Names of what this record says otherwise than ``kept``, another row of the run, or beyond it.

        A name is that of a column, or "label", "version" or "setting" and a name.
        """
        return sorted(_differences(kept.row(0, named=True), self.summary.row(0, named=True)))


def row_hash(summary: pl.DataFrame) -> str:
    """Hash of a summary, 8 hexadecimal digits; a file's name has it."""
    row = summary.drop("recorded_at").row(0, named=True)
    return hashlib.sha256(json.dumps(row, default=str).encode()).hexdigest()[:SHORT_HASH]


@dataclass(frozen=True)
class Decoded:
    """What the log printed, before anything was made of it: frames of the schema."""

    steps: pl.DataFrame
    settings: pl.DataFrame
    memory: pl.DataFrame


def make_record(analysis: Analysis, context: RunContext, decoded: Decoded, identity: RunIdentity) -> RunRecord:
    """Put together what history keeps of a run."""
    steps, how = analysis.steps, analysis.computation
    stall_ms, stall_step = longest_stall(steps)
    # Rates of a summary and counts of parameters are results, not settings.
    settings = decoded.settings.filter(~pl.col("kind").is_in(RESULTS))
    printed = settings.unique("name", keep="first", maintain_order=True)
    row = {
        "run_id": content_hash(decoded.steps),
        "begins": content_hash(decoded.steps.head(BEGINNING)),
        "landmarks": _landmarks(steps),
        "name": identity.name,
        "long_release": identity.release if is_cut(identity.release) else None,
        "recorded_at": identity.recorded_at or datetime.now(UTC).replace(tzinfo=None),
        "begun_at": _begun_at(steps, identity),
        "format": identity.format,
        "framework": identity.framework,
        "framework_version": identity.framework_version,
        "device": how.peak.name if how.peak else identity.device_without_peak,
        "peak_tflops_per_second": how.peak.peak_tflops_per_second if how.peak else None,
        "formula": how.formula.name,
        "flops_per_iteration": analysis.flops_per_iteration,
        "step_lines": len(steps),
        "counted_rows": int(steps["counted"].sum()),
        "last_step": steps["step"].max(),
        "planned_steps": steps["train_steps"].drop_nulls().last() if len(steps) else None,
        "crashed_at": identity.crashed_at,
        "ending_state": identity.ending.state if identity.ending else None,
        "ending_family": identity.ending.family if identity.ending else None,
        "ending": keep_ending(identity.ending),
        "device_hours": analysis.device_hours,
        "step_time_p95_ms": quantile_of_steps(steps, 0.95),
        "longest_stall_ms": stall_ms,
        "longest_stall_step": stall_step,
        "goodput": analysis.goodput,
        "time_to_train_seconds": analysis.time_to_train_seconds,
        "final_loss": last_finite(steps["loss"]),
        "loss_lost_at": _lost_at(steps),
        "grad_norm": finite_median(steps.filter("counted")["grad_norm"]),
        "skipped_share": share_of_steps(steps, "skipped_iterations"),
        "nan_share": share_of_steps(steps, "nan_iterations"),
        **_numbers(analysis),
        **largest_memory(steps, decoded.memory),
        **context.values(),
        "labels": _pairs(identity.labels),
        "versions": [{"name": n, "value": v, "origin": _kept(o)} for n, (v, o) in sorted(identity.versions.items())],
        "settings": _pairs(dict(printed.select("name", "value").iter_rows())),
        "origins": [{"name": n, "origin": _kept(fact.origin)} for n, fact in sorted(context.facts.items())],
        "logparse_version": _own_version(),
        "schema_version": STORE_VERSION,
    }
    return RunRecord(identity.release, run_frame([row]), steps)


def mask_secrets(rows: pl.DataFrame) -> pl.DataFrame:
    """``rows`` without secrets in their settings; older versions kept them as they were printed."""
    if "settings" not in rows.columns or rows.is_empty():
        return rows
    every = rows.select("settings").with_row_index("row").explode("settings").drop_nulls().unnest("settings")
    masked = mask_settings(every)
    if masked.equals(every):
        return rows
    pairs = masked.group_by("row", maintain_order=True).agg(settings=pl.struct("name", "value"))
    others = rows.drop("settings").with_row_index("row").join(pairs, on="row", how="left", maintain_order="left")
    return others.with_columns(pl.coalesce("settings", rows["settings"])).select(rows.columns)


def run_frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows of history as a frame of RUN_COLUMNS; a missing value is null."""
    schema = {column.name: column.dtype for column in RUN_COLUMNS}
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema, strict=False)


def content_hash(steps: pl.DataFrame) -> str:
    """SHA-256 of the values of IDENTITY, 32 hexadecimal digits of it.

    Files may be given in any order, so each is hashed by itself; paths and line numbers are left out.
    """
    parts = [_digest(rows.select(IDENTITY)) for rows in steps.partition_by("source", maintain_order=True)]
    return hashlib.sha256("".join(sorted(parts)).encode()).hexdigest()[:32]


def _digest(frame: pl.DataFrame) -> str:
    """Hash of the values, column by column; a column of nulls is left out."""
    filled = [column for column in frame if column.null_count() < len(column)]
    text = "\x1d".join(f"{column.name}\x1e" + "\x1f".join(map(_word, column.to_list())) for column in filled)
    return hashlib.sha256(text.encode()).hexdigest()


def _word(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    plain = new.keys() - {*INCIDENTAL, *PAIRED}
    yield from _unequal(*({name: row[name] for name in plain} for row in (old, new)))
    for column in PAIRED:
        pairs = ({pair["name"]: pair["value"] for pair in row[column] or ()} for row in (old, new))
        yield from (f"{column.removesuffix('s')} {name}" for name in _unequal(*pairs))


def _unequal(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Keys that ``after`` knows and has another value for; NaN is equal to NaN."""
    return [key for key, value in after.items() if value is not None and repr(value) != repr(before.get(key))]


def _numbers(analysis: Analysis) -> dict[str, Any]:
    numbers: dict[str, Any] = {metric.column: analysis.value(metric.column) for metric in OF_ROWS}
    for row in analysis.rates.iter_rows(named=True):
        name = row["rate"]
        numbers |= {f"{name}_{end}": row[end] for end in ("step_time_ms", "step_time_low_ms", "step_time_high_ms")}
        numbers[f"{name}_steps"] = row["steps"]
    return numbers


def _lost_at(steps: pl.DataFrame) -> int | None:
    """The first step of those at the end whose loss is not finite; None where the last loss is, or none is printed."""
    printed = steps.select("step", "loss").drop_nulls("loss")
    finite = printed["loss"].is_finite().arg_true()
    lost = printed[int(finite[-1]) + 1 :] if len(finite) else printed
    return int(lost["step"][0]) if len(lost) else None


def _begun_at(steps: pl.DataFrame, identity: RunIdentity) -> datetime | None:
    """The first clock of the log, where it prints the year."""
    stamps = steps["timestamp"].drop_nulls()
    first: Any = stamps[0] if len(stamps) else identity.started_at
    return first if first is not None and is_dated(first) else None


def _landmarks(steps: pl.DataFrame) -> list[dict[str, str]]:
    """Few rows, each ``clock loss ms`` by its step, "-" where unknown."""
    rows = steps.filter(OF_THE_RUN).unique("step", keep="first", maintain_order=True)
    picked = rows.sort(pl.col("step") * KNUTH % 2**32).head(PICKED)
    chosen = pl.concat([rows.head(ENDS), picked, rows.tail(ENDS)]).unique("step").sort("step")
    clock = pl.col("timestamp").dt.to_string("iso:strict")
    values = chosen.select("step", clock, "loss", "elapsed_time_per_iteration_ms").iter_rows()
    return [
        {"name": str(step), "value": " ".join("-" if v is None else _word(v) for v in row)} for step, *row in values
    ]


def _pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in sorted(values.items())]


def _kept(origin: Origin) -> dict[str, Any]:
    """Its fields; of a log's path the name only, because the same log is the same run wherever it lies."""
    file = PurePath(origin.file).name if origin.kind == "log" and origin.file else origin.file
    return asdict(replace(origin, file=file))


def _own_version() -> str:
    from importlib.metadata import version

    return version("logparse")


def conform_runs(frame: pl.DataFrame) -> pl.DataFrame:
    """Exactly RUN_COLUMNS, and ``release`` where it is known.

    Of runs that an earlier version recorded only whether they crashed is known.
    """
    known = [frame["release"]] if "release" in frame.columns else []
    crashed = pl.when(pl.col("crashed_at").is_not_null()).then(pl.lit("failed")).otherwise(pl.lit("unknown"))
    return conform(frame, RUN_COLUMNS).with_columns(
        pl.coalesce("ending_state", crashed), pl.col("ending_family").fill_null("unknown"), *known
    )
