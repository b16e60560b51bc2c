"""The page as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from analysis.charts import chart_rows
from analysis.charts.along import ALONG, TITLES
from analysis.charts.plot import AXIS_TITLES
from analysis.charts.series import SEPARATOR, describe_thinning
from analysis.metrics import BY_COLUMN, DRAWN
from analysis.pipeline.run import Run
from analysis.report.answer import cards, gauge, rates_table
from analysis.report.goodput import goodput_table
from analysis.report.numbers import number, percent
from analysis.report.page_frame import render
from analysis.report.payload import payload, ranked
from analysis.report.settings import context_tables, coverage_table, versions_table
from analysis.report.time_breakdown import account_table, left_out_table, stalls_table, starts_table
from analysis.report.worked_formula import terms_table, write_out
from analysis.screens.analyze import list_expectations, list_notes
from analysis.screens.parts import Cell, Table
from analysis.screens.ranks import spread_of_ranks, table_of_ranks
from analysis.screens.words import say_evidence, say_framework, word
from logparse.language import msg, tr


@dataclass(frozen=True)
class ChartText:
    """What stands around a chart on the page: its text alternative, what it leaves out, its key numbers."""

    alternative: str
    said: str
    numbers: Table | None


def render_page(runs: Sequence[Run], title: str | None = None) -> str:
    """The page about ``runs``, the first of which the others are compared with, in the language in use."""
    rows = chart_rows(pl.concat(run.steps for run in runs), partial(word, "reasons"))
    given = payload(runs, rows)
    return render(
        "page.html.j2",
        title or ", ".join(run.name for run in runs),
        given,
        runs=runs,
        axes=[(axis, tr(AXIS_TITLES[axis])) for axis in given["axes"]],
        **_sections(runs, given["charts"], rows),
    )


def _sections(runs: Sequence[Run], charts: dict[str, Any], rows: pl.DataFrame) -> dict[str, Any]:
    first = runs[0]
    thinned = describe_thinning(rows) if rows["rows"].max() != 1 and len(rows) else ""
    return {
        "heads": [(run, say_framework(run.framework), say_evidence(run.framework)) for run in runs],
        "answers": [(run, cards(run, first), gauge(run)) for run in runs],
        "rates": rates_table(runs),
        "notes": [(run, list_notes(run.notes)) for run in runs],
        "warned": any(note.level == "warning" for run in runs for note in run.notes),
        "figures": _figures(charts, runs, "", thinned, first.name),
        "thinned": thinned,
        "titles": {name: tr(title) for name, title in TITLES.items()},
        "metrics": [metric.column for metric in DRAWN],
        "scales": _constant_scales(runs) if "loss_scale" not in charts else [],
        "left_out": left_out_table(runs),
        "ranked": [
            (name, run, spread_of_ranks(run.ranks), table_of_ranks(run.ranks)) for name, run in ranked(runs).items()
        ],
        "account": account_table(runs),
        "field": goodput_table(runs),
        "clockless": [run.name for run in runs if run.steps["timestamp"].is_null().all()],
        "goings": [(run, stalls_table(run), starts_table(run)) for run in runs],
        "against": [(run, list_expectations(run)) for run in runs],
        "contexts": context_tables(runs),
        "versions": versions_table(runs),
        "workings": [(run, run.analysis.computation, write_out(run.analysis)) for run in runs],
        "terms_table": terms_table,
        "coverage": coverage_table(runs),
    }


def _figures(charts: dict[str, Any], runs: Sequence[Run], *told: str) -> dict[str, ChartText]:
    """The charts in the order of the page; what one says of the rows left out, those below do not say again."""
    figures: dict[str, ChartText] = {}
    said = set(told)
    for name in (name for name in TITLES if name in charts and name != "ranks"):
        numbers = _key_numbers(name, runs) if name in ALONG else None
        figures[name] = ChartText(_alternative(name, runs, numbers), _said(charts[name], said), numbers)
    for name, run in ranked(runs).items():
        text = f"{tr(TITLES['ranks'])}. {run.name}: {spread_of_ranks(run.ranks)}."
        figures[name] = ChartText(text, _said(charts[name], said), None)
    return figures


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


def _constant_scales(runs: Sequence[Run]) -> list[tuple[str, str]]:
    scales = [(run.name, run.steps["loss_scale"].drop_nulls()) for run in runs]
    return [(name, f"{values[0]:,g}") for name, values in scales if len(values)]
