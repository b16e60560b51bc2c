"""What a run reached: each rate delivered and steady, and what must be said beside it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from analysis.metrics import BY_COLUMN, HEADLINE, Metric
from analysis.pipeline.run import Run
from analysis.screens.metric_names import cell_of, counting, rated_of
from analysis.screens.parts import Table
from analysis.screens.words import word
from logparse.language import some, tr

TIME, GOODPUT = HEADLINE[0], BY_COLUMN["goodput"]
LOGGED = "logged_tflops_per_second_per_device"


def reached_table(run: Run) -> Table:
    """Each rate delivered and steady, with the interval of the steady one and what must be said beside it."""
    rows = [_reached(metric, run) for metric in (TIME, *rated_of(run.analysis))]
    goodput = (counting(GOODPUT, run.analysis), GOODPUT.text(run.analysis.goodput), "", "", beside_goodput(run))
    headings = ("", word("rates", "delivered"), word("rates", "steady"), tr("95 % interval"), "")
    return Table(headings, (*rows, goodput), prose={4}, headed=True)


def _reached(metric: Metric, run: Run) -> tuple[str, ...]:
    label = tr("ms/step") if metric is TIME else counting(metric, run.analysis)
    rates = (run.analysis.rate(name) for name in ("delivered", "steady"))
    delivered, usual = (
        metric.text(rate_in(metric, rate)) if metric is TIME else cell_of(metric, rate, run.analysis) for rate in rates
    )
    return (label, delivered, usual, steady_interval(metric, run), _remark(metric, run))


def rate_in(metric: Metric, rate: Mapping[str, Any]) -> float | None:
    """A metric of a row of the frame of rates."""
    value: float | None = rate[str(metric.row_column)]
    return value


def steady_interval(metric: Metric, run: Run) -> str:
    """The interval of a steady rate follows from that of its time, where all steps do the same work."""
    steady = run.analysis.rate("steady")
    value, time = rate_in(metric, steady), rate_in(TIME, steady)
    low, high = steady["step_time_low_ms"], steady["step_time_high_ms"]
    if value is None or time is None or low is None or high is None or not (metric is TIME or _same_work(run)):
        return ""
    ends = (low, high) if metric is TIME else (value * time / high, value * time / low)
    digits = 0 if metric.digits == 1 and ends[0] >= 1000 else metric.digits
    least, most = (f"{end * metric.scale:,.{digits}f}{metric.mark(end)}" for end in ends)
    return tr("{low} to {high}", low=least, high=most)


def _same_work(run: Run) -> bool:
    """Whether all steps that count do the same work."""
    work = run.steps.select("counted", "global_batch_size", "seq_length").filter("counted")
    return work.n_unique() == 1


def _remark(metric: Metric, run: Run) -> str:
    how = run.analysis.computation
    if metric.column == "tflops_per_second_per_device":
        logged = median_logged(run)
        printed = tr("the log prints {value}", value=metric.text(logged)) if logged is not None else ""
        return tr("; ").join(part for part in (tr("by {formula}", formula=how.formula.name), printed) if part)
    if metric.column == "mfu_as_built" and rate_in(metric, run.analysis.rate("steady")) is None:
        lacking = next((n.fields["unknown"] for n in run.notes if n.code == "as_built_not_computed"), None)
        return tr("{names} unknown; -v names the flags", names=some(lacking.fields["names"], 1)) if lacking else ""
    if metric.column == "mfu" and how.peak is None:
        return tr("no peak is known; --hw gives it")
    if metric.column == "mfu" and how.peak:
        return tr("of {peak} TFLOP/s, {dtype}", peak=f"{how.peak.peak_tflops_per_second:g}", dtype=tr(how.peak.dtype))
    return ""


def median_logged(run: Run) -> float | None:
    """The framework's own TFLOP/s in the middle row that counts."""
    logged = run.steps.filter("counted")[LOGGED].drop_nulls()
    return (
        None if logged.is_empty() else statistics.median(logged.sort()[(len(logged) - 1) // 2 : len(logged) // 2 + 1])
    )


def beside_goodput(run: Run) -> str:
    """The rate by the clock, with all that lay between the steps, and how often the run started, where it did again."""
    by_clock = rate_in(BY_COLUMN["tokens_per_second_per_device"], run.analysis.rate("all-in"))
    told = [] if by_clock is None else [tr("{rate} tokens/s/p by the clock", rate=f"{by_clock:,.0f}")]
    if len(run.segments) > 1:
        lost = int(run.segments["lost_steps"].sum())
        told.append(tr("{n} starts, {lost} steps lost", n=len(run.segments), lost=f"{lost:,}"))
    return tr("; ").join(told)
