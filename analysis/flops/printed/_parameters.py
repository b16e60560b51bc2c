"""Formulas made from a count of parameters, with or without the attention between tokens."""

from __future__ import annotations

from analysis.flops import palm, six_n
from analysis.flops._formula import sizes
from analysis.flops.printed._printed_formula import Flops, PrintedFormula
from analysis.model.parameters import count_parameters
from analysis.model.shape import ModelShape

V_NEEDS = ("num_layers", "hidden_size", "num_attention_heads", "num_query_groups", "padded_vocab_size")


def _without_embedding(shape: ModelShape) -> float | None:
    """Parameters one token meets, without the input embedding, even where it is the output's too."""
    parameters = count_parameters(shape)
    return None if parameters is None else float(parameters.active - parameters.embedding)


def _without_embedding_and(core: float) -> Flops:
    """6 N without the input embedding, and ``core`` l h s."""

    def flops(shape: ModelShape, seq_length: int) -> float | None:
        layers, hidden = sizes(shape, "num_layers", "hidden_size")
        counted = _without_embedding(shape)
        return None if counted is None else 6.0 * counted + core * layers * hidden * seq_length

    return flops


def _torchtitan(shape: ModelShape, seq_length: int) -> float | None:
    layers, heads, width = sizes(shape, "num_layers", "num_attention_heads", "kv_channels")
    counted = _without_embedding(shape)
    return None if counted is None else 6.0 * counted + 12.0 * layers * heads * width * seq_length


def _neox(shape: ModelShape, seq_length: int) -> float | None:
    layers, hidden = sizes(shape, "num_layers", "hidden_size")
    counted = six_n.FORMULA.model_flops_per_token(shape, seq_length)
    return None if counted is None else counted + 60.0 * layers * hidden * seq_length


def _verl(shape: ModelShape, seq_length: int) -> float:
    """The embedding counts as a matrix product. A dense model's heads are taken to add up to h."""
    layers, hidden, heads, groups, vocab = sizes(shape, *V_NEEDS)
    if shape.num_experts:
        (width,) = sizes(shape, "kv_channels")
        experts, chosen, inner = sizes(shape, "num_experts", "moe_router_topk", "moe_ffn_hidden_size")
        mlp = hidden * experts + 3 * hidden * inner * chosen
    else:
        width = hidden // heads
        mlp = 3 * hidden * sizes(shape, "ffn_hidden_size")[0]
    weights = layers * (mlp + 2 * hidden * width * (heads + groups)) + 2 * vocab * hidden
    return 6.0 * weights + 12.0 * heads * width * layers * seq_length


def _verl_needs(shape: ModelShape) -> tuple[str, ...]:
    experts = ("kv_channels", "moe_router_topk", "moe_ffn_hidden_size")
    return (*V_NEEDS, *(experts if shape.num_experts else ("ffn_hidden_size",)))


PARAMETER_FORMULAS = (
    PrintedFormula(
        "V",
        "verl and MindSpeed-LLM FSDP2",
        "verl until 2026-01; MindSpeed-LLM 26.0 and later, FSDP2 backend",
        "6 [l (3 h f + 2 h d (a+g)) + 2 h V] + 12 l a d s; with experts h E + 3 h k f_e for 3 h f",
        _verl_needs,
        _verl,
    ),
    PrintedFormula(
        "6N",
        "6 N, all parameters",
        "Kaplan et al. 2020 and many scripts",
        "6 N",
        six_n.needs,
        six_n.FORMULA.model_flops_per_token,
    ),
    PrintedFormula(
        "6N-in",
        "6 N without the input embedding",
        "many scripts",
        "6 (N - input embedding)",
        six_n.needs,
        _without_embedding_and(0.0),
    ),
    PrintedFormula(
        "6N+12lhs",
        "PaLM",
        "Chowdhery et al. 2022, appendix B, and many scripts",
        palm.FORMULA.text,
        palm.FORMULA.needs,
        palm.FORMULA.model_flops_per_token,
    ),
    PrintedFormula(
        "6N+6lhs",
        "PaLM with causal attention",
        "NVIDIA performance tables of 2025, about",
        "6 (N - input embedding) + 6 l h s",
        six_n.needs,
        _without_embedding_and(6.0),
    ),
    PrintedFormula(
        "torchtitan",
        "torchtitan",
        "torchtitan; LLM Foundry",
        "6 (N - input embedding) + 12 l a d s",
        lambda shape: (*six_n.needs(shape), "kv_channels"),
        _torchtitan,
    ),
    PrintedFormula(
        "X6",
        "GPT-NeoX 1.0 and 2.0",
        "GPT-NeoX 1.0 and 2.0, seen until 2024-02",
        "6 N + 60 l h s",
        six_n.needs,
        _neox,
    ),
)
