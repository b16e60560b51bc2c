"""The answer: four figures for each run, how far they are from the peak, and the four named rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from analysis.hardware.devices import DevicePeak
from analysis.report.cells import NONE, Cell, Table, difference, interval, number, percent
from analysis.report.page_run import PageRun
from logparse.language import msg, tr

# Column of the rates, what it is called, its unit, decimals and scale on the page.
QUANTITIES = (
    ("step_time_ms", msg("time per step"), "ms", 1, 1.0),
    ("tokens_per_second_per_device", msg("tokens per second and device"), "tokens/s/p", 1, 1.0),
    ("tflops_per_second_per_device", msg("TFLOP/s per device"), "TFLOP/s/p", 2, 1.0),
    ("mfu", "MFU", "%", 2, 100.0),
)
HFU = ("hfu", "HFU", "%", 2, 100.0)
# The others are in proportion to these.
COMPARED = (QUANTITIES[0], QUANTITIES[1], QUANTITIES[3])


@dataclass(frozen=True)
class Figure:
    """One of the four figures; ``value`` is a dash where it could not be computed."""

    label: str
    value: str
    unit: str
    interval: str
    remark: str
    difference: str

    @property
    def known(self) -> bool:
        """Whether there is a number."""
        return self.value != NONE


@dataclass(frozen=True)
class Gauge:
    """MFU and HFU as lengths of a bar that ends at the peak; all in percent of the bar's length."""

    mfu: float
    hfu: float | None
    peak: float
    band: tuple[float, float] | None
    text: str
    words: str


def steady(run: PageRun) -> dict[str, Any]:
    """The steady rate."""
    return run.analysis.rates.row(by_predicate=pl.col("rate") == "steady", named=True)


def figures(run: PageRun, first: PageRun) -> list[Figure]:
    """The four figures of ``run``, each with its distance from the first run where that is another."""
    mine, base = steady(run), {} if run is first else steady(first)
    alike = run.analysis.steps.filter("counted").select("global_batch_size", "seq_length").n_unique() == 1
    return [_figure(*quantity, mine, base, alike) for quantity in QUANTITIES]


def _figure(
    column: str,
    label: str,
    unit: str,
    digits: int,
    scale: float,
    mine: dict[str, Any],
    base: dict[str, Any],
    alike: bool,
) -> Figure:
    value, low, high = mine[column], *_interval(column, mine, alike)
    fine = digits if column != "step_time_ms" or (low or 0) < 1000 else 0
    return Figure(
        label=tr(label),
        value=number(value, digits, scale),
        unit=unit,
        interval=interval(low, high, fine, scale) if value is not None else "",
        remark=tr("HFU {value}", value=percent(mine["hfu"], 2)) if column == "mfu" and mine["hfu"] is not None else "",
        difference=difference(value, base.get(column)),
    )


def _interval(column: str, rate: dict[str, Any], alike: bool) -> tuple[float | None, float | None]:
    """The interval of a rate follows from that of the time where all steps do the same work; else it is unknown."""
    time, low, high = rate["step_time_ms"], rate["step_time_low_ms"], rate["step_time_high_ms"]
    if column == "step_time_ms":
        return low, high
    if not alike or None in (time, low, high, rate[column]):
        return None, None
    return rate[column] * time / high, rate[column] * time / low


def gauge(run: PageRun) -> Gauge | None:
    """The bar from the peak through HFU to MFU; None without a peak or an MFU."""
    rate, peak = steady(run), run.analysis.computation.peak
    if peak is None or rate["mfu"] is None:
        return None
    at, hfu = peak.peak_tflops_per_second, rate["hfu"]
    most = max(at, *(peak.range or ()), at * rate["mfu"], at * (hfu or 0))

    def length(tflops: float) -> float:
        return float(round(100 * tflops / most, 2))

    return Gauge(
        mfu=length(rate["mfu"] * at),
        hfu=None if hfu is None else length(hfu * at),
        peak=length(at),
        band=(length(peak.range[0]), length(peak.range[1])) if peak.range else None,
        text=describe_peak(peak),
        words=_gauge_words(peak, rate["mfu"], hfu),
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
    parts = [tr("MFU {value} of the peak", value=percent(mfu, 2))]
    parts += [tr("HFU {value}", value=percent(hfu, 2))] if hfu is not None else []
    if peak.range:
        low, high = (mfu * peak.peak_tflops_per_second / bound for bound in reversed(peak.range))
        text = msg("over the family's SKUs, {low} to {high} TFLOP/s, MFU is {least} to {most}")
        span = {"low": f"{peak.range[0]:g}", "high": f"{peak.range[1]:g}"}
        parts.append(tr(text, **span, least=percent(low), most=percent(high)))
    return "; ".join(parts)


def rates_table(runs: Sequence[PageRun]) -> Table:
    """The four named rates: one run's by column, several runs' side by side."""
    return _rates_of_one(runs[0]) if len(runs) == 1 else _rates_of_several(runs)


def _rates_of_one(run: PageRun) -> Table:
    quantities = (*QUANTITIES, HFU)
    units = ("ms", "tokens/s/p", "TFLOP/s/p", "MFU\u00a0%", "HFU\u00a0%")
    rows = []
    for rate in run.analysis.rates.iter_rows(named=True):
        values = [number(rate[column], digits, scale) for column, _, _, digits, scale in quantities]
        span = interval(rate["step_time_low_ms"], rate["step_time_high_ms"])
        cells = [Cell(values[0], span), *map(Cell, values[1:])]
        rows.append([Cell(tr(rate["rate"]), tr(rate["covers"])), *cells, Cell(number(rate["steps"], 0))])
    return Table(tr("The four rates and what each covers"), ["", *units, tr("useful steps")], rows)


def _rates_of_several(runs: Sequence[PageRun]) -> Table:
    rows = []
    for rate in runs[0].analysis.rates["rate"]:
        found = [run.analysis.rates.row(by_predicate=pl.col("rate") == rate, named=True) for run in runs]
        for column, label, unit, digits, scale in COMPARED:
            cells = [
                Cell(number(r[column], digits, scale), "" if at == 0 else difference(r[column], found[0][column]))
                for at, r in enumerate(found)
            ]
            if any(r[column] is not None for r in found):
                rows.append([Cell(tr(rate), f"{tr(label)}, {unit}"), *cells])
    return Table(tr("The four rates, and the difference from the first run"), ["", *(r.name for r in runs)], rows)
