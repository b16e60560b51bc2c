"""The tiles of the first screen, the distance from the peak, and the named rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analysis.hardware.devices import DevicePeak
from analysis.metrics import BY_COLUMN, RATED, Metric
from analysis.present.metric_names import headed, titled
from analysis.present.numbers import percent_of_peak
from analysis.present.parts import Bar, Cell, ScreenRow, Table
from analysis.present.views.first_screen import rows, shown_rate
from analysis.present.views.printed_rates import TFLOPS, TOKENS
from analysis.present.words import word
from analysis.report.shown_numbers import LIMITS, NONE, difference, interval, level_of, number, percent, shown
from analysis.run.run import Run
from logparse.language import msg, tr
from logparse.light_dataclass import dataclass

TIME = BY_COLUMN["elapsed_time_per_iteration_ms"]
# The metrics of the rates.
RATE_METRICS = (TIME, *RATED)
# In a table of several runs these repeat MFU: they are in proportion to it.
IN_PROPORTION = ("samples_per_second_per_device", "tflops_per_second_per_device", "peak_utilization", "hfu")
COMPARED = tuple(metric for metric in RATE_METRICS if metric.column not in IN_PROPORTION)
# The metrics of a tile, by the column of a rate, in the order of the page; its row on the first screen of a terminal.
TILES = {
    "mfu": msg("MFU"),
    "step_time_ms": msg("step time"),
    TOKENS: msg("throughput"),
    "loss": msg("loss"),
    TFLOPS: msg("TFLOP/s"),
    "goodput": msg("goodput"),
}
# Those that have no tile where the terminal has no row for them, as goodput of a short run.
_OPTIONAL = ("loss", "goodput")
# Rows of the first screen of a terminal that the page shows in another way.
SHOWN_ELSEWHERE = (*TILES.values(), msg("warnings"), msg("error"))
# A tile names this many of the overheads; the table below it has all.
MOST_OVERHEADS = 2


@dataclass(frozen=True)
class Card:
    """A headline metric as the terminal shows it, with its clauses; a dash is what could not be computed.

    ``level`` is low, middle or high, ``limits`` says from where on. ``difference`` is that from the first run.
    """

    label: str
    value: str
    clauses: Sequence[str] = ()
    level: str = ""
    limits: str = ""
    difference: str = ""

    @property
    def known(self) -> bool:
        """Whether there is a number."""
        return self.value != NONE


def rate_of(run: Run, name: str) -> dict[str, Any]:
    """A named rate of a run, such as ``steady``."""
    return run.analysis.rate(name)


def cards(run: Run, first: Run) -> list[Card]:
    """The headline of ``run``, each figure with its difference from the first run where that is another."""
    by_label = {row.label: row for row in rows(run)}
    columns = [column for column in TILES if column not in _OPTIONAL or tr(TILES[column]) in by_label]
    return [_card(column, run, first, by_label) for column in columns]


def _card(column: str, run: Run, first: Run, by_label: Mapping[str, ScreenRow]) -> Card:
    label = tr(TILES[column])
    row = by_label.get(label)
    value, base = headline_value(run, column), None if run is first else headline_value(first, column)
    # A row of several figures begins with the one of its tile.
    shown_value, *clauses = [row.value, *row.clauses] if row and row.value else [*row.clauses] if row else [NONE]
    shown_clauses = clauses[:MOST_OVERHEADS] if column == "goodput" else clauses
    limits = _limits_text(column) if column in LIMITS else ""
    return Card(label, shown_value, shown_clauses, level_of(column, value), limits, difference(value, base))


def headline_value(run: Run, column: str) -> float | None:
    """The number of a tile."""
    if column == "loss":
        return run.loss.last if run.loss else None
    value: float | None = run.analysis.goodput if column == "goodput" else shown_rate(run)[column]
    return value


def _limits_text(column: str) -> str:
    low, high = (percent(limit, 0) for limit in LIMITS[column])
    return tr("low: below {low}, middle: {low} to {high}, high: {high} or more", low=low, high=high)


def other_rows(run: Run) -> list[ScreenRow]:
    """The rows of a terminal's first screen that the page does not show in another way."""
    elsewhere = {tr(label) for label in SHOWN_ELSEWHERE}
    return [row for row in rows(run) if row.label not in elsewhere]


def gauge(run: Run) -> Bar | None:
    """The bar from the peak through HFU to MFU; None without a peak or an MFU."""
    rate, peak = rate_of(run, "steady"), run.analysis.computation.peak
    if peak is None or rate["mfu"] is None:
        return None
    at, hfu = peak.peak_tflops_per_second, rate["hfu"]
    most = max(at, *(peak.range or ()), at * rate["mfu"], at * (hfu or 0))

    def length(tflops: float) -> float:
        return float(round(100 * tflops / most, 2))

    return Bar(
        mfu=length(rate["mfu"] * at),
        hfu=None if hfu is None else length(hfu * at),
        peak=length(at),
        band=(length(peak.range[0]), length(peak.range[1])) if peak.range else None,
        words=_gauge_words(peak, rate["mfu"], hfu),
        scale=describe_peak(peak),
    )


def describe_peak(peak: DevicePeak) -> str:
    """The peak with all that must be known of it."""
    return tr(
        "peak {value} TFLOP/s: {device} ({dtype}, {basis}; confidence {confidence})",
        value=f"{peak.peak_tflops_per_second:,g}",
        device=tr(peak.name),
        dtype=tr(peak.dtype),
        basis=tr(peak.basis),
        confidence=tr(peak.confidence),
    )


def _gauge_words(peak: DevicePeak, mfu: float, hfu: float | None) -> str:
    parts = [tr("MFU {value} of the peak", value=percent_of_peak(mfu))]
    parts += [] if hfu is None else [tr("HFU {share}", share=percent_of_peak(hfu))]
    if peak.range:
        low, high = (mfu * peak.peak_tflops_per_second / bound for bound in reversed(peak.range))
        text = msg("{least} to {most} over the variants of the device, {low} to {high} TFLOP/s")
        span = {"low": f"{peak.range[0]:g}", "high": f"{peak.range[1]:g}"}
        parts.append(tr(text, **span, least=percent(low), most=percent(high)))
    return tr("; ").join(parts)


def _value(metric: Metric, rate: dict[str, Any]) -> float | None:
    value: float | None = rate[str(metric.row_column)]
    return value


def rates_table(runs: Sequence[Run]) -> Table:
    """The named rates: one run's by column, several runs' side by side."""
    return _rates_of_one(runs[0]) if len(runs) == 1 else _rates_of_several(runs)


def _rates_of_one(run: Run) -> Table:
    rows: list[list[Cell | str]] = []
    rated = RATED
    for rate in run.rates.iter_rows(named=True):
        time, *values = (shown(metric, _value(metric, rate)) for metric in (TIME, *rated))
        span = interval(rate["step_time_low_ms"], rate["step_time_high_ms"])
        heading = Cell(word("rates", rate["rate"]), word("covers", rate["rate"]))
        rows.append([heading, Cell(time, span), *values, number(rate["steps"], 0)])
    units = [headed(metric, run.analysis).replace(" ", "\u00a0") for metric in rated]
    return Table(["", tr("ms/step"), *units, tr("useful steps")], rows, tr("Rates by time covered"))


def _rates_of_several(runs: Sequence[Run]) -> Table:
    rows = []
    for rate in runs[0].rates["rate"]:
        rows_of_runs = [run.analysis.rate(rate) for run in runs]
        for metric in COMPARED:
            first, *others = (_value(metric, row) for row in rows_of_runs)
            if any(value is not None for value in (first, *others)):
                cells = [Cell(shown(metric, value), difference(value, first)) for value in others]
                rows.append([Cell(word("rates", rate), titled(metric)), Cell(shown(metric, first)), *cells])
    names = [run.name for run in runs]
    return Table(["", *names], rows, tr("Rates, and the difference from the first run"))
