"""Many runs, one a row, and what they lost together. Comes in: the tables ``runs`` and ``losses``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from analysis.hardware.devices import BY_HAND
from analysis.metrics import BY_COLUMN
from analysis.pipeline.overview import lost_by_cause
from analysis.screens.metric_names import named
from analysis.screens.parts import Heading, Part, Sentence, Table
from analysis.screens.words import word
from analysis.screens.words.forms import big
from logparse.language import some, tr

Row = Mapping[str, Any]
# Causes that are named where there is one line for all, and runs.
FEW, LEAST_HOURS = 4, 0.05
UNKNOWN = "-"


@dataclass(frozen=True)
class Shown:
    """A column of the table of runs: ``column`` of the frame, its heading over at most two lines, the text of a row.

    Where it is the same for all runs ``alike`` says it once, above the table.
    """

    column: str
    heading: str
    text: Callable[[Row], str]
    prose: bool = False
    alike: Callable[[Row], str] | None = None


def shown_columns() -> tuple[Shown, ...]:
    """The columns of the table of runs behind the run's name, in the language in use."""
    tokens = named(BY_COLUMN["tokens_per_second_per_device"])
    return (
        Shown("model", tr("model"), _model, prose=True, alike=_model),
        Shown("device", tr("device"), _device, prose=True, alike=_device),
        Shown("world_size", tr("devices"), _devices, alike=lambda row: tr("{n} devices", n=_devices(row))),
        Shown("steps", tr("steps"), lambda row: f"{row['steps']:,}"),
        _figure("delivered_tokens_per_second_per_device", f"{tokens}\n{word('rates', 'delivered')}"),
        _figure("tokens_per_second_per_device", f"{tokens}\n{word('rates', 'steady')}"),
        _figure("mfu", _in_two_lines("mfu")),
        _figure("mfu_as_built", tr("MFU %\nas\nbuilt")),
        _figure("hfu", _in_two_lines("hfu")),
        _figure("goodput", _in_two_lines("goodput")),
        Shown("largest_loss_ratio", tr("largest loss"), loss_of, prose=True),
        Shown("warnings", "!", lambda row: f"{row['warnings'] or ''}"),
    )


def _figure(column: str, heading: str) -> Shown:
    """A metric of the registry, in as few digits as tell runs apart."""
    metric = BY_COLUMN[column.removeprefix("delivered_")]
    short = replace(metric, digits=max(0, metric.digits - 1))
    return Shown(column, heading, lambda row: short.text(row[column]))


def _in_two_lines(column: str) -> str:
    return "\n".join(named(BY_COLUMN[column]).split(" ", 1))


def _model(row: Row) -> str:
    return row["model"] or (UNKNOWN if row["parameters"] is None else big(row["parameters"]))


def _device(row: Row) -> str:
    if row["device"] == BY_HAND:
        return f"{row['peak_tflops_per_second']:g} TFLOP/s"
    return tr(row["device"]) if row["device"] else UNKNOWN


def _devices(row: Row) -> str:
    return UNKNOWN if row["world_size"] is None else f"{row['world_size']:,}"


def loss_of(row: Row) -> str:
    """What cost most, and its share of the time."""
    if row["largest_loss"] is None:
        return UNKNOWN
    return f"{row['largest_loss_ratio']:.1%} {word('losses', row['largest_loss'])}"


def compose_runs(
    runs: pl.DataFrame, losses: pl.DataFrame, of: int, failed: int = 0, price: float | None = None
) -> list[Part]:
    """``runs``, those of ``of`` that were asked for, and their ``losses``, at a ``price`` of a device-hour."""
    title = counted(of) if len(runs) == of else tr("{n} of {of} runs", n=len(runs), of=of)
    return [
        Heading(title, "title"),
        *([Sentence(tr("could not be read: {n}", n=failed), "warning")] if failed else []),
        *_table(runs),
        *totals(runs, losses, price),
        *_worst(runs),
        *_marks(runs),
    ]


def counted(runs: int) -> str:
    """So many runs."""
    return tr("1 run") if runs == 1 else tr("{n} runs", n=runs)


def _table(runs: pl.DataFrame) -> Iterator[Part]:
    if len(runs):
        alike, columns = told_once(runs, shown_columns())
        yield from alike
        rows = [(row["run"], *(column.text(row) for column in columns)) for row in runs.iter_rows(named=True)]
        prose = {at for at, column in enumerate(columns, 1) if column.prose}
        yield Table((tr("run"), *(column.heading for column in columns)), rows, prose=prose, headed=True)


def told_once(runs: pl.DataFrame, columns: Sequence[Shown]) -> tuple[list[Sentence], list[Shown]]:
    """What all ``runs`` have alike, in a sentence, and the columns left; those of which nothing is known go as well."""
    rows = runs.to_dicts()
    texts = {column: {column.text(row) for row in rows} for column in columns}
    known = [column for column in columns if texts[column] - {UNKNOWN, ""}]
    alike = {column: column.alike(rows[0]) for column in known if column.alike and len(rows) > 1 == len(texts[column])}
    said = [Sentence(tr("all runs: {words}", words=tr(", ").join(alike.values())))] if alike else []
    return said, [column for column in known if column not in alike]


def totals(runs: pl.DataFrame, losses: pl.DataFrame, price: float | None = None) -> Iterator[Sentence]:
    """Device-hours of all ``runs``, and those that were lost, by cause."""
    known = runs.drop_nulls("device_hours")
    if known.is_empty():
        return
    spent, lost = (f"{known[name].sum():,.1f}" for name in ("device_hours", "lost_device_hours"))
    found = lost_by_cause(known, losses).filter(pl.col("device_hours") >= LEAST_HOURS).head(FEW)
    causes = tr(", ").join(
        f"{word('losses', cause)} {hours:,.1f}" for cause, hours in found.select("cause", "device_hours").iter_rows()
    )
    if not causes:
        yield Sentence(tr("{spent} device-hours", spent=spent))
    else:
        yield Sentence(tr("{spent} device-hours, {lost} of them lost: {causes}", spent=spent, lost=lost, causes=causes))
    if price is not None:
        cost, gone = (f"{float(known[name].sum()) * price:,.2f}" for name in ("device_hours", "lost_device_hours"))
        yield Sentence(tr("they cost {cost}, {lost} of it for what was lost", cost=cost, lost=gone))


def _worst(runs: pl.DataFrame) -> Iterator[Sentence]:
    """Where to look first."""
    if len(runs) > 1:
        told = [
            tr("lowest {metric} {value} %: {run}", metric=tr(metric.label), value=metric.text(value), run=run)
            for metric, value, run in lowest(runs)
        ]
        if told:
            yield Sentence(tr("; ").join(told))


def lowest(runs: pl.DataFrame) -> Iterator[tuple[Any, float, str]]:
    """The metric, the least value and its run, of MFU and of goodput, as far as they are known and can be."""
    for metric in (BY_COLUMN["mfu"], BY_COLUMN["goodput"]):
        known = runs.filter(pl.col(metric.column) <= (metric.most or 1)).sort(metric.column, maintain_order=True)
        if len(known):
            yield metric, known[metric.column][0], known["run"][0]


def _marks(runs: pl.DataFrame) -> Iterator[Sentence]:
    """What a mark behind a number and the column of warnings say."""
    cannot = runs.filter(pl.col("impossible").is_not_null())["run"]
    if len(cannot):
        yield Sentence(tr("figures marked ! cannot be: {names}", names=some(cannot.to_list())), "warning")
    if runs["warnings"].sum():
        yield Sentence(
            tr("the last column counts warnings; `analyze -v` and the page of each run have them in words"), "info"
        )
