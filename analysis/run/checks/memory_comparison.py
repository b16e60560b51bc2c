"""Memory that a run should have needed, next to what its log reports.

Comes in: an analysed run, its context, its memory lines. Goes out: one Planned row for each stage that was measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from analysis.estimate.assumptions import ASSUMED
from analysis.estimate.device_layout import Layout, Training
from analysis.flops import Recompute
from analysis.model.parameters import count_parameters
from analysis.run.notes import unknown
from analysis.run.result import Analysis
from logparse.context.run_context import RunContext
from logparse.errors import UsageError
from logparse.findings import Note, info
from logparse.light_dataclass import dataclass

if TYPE_CHECKING:
    from analysis.estimate.stages import Stage

# Sizes without which no stage can be counted.
SIZES = (
    "num_layers",
    "hidden_size",
    "ffn_hidden_size",
    "gated_linear_unit",
    "num_attention_heads",
    "num_query_groups",
    "padded_vocab_size",
    "untie_embeddings_and_output_weights",
)
# A stage that takes a tenth more or less than expected gets a note on why that can be.
MUCH_MORE, MUCH_LESS = 1.1, 0.9
TP, PP, DP = "tensor_model_parallel_size", "pipeline_model_parallel_size", "data_parallel_size"
CP, EP = "context_parallel_size", "expert_model_parallel_size"


@dataclass(frozen=True)
class Planned:
    """One quantity as planned and as measured, in ``unit``; None is unknown, and ``findings`` name what is missing.

    A plan that is a range has ``planned_to`` as its other end. ``findings`` are parts of one sentence.
    """

    name: str
    unit: str
    planned: float | None
    measured: float | None
    findings: tuple[Note, ...]
    planned_to: float | None = None


def expected_stages(
    analysis: Analysis, context: RunContext, zero: int, recompute: Recompute = "none"
) -> tuple[Stage, ...] | None:
    """Memory of each stage as the settings of the run let expect; None where a size is unknown or they cannot be."""
    shape, seq_length = analysis.computation.shape, analysis.computation.seq_length
    counted = count_parameters(shape, include_mtp=True)
    if counted is None or seq_length is None or shape.padded_vocab_size is None or unknown_layout(analysis, context):
        return None
    from analysis.estimate.stages import estimate_stages

    try:
        return estimate_stages(
            shape, counted, shape.padded_vocab_size, _layout(context, zero), _training(context, seq_length, recompute)
        )
    except (UsageError, ValueError):
        return None


def unknown_layout(analysis: Analysis, context: RunContext) -> tuple[str, ...]:
    """Parallel sizes that are not known and not 1 for certain: one device has no layout."""
    if analysis.computation.world_size == 1:
        return ()
    sizes = [context.get(name) for name in (TP, PP, DP)]
    whole = None not in sizes and math.prod(sizes) == analysis.computation.world_size
    needed = [TP, PP, DP, *([] if whole else [CP]), *([EP] if analysis.computation.shape.num_experts else [])]
    return tuple(name for name in needed if context.get(name) is None)


def _layout(context: RunContext, zero: int) -> Layout:
    tp, pp, dp, cp, ep = (context.get(name) or 1 for name in (TP, PP, DP, CP, EP))
    chunks = setting(context, "virtual_pipeline_model_parallel_size")
    etp = context.get("expert_tensor_parallel_size")
    return Layout(tp, pp, dp, cp, ep, chunks, zero, setting(context, "sequence_parallel"), etp)


def _recomputes(analysis: Analysis) -> tuple[Recompute, ...]:
    """The recomputation that the estimate knows, or the two between which that of the run lies."""
    recomputed = analysis.computation.recomputed
    if recomputed is None:
        return (ASSUMED["recompute"],)
    if recomputed.known is None or 0 < recomputed.known.layers < 1:
        return ("full", "none")
    if recomputed.known.layers:
        return ("full",)
    return ("selective",) if "core_attn" in recomputed.known.modules else ("none",)


def _training(context: RunContext, seq_length: int, recompute: Recompute) -> Training:
    return Training(
        seq_length=seq_length,
        micro_batch_size=setting(context, "micro_batch_size"),
        global_batch_size=context.get("global_batch_size"),
        recompute=recompute,
        dtype=setting(context, "precision"),
        flash_attention=setting(context, "flash_attention"),
        dropout=setting(context, "dropout"),
    )


def assumptions(context: RunContext) -> tuple[str, ...]:
    """Settings that matter for this run and that its log does not report; of ZeRO both cases are given."""
    matters = {
        "micro_batch_size": True,
        "virtual_pipeline_model_parallel_size": context.get(PP) not in (None, 1),
        "sequence_parallel": context.get(TP) not in (None, 1),
        "recompute": True,
        "precision": True,
        "flash_attention": context.get("recompute") in (None, "none"),
        # LLaMA and what came after have none.
        "dropout": not context.get("gated_linear_unit"),
    }
    return tuple(name for name, does in matters.items() if does and context.get(name) is None)


def setting(context: RunContext, name: str) -> Any:
    """The value of a setting; the assumed one where the log does not report it."""
    value = context.get(name)
    return ASSUMED[name] if value is None else value


def memory_against(analysis: Analysis, context: RunContext, memory: pl.DataFrame) -> Iterator[Planned]:
    """One row for each stage that was measured; where the rank is not known, the fullest stage."""
    measured = _measured_by_stage(analysis, context, memory)
    zero_stage = context.get("zero_stage")
    # Where the log does not report whether the optimizer state is shared out, both are expected.
    zeros = (1, 0) if zero_stage is None else (zero_stage,)
    ways = [(zero, way) for zero in zeros for way in _recomputes(analysis)] if measured else []
    expected = [expected_stages(analysis, context, *way) for way in ways]
    for number, size in measured.items():
        planned = sorted({_planned_bytes(stages, number) for stages in expected if stages is not None})
        low, high = (planned[0], planned[-1]) if planned else (None, None)
        expectation = _expectation(planned, size, zero_stage is None) if planned else (_why_not(analysis, context),)
        findings = (_allocated(number, size), *expectation)
        yield Planned("memory", "bytes", low, size, findings, high if len(planned) > 1 else None)


def _why_not(analysis: Analysis, context: RunContext) -> Note:
    """What is missing for the estimate."""
    how = analysis.computation
    missing = (
        *how.shape.missing(SIZES),
        *(() if how.seq_length else ("seq_length",)),
        *unknown_layout(analysis, context),
    )
    if layers := how.shape.special_layers:
        return info("memory_of_special_layers", layers=layers)
    if not missing:
        return info("memory_settings_do_not_fit")
    return info("memory_not_estimated", unknown=unknown(missing))


def _planned_bytes(stages: tuple[Stage, ...], number: int | None) -> float:
    return max(s.total_bytes for s in stages) if number is None else stages[number - 1].total_bytes


def _allocated(number: int | None, size: float) -> Note:
    if number is None:
        return info("memory_of_printing_ranks", measured_bytes=size)
    return info("memory_of_stage", stage=number, measured_bytes=size)


def _expectation(planned: Sequence[float], size: float, two_zeros: bool) -> Iterator[Note]:
    """What was to be expected of a stage that took ``size``, and why it may have taken more or less."""
    low, high = planned[0], planned[-1]
    if len(planned) == 1:
        yield info("memory_expected", planned_bytes=low, share=size / low)
    elif two_zeros:
        yield info("memory_expected_with_and_without_zero", low_bytes=low, high_bytes=high)
    else:
        yield info("memory_expected_by_recompute", low_bytes=low, high_bytes=high)
    if size > high * MUCH_MORE:
        yield info("memory_more_than_expected")
    elif size < low * MUCH_LESS:
        yield info("memory_less_than_expected")


def _measured_by_stage(analysis: Analysis, context: RunContext, memory: pl.DataFrame) -> dict[int | None, float]:
    """Most bytes allocated by stage, from 1; Megatron numbers ranks stage by stage, the last axis of its layout."""
    lines = memory.filter(pl.col("kind") == "measured", pl.col("max_allocated_bytes").is_not_null())
    world, pp = analysis.computation.world_size, context.get("pipeline_model_parallel_size")
    if len(lines) and world and pp and lines["rank"].null_count() == 0 and world % pp == 0:
        stage = (pl.col("rank") // (world // pp) + 1).alias("stage")
        inside = lines.filter(pl.col("rank") < world)
        largest = inside.group_by(stage).agg(pl.col("max_allocated_bytes").max()).sort("stage")
        return dict(largest.iter_rows())
    most: list[Any] = [lines["max_allocated_bytes"].max(), analysis.steps["max_memory_allocated_bytes"].max()]
    sizes = [size for size in most if size is not None]
    return {None: max(sizes)} if sizes else {}
