"""Measured against planned: what a run should have needed and given, beside what it did.

Comes in: an analysed run, its context, the memory lines of its log. Goes out: rows with a plan, a measurement and a
sentence, and the gap to the peak by cause. A setting that the log does not tell is assumed, and the sentence says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from analysis.estimate.layout import Layout, Training
from analysis.estimate.stages import Stage, estimate_stages
from analysis.estimate.step import bubble_share
from analysis.estimate.work import DAY, USUAL_UTILISATION
from analysis.parameters import NO_DETAILS, Details, count_parameters
from analysis.run import Analysis
from logparse.errors import UsageError
from logparse.language import msg, tr
from logparse.run_context import RunContext

HOUR = 3600
# Settings of the memory estimate that a log need not tell, with what is taken then.
ASSUMED: dict[str, Any] = {
    "micro_batch_size": 1,
    "zero_stage": 0,
    "virtual_pipeline_model_parallel_size": 1,
    "sequence_parallel": False,
    "flash_attention": True,
}


@dataclass(frozen=True)
class Planned:
    """One quantity as planned and as measured, in ``unit``; None is unknown, and ``sentence`` says what is lacking.

    A plan that is a range has ``planned_to`` as its other end.
    """

    name: str
    label: str
    unit: str
    planned: float | None
    measured: float | None
    sentence: str
    planned_to: float | None = None


@dataclass(frozen=True)
class GapPart:
    """A part of the peak, as a share of it; the parts add up to 1."""

    part: str
    share: float


@dataclass(frozen=True)
class Plan:
    """Everything that can be said of a run against its plan. ``mfu_ceiling`` is what the bubble leaves of MFU."""

    rows: tuple[Planned, ...]
    gap: tuple[GapPart, ...]
    mfu_ceiling: float | None
    assumed: tuple[str, ...]


def plan_against(
    analysis: Analysis,
    context: RunContext,
    records: Mapping[str, pl.DataFrame],
    details: Details = NO_DETAILS,
    utilisation: float | None = None,
) -> Plan:
    """Put ``analysis`` beside what its own settings let expect.

    ``utilisation`` is the planned share of the peak (HFU); without one both ends of the usual range stand for it.
    ``details`` make the parameter count exact where the model is one of the catalogue.
    """
    memory = tuple(_memory(analysis, context, records["memory"], details))
    rows = (*memory, *_time_left(analysis, utilisation), *_utilisation(analysis, utilisation))
    assumed = tuple(name for name in ASSUMED if context.get(name) is None) if memory else ()
    return Plan(rows, split_gap(analysis, context), mfu_ceiling(analysis, context), assumed)


# Memory.


def expected_stages(
    analysis: Analysis, context: RunContext, zero: int, details: Details = NO_DETAILS
) -> tuple[Stage, ...] | None:
    """Memory of each stage as the settings of the run let expect; None where a size is unknown or they cannot be."""
    shape, seq_length = analysis.computation.shape, analysis.computation.seq_length
    counted = count_parameters(shape, details=details)
    if counted is None or seq_length is None or shape.padded_vocab_size is None:
        return None
    try:
        return estimate_stages(
            shape, counted, shape.padded_vocab_size, _layout(context, zero), _training(analysis, context, seq_length)
        )
    except (UsageError, ValueError):
        return None


def _layout(context: RunContext, zero: int) -> Layout:
    return Layout(
        tp=context.get("tensor_model_parallel_size") or 1,
        pp=context.get("pipeline_model_parallel_size") or 1,
        dp=context.get("data_parallel_size") or 1,
        cp=context.get("context_parallel_size") or 1,
        ep=context.get("expert_model_parallel_size") or 1,
        vpp=_setting(context, "virtual_pipeline_model_parallel_size"),
        zero=zero,
        sequence_parallel=_setting(context, "sequence_parallel"),
    )


def _training(analysis: Analysis, context: RunContext, seq_length: int) -> Training:
    return Training(
        seq_length=seq_length,
        micro_batch_size=_setting(context, "micro_batch_size"),
        global_batch_size=context.get("global_batch_size"),
        recompute=analysis.computation.recompute or "none",
        dtype=context.get("precision") or "bf16",
        flash_attention=_setting(context, "flash_attention"),
    )


def _setting(context: RunContext, name: str) -> Any:
    value = context.get(name)
    return ASSUMED[name] if value is None else value


def _memory(analysis: Analysis, context: RunContext, memory: pl.DataFrame, details: Details) -> Iterator[Planned]:
    """One row for each stage that was measured; where the rank is not known, the fullest stage."""
    measured = _measured_by_stage(analysis, context, memory)
    known = context.get("zero_stage")
    # Where the log does not tell whether the optimizer state is shared out, both are expected.
    zeros = (1, 0) if known is None else (known,)
    expected = [expected_stages(analysis, context, zero, details) for zero in zeros] if measured else []
    for number, size in measured.items():
        planned = sorted({_planned_bytes(stages, number) for stages in expected if stages is not None})
        low, high = (planned[0], planned[-1]) if planned else (None, None)
        said = _memory_sentence(number, planned, size)
        yield Planned("memory", msg("memory of a device"), "bytes", low, size, said, high if len(planned) > 1 else None)


def _planned_bytes(stages: tuple[Stage, ...], number: int | None) -> float:
    return max(s.total_bytes for s in stages) if number is None else stages[number - 1].total_bytes


def _memory_sentence(number: int | None, planned: list[float], size: float) -> str:
    stage = tr("the fullest stage") if number is None else tr("stage {number}", number=number)
    said = tr("{stage}: {measured} GB at most were allocated", stage=stage, measured=f"{size / 1e9:,.2f}")
    if not planned:
        return said + tr("; not estimated, the shape or the layout is not known")
    sizes = [f"{p / 1e9:,.2f}" for p in planned]
    if len(sizes) > 1:
        low, high = sizes[0], sizes[-1]
        return said + tr("; {low} GB were to be expected with ZeRO-1, {high} without", low=low, high=high)
    return said + tr(
        "; {planned} GB were to be expected, {share} of it", planned=sizes[0], share=f"{size / planned[0]:.0%}"
    )


def _measured_by_stage(analysis: Analysis, context: RunContext, memory: pl.DataFrame) -> dict[int | None, float]:
    """Most bytes allocated by stage, from 1; Megatron numbers ranks stage by stage, the last axis of its layout."""
    lines = memory.filter(pl.col("kind") == "measured").drop_nulls("max_allocated_bytes")
    world, pp = analysis.computation.world_size, context.get("pipeline_model_parallel_size")
    if len(lines) and world and pp and lines["rank"].null_count() == 0 and world % pp == 0:
        stage = (pl.col("rank") // (world // pp) + 1).alias("stage")
        inside = lines.filter(pl.col("rank") < world)
        found = inside.group_by(stage).agg(pl.col("max_allocated_bytes").max()).sort("stage")
        return dict(found.iter_rows())
    sizes = [*lines["max_allocated_bytes"], *analysis.steps["max_memory_allocated_bytes"].drop_nulls()]
    return {None: max(sizes)} if sizes else {}


# Time left.


def _time_left(analysis: Analysis, utilisation: float | None) -> Iterator[Planned]:
    """Time for the steps that are still to be done: at the delivered rate, and at the planned share of the peak."""
    left = steps_left(analysis.steps)
    delivered = _rate(analysis, "delivered", "step_time_ms")
    if not left or delivered is None:
        return
    seconds = left * delivered / 1000
    shares = (utilisation,) if utilisation is not None else USUAL_UTILISATION
    planned = [_planned_seconds(analysis, left, share) for share in shares]
    tokens = _tokens_of_step(analysis)
    said = tr("{steps} steps are left", steps=f"{left:,}")
    if tokens is not None:
        said = tr("{steps} steps, {tokens} tokens are left", steps=f"{left:,}", tokens=f"{left * tokens:.4g}")
    said += tr("; at the delivered rate {time}", time=_span(seconds))
    ends = finished_at(analysis.steps, seconds)
    if ends is not None:
        said += tr(", until {date} by the log's clock", date=f"{ends:%Y-%m-%d %H:%M}")
    low, high = planned[-1], planned[0]
    if low is not None and high is not None:
        said += "; " + _planned_span(low, high, shares)
    yield Planned("time_left", msg("time left"), "s", low, seconds, said, high if len(planned) > 1 else None)


def steps_left(steps: pl.DataFrame) -> int | None:
    """Steps asked for that are not done; None where the log does not say how many were asked for."""
    asked, done = steps["train_steps"].drop_nulls(), steps.filter(~pl.col("copied"))["step"].drop_nulls()
    return max(int(asked[-1]) - int(done[-1]), 0) if len(asked) and len(done) else None


def finished_at(steps: pl.DataFrame, seconds: float) -> datetime | None:
    """When the last step will be done if ``seconds`` pass after the last time stamp; None without time stamps."""
    stamps = steps["timestamp"].drop_nulls()
    last: Any = stamps[-1] if len(stamps) else None
    return None if last is None else last + timedelta(seconds=seconds)


def _planned_seconds(analysis: Analysis, left: int, share: float) -> float | None:
    """FLOPs of the steps, recomputed ones in, over what the devices give at that share of their peak."""
    how = analysis.computation
    work = how.flops_per_sample(how.seq_length, how.recompute) if how.seq_length else None
    if work is None or how.peak is None or how.world_size is None or how.global_batch_size is None:
        return None
    return left * work * how.global_batch_size / (how.world_size * how.peak.peak_tflops_per_second * 1e12 * share)


def _tokens_of_step(analysis: Analysis) -> int | None:
    how = analysis.computation
    return None if None in (how.global_batch_size, how.seq_length) else how.global_batch_size * how.seq_length  # type: ignore[operator]


def _planned_span(low: float, high: float, shares: tuple[float, ...]) -> str:
    if len(shares) == 1:
        return tr("planned at {share} of the peak: {time}", share=f"{shares[0]:.0%}", time=_span(low))
    return tr(
        "at {most} to {least} of the peak, which is usual: {low} to {high}",
        most=f"{shares[-1]:.0%}",
        least=f"{shares[0]:.0%}",
        low=_span(low),
        high=_span(high),
    )


def _span(seconds: float) -> str:
    if seconds >= DAY:
        return tr("{n} days", n=f"{seconds / DAY:,.1f}")
    return tr("{n} h", n=f"{seconds / HOUR:,.1f}") if seconds >= HOUR else tr("{n} s", n=f"{seconds:,.0f}")


# Utilisation and the gap to the peak.


def _utilisation(analysis: Analysis, utilisation: float | None) -> Iterator[Planned]:
    """Delivered HFU beside the plan, or beside what is usual for clusters of over 100 devices."""
    hfu = _rate(analysis, "delivered", "hfu")
    if hfu is None:
        return
    label = msg("utilisation (HFU)")
    if utilisation is not None:
        said = tr("{hfu} of the peak delivered, {plan} planned", hfu=f"{hfu:.1%}", plan=f"{utilisation:.1%}")
        yield Planned("utilisation", label, "ratio", utilisation, hfu, said)
        return
    low, high = USUAL_UTILISATION
    where = msg("below it") if hfu < low else msg("above it") if hfu > high else msg("within it")
    said = tr(
        "{hfu} of the peak delivered; over 100 devices {low} to {high} is usual: {where}",
        hfu=f"{hfu:.1%}",
        low=f"{low:.0%}",
        high=f"{high:.0%}",
        where=tr(where),
    )
    yield Planned("utilisation", label, "ratio", low, hfu, said, high)


def pipeline_bubble(context: RunContext) -> float | None:
    """Share of a step that the pipeline waits, from its stages, micro-batches and chunks; None where one is unknown."""
    pp, micro_batches = context.get("pipeline_model_parallel_size"), context.get("num_microbatches")
    if pp == 1:
        return 0.0
    if pp is None or not micro_batches:
        return None
    return bubble_share(pp, micro_batches, _setting(context, "virtual_pipeline_model_parallel_size"))


def mfu_ceiling(analysis: Analysis, context: RunContext) -> float | None:
    """What MFU could be with this pipeline and recomputation: the share not waited, less its recomputed part."""
    bubble, mfu, hfu = pipeline_bubble(context), _rate(analysis, "steady", "mfu"), _rate(analysis, "steady", "hfu")
    return None if bubble is None or mfu is None or not hfu else (1 - bubble) * mfu / hfu


def split_gap(analysis: Analysis, context: RunContext) -> tuple[GapPart, ...]:
    """The peak by where it went in settled steps: the model, recomputation, the bubble, and the rest.

    The rest is slow kernels, communication, waiting for data; it is below zero where the run is faster than its bubble
    allows, and then a setting or the peak is wrong. Empty where MFU, HFU or the bubble is unknown.
    """
    bubble, mfu, hfu = pipeline_bubble(context), _rate(analysis, "steady", "mfu"), _rate(analysis, "steady", "hfu")
    if bubble is None or mfu is None or hfu is None:
        return ()
    return (
        GapPart(msg("the model's own work (MFU)"), mfu),
        GapPart(msg("recomputation"), hfu - mfu),
        GapPart(msg("pipeline bubble"), bubble),
        GapPart(msg("the rest: communication, slow kernels, waiting"), 1 - hfu - bubble),
    )


def _rate(analysis: Analysis, rate: str, column: str) -> float | None:
    found: float | None = analysis.rates.row(by_predicate=pl.col("rate") == rate, named=True)[column]
    return found
