"""Many runs as one table: a row each, under the names of the registry; and those of them that are asked for.

Comes in: runs. Goes out: the frames ``runs`` and ``overheads``, the same wherever they were read, and
their totals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from analysis.batch.peers import with_outliers
from analysis.metrics import METRICS, OF_ROWS, RATED, RATES
from analysis.model.parameters import count_parameters
from analysis.run.checks.limits import Condition
from analysis.run.run import Run
from analysis.run.summary import largest_memory, last_finite
from analysis.run.title import device_without_peak
from analysis.run.useful.overheads import IN_STEPS, Overhead
from logparse.errors import unknown_name, use_one_of
from logparse.language import msg
from logparse.schema import BOOL, FLOAT, INT, QUANTITY, TEXT, TIME, Column, without_yearless

# Settings by which runs differ.
SETTINGS = (
    "world_size",
    "global_batch_size",
    "micro_batch_size",
    "seq_length",
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "data_parallel_size",
    "context_parallel_size",
    "expert_model_parallel_size",
    "precision",
    "recompute",
)
_KINDS = {"int": INT, "float": FLOAT, "bool": BOOL, "text": TEXT}

RUNS_COLUMNS = (
    Column("run", TEXT, "", "name of the run"),
    Column("framework", TEXT, "", "framework that printed it"),
    Column("framework_version", TEXT, "", "its version, as far as the log tells"),
    Column("model", TEXT, "", "named models that have its shape, else what the log calls it"),
    Column("parameters", INT, "", "parameters that its shape has"),
    Column("device", TEXT, "", "device that MFU was measured against"),
    Column("peak_tflops_per_second", FLOAT, "TFLOP/s", "its peak"),
    Column("formula", TEXT, "", "how FLOPs were counted"),
    Column("begun_at", TIME, "", "first clock of a step line, zone unknown"),
    *(Column(name, _KINDS[QUANTITY[name].kind], "", QUANTITY[name].meaning) for name in SETTINGS),
    Column("files", INT, "", "files that were read"),
    Column("starts", INT, "", "starts of the run"),
    Column("ending_state", TEXT, "", "how the run ended"),
    Column("ending_family", TEXT, "", "what failed"),
    Column("step_lines", INT, "rows", "step lines that were read"),
    Column("counted_rows", INT, "rows", "rows that count"),
    Column("steps", INT, "steps", "steps that the lines stand for, those done again as well"),
    *(Column(metric.column, FLOAT, metric.unit, metric.meaning) for metric in METRICS),
    *(
        Column(f"{rate}_{metric.column}", FLOAT, metric.unit, f"{metric.meaning}; {rate}")
        for rate in RATES
        for metric in RATED
    ),
    Column("final_loss", FLOAT, "", "last finite loss that was printed"),
    Column("run_seconds", FLOAT, "s", "the clock, or all step lines where there is none"),
    Column("device_hours", FLOAT, "device-h", "devices times that"),
    Column("lost_device_hours", FLOAT, "device-h", "those of them that were lost outside its steps"),
    Column("largest_overhead", TEXT, "", "code of what cost most outside the steps"),
    Column("largest_overhead_ratio", FLOAT, "ratio", "its share of the time"),
    Column("impossible", TEXT, "", "metrics that are more than can be"),
    Column("stands_out", TEXT, "", "metrics far below the median of the runs alike"),
    Column("warnings", INT, "", "warnings about the run"),
    Column("warning_codes", TEXT, "", "their codes"),
)
OVERHEAD_COLUMNS = (
    Column("run", TEXT, "", "name of the run"),
    Column("cause", TEXT, "", "code of what cost time, or speed within the useful time"),
    Column("share", FLOAT, "ratio", "of the time of the run"),
    Column("seconds", FLOAT, "s", "time"),
    Column("device_hours", FLOAT, "device-h", "devices times that"),
    Column("useful_without_ratio", FLOAT, "ratio", "useful share of the time without it"),
    Column(
        "tokens_without_per_second_per_device", FLOAT, "tokens/s/p", "what the settled steps would have made without it"
    ),
)
# What can be held against a limit.
NUMBERS = tuple(column.name for column in RUNS_COLUMNS if column.dtype in (INT, FLOAT))


def runs_table(runs: Sequence[Run]) -> pl.DataFrame:
    """One row of RUNS_COLUMNS for each of ``runs``, in their order."""
    return runs_of([run_row(run) for run in runs])


def runs_of(rows: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    """The table of ``rows`` that ``run_row`` made."""
    frame = pl.DataFrame(rows, {column.name: column.dtype for column in RUNS_COLUMNS}, orient="row")
    return with_outliers(without_yearless(frame))


def run_row(run: Run) -> tuple[Any, ...]:
    """The values of RUNS_COLUMNS of ``run``; which runs are outliers only the table of all knows."""
    values = _row(run)
    return tuple(values.get(column.name) for column in RUNS_COLUMNS)


def _row(run: Run) -> dict[str, Any]:
    analysis, how = run.analysis, run.analysis.computation
    counted = count_parameters(how.shape)
    warnings = [note.code for note in run.notes if note.level == "warning"]
    return {
        "run": run.name,
        "framework": run.framework.name,
        "framework_version": run.framework.version,
        "model": "/".join(run.title.models) or run.context.get("model_name"),
        "parameters": counted.total if counted else None,
        "device": how.peak.name if how.peak else device_without_peak(run.notes),
        "peak_tflops_per_second": how.peak.peak_tflops_per_second if how.peak else None,
        "formula": how.formula.name,
        "begun_at": run.steps["timestamp"].min(),
        **{name: run.context.get(name) for name in SETTINGS},
        "files": len(run.log.sources),
        "starts": len(run.segments),
        "ending_state": run.log.ending.state if run.log.ending else None,
        "ending_family": run.log.ending.family if run.log.ending else None,
        "step_lines": len(run.steps),
        "counted_rows": int(run.steps["counted"].sum()),
        "steps": int(run.steps.filter(~pl.col("copied"))["iterations"].sum()),
        **_metrics(run),
        "final_loss": last_finite(run.steps["loss"]),
        **_spent(run),
        "impossible": " ".join(analysis.impossible) or None,
        "warnings": len(warnings),
        "warning_codes": " ".join(dict.fromkeys(warnings)) or None,
    }


def _metrics(run: Run) -> dict[str, float | None]:
    """Every metric of the registry; of those that have named rates the steady one, and all under the rates' names."""
    metrics: dict[str, float | None] = {metric.column: run.value(metric.column) for metric in OF_ROWS}
    for row in run.rates.iter_rows(named=True):
        rate = row["rate"]
        metrics |= {f"{rate}_{metric.column}": row[metric.column] for metric in RATED}
        metrics[f"{rate}_step_time_ms"] = row["step_time_ms"]
    steady = {metric.column: metrics[f"steady_{metric.column}"] for metric in RATED}
    return metrics | steady | {"goodput": run.analysis.goodput} | largest_memory(run.steps, run.records["memory"])


def _spent(run: Run) -> dict[str, Any]:
    """The time of the run, what of it was lost, and what cost most."""
    seconds, hours, lost = run.analysis.seconds, run.analysis.device_hours, own_overheads(run)
    if seconds is None:
        return {}
    return {
        "run_seconds": seconds,
        "device_hours": hours,
        "lost_device_hours": None if hours is None else sum(loss.device_hours or 0.0 for loss in lost),
        "largest_overhead": lost[0].cause if lost else None,
        "largest_overhead_ratio": lost[0].share if lost else None,
    }


def own_overheads(run: Run) -> list[Overhead]:
    """The time that the run lost outside its steps, the largest first; the work inside a step is no lost time."""
    return [loss for loss in run.overheads if not loss.in_steps]


def overheads_table(runs: Sequence[Run]) -> pl.DataFrame:
    """One row of OVERHEAD_COLUMNS for each loss of each of ``runs``, the largest of a run first."""
    return overheads_of([row for run in runs for row in overhead_rows(run)])


def overheads_of(rows: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    """The table of ``rows`` that ``overhead_rows`` made."""
    return pl.DataFrame(rows, {column.name: column.dtype for column in OVERHEAD_COLUMNS}, orient="row")


def overhead_rows(run: Run) -> tuple[tuple[Any, ...], ...]:
    """The values of OVERHEAD_COLUMNS of each loss of ``run``, the largest first."""
    return tuple(
        (run.name, x.cause, x.share, x.seconds, x.device_hours, x.useful_without, x.rate_without) for x in run.overheads
    )


def lost_by_cause(runs: pl.DataFrame, overheads: pl.DataFrame) -> pl.DataFrame:
    """Device-hours that ``runs`` lost outside their steps, the largest first.

    The columns are ``cause``, ``device_hours``, ``runs`` and ``worst``.

    ``worst`` is the run that lost most of them; runs whose devices are unknown are left out.
    """
    outside = overheads.filter(~pl.col("cause").is_in(IN_STEPS)).join(runs, on="run", how="semi", maintain_order="left")
    by_cause = (
        outside.drop_nulls("device_hours")
        .group_by("cause", maintain_order=True)
        .agg(
            pl.col("device_hours").sum(),
            runs=pl.len(),
            worst=pl.col("run").sort_by("device_hours", descending=True).first(),
        )
    )
    return by_cause.sort("device_hours", descending=True, maintain_order=True)


def check_order(order: str) -> None:
    """Refuse an ``order`` by a column there is not. Raises UsageError."""
    names = [column.name for column in RUNS_COLUMNS]
    if _ordered_by(order) not in names:
        raise unknown_name(msg("column"), _ordered_by(order), names, use_one_of(names, "logparse analyze --help-all"))


def choose_runs(runs: pl.DataFrame, where: Sequence[Condition] = (), order: str | None = None) -> pl.DataFrame:
    """The rows of ``runs`` that meet every condition, sorted by the column ``order``, descending after ``-``.

    An unknown value meets no condition. It sorts last.
    """
    for condition in where:
        holds = [condition.holds(value) or False for value in runs[condition.name]]
        runs = runs.filter(pl.Series(holds, dtype=pl.Boolean))
    if order is None:
        return runs
    return runs.sort(_ordered_by(order), descending=order.startswith("-"), nulls_last=True, maintain_order=True)


def _ordered_by(order: str) -> str:
    return order.removeprefix("-").strip().lower()


def hours_by_ending(runs: pl.DataFrame) -> pl.DataFrame:
    """``state``, ``family``, ``runs``, ``device_hours`` and ``runs_without_device_hours`` of each kind of ending.

    ``runs`` has ``ending_state``, ``ending_family`` and ``device_hours``. The most device-hours come first.
    """
    ending = {name: pl.col(f"ending_{name}").fill_null("unknown") for name in ("state", "family")}
    groups = runs.group_by(**ending, maintain_order=True).agg(
        runs=pl.len(),
        device_hours=pl.col("device_hours").sum(),
        runs_without_device_hours=pl.col("device_hours").null_count(),
    )
    return groups.sort("device_hours", descending=True, maintain_order=True)
