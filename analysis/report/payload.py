"""The data of the page's script: the rows of all charts once, and a specification for each chart and axis."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from analysis.charts import (
    DARK,
    LIGHT,
    Rows,
    axes_of,
    evaluation_rows,
    goodput_chart,
    ranks_chart,
    same_curves,
    series_charts,
    time_breakdown_chart,
    time_histogram,
)
from analysis.charts.along import ALONG
from analysis.charts.drawn_rows import DIGITS, EVALUATIONS, SERIES
from analysis.charts.marks import MARKS, STARTS, mark_rows, start_rows
from analysis.charts.series import SEPARATOR
from analysis.present.words import word
from analysis.report.layers import along, with_marks, zoomed
from analysis.run.run import Run
from logparse.language import tr

if TYPE_CHECKING:
    import altair as alt

ROWS = "rows"


def payload(runs: Sequence[Run], rows: pl.DataFrame) -> dict[str, Any]:
    """Everything the script needs, ready for JSON; ``rows`` are those to draw."""
    steps = pl.concat(run.steps for run in runs)
    evaluations = pl.concat(run.records["evaluations"] for run in runs)
    marks = pl.concat(mark_rows(run.steps, run.analysis.pauses) for run in runs)
    axes = axes_of(steps)
    charts = _specs(runs, steps, evaluations, Rows(rows, ROWS), axes)
    other_rows = {
        EVALUATIONS: evaluation_rows(steps, evaluations),
        MARKS: marks,
        # Those of several runs would lie upon each other.
        STARTS: start_rows(steps) if len(runs) == 1 else start_rows(steps).clear(),
    }
    for axis in axes:
        for name in (name for name in ALONG if name in charts):
            charts[name][axis] = with_marks(charts[name][axis], list(marks["kind"].unique(maintain_order=True)))
    others = {name: columns(frame) for name, frame in other_rows.items()}
    return page_data([run.name for run in runs], axes, list(SERIES), columns(rows), charts, others)


def page_data(
    runs: Sequence[str],
    axes: Sequence[str],
    series: Sequence[str],
    rows: dict[str, Any],
    charts: dict[str, dict[str, Any]],
    other_rows: dict[str, dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """What the script of every page works with; ``charts`` by name, then by axis, ``other_rows`` by name."""
    reads = {name: asdict(chart) for name, chart in ALONG.items() if name in charts}
    return {
        "runs": runs,
        "axes": axes,
        "series": series,
        "rows": rows,
        "other_rows": other_rows or {},
        "reads": reads,
        "charts": charts,
        "looks": {"light": _look(LIGHT), "dark": _look(DARK)},
        "words": _words(),
    }


def as_json(value: Any) -> str:
    """JSON for a page's script: no text in it can end the script or begin a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _look(config: dict[str, Any]) -> dict[str, Any]:
    """Thousands of points need no text of their own for screen readers: the figure has one."""
    return config | {"background": None, "mark": config["mark"] | {"aria": False}}


def columns(rows: pl.DataFrame) -> dict[str, Any]:
    """Columns that hold something; words as places in a list of them."""
    columns: dict[str, Any] = {}
    for name, dtype in rows.schema.items():
        values = rows[name]
        if values.null_count() == len(values):
            continue
        if dtype == pl.String:
            words = values.unique(maintain_order=True)
            at = {word: number for number, word in enumerate(words)}
            columns[name] = {"words": words.to_list(), "at": [at[word] for word in values]}
        elif dtype == pl.Float64:
            columns[name] = values.round_sig_figs(DIGITS).to_list()
        else:
            columns[name] = values.cast(pl.Int64).to_list()
    return columns


def ranked(runs: Sequence[Run]) -> dict[str, Run]:
    """Runs whose ranks print times of their own, by the names of their charts."""
    names = ["ranks"] if len(runs) == 1 else [f"ranks-{number}" for number in range(1, len(runs) + 1)]
    return {name: run for name, run in zip(names, runs, strict=True) if len(run.ranks)}


def _specs(
    runs: Sequence[Run], steps: pl.DataFrame, evaluations: pl.DataFrame, rows: Rows, axes: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """By chart, then by axis; a chart that is not along the run has the one axis ``none``."""
    peaks = [run.analysis.computation.peak for run in runs]
    peak_values = [peak.peak_tflops_per_second for peak in peaks if peak]
    formula = runs[0].analysis.computation.formula.name
    specs: dict[str, dict[str, Any]] = {}
    repeated = same_curves(steps)
    for name, chart in series_charts(steps, evaluations, peak_values, formula, rows=rows).items():
        if name in repeated:
            continue
        drawn = specification(chart)
        specs[name] = {axis: zoomed(along(drawn, axis)) for axis in axes}
    time_breakdown = pl.concat(run.time_breakdown for run in runs)
    if steps["counted"].any():
        specs["time_histogram"] = {"none": specification(time_histogram(steps))}
    if (time_breakdown["share"] > 0).any():
        specs["time_breakdown"] = {"none": specification(time_breakdown_chart(time_breakdown, partial(word, "parts")))}
    curve = pl.concat(run.analysis.reliability.curve for run in runs)
    if len(curve):
        specs["goodput"] = {"none": specification(goodput_chart(curve))}
    for name, run in ranked(runs).items():
        specs[name] = {"none": specification(ranks_chart(run.steps, run.ranks))}
    return specs


def specification(chart: alt.LayerChart) -> dict[str, Any]:
    """A chart of the width of the page; its subtitle is text of the page, where it can wrap."""
    spec: dict[str, Any] = chart.to_dict(validate=False)
    spec.pop("config", None)
    subtitle = spec["title"].pop("subtitle", "")
    remarks = SEPARATOR.join([subtitle] if isinstance(subtitle, str) else subtitle).split(SEPARATOR)
    size = {"width": "container", "autosize": {"type": "fit-x", "contains": "padding", "resize": True}, "padding": 4}
    return spec | size | {"usermeta": spec.get("usermeta", {}) | {"remarks": remarks}}


def _words() -> dict[str, str]:
    """What the script says."""
    return {
        "png": tr("Save as PNG"),
        "svg": tr("Save as SVG"),
        "csv": tr("Save as CSV"),
        "menu": tr("Save this chart"),
        "off": tr("off"),
        "step": tr("step"),
        "copy": tr("copy file and line"),
        "mean": tr("mean of {n} rows", n="{n}"),
    }
