"""6 N: six operations for each parameter that a token meets, the rule of thumb of scaling studies."""

from __future__ import annotations

from analysis.flops import megatron
from analysis.flops._formula import Formula, Modules
from analysis.model.parameters import count_parameters
from analysis.model.shape import ModelShape

# A multiply and an add per parameter, once forward and twice backward.
FLOPS_PER_PARAMETER = 6.0


def needs(shape: ModelShape) -> tuple[str, ...]:
    """Names of the sizes the parameter count must know: those of every matrix, and which embeddings are shared."""
    experts = ("moe_ffn_hidden_size",) if shape.num_experts else ()
    return (*megatron.needs(shape), *experts, "untie_embeddings_and_output_weights")


def terms(shape: ModelShape, _seq_length: int) -> dict[str, float]:
    """FLOPs per token; the sequence length does not matter."""
    parameters = count_parameters(shape)
    if parameters is None:
        raise ValueError(f"the parameters of {shape} cannot be counted")
    return {"parameters": FLOPS_PER_PARAMETER * parameters.active}


def modules(shape: ModelShape, seq_length: int) -> Modules:
    """The parts that can be recomputed alone; their matrices are those that the other formula counts."""
    layers = shape.num_layers or 0
    of_layers = layers / (layers + (shape.mtp_num_layers or 0)) if layers else 0.0
    parts = megatron.modules(shape, seq_length).items()
    return {name: ("parameters", flops * of_layers) for name, (_, flops) in parts}


FORMULA = Formula(
    name="6n",
    title="6 N: six per active parameter, embeddings included, no attention between tokens",
    phrase="the 6 N rule",
    source="Kaplan et al. 2020, Scaling Laws for Neural Language Models, section 2.1; the embeddings are our addition",
    text="6 N, N = parameters one token meets; 8 N with full recomputation",
    needs=needs,
    terms=terms,
    symbols={"parameters": "6 · N"},
    selective=(),
    full=("parameters",),
    modules=modules,
    ignores=("mtp_num_layers", "num_window_layers"),
    printed_as={"none": "6N"},
)
