"""The index of many runs: one row each, with a link to its page, and what they lost together.

Comes in: the tables ``runs`` and ``overheads``, so that it is the same where shards were merged.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

import polars as pl

from analysis.batch.peers import COMPARED, FAR, FEWEST_COMPARABLE, TOKENS, outliers, peer_median
from analysis.batch.run_table import NUMBERS, choose_runs, lost_by_cause
from analysis.metrics import BY_COLUMN, Metric
from analysis.present.views.run_columns import UNKNOWN, Row, Shown, figure, shared_columns, shown_columns
from analysis.present.views.runs import ending_hours, lowest, outlying_runs
from analysis.present.words import word
from analysis.present.words.forms import counted
from analysis.report.page_frame import render
from analysis.report.shown_numbers import LIMITS, NONE, OF_CLOCK, OF_PEAK, number, percent
from logparse.language import tr
from logparse.light_dataclass import dataclass, replace

RATES = tuple(f"{prefix}{TOKENS}" for prefix in ("wall_clock_", "with_stalls_", ""))
# Cards of runs that are outliers; the sentence above the table names more.
MOST_CARDS = 3
# Significant digits of a training loss: runs that learn the same differ in the third.
LOSS_DIGITS = 4
# Columns that are shown unless the reader chooses others.
MAIN = ("model", "world_size", "ending_state", "steps", TOKENS, "mfu", "goodput", "largest_overhead_ratio", "warnings")
ORDER = (
    "model",
    "device",
    "world_size",
    "begun_at",
    "ending_state",
    "steps",
    "steady_step_time_ms",
    TOKENS,
    f"with_stalls_{TOKENS}",
    f"wall_clock_{TOKENS}",
    "tflops_per_second_per_device",
    "mfu",
    "hfu",
    "goodput",
    "final_loss",
    "device_hours",
    "lost_device_hours",
    "largest_overhead_ratio",
    "warnings",
)
# Columns whose largest value is the one to look at first.
LARGEST_FIRST = (
    *("warnings", "steps", "begun_at", "final_loss", "device_hours", "lost_device_hours", "largest_overhead_ratio"),
)


@dataclass(frozen=True)
class IndexCell:
    """A cell of the index: ``level`` low, high, impossible or nothing, ``bar`` in percent of the cell."""

    text: str
    level: str = ""
    bar: float | None = None


@dataclass(frozen=True)
class IndexCard:
    """A figure of all runs, or of an outlier, which is named and linked."""

    label: str
    value: str
    more: str
    unit: str = ""
    run: str = ""
    link: str | None = None


def render_index(
    runs: pl.DataFrame,
    overheads: pl.DataFrame,
    failed: Sequence[str],
    pages: bool,
    order: str | None = None,
    links: Sequence[tuple[str, str]] = (),
) -> str:
    """The page, in the language in use; ``failed`` says why others could not be read, ``pages`` that each run has one.

    The rows are in the order of the column ``order``, descending after ``-``; without it outliers come first. ``links``
    are the texts and the places of what belongs to it, such as the tables. The page asks no network, and is a plain
    table of the MAIN columns where there is no JavaScript.
    """
    order = (order or "").strip().lower()
    apart = pl.col("stands_out").is_null()
    runs = choose_runs(runs, order=order) if order else runs.sort(apart, maintain_order=True)
    shared, columns = shared_columns(runs, _columns())
    rows = runs.with_columns(peer_median(name).alias(f"usual_{name}") for name in COMPARED).to_dicts()
    greatest = {name: runs[name].max() for name in (*RATES, "device_hours", "lost_device_hours")}
    judged = [row[f"usual_{name}"] is not None for row in rows for name in LIMITS if row[name] is not None]
    return render(
        "index.html.j2",
        counted(len(runs)),
        _data(runs),
        script="index.js",
        styles=("page.css", "index.css"),
        charts=False,
        shared=shared,
        outlying_runs=outlying_runs(runs, runs),
        endings=ending_hours(runs),
        columns=columns,
        order=order,
        main=(*MAIN, order.removeprefix("-")),
        links=links,
        largest_first=LARGEST_FIRST,
        rows=[(row, _link(row["run"], pages), [_cell(column, row, greatest) for column in columns]) for row in rows],
        paged=pages,
        cards=_cards(runs, pages),
        causes=_causes(runs, overheads, pages),
        failed=failed,
        limits={
            name: [percent(limit, 0) for limit in limits] for name, limits in (("peak", OF_PEAK), ("clock", OF_CLOCK))
        },
        by_peers=any(judged),
        by_limits=not all(judged),
        far=percent(FAR, 0),
        fewest=FEWEST_COMPARABLE,
    )


def _columns() -> tuple[Shown, ...]:
    """The columns of the terminal, and more for which a terminal has no room, in the order of the page."""
    begun = Shown(
        "begun_at",
        tr("begun"),
        _begun,
        prose=True,
        shared=lambda row: tr("begun {time}", time=_begun(row)),
    )
    own = (
        begun,
        figure("steady_step_time_ms", tr("step time\nms")),
        figure("tflops_per_second_per_device", tr("TFLOP/s/p")),
        Shown("final_loss", tr("final loss"), _final_loss),
        Shown("device_hours", tr("device-\nhours"), partial(_hours, column="device_hours")),
        Shown("lost_device_hours", tr("lost device-\nhours"), partial(_hours, column="lost_device_hours")),
    )
    by_name = {column.column: column for column in (*shown_columns(), *own)}
    by_name["warnings"] = replace(by_name["warnings"], heading=tr("warnings"))
    return tuple(by_name[name] for name in ORDER)


def _hours(row: Row, column: str) -> str:
    return UNKNOWN if row[column] is None else number(row[column])


def _final_loss(row: Row) -> str:
    return UNKNOWN if row["final_loss"] is None else f"{row['final_loss']:.{LOSS_DIGITS}g}"


def _begun(row: Row) -> str:
    return f"{row['begun_at']:%Y-%m-%d %H:%M}" if row["begun_at"] else UNKNOWN


def _link(name: str, pages: bool) -> str | None:
    return f"runs/{quote(os.fsencode(name), safe='')}/report.html" if pages else None


def _cell(column: Shown, row: Row, greatest: Mapping[str, Any]) -> IndexCell:
    """The text of the table on a terminal, with a bar where that says something."""
    name, value = column.column, row[column.column]
    text = column.text(row)
    if not isinstance(value, float) or not math.isfinite(value):
        return IndexCell(text)
    if name in LIMITS:
        return IndexCell(text, _level(name, row), 100 * min(max(value, 0), 1))
    if name in greatest:
        return IndexCell(text, _level(name, row), 100 * value / (greatest[name] or 1))
    return IndexCell(text)


def _level(name: str, row: Row) -> str:
    """How a figure is marked: against comparable runs, or against a fixed limit where these are too few."""
    value = row[name]
    if name in LIMITS and BY_COLUMN[name].impossible(value):
        return "impossible"
    if row.get(f"usual_{name}") is not None:
        return "low" if name in (row["stands_out"] or "").split() else ""
    low, high = LIMITS.get(name, (-math.inf, math.inf))
    return "low" if value < low else "high" if value >= high else ""


def _cards(runs: pl.DataFrame, pages: bool) -> list[IndexCard]:
    """The main figures: device-hours, how many of them were lost, and the runs to look at."""
    spent, lost = (float(runs[name].sum()) for name in ("device_hours", "lost_device_hours"))
    share = percent(lost / spent) if spent else NONE
    lost_text = tr("{lost} lost, {share}", lost=number(lost), share=share)
    cards = [IndexCard(tr("device-hours"), number(spent), lost_text)] if spent else []
    for label, metric, value, median, name in _to_look_at(runs):
        more = tr("median {value} {unit}", value=metric.text(median), unit=metric.shown_unit)
        cards.append(IndexCard(label, metric.text(value), more, metric.shown_unit, name, _link(name, pages)))
    most = runs.filter(pl.col("lost_device_hours") > 0).sort("lost_device_hours", descending=True, maintain_order=True)
    for name, all_of, hours in most.select("run", "device_hours", "lost_device_hours").head(1).iter_rows():
        more = tr("of {n} device-hours", n=number(all_of))
        cards.append(IndexCard(tr("most device-hours lost"), number(hours), more, "", name, _link(name, pages)))
    return cards


def _to_look_at(runs: pl.DataFrame) -> Iterator[tuple[str, Metric, float, Any, str]]:
    """Label, metric, value, median and run: of the outliers, or else of the lowest run of each metric."""
    far = outliers(runs)[:MOST_CARDS]
    for one in far:
        metric = BY_COLUMN[one["metric"].removeprefix("wall_clock_").removeprefix("with_stalls_")]
        yield tr("outlier: {metric}", metric=tr(metric.label)), metric, one["value"], one["median"], one["run"]
    for metric, value, name in lowest(runs) if not far else ():
        yield tr("lowest {metric}", metric=tr(metric.label)), metric, value, runs[metric.column].median(), name


def _causes(runs: pl.DataFrame, overheads: pl.DataFrame, pages: bool) -> list[dict[str, Any]]:
    """The overheads by cause: each with its share of all overheads, and the run that lost most by it."""
    causes = lost_by_cause(runs, overheads).to_dicts()
    total = sum(row["device_hours"] for row in causes)
    return [
        row
        | {
            "name": word("overheads", row["cause"]),
            "share": row["device_hours"] / total,
            "share_text": percent(row["device_hours"] / total),
            "link": _link(row["worst"], pages),
        }
        for row in causes
    ]


def _data(runs: pl.DataFrame) -> dict[str, Any]:
    """The values for sorting and filtering: every number of the table, unrounded."""
    filled = [name for name in NUMBERS if runs[name].null_count() < len(runs)]
    return {"numbers": {name: [_finite(value) for value in runs[name]] for name in filled}}


def _finite(value: float | None) -> float | None:
    return value if value is None or math.isfinite(value) else None
