"""What stands around the charts of the page: text alternatives, what each leaves out, key numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from analysis.charts.along import ALONG, TITLES
from analysis.charts.series import SEPARATOR
from analysis.metrics import BY_COLUMN
from analysis.present.parts import Cell, Table
from analysis.present.views.ranks import spread_of_ranks
from analysis.present.words import word
from analysis.report.numbers import number, percent
from analysis.report.payload import ranked
from analysis.run.run import Run
from logparse.language import msg, tr


@dataclass(frozen=True)
class ChartText:
    """What stands around a chart on the page: its text alternative, what it leaves out, its key numbers."""

    alternative: str
    said: str
    numbers: Table | None


def figures(charts: dict[str, Any], runs: Sequence[Run], *told: str) -> dict[str, ChartText]:
    """The charts in the order of the page; what one says of the rows left out, those below do not say again."""
    found: dict[str, ChartText] = {}
    said = set(told)
    for name in (name for name in TITLES if name in charts and name != "ranks"):
        numbers = _key_numbers(name, runs) if name in ALONG else None
        found[name] = ChartText(_alternative(name, runs, numbers), _said(charts[name], said), numbers)
    for name, run in ranked(runs).items():
        text = f"{tr(TITLES['ranks'])}. {run.name}: {spread_of_ranks(run.ranks)}."
        found[name] = ChartText(text, _said(charts[name], said), None)
    return found


def _said(specs: dict[str, Any], before: set[str]) -> str:
    """What stands below a chart, less what was said ``before``."""
    parts = [part for part in next(iter(specs.values()))["usermeta"]["said"] if part not in before]
    before.update(parts)
    return SEPARATOR.join(parts)


def _key_numbers(name: str, runs: Sequence[Run]) -> Table:
    chart, metric = ALONG[name], BY_COLUMN.get(ALONG[name].column)
    heads = ["", tr("median"), tr("mean"), tr("least"), tr("greatest"), tr("first"), tr("last"), tr("rows")]
    rows = []
    for run in runs:
        values = run.steps.filter("counted")[chart.column]
        values = values.filter(values.is_finite())
        picked = [_pick(values, how) for how in ("median", "mean", "min", "max", "first", "last")]
        marks = (metric.mark(value) if metric else "" for value in picked)
        shown = (number(value, chart.digits, chart.scale) + mark for value, mark in zip(picked, marks, strict=True))
        rows.append([run.name, *shown, number(len(values), 0)])
    title = tr("{title}, rows that count", title=tr(chart.title))
    return Table(heads, rows, f"{title}, {chart.unit}" if chart.unit else title)


def _pick(values: pl.Series, how: str) -> Any:
    return getattr(values, how)() if len(values) else None


def _alternative(name: str, runs: Sequence[Run], numbers: Table | None) -> str:
    """What the chart shows, in one sentence for each run."""
    if name == "account":
        said = [f"{run.name}: {_account_words(run)}" for run in runs]
    elif name == "goodput":
        said = [f"{run.name}: {percent(run.analysis.goodput)}" for run in runs]
    elif numbers is None:
        said = [_spread_words(run) for run in runs]
    else:
        said = [_number_words(row, ALONG[name].unit) for row in numbers.cells]
    return f"{tr(TITLES[name])}. {'. '.join(said)}."


def _number_words(row: Sequence[Cell], unit: str) -> str:
    name, median, _, least, greatest, _, _, n = (cell.text for cell in row)
    text = msg("{run}: {n} rows that count, median {median}, from {least} to {greatest}")
    return tr(text, run=name, n=n, median=f"{median} {unit}".strip(), least=least, greatest=greatest)


def _spread_words(run: Run) -> str:
    time = run.summary.row(0, named=True)
    text = msg("{run}: nine steps of ten take {low} ms or longer, nine of ten {high} ms or less")
    return tr(text, run=run.name, low=number(time["p10"]), high=number(time["p90"]))


def _account_words(run: Run) -> str:
    parts = run.account.sort("seconds", descending=True).select("part", "share").rows()
    return ", ".join(f"{word('parts', part)} {percent(share)}" for part, share in parts)
