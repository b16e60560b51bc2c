"""The page as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from analysis.charts import chart_rows
from analysis.charts.plot import AXIS_TITLES
from analysis.charts.series import SEPARATOR, describe_thinning
from analysis.report.answer import figures, gauge, rates_table
from analysis.report.cells import Cell, Table, number, percent
from analysis.report.page_frame import render
from analysis.report.page_run import PageRun
from analysis.report.payload import payload
from analysis.report.settings import context_tables, coverage_table, versions_table
from analysis.report.time_breakdown import account_table, left_out_table, stalls_table, starts_table
from analysis.report.worked_formula import write_out
from logparse.language import msg, tr

# A chart's column, the decimals and the scale of its numbers.
COLUMNS = {
    "time_per_iteration": ("step_time_ms", "ms", 1, 1.0),
    "tokens_per_second_per_device": ("tokens_per_second_per_device", "tokens/s/p", 1, 1.0),
    "tflops_per_second_per_device": ("tflops_per_second_per_device", "TFLOP/s/p", 2, 1.0),
    "mfu": ("mfu", "%", 2, 100.0),
    "loss": ("loss", "", 4, 1.0),
    "grad_norm": ("grad_norm", "", 3, 1.0),
    "loss_scale": ("loss_scale", "", 0, 1.0),
}
TITLES = {
    "time_per_iteration": msg("Time per iteration"),
    "tokens_per_second_per_device": msg("Tokens per second and device"),
    "tflops_per_second_per_device": msg("TFLOP/s per device"),
    "mfu": msg("MFU"),
    "loss": msg("Loss"),
    "grad_norm": msg("Gradient norm"),
    "loss_scale": msg("Loss scale"),
    "time_histogram": msg("Distribution"),
    "account": msg("Where the time went"),
}


@dataclass(frozen=True)
class Figure:
    """A chart on the page: its text alternative, what it leaves out, its key numbers."""

    name: str
    alternative: str
    said: str
    numbers: Table | None


def render_page(runs: Sequence[PageRun], title: str | None = None) -> str:
    """The page about ``runs``, the first of which the others are compared with, in the language in use."""
    rows = chart_rows(pl.concat(run.analysis.steps for run in runs))
    given = payload(runs, rows)
    return render(
        "page.html.j2",
        title or ", ".join(run.name for run in runs),
        given,
        runs=runs,
        axes=[(axis, tr(AXIS_TITLES[axis])) for axis in given["axes"]],
        **_sections(runs, given["charts"], rows),
    )


def _sections(runs: Sequence[PageRun], charts: dict[str, Any], rows: pl.DataFrame) -> dict[str, Any]:
    first = runs[0]
    thinned = describe_thinning(rows) if rows["rows"].max() != 1 and len(rows) else ""
    return {
        "answers": [(run, figures(run, first), gauge(run)) for run in runs],
        "rates": rates_table(runs),
        "figures": _figures(charts, runs, "", thinned, runs[0].name),
        "thinned": thinned,
        "titles": {name: tr(title) for name, title in TITLES.items()},
        "scales": _constant_scales(runs) if "loss_scale" not in charts else [],
        "left_out": left_out_table(runs),
        "account": account_table(runs),
        "clockless": [run.name for run in runs if run.analysis.steps["timestamp"].is_null().all()],
        "goings": [(run, stalls_table(run), starts_table(run)) for run in runs],
        "contexts": context_tables(runs),
        "versions": versions_table(runs),
        "workings": [(run, run.analysis.computation, write_out(run.analysis)) for run in runs],
        "coverage": coverage_table(runs),
    }


def _figures(charts: dict[str, Any], runs: Sequence[PageRun], *told: str) -> dict[str, Figure]:
    """The charts in the order of the page; what one says of the rows left out, those below do not say again."""
    figures: dict[str, Figure] = {}
    said = set(told)
    for name in (name for name in TITLES if name in charts):
        spec = next(iter(charts[name].values()))
        parts = [part for part in spec["usermeta"]["said"] if part not in said]
        said.update(parts)
        numbers = _key_numbers(name, runs) if name in COLUMNS else None
        figures[name] = Figure(name, _alternative(name, runs, numbers), SEPARATOR.join(parts), numbers)
    return figures


def _key_numbers(name: str, runs: Sequence[PageRun]) -> Table:
    column, unit, digits, scale = COLUMNS[name]
    heads = ["", tr("median"), tr("mean"), tr("least"), tr("greatest"), tr("first"), tr("last"), tr("rows")]
    rows = []
    for run in runs:
        values = run.analysis.steps.filter("counted")[column]
        values = values.filter(values.is_finite())
        picked = [_pick(values, how) for how in ("median", "mean", "min", "max", "first", "last")]
        rows.append([Cell(run.name), *(Cell(number(v, digits, scale)) for v in picked), Cell(number(len(values), 0))])
    title = tr("{title}, rows that count", title=tr(TITLES[name]))
    return Table(f"{title}, {unit}" if unit else title, heads, rows)


def _pick(values: pl.Series, how: str) -> Any:
    return getattr(values, how)() if len(values) else None


def _alternative(name: str, runs: Sequence[PageRun], numbers: Table | None) -> str:
    """What the chart shows, in one sentence for each run."""
    if name == "account":
        said = [f"{run.name}: {_account_words(run)}" for run in runs]
    elif numbers is None:
        said = [_spread_words(run) for run in runs]
    else:
        said = [_number_words(row, COLUMNS[name][1]) for row in numbers.rows]
    return f"{tr(TITLES[name])}. {'. '.join(said)}."


def _number_words(row: Sequence[Cell], unit: str) -> str:
    name, median, _, least, greatest, _, _, n = (cell.text for cell in row)
    text = msg("{run}: {n} rows that count, median {median}, from {least} to {greatest}")
    return tr(text, run=name, n=n, median=f"{median} {unit}".strip(), least=least, greatest=greatest)


def _spread_words(run: PageRun) -> str:
    time = run.analysis.summary.row(0, named=True)
    text = msg("{run}: nine steps of ten take {low} ms or longer, nine of ten {high} ms or less")
    return tr(text, run=run.name, low=number(time["p10"]), high=number(time["p90"]))


def _account_words(run: PageRun) -> str:
    parts = run.analysis.account.sort("seconds", descending=True).select("part", "share").rows()
    return ", ".join(f"{tr(part)} {percent(share)}" for part, share in parts)


def _constant_scales(runs: Sequence[PageRun]) -> list[tuple[str, str]]:
    scales = [(run.name, run.analysis.steps["loss_scale"].drop_nulls()) for run in runs]
    return [(name, f"{values[0]:,g}") for name, values in scales if len(values)]
