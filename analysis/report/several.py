"""Several runs side by side: a row for each, and whether it may be compared with the first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from analysis.compare.comparability import check_fields, refusals
from analysis.history.run_records import run_frame
from analysis.metrics import BY_COLUMN, Metric
from analysis.present.metric_names import titled
from analysis.present.parts import Cell, Table
from analysis.present.views.overheads import outside_steps
from analysis.present.views.title import who
from analysis.present.words import word
from analysis.report.answer import headline_value
from analysis.report.settings import ONLY_WITH
from analysis.report.shown_numbers import NONE, difference, percent, shown
from analysis.run.run import Run
from analysis.run.title import device_without_peak
from logparse.language import some, tr

# The metrics of the overview.
COMPARED_FIRST = ("mfu", "tokens_per_second_per_device", "tflops_per_second_per_device")
# Fields that are named where two runs do not match; further fields are counted.
MOST_NAMED = 4


def overview_table(runs: Sequence[Run]) -> Table:
    """Who ran, the steady rates, their difference from the first run, and the largest overhead."""
    metrics = [BY_COLUMN[name] for name in COMPARED_FIRST]
    heads = [tr("run"), *(titled(metric) for metric in metrics), tr("goodput"), tr("largest overhead")]
    most = [max((headline_value(run, m.column) or 0.0 for run in runs), default=0.0) or 1.0 for m in metrics]
    rows = []
    for run in runs:
        cells = [_cell(metric, run, runs, longest) for metric, longest in zip(metrics, most, strict=True)]
        rows.append(
            [Cell(run.name, who(run)), *cells, Cell(percent(run.analysis.goodput)), Cell(_largest_overhead(run))]
        )
    return Table(heads, rows, tr("Steady rates, and the difference from the first run"), prose={len(heads) - 1})


def _cell(metric: Metric, run: Run, runs: Sequence[Run], most: float) -> Cell:
    value = headline_value(run, metric.column)
    bar = value / most if value is not None and metric.column == COMPARED_FIRST[0] else None
    return Cell(shown(metric, value), difference(value, _of_first(runs, run, metric.column)), bar=bar)


def _of_first(runs: Sequence[Run], run: Run, column: str) -> float | None:
    return None if run is runs[0] else headline_value(runs[0], column)


def _largest_overhead(run: Run) -> str:
    largest = next(iter(outside_steps(run)), None)
    if largest is None:
        return NONE
    share = percent(largest.share).replace(" ", "\u00a0")
    return tr("{overhead} {share}", overhead=word("overheads", largest.name), share=share)


def incomparable(runs: Sequence[Run]) -> Iterator[str]:
    """A sentence for each run that did other work than the first, or of which that is not known."""
    first = _known(runs[0])
    for run in runs[1:]:
        refused = refusals(check_fields(first, _known(run)))
        differing = [f"{f.name} {f.baseline[0]} / {f.candidate[0]}" for f in refused if f.state == "different"]
        unknown = [f.name for f in refused if f.state == "unknown"]
        names = {"run": run.name, "first": runs[0].name}
        if differing:
            yield tr("{run} is not comparable with {first}: {fields}", **names, fields=some(differing, MOST_NAMED))
        elif unknown:
            yield tr("{run}: comparability with {first} is unknown: {fields}", **names, fields=tr(", ").join(unknown))


def _known(run: Run) -> pl.DataFrame:
    """What of a run decides how much work a step is, as a row of history."""
    peak, known = run.analysis.computation.peak, dict(run.context.values())
    if not known.get("num_experts"):
        # A log prints how its experts would be chosen where there are none.
        known = {name: value for name, value in known.items() if name not in ONLY_WITH["num_experts"]}
    return run_frame([{**known, "device": peak.name if peak else device_without_peak(run.notes)}])
