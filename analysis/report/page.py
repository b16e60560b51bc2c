"""The page as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl

from analysis.charts import chart_rows, same_curves
from analysis.charts.along import ALONG, TITLES
from analysis.charts.axes import AXIS_TITLES
from analysis.charts.look import PARTS
from analysis.charts.marks import mark_rows
from analysis.charts.series import describe_thinning
from analysis.metrics import DRAWN
from analysis.present.parts import Table
from analysis.present.views.expectations import list_expectations
from analysis.present.views.ranks import spread_of_ranks, table_of_ranks
from analysis.present.views.title import extent, who
from analysis.present.words import evidence_text, framework_text, say, word
from analysis.published.match import place_among
from analysis.report.against import against_tables
from analysis.report.answer import rates_table
from analysis.report.figures import figures
from analysis.report.first_screen import answer_of
from analysis.report.goodput import goodput_table
from analysis.report.layers import name_of_mark
from analysis.report.page_frame import render
from analysis.report.payload import payload, ranked
from analysis.report.settings import WANTED, context_tables, coverage_table, versions_table
from analysis.report.several import incomparable, overview_table
from analysis.report.shown_numbers import number
from analysis.report.stills import stills
from analysis.report.time_breakdown import (
    left_out_table,
    stalls_table,
    starts_table,
    time_breakdown_table,
)
from analysis.report.worked_formula import terms_table, write_out
from analysis.run.run import Run
from logparse.language import msg, tr

# By the anchor of a section, in the order of the page.
SECTIONS = {
    "answer": msg("Summary"),
    "charts": msg("Charts"),
    "ranks": TITLES["ranks"],
    "time_breakdown": TITLES["time_breakdown"],
    "rates": msg("Rates"),
    "against": msg("Plan and published rates"),
    "context": msg("Configuration"),
    "how": msg("Calculation of TFLOP/s"),
}
# The charts of that section; the others are next to their tables.
CHARTS = (*ALONG, "time_histogram")
LEVELS = {"low": msg("low"), "middle": msg("middle"), "high": msg("high")}


def render_page(
    runs: Sequence[Run],
    title: str | None = None,
    command: str = "",
    price: float | None = None,
    links: Sequence[tuple[str, str]] = (),
) -> str:
    """The page about ``runs`` in the language in use; the others are compared with the first.

    ``command`` is what was typed, printed at the foot. ``price`` of a device-hour gives the overheads a cost.
    ``links`` are the texts and the places of what belongs to it: the index, the tables.
    """
    rows = chart_rows(pl.concat(run.steps for run in runs), partial(word, "reasons"))
    given = payload(runs, rows)
    return render(
        "page.html.j2",
        title or _title(runs),
        given,
        runs=runs,
        command=command,
        links=links,
        sources=list(dict.fromkeys(source for run in runs for source in run.log.sources)),
        titles_of={name: tr(title) for name, title in SECTIONS.items()},
        contents=[(name, tr(title)) for name, title in SECTIONS.items() if name != "ranks" or ranked(runs)],
        axes=[(axis, tr(AXIS_TITLES[axis])) for axis in given["axes"]],
        **_sections(runs, given["charts"], rows, price),
    )


def _title(runs: Sequence[Run]) -> str:
    return (
        tr("{name}: {text}", name=runs[0].name, text=who(runs[0]))
        if len(runs) == 1
        else tr(", ").join(run.name for run in runs)
    )


def _place(run: Run) -> str:
    place = place_among(run.expectations.published)
    return say(place) if place else ""


def _kinds(runs: Sequence[Run]) -> list[tuple[str, str, str, str]]:
    """What the runs did other than steps: kind, name, colour, and number of marks."""
    marks = pl.concat(mark_rows(run.steps, run.analysis.pauses) for run in runs)
    counts = marks.group_by("kind", maintain_order=True).len().iter_rows()
    return [(kind, name_of_mark(kind), PARTS[kind], number(n, 0)) for kind, n in counts]


def _ranked(runs: Sequence[Run]) -> list[tuple[str, Run, str, Table]]:
    return [(name, run, spread_of_ranks(run.ranks), table_of_ranks(run.ranks)) for name, run in ranked(runs).items()]


def _clockless(runs: Sequence[Run]) -> list[str]:
    return [run.name for run in runs if run.steps["timestamp"].is_null().all()]


def _any_setting_missing(runs: Sequence[Run]) -> bool:
    return any(run.context.get(name) is None for run in runs for name in WANTED)


def _constant_scales(runs: Sequence[Run]) -> list[tuple[str, str]]:
    scales = [(run.name, run.steps["loss_scale"].drop_nulls()) for run in runs]
    return [(name, f"{values[0]:,g}") for name, values in scales if len(values)]


def _positive_losses(rows: pl.DataFrame) -> bool:
    """Whether the loss can be drawn on a logarithmic scale."""
    return bool((rows["loss"].drop_nulls() > 0).all())


# By the name in the template: what it shows of all runs together, and of each run.
_OF_ALL: Mapping[str, Callable[[Sequence[Run]], Any]] = {
    "overview": overview_table,
    "incomparable": lambda runs: list(incomparable(runs)),
    "rates": rates_table,
    "kinds": _kinds,
    "left_out": left_out_table,
    "ranked": _ranked,
    "time_breakdown": time_breakdown_table,
    "field": goodput_table,
    "clockless": _clockless,
    "contexts": context_tables,
    "incomplete": _any_setting_missing,
    "versions": versions_table,
    "coverage": coverage_table,
}
_OF_EACH: Mapping[str, Callable[[Run], tuple[Any, ...]]] = {
    "heads": lambda run: (run, framework_text(run.framework), evidence_text(run.framework)),
    "goings": lambda run: (run, stalls_table(run), starts_table(run)),
    "against": lambda run: (run, list(against_tables(run)), _place(run), list_expectations(run)),
    "workings": lambda run: (run, run.analysis.computation, write_out(run.analysis)),
}


def _sections(runs: Sequence[Run], charts: dict[str, Any], rows: pl.DataFrame, price: float | None) -> dict[str, Any]:
    from markupsafe import Markup

    first = runs[0]
    thinned = describe_thinning(rows) if rows["rows"].max() != 1 and len(rows) else ""
    return {
        **{name: shown(runs) for name, shown in _OF_ALL.items()},
        **{name: [shown(run) for run in runs] for name, shown in _OF_EACH.items()},
        "answers": [answer_of(run, first, price) for run in runs],
        "figures": figures(charts, runs, "", thinned, first.name),
        "thinned": thinned,
        "drawn": [name for name in CHARTS if name in charts],
        "repeated": same_curves(pl.concat(run.steps for run in runs)),
        "log_scale": "loss" in charts and _positive_losses(rows),
        "levels": {name: tr(text) for name, text in LEVELS.items()},
        "extents": [extent(run) for run in runs],
        "stills": {name: Markup(svg) for name, svg in stills(rows, list(charts)).items()},
        "titles": {name: tr(title) for name, title in TITLES.items()},
        "metrics": [metric.column for metric in DRAWN],
        "scales": [] if "loss_scale" in charts else _constant_scales(runs),
        "terms_table": terms_table,
    }
