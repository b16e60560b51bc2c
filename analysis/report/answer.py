"""The answer: cards of the delivered and the steady rates, the distance from the peak, and the four named rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from analysis.hardware.devices import DevicePeak
from analysis.metrics import BY_COLUMN, RATED, Metric
from analysis.present.metric_names import headed, titled, work_counted
from analysis.present.parts import Bar, Cell, Table
from analysis.present.views.rates import steady_interval
from analysis.present.words import word
from analysis.report.numbers import NONE, difference, interval, number, percent, shown
from analysis.run.run import Run
from logparse.language import msg, tr

TIME, GOODPUT = BY_COLUMN["elapsed_time_per_iteration_ms"], BY_COLUMN["goodput"]
# The metrics of the rates.
RATE_METRICS = (TIME, *RATED)
# In a table of several runs these repeat MFU: they are in proportion to it.
IN_PROPORTION = ("samples_per_second_per_device", "tflops_per_second_per_device", "peak_utilization", "hfu")
COMPARED = tuple(metric for metric in RATE_METRICS if metric.column not in IN_PROPORTION)
# The rates of the cards.
CARDS = ("tokens_per_second_per_device", "mfu", "tflops_per_second_per_device")


@dataclass(frozen=True)
class Card:
    """One headline metric as it was delivered, and ``steady``; a dash is what could not be computed.

    ``interval`` is that of the steady rate, ``remark`` a text below it, ``difference`` the distance of the delivered
    rate from that of the first run.
    """

    label: str
    value: str
    unit: str
    steady: str = ""
    interval: str = ""
    remark: str = ""
    difference: str = ""

    @property
    def known(self) -> bool:
        """Whether there is a number."""
        return self.value != NONE


def rate_of(run: Run, name: str) -> dict[str, Any]:
    """A named rate of a run, such as ``steady``."""
    return run.analysis.rate(name)


def cards(run: Run, first: Run) -> list[Card]:
    """The headline of ``run``, each figure with its distance from the first run where that is another."""
    metrics = [BY_COLUMN[name] for name in CARDS]
    return [*(_card(metric, run, first) for metric in metrics), _goodput_card(run, first)]


def _card(metric: Metric, run: Run, first: Run) -> Card:
    value, steady = (_value(metric, rate_of(run, name)) for name in ("with_stalls", "steady"))
    base = None if run is first else _value(metric, rate_of(first, "with_stalls"))
    counts, span = work_counted(metric, run.analysis), steady_interval(metric, run)
    return Card(
        label=tr("{metric} ({work})", metric=tr(metric.label), work=counts) if counts else tr(metric.label),
        value=shown(metric, value),
        unit="" if metric.shown_unit in metric.label else metric.shown_unit,
        steady=shown(metric, steady),
        interval=tr("steady, 95 %: {interval}", interval=span) if span else "",
        difference=difference(value, base),
    )


def _goodput_card(run: Run, first: Run) -> Card:
    value = run.analysis.goodput
    base = None if run is first else first.analysis.goodput
    remark = tr("useful steps over the clock")
    unit = GOODPUT.shown_unit
    return Card(tr(GOODPUT.label), shown(GOODPUT, value), unit, remark=remark, difference=difference(value, base))


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
        "peak {value} TFLOP/s: {device}, {dtype}, basis {basis}, confidence {confidence}",
        value=f"{peak.peak_tflops_per_second:g}",
        device=tr(peak.name),
        dtype=tr(peak.dtype),
        basis=tr(peak.basis),
        confidence=tr(peak.confidence),
    )


def _gauge_words(peak: DevicePeak, mfu: float, hfu: float | None) -> str:
    parts = [tr("steady MFU {value} of the peak", value=percent(mfu, 2))]
    parts += [] if hfu is None else [_hfu_text(hfu)]
    if peak.range:
        low, high = (mfu * peak.peak_tflops_per_second / bound for bound in reversed(peak.range))
        text = msg("over the family's SKUs, {low} to {high} TFLOP/s, MFU is {least} to {most}")
        span = {"low": f"{peak.range[0]:g}", "high": f"{peak.range[1]:g}"}
        parts.append(tr(text, **span, least=percent(low), most=percent(high)))
    return tr("; ").join(parts)


def _value(metric: Metric, rate: dict[str, Any]) -> float | None:
    value: float | None = rate[str(metric.row_column)]
    return value


def _hfu_text(hfu: float | None) -> str:
    return "" if hfu is None else tr("HFU {value}", value=percent(hfu, 2))


def rates_table(runs: Sequence[Run]) -> Table:
    """The four named rates: one run's by column, several runs' side by side."""
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
    return Table(["", tr("ms/step"), *units, tr("useful steps")], rows, tr("The four rates and what each covers"))


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
    return Table(["", *names], rows, tr("The four rates, and the difference from the first run"))
