"""Memory that a run should have needed beside what its log says it did.

Comes in: an analysed run, its context, its memory lines. Goes out: one Planned row for each stage that was measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from analysis.estimate.layout import Layout, Training
from analysis.estimate.stages import Stage, estimate_stages
from analysis.parameters import NO_DETAILS, Details, count_parameters
from analysis.run import Analysis
from logparse.errors import UsageError
from logparse.language import msg, tr
from logparse.run_context import RunContext

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
        vpp=setting(context, "virtual_pipeline_model_parallel_size"),
        zero=zero,
        sequence_parallel=setting(context, "sequence_parallel"),
    )


def _training(analysis: Analysis, context: RunContext, seq_length: int) -> Training:
    return Training(
        seq_length=seq_length,
        micro_batch_size=setting(context, "micro_batch_size"),
        global_batch_size=context.get("global_batch_size"),
        recompute=analysis.computation.recompute or "none",
        dtype=context.get("precision") or "bf16",
        flash_attention=setting(context, "flash_attention"),
    )


def assumptions(context: RunContext) -> tuple[str, ...]:
    """Settings that matter for this run and that its log does not tell; of ZeRO the sentence gives both cases."""
    matters = {
        "micro_batch_size": True,
        "virtual_pipeline_model_parallel_size": context.get("pipeline_model_parallel_size") not in (None, 1),
        "sequence_parallel": context.get("tensor_model_parallel_size") not in (None, 1),
        "flash_attention": context.get("recompute") in (None, "none"),
    }
    return tuple(name for name, does in matters.items() if does and context.get(name) is None)


def setting(context: RunContext, name: str) -> Any:
    """The value of a setting, or what is assumed where the log does not tell it."""
    value = context.get(name)
    return ASSUMED[name] if value is None else value


def memory_against(
    analysis: Analysis, context: RunContext, memory: pl.DataFrame, details: Details
) -> Iterator[Planned]:
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
