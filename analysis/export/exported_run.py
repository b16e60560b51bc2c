"""What every target gets of a run: the series along its steps, the numbers and the facts of the whole run.

The series and the numbers are those of the registry of metrics: a new metric is in every export.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import polars as pl

from analysis import metrics
from analysis.history.run_records import BEGINNING, content_hash
from analysis.run.rows.exclusion_reasons import DAMAGED, OF_THE_RUN, TIMED
from analysis.run.run import Run
from logparse.light_dataclass import dataclass
from logparse.schema import DECODED_COLUMNS, Column, without_yearless

Group = Literal["train", "speed", "memory", "logged", "eval"]
# What a log prints of the training itself.
TRAIN = (
    *metrics.LOSSES,
    *("learning_rate", "loss_scale", "params_norm", "num_zeros"),
    *("global_batch_size", "seq_length", "consumed_samples", "consumed_tokens"),
)
# Rates that the log itself prints, never mixed with ours.
LOGGED = "logged_"
# Losses of evaluations, each by the name of its data.
EVALUATION = "evaluation_"
# What the log itself says of each row, and where.
PLACE = ("run", "step", "timestamp", "source", "line_number", "counted", "excluded_reason")
# Figures of a line about memory, by the columns of the steps.
MEMORY = {
    "max_memory_allocated_bytes": "max_allocated_bytes",
    "max_memory_reserved_bytes": "max_reserved_bytes",
}


@dataclass(frozen=True)
class ExportedSeries:
    """A number along the steps: ``column`` of the steps."""

    group: Group
    column: str
    unit: str
    meaning: str

    @property
    def tag(self) -> str:
        """Its name in a tracker, which draws the series of a group together."""
        return f"{self.group}/{self.column.removeprefix(LOGGED).removeprefix(EVALUATION)}"


def all_series() -> Iterator[ExportedSeries]:
    """Every series that an export can have, besides the losses of evaluations."""
    printed = {column.name: column for column in DECODED_COLUMNS}
    yield from (_printed("train", printed[name]) for name in TRAIN)
    for metric in metrics.METRICS:
        if metric.row_column:
            yield ExportedSeries("speed", metric.row_column, metric.unit, metric.meaning)
        elif metric.column in printed:
            yield ExportedSeries("memory", metric.column, metric.unit, metric.meaning)
    yield from (_printed("logged", column) for name, column in printed.items() if name.startswith(LOGGED))


def _printed(group: Group, column: Column) -> ExportedSeries:
    return ExportedSeries(group, column.name, column.unit, column.meaning)


@dataclass(frozen=True)
class ExportedRun:
    """One run for a tracker.

    ``steps`` has one row a step, in order: ``wall_time`` (seconds since 1970 or null), PLACE and the series that the
    run has. ``facts`` are its settings and names, ``figures`` its numbers by name, known ones only; ``meanings`` say
    what each of these is. ``page`` is its first screen in Markdown. ``identity`` is the same for a longer log of it.
    """

    name: str
    steps: pl.DataFrame
    series: tuple[ExportedSeries, ...]
    facts: Mapping[str, str | int | float | bool]
    figures: Mapping[str, float]
    meanings: Mapping[str, str]
    page: str
    identity: str
    ending: str | None = None

    @property
    def fingerprint(self) -> str:
        """Hash of all that is exported of it; equal for equal exports."""
        steps = self.steps.drop("source").write_csv()
        text = json.dumps([self.name, steps, dict(self.facts), dict(self.figures)], default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def last_step(self) -> int:
        """The last step, 0 where no line has one."""
        return int(self.steps["step"][-1]) if len(self.steps) else 0

    def filled_wall_times(self) -> list[float]:
        """The wall time of each row for targets that must have one: a row without a stamp has that of the row before.

        Where the log has no stamps at all each is 0, which trackers take for unknown.
        """
        times = self.steps["wall_time"]
        return times.fill_null(strategy="forward").fill_null(strategy="backward").fill_null(0.0).to_list()

    def rows(self) -> Iterator[tuple[int, dict[ExportedSeries, float]]]:
        """The step and the known values of each row."""
        numbers = self.steps.select(one.column for one in self.series)
        for step, values in zip(self.steps["step"], numbers.iter_rows(), strict=True):
            yield step, {one: float(value) for one, value in zip(self.series, values, strict=True) if value is not None}


def exported_run(run: Run, row: Mapping[Column, Any], page: str, time_zone: str) -> ExportedRun:
    """What is exported of ``run``; ``row`` is its row of the table of runs, ``time_zone`` that of the log's clock."""
    steps = with_memory(steps_once(run.steps), run.records["memory"])
    # A time that is damaged is a number without a mark here.
    speed = [one.column for one in all_series() if one.group == "speed"]
    steps = steps.with_columns(pl.when(TIMED).then(name).alias(name) for name in speed)
    losses = evaluation_losses(run.records["evaluations"])
    steps = _with_columns(steps, losses)
    evaluated = (ExportedSeries("eval", name, "", "evaluation loss") for name in losses.columns if name != "step")
    series = tuple(one for one in (*all_series(), *evaluated) if steps[one.column].count())
    stamps = pl.col("timestamp").dt.replace_time_zone(time_zone, ambiguous="earliest", non_existent="null")
    wall_time = stamps.dt.epoch("us") / 1_000_000
    known = {column.name: value for column, value in row.items() if value is not None and column.name != "run"}
    figures = {name: value for name, value in known.items() if isinstance(value, float)}
    facts = {name: _fact(value) for name, value in (run.context.values() | known).items() if name not in figures}
    return ExportedRun(
        name=run.name,
        steps=without_yearless(steps).select(*PLACE, *(one.column for one in series), wall_time=wall_time),
        series=series,
        facts=facts,
        figures=figures,
        meanings={column.name: meaning(column.meaning, column.unit) for column in row if column.name in figures},
        page=page,
        identity=content_hash(run.log.steps.head(BEGINNING)),
        ending=run.ending.state if run.ending else None,
    )


def meaning(text: str, unit: str) -> str:
    """What a number is, with its unit."""
    return f"{text} ({unit})" if unit else text


def _fact(value: Any) -> str | int | float | bool:
    return value if isinstance(value, str | int | float | bool) else str(value)


def steps_once(steps: pl.DataFrame) -> pl.DataFrame:
    """One row a step, in their order: of a step that a restart did again the last one."""
    own = steps.filter(OF_THE_RUN, pl.col("excluded_reason").ne_missing(DAMAGED), pl.col("step").is_not_null())
    return own.unique("step", keep="last", maintain_order=True).sort("step")


def with_memory(steps: pl.DataFrame, memory: pl.DataFrame) -> pl.DataFrame:
    """``steps`` with the largest figure of all ranks that lines about memory print of a step."""
    measured = memory.filter(kind="measured").drop_nulls("step")
    if measured.is_empty():
        return steps
    largest = measured.group_by("step").agg(pl.col(printed).max() for printed in MEMORY.values())
    return _with_columns(steps, largest).with_columns(
        pl.max_horizontal(column, printed).alias(column) for column, printed in MEMORY.items()
    )


def evaluation_losses(evaluations: pl.DataFrame) -> pl.DataFrame:
    """The last loss that was printed after each step, a column for each data set."""
    names = pl.concat_str(
        pl.lit(f"{EVALUATION}loss"), pl.col("dataset").str.replace_all(r"\W+", "_"), separator="_", ignore_nulls=True
    )
    printed = evaluations.drop_nulls(["step", "loss"]).with_columns(names.alias("dataset"))
    return printed.pivot("dataset", index="step", values="loss", aggregate_function="last")


def _with_columns(steps: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """``steps`` with the columns of ``others``, and rows for steps that only these have."""
    joined = steps.join(others, "step", how="full", coalesce=True).sort("step")
    return joined.with_columns(pl.col("run").fill_null(strategy="forward").fill_null(strategy="backward"))
