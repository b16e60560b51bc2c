"""Parameters of a model by the two rules of thumb of the sources and by the exact count, and those of one device.

Comes in: a shape, its vocabulary and details. Goes out: figures with their working, and the count of each stage.
"""

from __future__ import annotations

from analysis.estimate.assumptions import ARTICLE, CHEAT_SHEET, WEIGHTS
from analysis.estimate.device_layout import Layout, layers_of_stages
from analysis.estimate.worked_figure import Figure, work_out
from analysis.model.parameters import Parameters
from analysis.model.shape import ModelShape
from logparse.light_dataclass import dataclass


def parameter_figures(shape: ModelShape, vocab_size: int | None, counted: Parameters | None) -> tuple[Figure, ...]:
    """Short, long and exact count; for a mixture of experts also what one token meets."""
    sizes = {"l": shape.num_layers, "h": shape.hidden_size}
    full = "l * (12 * h**2 + 13 * h) + V * h"
    return (
        work_out("parameters_short", "parameters", "12 * l * h**2", CHEAT_SHEET, **sizes),
        work_out("parameters_long", "parameters", full, ARTICLE, **sizes, V=vocab_size),
        *exact_figures(counted),
    )


def exact_figures(counted: Parameters | None) -> tuple[Figure, ...]:
    """The exact count with its parts; the active one where it differs."""
    if counted is None:
        return (work_out("parameters_exact", "parameters", "P", WEIGHTS, P=None),)
    common = {"embedding": counted.embedding, "output": counted.output, "norm": counted.final_norm}
    layer = {"attention": counted.attention, "norms": counted.layer_norms}
    formula = "embedding + output + norm"
    if counted.num_dense_layers:
        formula += " + dense_layers * (attention + norms + mlp)"
        layer |= {"dense_layers": counted.num_dense_layers, "mlp": counted.mlp}
    if counted.num_moe_layers:
        formula += " + expert_layers * (attention + norms + experts)"
        layer |= {"expert_layers": counted.num_moe_layers}
    if counted.num_mtp_layers:
        block = "experts" if counted.num_moe_layers else "mlp"
        formula += f" + mtp_layers * (attention + norms + {block} + mtp)"
        layer |= {"mtp_layers": counted.num_mtp_layers, "mtp": counted.mtp_projection + counted.mtp_norms}
    given = common | layer
    total = {"experts": counted.moe} if counted.num_moe_layers else {}
    figures = [work_out("parameters_exact", "parameters", formula, WEIGHTS, **(given | total))]
    if counted.num_moe_layers:
        met = given | {"experts": counted.active_moe}
        figures.append(work_out("parameters_active", "parameters", formula, WEIGHTS, **met))
    if counted.num_moe_layers and counted.output:
        # Publishers differ: Mixtral's count has the input embedding, DeepSeek-V3's has not.
        rest = {"active": counted.active, "embedding": counted.embedding}
        name = "parameters_active_without_embedding"
        figures.append(work_out(name, "parameters", "active - embedding", WEIGHTS, **rest))
    return tuple(figures)


@dataclass(frozen=True)
class StageParameters:
    """Parameters that one device of a stage holds, routed experts apart because fewer ranks share them under ZeRO.

    ``layers`` does not count those of multi-token prediction, ``mtp_layers``, which lie on the last stage.
    """

    layers: int
    dense: float
    experts: float
    mtp_layers: int = 0

    @property
    def total(self) -> float:
        """All of them."""
        return self.dense + self.experts


def stage_parameters(counted: Parameters, layout: Layout) -> tuple[StageParameters, ...]:
    """Parameters on one device of each stage, first to last.

    Tensor parallelism splits matrices and leaves norms, routers and the compressing products of MLA whole; expert
    parallelism splits routed experts alone. The first stage has the embedding, the last the output and multi-token
    prediction. Where embedding and output are tied and lie on different stages, or multi-token prediction needs the
    embedding on the last stage, each holds a copy (Megatron-LM). Layers without experts come first, as in DeepSeek.
    """
    begin, stages = 0, []
    for stage, layers in enumerate(layers_of_stages(counted.num_dense_layers + counted.num_moe_layers, layout.pp)):
        plain = max(0, min(begin + layers, counted.num_dense_layers) - begin)
        begin += layers
        stages.append(_stage(counted, layout, stage, layers, plain))
    return tuple(stages)


def _stage(counted: Parameters, layout: Layout, stage: int, layers: int, plain: int) -> StageParameters:
    last = stage == layout.pp - 1
    depths = counted.num_mtp_layers if last else 0
    # Multi-token prediction is built like the last layer of the model.
    built = layers + depths
    plain += 0 if counted.num_moe_layers else depths
    split = built * (counted.attention - counted.attention_whole) + plain * counted.mlp
    split += (built - plain) * counted.shared + depths * counted.mtp_projection
    split += _ends(counted, layout, stage == 0, last)
    whole = built * (counted.attention_whole + counted.layer_norms) + (built - plain) * counted.router
    whole += depths * counted.mtp_norms + (counted.final_norm if last else 0)
    experts = (built - plain) * counted.routed / (layout.expert_tp * layout.ep)
    return StageParameters(layers, split / layout.tp + whole, experts, depths)


def _ends(counted: Parameters, layout: Layout, first: bool, last: bool) -> int:
    """Embedding and output of a stage, copies included."""
    copies = layout.pp > 1 and (not counted.output or counted.num_mtp_layers > 0)
    embedding = counted.embedding if first or (last and copies) else 0
    return embedding + (counted.output if last else 0)
