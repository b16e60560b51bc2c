"""The texts around the charts of the page: text alternatives, what each leaves out, key numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from analysis.charts import same_curves
from analysis.charts.along import ALONG, HELP, TITLES
from analysis.charts.series import SEPARATOR
from analysis.metrics import BY_COLUMN, DRAWN
from analysis.present.numbers import with_unit
from analysis.present.parts import Cell, Table
from analysis.present.views.first_screen import shown_rate
from analysis.present.views.ranks import spread_of_ranks
from analysis.present.words import word
from analysis.report.payload import ranked
from analysis.report.shown_numbers import figure, number, percent
from analysis.run.run import Run
from logparse.language import msg, tr
from logparse.light_dataclass import dataclass


@dataclass(frozen=True)
class ChartText:
    """The texts around a chart on the page: its text alternative, what it leaves out, its key numbers."""

    alternative: str
    remarks: str
    numbers: Table | None
    help: str = ""


def figures(charts: dict[str, Any], runs: Sequence[Run], *printed: str) -> dict[str, ChartText]:
    """The charts in the order of the page. A remark is given once, and not if it is one of ``printed``."""
    texts: dict[str, ChartText] = {}
    seen = set(printed)
    for name in (name for name in TITLES if name in charts and name != "ranks"):
        numbers = _key_numbers(name, runs) if name in ALONG else None
        remarks = [_remarks(charts[name], seen), *([_same_curves(runs)] if name == DRAWN[0].column else [])]
        text = SEPARATOR.join(remark for remark in remarks if remark)
        texts[name] = ChartText(_alternative(name, runs, numbers), text, numbers, tr(HELP[name]))
    for name, run in ranked(runs).items():
        text = f"{tr(TITLES['ranks'])}. {run.name}: {spread_of_ranks(run.ranks)}."
        texts[name] = ChartText(text, _remarks(charts[name], seen), None, tr(HELP["ranks"]))
    return texts


def _same_curves(runs: Sequence[Run]) -> str:
    """What else the chart of throughput shows; with one run its typical value in those units."""
    repeated = same_curves(pl.concat(run.steps for run in runs))
    names = [_typical(name, runs) for name in repeated]
    return tr("same curve: {metrics}", metrics=tr(", ").join(names)) if names else ""


def _typical(name: str, runs: Sequence[Run]) -> str:
    metric, title = BY_COLUMN[name], tr(ALONG[name].title)
    value = shown_rate(runs[0])[name]
    if len(runs) > 1 or value is None:
        return title
    return tr("{metric} {value}", metric=title, value=with_unit(metric.text(value), metric.shown_unit))


def _remarks(specs: dict[str, Any], seen: set[str]) -> str:
    """The remarks below a chart that are not yet in ``seen``; they are added to it."""
    parts = [part for part in next(iter(specs.values()))["usermeta"]["remarks"] if part not in seen]
    seen.update(parts)
    return SEPARATOR.join(parts)


def _key_numbers(name: str, runs: Sequence[Run]) -> Table:
    chart, metric = ALONG[name], BY_COLUMN.get(ALONG[name].column)
    heads = ["", tr("median"), tr("mean"), tr("min"), tr("max"), tr("first"), tr("last"), tr("rows")]
    rows = []
    for run in runs:
        values = run.steps.filter("counted")[chart.column]
        values = values.filter(values.is_finite())
        picked = [_pick(values, how) for how in ("median", "mean", "min", "max", "first", "last")]
        marks = (metric.mark(value) if metric else "" for value in picked)
        shown = (figure(value, chart) + mark for value, mark in zip(picked, marks, strict=True))
        rows.append([run.name, *shown, number(len(values), 0)])
    title = tr("{title}, counted steps", title=tr(chart.title))
    return Table(heads, rows, f"{title}, {chart.unit}" if chart.unit else title)


def _pick(values: pl.Series, how: str) -> Any:
    return getattr(values, how)() if len(values) else None


def _alternative(name: str, runs: Sequence[Run], numbers: Table | None) -> str:
    """What the chart shows, in one sentence for each run."""
    if name == "time_breakdown":
        sentences = [f"{run.name}: {_time_breakdown_words(run)}" for run in runs]
    elif name == "goodput":
        sentences = [f"{run.name}: {percent(run.analysis.goodput)}" for run in runs]
    elif numbers is None:
        sentences = [_spread_words(run) for run in runs]
    else:
        sentences = [_number_words(row, ALONG[name].unit) for row in numbers.cells]
    return f"{tr(TITLES[name])}. {'. '.join(sentences)}."


def _number_words(row: Sequence[Cell], unit: str) -> str:
    name, median, _, least, greatest, _, _, n = (cell.text for cell in row)
    text = msg("{run}: {n} counted rows, median {median}, {least} to {greatest}")
    return tr(text, run=name, n=n, median=f"{median} {unit}".strip(), least=least, greatest=greatest)


def _spread_words(run: Run) -> str:
    time = run.summary.row(0, named=True)
    text = msg("{run}: step time p10 {low} ms, p90 {high} ms")
    return tr(text, run=run.name, low=number(time["p10"]), high=number(time["p90"]))


def _time_breakdown_words(run: Run) -> str:
    parts = run.time_breakdown.sort("seconds", descending=True).select("part", "share").rows()
    return tr(", ").join(f"{word('parts', part)} {percent(share)}" for part, share in parts)
