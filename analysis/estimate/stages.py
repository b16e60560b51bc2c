"""Memory of one device of each pipeline stage, by the exact count and by the note's rule, against the limit.

Comes in: a counted model, a layout, how a step is done. Goes out: one row per stage. Not counted: what the driver, the
communication library and the allocator's gaps take; docs/estimates.md says how much that was in measured runs.
"""

from __future__ import annotations

from analysis.estimate.activations import Kept, checkpoint_kept, layer_kept, mtp_kept, output_kept
from analysis.estimate.device_layout import Layout, Training
from analysis.estimate.parameter_figures import StageParameters, stage_parameters
from analysis.estimate.state import MEGATRON, MIXED, StateBytes, state_bytes
from analysis.estimate.worked_figure import Number, work_out
from analysis.model.parameters import NO_DETAILS, Details, Parameters
from analysis.model.shape import ModelShape
from logparse.light_dataclass import dataclass, replace


@dataclass(frozen=True)
class Stage:
    """One device of a stage, counted from 1; bytes. ``state_worked`` and ``activation_worked`` show the numbers.

    ``in_flight`` micro-batches wait for their backward pass at once; with interleaving chunks count by their share.
    ``state_20_bytes`` is the state by the cheat sheet's 20 bytes per parameter; None in full precision, which it does
    not speak of. ``layers`` leaves multi-token prediction out; what that needs is in the bytes of the last stage.
    """

    stage: int
    layers: int
    parameters: float
    state_bytes: float
    in_flight: float
    activation_bytes: float
    state_worked: str
    activation_worked: str
    state_20_bytes: float | None = None
    state_20_worked: str = ""

    @property
    def total_bytes(self) -> float:
        """State and activations together."""
        return self.state_bytes + self.activation_bytes


def in_flight(stage: int, layout: Layout, micro_batches: int | None) -> float:
    """Micro-batches whose activations stage ``stage`` (from 1) holds at once under 1F1B.

    pp - i + 1 (note on 13B). Interleaved: 2 (pp - i) + (vpp - 1) pp + 1 chunks of 1/vpp each, Narayanan et al. 2021,
    section 2.2; on stage 1 that is Korthikanti's pp (1 + (pp - 1)/(pp vpp)). Never more than there are.
    """
    held: float = layout.pp - stage + 1
    if layout.vpp > 1:
        held = (2 * (layout.pp - stage) + (layout.vpp - 1) * layout.pp + 1) / layout.vpp
    return held if micro_batches is None else min(held, micro_batches)


def estimate_stages(
    shape: ModelShape,
    counted: Parameters,
    vocab_size: int,
    layout: Layout,
    training: Training,
    details: Details = NO_DETAILS,
) -> tuple[Stage, ...]:
    """Memory of each stage, first to last. Raises ValueError where a size of its kind of model is missing."""
    begin, rows = 0, []
    seen = _on_one_rank(shape, layout.tp)
    for number, held in enumerate(stage_parameters(counted, layout), start=1):
        end = begin + held.layers
        plain = max(0, min(end, counted.num_dense_layers) - begin)
        begin = end
        flying = in_flight(number, layout, training.micro_batches(layout.dp))
        output = output_kept(shape, vocab_size, training).times(1 + held.mtp_layers) if number == layout.pp else Kept()
        kinds = _layers(seen, training, details, (plain, held.layers - plain, held.mtp_layers))
        kept, kept_worked = _activations(kinds, output, layout, training, flying)
        state, state_worked = _state(held, state_bytes(training.dtype), layout)
        stage = Stage(number, held.layers, held.total, state, flying, kept, state_worked, kept_worked)
        rows.append(_with_20_bytes(stage, held, training, layout))
    return tuple(rows)


def _with_20_bytes(stage: Stage, held: StageParameters, training: Training, layout: Layout) -> Stage:
    if state_bytes(training.dtype) != MEGATRON:
        return stage
    state, worked = _state(held, MIXED, layout)
    return replace(stage, state_20_bytes=state, state_20_worked=worked)


def _on_one_rank(shape: ModelShape, tp: int) -> ModelShape:
    """The shape as ``tp`` ranks share its activations: each keeps at least one key/value head."""
    groups = shape.num_query_groups
    return shape if groups is None or groups >= tp else replace(shape, num_query_groups=tp)


def rule_of_thumb_stages(
    parameters: float, activation_bytes: float, layout: Layout, per_parameter: StateBytes = MEGATRON
) -> tuple[float, ...]:
    """Bytes of each stage as the note on 13B reckons: P (6/pp + 12/(pp z)) + (pp - i + 1) activations / pp.

    ``activation_bytes`` are of one micro-batch in all layers. The note knows neither embeddings nor tensor parallelism;
    a tensor-parallel rank is given its even share of both.
    """
    state = parameters / layout.pp * per_parameter.per_parameter(layout.zero, layout.zero_degree)
    held = activation_bytes / layout.pp
    return tuple((state + (layout.pp - i) * held) / layout.tp for i in range(layout.pp))


def _state(held: StageParameters, per_parameter: StateBytes, layout: Layout) -> tuple[float, str]:
    """Routed experts lie on fewer data-parallel ranks, so ZeRO shares them out among those only."""
    formula = per_parameter.formula(layout.zero)
    whole = f"parameters * ({formula})"
    values: dict[str, Number] = {"parameters": round(held.dense), "z": layout.zero_degree}
    if held.experts:
        whole += f" + experts * ({formula.replace('z', 'z_experts')})"
        values |= {"experts": round(held.experts), "z_experts": layout.expert_ranks // layout.ep}
    return _worked(whole, values)


@dataclass(frozen=True)
class _Layers:
    """``count`` layers that each keep ``kept`` for every micro-batch in flight, ``again`` while one is recomputed."""

    count: int
    kept: Kept
    again: Kept


def _layers(
    shape: ModelShape, training: Training, details: Details, counts: tuple[int, int, int]
) -> tuple[_Layers, ...]:
    """The layers of a stage by kind: ``counts`` without experts, with experts, and of multi-token prediction."""
    extras = (Kept(), Kept(), mtp_kept(shape, training))
    rows = []
    for count, moe, extra in zip(counts, (False, True, bool(shape.num_moe_layers)), extras, strict=True):
        whole = layer_kept(shape, training, moe, details) + extra if count else Kept()
        full = training.recompute == "full"
        rows.append(_Layers(count, *((checkpoint_kept(shape, training), whole) if full else (whole, Kept()))))
    return tuple(row for row in rows if row.count)


def _activations(
    layers: tuple[_Layers, ...], output: Kept, layout: Layout, training: Training, flying: float
) -> tuple[float, str]:
    """Layers of all micro-batches in flight, and what only one micro-batch keeps.

    That is the output on the last stage and, under full recomputation, the layer that is being computed again.
    """
    terms = " + ".join(f"layers{i} * kept{i}" for i in range(len(layers)))
    values: dict[str, Number] = {
        "flying": flying,
        "tokens": training.micro_batch_size * training.seq_length / layout.cp,
    }
    for i, kind in enumerate(layers):
        values |= {f"layers{i}": kind.count, f"kept{i}": kind.kept.on_device(layout)}
    once = output.on_device(layout) + max((kind.again.on_device(layout) for kind in layers), default=0.0)
    formula = f"tokens * (flying * ({terms}) + once)" if once else f"tokens * flying * ({terms})"
    return _worked(formula, values | ({"once": once} if once else {}))


def _worked(formula: str, values: dict[str, Number]) -> tuple[float, str]:
    figure = work_out("", "bytes", formula, "", **values)
    return float(figure.value or 0), figure.worked
