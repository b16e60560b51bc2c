"""What a run reached: each rate delivered and steady, with a remark."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from analysis.metrics import BY_COLUMN, HEADLINE, Metric
from analysis.present.metric_names import cell_of, counting, rated_of
from analysis.present.parts import Table
from analysis.present.words import word
from analysis.run.run import Run
from logparse.language import some, tr

TIME, GOODPUT = HEADLINE[0], BY_COLUMN["goodput"]
TOKENS, TFLOPS = BY_COLUMN["tokens_per_second_per_device"], BY_COLUMN["tflops_per_second_per_device"]
MFU, BUILT = BY_COLUMN["mfu"], BY_COLUMN["mfu_as_built"]
# Metrics that follow from a count of the work of a step.
WORK = (TFLOPS, MFU, BUILT, BY_COLUMN["hfu"])
# The finding that MFU as built is a range; and the relative difference below which two counts of work are equal.
PACKED, EQUAL_WITHIN = "attention_within_documents", 0.01
LOGGED = "logged_tflops_per_second_per_device"


def reached_table(run: Run) -> Table:
    """Each rate delivered and steady, with the interval of the steady one and a remark."""
    rows = [_reached(metric, run) for metric in (TIME, *rated_of(run.analysis))]
    goodput = (counting(GOODPUT, run.analysis), GOODPUT.text(run.analysis.goodput), "", "", next_to_goodput(run))
    headings = ("", word("rates", "delivered"), word("rates", "steady"), tr("95 % interval"), "")
    return Table(headings, (*rows, goodput), prose={4}, headed=True)


def _reached(metric: Metric, run: Run) -> tuple[str, ...]:
    label = tr("ms/step") if metric is TIME else counting(metric, run.analysis)
    rates = (run.analysis.rate(name) for name in ("delivered", "steady"))
    delivered, steady = (
        metric.text(rate_in(metric, rate)) if metric is TIME else cell_of(metric, rate, run.analysis) for rate in rates
    )
    return (label, delivered, steady, steady_interval(metric, run), _remark(metric, run))


def rate_in(metric: Metric, rate: Mapping[str, Any]) -> float | None:
    """A metric of a row of the frame of rates."""
    value: float | None = rate[str(metric.row_column)]
    return value


def steady_interval(metric: Metric, run: Run) -> str:
    """The interval of a steady rate follows from that of its time, where all steps do the same work.

    Where the work of a step is itself between two bounds, that of the time would look far too sure.
    """
    steady = run.analysis.rate("steady")
    value, time = rate_in(metric, steady), rate_in(TIME, steady)
    low, high = steady["step_time_low_ms"], steady["step_time_high_ms"]
    if value is None or time is None or low is None or high is None or not (metric is TIME or _same_work(run)):
        return ""
    if metric is BUILT and _has_note(run, PACKED):
        return ""
    ends = (low, high) if metric is TIME else (value * time / high, value * time / low)
    digits = 0 if metric.digits == 1 and ends[0] >= 1000 else metric.digits
    return _from_to(metric, ends, digits)


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


def _remark(metric: Metric, run: Run) -> str:
    remark_of = _REMARKS.get(metric.column)
    return remark_of(run) if remark_of else ""


def _of_time(run: Run) -> str:
    """Why delivered can take less than steady."""
    delivered, steady = (rate_in(TIME, run.analysis.rate(rate)) for rate in ("delivered", "steady"))
    if delivered is None or steady is None or delivered >= steady or TIME.text(delivered) == TIME.text(steady):
        return ""
    return tr("steady is the median; faster steps lower the mean")


def _of_tflops(run: Run) -> str:
    name = tr("by {formula}", formula=run.analysis.computation.formula.name)
    logged = median_logged(run)
    return tr("; ").join([name, *([] if logged is None else [tr("the log prints {value}", value=TFLOPS.text(logged))])])


def _of_peak(run: Run) -> str:
    peak = run.analysis.computation.peak
    if peak is None:
        return _of_no_peak(run)
    return tr("of {peak} TFLOP/s, {dtype}", peak=f"{peak.peak_tflops_per_second:g}", dtype=tr(peak.dtype))


def _of_no_peak(run: Run) -> str:
    fields = _fields(run, "no_peak_of_type")
    if not fields:
        return tr("no peak is known; --hw gives it")
    device, dtype = tr(fields["device"]), fields["dtype"]
    return tr("{device} has no {dtype} peak; --peak-tflops gives one", device=device, dtype=dtype)


def _of_built(run: Run) -> str:
    """What is missing for MFU as built, or its range, or that the log counts the same work."""
    built, logged, peak = rate_in(BUILT, run.analysis.rate("steady")), median_logged(run), run.analysis.computation.peak
    if built is None:
        unknown = _fields(run, "as_built_not_computed").get("unknown")
        return tr("{names} unknown; -v names the flags", names=some(unknown.fields["names"], 1)) if unknown else ""
    if range_of_documents := built_range(run):
        return range_of_documents
    if logged is None or peak is None or abs(logged / built / peak.peak_tflops_per_second - 1) > EQUAL_WITHIN:
        return ""
    return tr("the log's {value} counts this work", value=TFLOPS.text(logged))


def built_range(run: Run) -> str:
    """The range of MFU as built where documents of unknown length are packed into a sample; else empty."""
    packed = _fields(run, PACKED)
    if not packed:
        return ""
    low, high = (BUILT.text(packed[end]) for end in ("low", "high"))
    return tr("{low} to {high}: by documents of unknown length", low=low, high=high)


_REMARKS = {TIME.column: _of_time, TFLOPS.column: _of_tflops, "mfu": _of_peak, BUILT.column: _of_built}


def _has_note(run: Run, code: str) -> bool:
    return any(note.code == code for note in run.notes)


def _fields(run: Run, code: str) -> Mapping[str, Any]:
    return next((note.fields for note in run.notes if note.code == code), {})


def median_logged(run: Run) -> float | None:
    """The framework's own TFLOP/s in the middle row that counts."""
    logged = run.steps.filter("counted")[LOGGED].drop_nulls()
    return (
        None if logged.is_empty() else statistics.median(logged.sort()[(len(logged) - 1) // 2 : len(logged) // 2 + 1])
    )


def next_to_goodput(run: Run) -> str:
    """The rate by the clock, with all that lay between the steps, and how often the run started, where it did again."""
    by_clock = rate_in(TOKENS, run.analysis.rate("all-in"))
    known = rate_in(TOKENS, run.analysis.rate("steady")) is not None
    parts = [tr("no clock of the whole run")] if known else []
    if by_clock is not None:
        parts = [tr("{rate} tokens/s/p by the clock", rate=f"{by_clock:,.0f}")]
    if len(run.segments) > 1:
        lost = int(run.segments["lost_steps"].sum())
        starts, several = len(run.segments), run.segments["lineage"].n_unique()
        parts += [tr("{n} trainings", n=several)] if several > 1 else []
        parts += [tr("{n} starts, {lost} steps lost", n=starts, lost=f"{lost:,}")] if starts > several else []
    return tr("; ").join(parts)
