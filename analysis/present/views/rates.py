"""The named rates of a run, each with the 95 % interval of its step time."""

from __future__ import annotations

from analysis.metrics import HEADLINE, RATED
from analysis.present.metric_names import cell_of, headed
from analysis.present.parts import Table
from analysis.present.words import word
from analysis.run.run import Run
from logparse.language import tr

TIME = HEADLINE[0]
# Digits after the point at most.
MOST_DIGITS = 4


def rates_table(run: Run) -> Table:
    """One row for each named rate. A short run has no intervals."""
    heads = ("", tr("ms/step"), tr("95 % interval"), *(headed(metric, run.analysis) for metric in RATED), tr("steps"))
    rows = [
        (
            word("rates", row["rate"]),
            TIME.text(row["step_time_ms"]),
            "-" if run.short else interval_text(row["step_time_low_ms"], row["step_time_high_ms"]),
            *(cell_of(metric, row, run.analysis) for metric in RATED),
            "-" if row["steps"] is None else f"{row['steps']:,}",
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
