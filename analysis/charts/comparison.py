"""The charts of a comparison: runs of both sides over their steps, coloured by side. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from analysis.charts import Rows, chart_rows
from analysis.charts.drawn_rows import SERIES
from analysis.charts.plot import Rule, Series
from analysis.charts.series import draw_series
from analysis.compare.comparison import Comparison, Side
from analysis.compare.loss_curves import consumed_tokens
from analysis.compare.same_loss import SameLoss
from analysis.run.tables import STEP_COLUMNS, UNITS
from logparse.language import msg, tr
from logparse.light_dataclass import dataclass, replace
from logparse.schema import conform

if TYPE_CHECKING:
    import altair as alt

# The most runs of a side that are drawn: a reader cannot distinguish more lines.
MOST_DRAWN = 20
# What is drawn, by the name of its chart.
CHARTS = {
    "time_per_iteration": "step_time_ms",
    "loss": "loss",
    "loss_difference": "loss_difference",
    "tflops_per_second_per_device": "tflops_per_second_per_device",
}
# Columns of CHARTS that a side has, and those that place a row. What is called the difference of the losses.
OF_SIDES = tuple(column for column in CHARTS.values() if column != "loss_difference")
PLACED = ("step", "consumed_tokens", "counted", "why", "rows")
DIFFERENCE = msg("difference")
# One sentence for a reader who asks what a chart shows.
HELP = {
    "time_per_iteration": msg("Time of every counted step, one line for each run; lower is better."),
    "loss": msg("Training loss of every counted step, one line for each run."),
    "loss_difference": msg("Candidate's loss over the baseline's, minus 1, at common steps; zero is the same loss."),
    "tflops_per_second_per_device": msg("FLOPs of the formula per second on each device, higher is better."),
}
# What the place of a row on a chart is made of.
NEEDED = (
    "segment",
    "counted",
    "excluded_reason",
    "step",
    "seq_length",
    "timestamp",
    "consumed_samples",
    "consumed_tokens",
    *SERIES,
)


@dataclass(frozen=True)
class Differences:
    """How far the losses of two sides are apart: ``steps`` as those of a run called DIFFERENCE, ``rows`` to draw."""

    steps: pl.DataFrame
    rows: pl.DataFrame


@dataclass(frozen=True)
class Overlay:
    """Runs of both sides, ``baseline`` and ``candidate``, on one axis.

    ``runs`` holds by the name of a side the rows (of RUN_COLUMNS) of its runs that are drawn. ``steps`` are their rows
    that count, ``rows`` those to draw in the order of the steps; in both ``run`` is the name of the side. ``merged`` is
    how many neighbours a point is the mean of, at most, where there are so many runs that it must not show their span.
    ``differences`` are those of the losses, where both sides are drawn. ``axis`` is what all rows are along.
    """

    runs: dict[str, pl.DataFrame]
    steps: pl.DataFrame
    rows: pl.DataFrame
    merged: int = 1
    differences: Differences | None = None
    axis: str = "step"

    @property
    def names(self) -> list[str]:
        """The sides of which something is drawn, in the order of their colours."""
        return [name for name in self.runs if (self.rows["run"] == name).any()]

    @property
    def all_names(self) -> list[str]:
        """The sides, and what the differences are called."""
        return self.names if self.differences is None else [*self.names, tr(DIFFERENCE)]

    @property
    def all_rows(self) -> pl.DataFrame:
        """The rows of the sides, and those of the differences."""
        parts = [self.rows] if self.differences is None else [self.rows, self.differences.rows]
        return pl.concat(parts, how="diagonal")

    @property
    def single(self) -> bool:
        """Whether a side is one run, so that the neighbours of a row are of the same run."""
        return all(len(runs) == 1 for runs in self.runs.values())


def overlay_runs(comparison: Comparison) -> Overlay:
    """Put the last MOST_DRAWN runs of each side on one axis, thinned as in every chart.

    Rows that do not count are left out: a slow first step would hide a difference of a few percent.
    """
    sides = {"baseline": comparison.baseline, "candidate": comparison.candidate}
    steps_of = {name: dict(side.readable_steps(_drawn(side)["run_id"])) for name, side in sides.items()}
    runs = {name: _drawn(side).filter(pl.col("run_id").is_in(list(steps_of[name]))) for name, side in sides.items()}
    side_of = {run_id: name for name, steps_by_run in steps_of.items() for run_id in steps_by_run}
    none = pl.DataFrame(schema={column.name: column.dtype for column in STEP_COLUMNS})
    steps = pl.concat(
        [_counted("", none), *(_counted(i, s) for steps_by_run in steps_of.values() for i, s in steps_by_run.items())]
    )
    side = pl.col("run").replace_strict(side_of, return_dtype=pl.String)
    # A line is drawn for each start of each run.
    start = pl.concat_str("run", "segment", separator=" ")
    rows = chart_rows(steps).with_columns(side, segment=start).sort("step", maintain_order=True)
    spans = [f"{column}{end}" for column in OF_SIDES for end in ("_low", "_high")]
    drawn = rows.select("run", "segment", "step", "consumed_tokens", "counted", "why", "rows", *OF_SIDES, *spans)
    overlay = Overlay(runs, steps.with_columns(side), drawn)
    return _with_difference(overlay if overlay.single else _without_spans(overlay, spans), comparison.loss)


def rename_sides(overlay: Overlay, names: Mapping[str, str]) -> Overlay:
    """``overlay`` with its sides called by ``names``, as a reader is to see them."""
    called = pl.col("run").replace(names)
    runs = {names[side]: runs_of_side for side, runs_of_side in overlay.runs.items()}
    return replace(overlay, runs=runs, steps=overlay.steps.with_columns(called), rows=overlay.rows.with_columns(called))


def _with_difference(overlay: Overlay, same: SameLoss | None) -> Overlay:
    """``overlay`` with the differences of the training losses, along tokens where these were compared at tokens.

    Without them where a row that is drawn has no place on that axis, there are no relative differences, or a side is
    not drawn.
    """
    loss = same.of("loss") if same else None
    if same is None or loss is None or not loss.relative or len(overlay.names) < len(overlay.runs):
        return overlay
    axis = {"step": "step", "tokens": "consumed_tokens"}[same.axis]
    if overlay.rows[axis].null_count():
        return overlay
    # Thinned like a loss.
    places = loss.curve.select("step", consumed_tokens="at" if same.axis == "tokens" else pl.lit(None, pl.Int64))
    made = places.with_columns(run=pl.lit(tr(DIFFERENCE)), segment=0, counted=True, loss=loss.curve["difference"])
    steps = conform(made, STEP_COLUMNS)
    rows = chart_rows(steps)
    ends = ("", "_low", "_high")
    named = {f"loss{end}": f"loss_difference{end}" for end in ends}
    of_all = rows.select("run", pl.lit(tr(DIFFERENCE)).alias("segment"), *PLACED, *named).rename(named)
    return replace(overlay, differences=Differences(steps.rename({"loss": "loss_difference"}), of_all), axis=axis)


def _without_spans(overlay: Overlay, spans: Sequence[str]) -> Overlay:
    """``overlay`` with no spans: those of many runs overlap and hide the lines."""
    merged = pl.lit(1, pl.Int64).alias("rows"), *(pl.lit(None, pl.Float64).alias(name) for name in spans)
    most = overlay.rows.select(pl.col("rows").max().fill_null(1)).item()
    return replace(overlay, rows=overlay.rows.with_columns(merged), merged=most)


def comparison_charts(drawn: Overlay, name: str | None = None) -> dict[str, alt.LayerChart]:
    """The charts that have data; ``name`` is that of the rows on a page that holds them once for all its charts."""
    medians = drawn.steps.group_by("run", maintain_order=True).agg(pl.col("step_time_ms").median()).drop_nulls()
    rules = {"step_time_ms": [Rule(ms, "", side) for side, ms in medians.iter_rows()]}
    frames = dict.fromkeys(OF_SIDES, (drawn.steps, drawn.rows))
    if drawn.differences is not None:
        frames["loss_difference"] = drawn.differences.steps, drawn.differences.rows
    return {
        chart: draw_series(_series(column), steps, drawn.axis, Rows(rows, name), rules.get(column, ()))
        for chart, column in CHARTS.items()
        for steps, rows in (frames.get(column, (None, None)),)
        if steps is not None and rows is not None and rows[column].is_not_null().any()
    }


def _series(column: str) -> Series:
    title, unit, style = {
        "step_time_ms": (tr("Step time, dashed: median"), "ms", ",.1~f"),
        "loss": (tr("Loss"), tr("loss"), ".5~g"),
        "loss_difference": (tr("Relative difference of the loss"), tr("candidate / baseline - 1"), ".3~%"),
        "tflops_per_second_per_device": (tr("TFLOP/s per device"), UNITS["tflops_per_second_per_device"], ",.2~f"),
    }[column]
    return Series(column, title, unit, style, from_zero=False, of_time=column != "loss_difference")


def _drawn(side: Side) -> pl.DataFrame:
    """Runs that count; where there is none, those that are too short for it."""
    counting = side.details.filter(pl.col("run_id").is_in(side.runs["run_id"].to_list()))
    return (counting if len(counting) else side.details).sort("recorded_at", maintain_order=True).tail(MOST_DRAWN)


def _counted(run_id: str, steps: pl.DataFrame) -> pl.DataFrame:
    counted = steps.with_columns(consumed_tokens=consumed_tokens()).filter("counted")
    return counted.select(pl.lit(run_id).alias("run"), *NEEDED)
