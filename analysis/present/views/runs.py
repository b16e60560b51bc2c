"""Many runs, one a row, and what they lost together. Comes in: the tables ``runs`` and ``overheads``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from analysis.batch.peers import describe_outliers
from analysis.batch.run_table import hours_by_ending, lost_by_cause
from analysis.metrics import BY_COLUMN
from analysis.present.parts import Heading, Part, Sentence, Table
from analysis.present.views.ending import ending_word
from analysis.present.views.run_columns import ENDING, SPARE, Shown, shared_columns, shown_columns
from analysis.present.words import say, word
from analysis.present.words.forms import counted
from logparse.failures.ending import FAILED
from logparse.language import some, tr

# Causes that are named where there is one line for all, and runs.
FEW, LEAST_HOURS = 4, 0.05


def compose_runs(
    runs: pl.DataFrame,
    overheads: pl.DataFrame,
    everything: pl.DataFrame,
    failed: Sequence[str] = (),
    price: float | None = None,
) -> list[Part]:
    """The chosen ``runs`` of ``everything``, and their ``overheads``, at a ``price`` of a device-hour.

    ``failed`` names the logs that could not be read.
    """
    of = len(everything)
    title = counted(of) if len(runs) == of else tr("{n} of {of} runs", n=len(runs), of=of)
    return [
        Heading(title, "title"),
        *([Sentence(_unread(failed), "warning")] if failed else []),
        *outlying_runs(everything, runs),
        *_table(runs),
        *totals(runs, overheads, price),
        *ending_hours(runs),
        *_worst(runs),
        *_marks(runs),
    ]


def _unread(names: Sequence[str]) -> str:
    """How many logs could not be read, and which."""
    return tr("could not be read: {n} ({names})", n=len(names), names=some(names, most=4))


def outlying_runs(everything: pl.DataFrame, shown: pl.DataFrame) -> list[Sentence]:
    """A warning on the runs ``shown`` that are far below comparable runs of ``everything``."""
    outliers = describe_outliers(everything, shown["run"])
    return [Sentence(say(outliers), "warning")] if outliers else []


def _table(runs: pl.DataFrame) -> Iterator[Part]:
    """The table, with a column of endings if any run failed."""
    if len(runs):
        failed = set(runs["ending_state"]) & FAILED
        sentences, columns = shared_columns(runs, [one for one in shown_columns() if failed or one.column != ENDING])
        yield from sentences
        yield _of_columns(runs, columns)


def _of_columns(runs: pl.DataFrame, columns: Sequence[Shown]) -> Table:
    rows = [(row["run"], *(column.text(row) for column in columns)) for row in runs.iter_rows(named=True)]
    prose = {at for at, column in enumerate(columns, 1) if column.prose}
    at = {column.column: place for place, column in enumerate(columns, 1)}
    spare = [at[column] for column in SPARE if column in at]
    return Table((tr("run"), *(column.heading for column in columns)), rows, prose=prose, headed=True, spare=spare)


def totals(runs: pl.DataFrame, overheads: pl.DataFrame, price: float | None = None) -> Iterator[Sentence]:
    """Device-hours of all ``runs``, and those that were lost, by cause."""
    with_hours = runs.drop_nulls("device_hours")
    if with_hours.is_empty():
        return
    spent, lost = (f"{with_hours[name].sum():,.1f}" for name in ("device_hours", "lost_device_hours"))
    lost_hours = lost_by_cause(with_hours, overheads).filter(pl.col("device_hours") >= LEAST_HOURS).head(FEW)
    causes = tr(", ").join(
        f"{word('overheads', cause)} {hours:,.1f}"
        for cause, hours in lost_hours.select("cause", "device_hours").iter_rows()
    )
    if not causes:
        yield Sentence(tr("{spent} device-hours", spent=spent))
    else:
        yield Sentence(tr("{spent} device-hours, {lost} of them lost: {causes}", spent=spent, lost=lost, causes=causes))
    if price is not None:
        cost, gone = (f"{float(with_hours[name].sum()) * price:,.2f}" for name in ("device_hours", "lost_device_hours"))
        yield Sentence(tr("cost {cost}, of which {lost} for lost time", cost=cost, lost=gone))


def _worst(runs: pl.DataFrame) -> Iterator[Sentence]:
    """Where to look first."""
    if len(runs) > 1:
        parts = [
            tr("lowest {metric} {value} %: {run}", metric=tr(metric.label), value=metric.text(value), run=run)
            for metric, value, run in lowest(runs)
        ]
        if parts:
            yield Sentence(tr("; ").join(parts))


def lowest(runs: pl.DataFrame) -> Iterator[tuple[Any, float, str]]:
    """The metric, the least value and its run, of MFU and of goodput, as far as they are known and can be."""
    for metric in (BY_COLUMN["mfu"], BY_COLUMN["goodput"]):
        possible = runs.filter(pl.col(metric.column) <= (metric.most or 1)).sort(metric.column, maintain_order=True)
        if len(possible):
            yield metric, possible[metric.column][0], possible["run"][0]


def _marks(runs: pl.DataFrame) -> Iterator[Sentence]:
    """The meaning of the mark after a number and of the column of warnings."""
    cannot = runs.filter(pl.col("impossible").is_not_null())["run"]
    if len(cannot):
        yield Sentence(tr("impossible values (!): {names}", names=some(cannot.to_list())), "warning")
    if runs["warnings"].sum():
        yield Sentence(tr("`analyze -v` shows the warnings (!)"), "info")


def ending_hours(runs: pl.DataFrame) -> list[Sentence]:
    """Device-hours of many ``runs`` by the family of their ending, in one line; nothing if none failed."""
    groups = hours_by_ending(runs)
    if not set(groups["state"]) & FAILED:
        return []
    texts = [_hours(row) for row in groups.iter_rows(named=True)]
    text = tr("device-hours by ending (runs): {hours}", hours=tr(", ").join(texts))
    if without := groups["runs_without_device_hours"].sum():
        text = tr("{text}; devices or time unknown: {n}", text=text, n=without)
    return [Sentence(text)]


def _hours(group: Mapping[str, Any]) -> str:
    """Device-hours and number of runs of one kind of ending."""
    has_hours = group["runs"] > group["runs_without_device_hours"]
    hours = f"{group['device_hours']:,.1f}" if has_hours else "-"
    state, family = group["state"], group["family"]
    ending = word("failure_names", family) if state == "failed" else ending_word(state, family)
    return tr("{ending} {hours} ({n})", ending=ending, hours=hours, n=f"{group['runs']:,}")
