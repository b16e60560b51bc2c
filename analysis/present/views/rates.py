"""The named rates of a run, each with the 95 % interval of its step time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.metrics import BY_COLUMN, HEADLINE, RATED, Metric
from analysis.present.metric_names import cell_of, headed
from analysis.present.parts import Table
from analysis.present.words import word
from analysis.run.run import Run
from logparse.language import tr

TIME, GOODPUT = HEADLINE[0], BY_COLUMN["goodput"]


def rates_table(run: Run) -> Table:
    """One row for each named rate. A short run has no intervals."""
    heads = ("", tr("ms/step"), tr("95 % interval"), *(headed(metric, run.analysis) for metric in RATED), tr("steps"))
    rows = [
        (
            word("rates", row["rate"]),
            TIME.text(row["step_time_ms"]),
            "-" if run.short else interval_text(row["step_time_low_ms"], row["step_time_high_ms"]),
            *(cell_of(metric, row, run.analysis) for metric in RATED),
            f"{row['steps']:,}",
        )
        for row in run.rates.iter_rows(named=True)
    ]
    return Table(heads, rows)


def interval_text(low: float | None, high: float | None) -> str:
    """The two ends in ms, with so many digits that they differ; a hyphen where they are unknown or equal."""
    if low is None or high is None or low == high:
        return "-"
    digits = 0 if low >= 1000 else 1
    while f"{low:,.{digits}f}" == f"{high:,.{digits}f}" and digits < MOST_DIGITS:
        digits += 1
    return tr("{low} to {high}", low=f"{low:,.{digits}f}", high=f"{high:,.{digits}f}")


MOST_DIGITS = 4


def steady_interval(metric: Metric, run: Run) -> str:
    """The interval of a steady rate, which follows from that of its time where all steps do the same work.

    Empty where it is unknown, the run is short, or the work of a step is itself uncertain.
    """
    steady = run.analysis.rate("steady")
    value, time = _rate_in(metric, steady), _rate_in(TIME, steady)
    low, high = steady["step_time_low_ms"], steady["step_time_high_ms"]
    if run.short or value is None or time is None or low is None or high is None or low == high:
        return ""
    if not (metric is TIME or _same_work(run)) or (metric.column == "mfu" and _packed(run)):
        return ""
    ends = (low, high) if metric is TIME else (value * time / high, value * time / low)
    return _from_to(metric, ends, 0 if metric.digits == 1 and ends[0] >= 1000 else metric.digits)


def _rate_in(metric: Metric, rate: Mapping[str, Any]) -> float | None:
    value: float | None = rate[str(metric.row_column)]
    return value


def _from_to(metric: Metric, ends: tuple[float, float], digits: int) -> str:
    """With so many digits more, up to two, that the ends differ."""
    least, most = (f"{end * metric.scale:,.{digits}f}{metric.mark(end)}" for end in ends)
    if least == most and digits < metric.digits + 2:
        return _from_to(metric, ends, digits + 1)
    return tr("{low} to {high}", low=least, high=most)


def _same_work(run: Run) -> bool:
    """Whether all steps that count do the same work."""
    work = run.steps.select("counted", "global_batch_size", "seq_length").filter("counted")
    return work.n_unique() == 1


def _packed(run: Run) -> bool:
    return any(note.code == "attention_within_documents" for note in run.notes)
