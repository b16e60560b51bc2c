"""One run from frames to numbers: window, rates, summary, and a sentence for everything that could not be computed.

Comes in: decoded steps and the run's context. Goes out: an Analysis. Nothing is printed or written here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import polars as pl

from analysis.devices import DevicePeak
from analysis.flops import Formula
from analysis.metrics import Computation, compute_metrics, plan_computation
from analysis.summary import summarize
from analysis.window import mark_window
from logparse.run_context import RunContext
from logparse.schema import STEP_COLUMNS, conform


@dataclass(frozen=True)
class Note:
    """One sentence that must be read with the numbers."""

    level: Literal["info", "warning"]
    text: str


@dataclass(frozen=True)
class Analysis:
    """What one run achieved: all rows with their rates, one row per metric, what it was computed with, what to know."""

    steps: pl.DataFrame
    summary: pl.DataFrame
    computation: Computation
    flops_per_iteration: float | None
    notes: tuple[Note, ...]

    def value(self, metric: str, statistic: str = "median") -> float | None:
        """One number of the summary; None where it could not be computed."""
        found: float | None = self.summary.filter(pl.col("metric") == metric)[statistic].item()
        return found


def analyze_steps(
    steps: pl.DataFrame, starts: pl.DataFrame, context: RunContext, formula: Formula, peak: DevicePeak | None
) -> Analysis:
    """Compute everything that follows from ``steps`` and ``context``."""
    how = plan_computation(context, formula, peak)
    batch = context.get("global_batch_size")
    computed = conform(compute_metrics(mark_window(steps, starts), how, batch), STEP_COLUMNS)
    summary = summarize(computed)
    last = computed["global_batch_size"].drop_nulls()
    flops = how.flops_per_iteration(last[-1] if len(last) else None)
    result = Analysis(computed, summary, how, flops, ())
    notes = (*_missing(result, context), *_surprises(result, context))
    return Analysis(computed, summary, how, flops, notes)


def _missing(result: Analysis, context: RunContext) -> Iterator[Note]:
    """Say what was not computed, for want of what, and which flag gives it."""
    steps, how = result.steps, result.computation
    if not steps["counted"].any():
        reasons = ", ".join(f"{n} x {r}" for r, n in steps["excluded_reason"].value_counts(sort=True).iter_rows())
        yield Note("warning", f"no row counts, so there is no metric ({reasons}); the rows are in steps.parquet")
    if steps["step_time_ms"].is_null().all():
        yield Note("warning", "no rate computed: no line gives the time of a step")
    lacking = []
    if how.world_size is None:
        lacking.append("world_size")
    if steps["global_batch_size"].is_null().all():
        lacking.append("global_batch_size")
    if lacking:
        yield Note("warning", f"samples/s/p, tokens/s/p and TFLOP/s/p not computed: {_unknown(lacking)}")
    if steps["seq_length"].is_null().all():
        yield Note("warning", f"tokens/s/p and TFLOP/s/p not computed: {_unknown(['seq_length'])}")
    if sizes := how.formula.missing(how.shape):
        yield Note("warning", f"TFLOP/s/p by {how.formula.name} not computed: {_unknown(sizes)}, or name the --model")
    if how.recompute is None:
        text = "hfu not computed: no setting tells of recompute; pass --recompute full, selective or none"
        yield Note("info", text)


def _unknown(names: list[str] | tuple[str, ...]) -> str:
    flags = " ".join("--" + name.replace("_", "-") for name in names)
    return f"{', '.join(names)} unknown; pass {flags}"


def _surprises(result: Analysis, context: RunContext) -> Iterator[Note]:
    how = result.computation
    mfu = result.value("mfu")
    if mfu is not None and mfu > 1 and how.peak:
        text = (
            f"MFU is {mfu:.1%} of {how.peak.peak_tflops_per_second:g} TFLOP/s, above the peak: "
            "the device, the device count, the shape or the time on the line is wrong"
        )
        yield Note("warning", text)
    if how.peak and how.peak.range and mfu is not None:
        low, high = (mfu * how.peak.peak_tflops_per_second / p for p in reversed(how.peak.range))
        names = f"{how.peak.range[0]:g} to {how.peak.range[1]:g} TFLOP/s"
        yield Note(
            "warning", f"{how.peak.name}: over its SKUs ({names}) MFU is {low:.1%} to {high:.1%}"
        )
    if context.get("lora"):
        yield Note(
            "warning", "low-rank adapters are trained: frozen weights take no gradient, so FLOPs and MFU are too high"
        )
    if context.get("variable_seq_lengths"):
        yield Note(
            "warning", "samples differ in length: real tokens differ from batch x seq_length, rates are upper bounds"
        )
    if context.get("recompute_method") == "block" and context.get("recompute") == "full":
        layers = context.get("recompute_num_layers")
        text = f"only {layers} layers per pipeline stage are recomputed (method block), so hfu is an upper bound"
        yield Note("warning", text)
