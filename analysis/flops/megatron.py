"""The Megatron-LM formula since core 0.12: every matrix product of the model as built, causal half of the attention.

Comes in: a shape. A feature that is None is one the model does not have, as in Megatron's own arguments: no experts, no
shared experts, no multi-token prediction, no multi-latent attention, and with it no query compression. An expert whose
width is None is as wide as ``ffn_hidden_size``. A sliding window is counted as it is; Megatron takes all tokens before.
Experts with a capacity take that part of their tokens at most; Megatron counts each. Source: get_capacity and
apply_router_token_dropping of megatron/core/transformer/moe/moe_utils.py: a factor times the mean of the chosen tokens.
"""

from __future__ import annotations

from analysis.flops import _linear_layers as linear
from analysis.flops._formula import Formula, Modules, sizes
from analysis.model.shape import ModelShape

# A multiply and an add; once forward and twice backward.
FLOPS_PER_WEIGHT = 6.0

ALWAYS = ("num_layers", "hidden_size", "gated_linear_unit", "num_attention_heads", "padded_vocab_size")
GROUPED = ("num_query_groups", "kv_channels")
LATENT = ("kv_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim")
EXPERTS = ("moe_router_topk", "num_moe_layers")


def needs(shape: ModelShape) -> tuple[str, ...]:
    """Names of the sizes a model of this kind must have."""
    attention = LATENT if shape.multi_latent_attention else GROUPED
    experts = EXPERTS if shape.num_experts else ()
    window = ("sliding_window",) if shape.num_window_layers else ()
    mlp = ("ffn_hidden_size",) if _uses_ffn_hidden_size(shape) else ()
    return ALWAYS + (attention if _attention_layers(shape) else ()) + experts + mlp + linear.needs(shape) + window


def terms(shape: ModelShape, seq_length: int) -> dict[str, float]:
    """FLOPs per token, forward and backward."""
    hidden, vocab = sizes(shape, "hidden_size", "padded_vocab_size")
    layers, depths = _attention_layers(shape), shape.mtp_num_layers or 0
    weights = {
        "attention projections": layers * _projections(shape) if layers else 0,
        "attention core": _core(shape) * _summed_keys(shape, seq_length) if layers else 0,
        "linear attention": linear.linear_products(shape),
        "mlp": sum(_mlp_weights(shape).values()),
        "multi-token prediction": depths * (3 * hidden + 2 * hidden**2),
        "logits": hidden * vocab * (depths + 1),
    }
    return {name: FLOPS_PER_WEIGHT * count for name, count in weights.items()}


def modules(shape: ModelShape, _seq_length: int) -> Modules:
    """The parts that can be recomputed alone, but the attention core, which is a term."""
    dense, routed, shared = _mlp_weights(shape).values()
    parts = {"mlp": ("mlp", dense), "moe": ("mlp", routed + shared), "shared_experts": ("mlp", shared)}
    if shape.multi_latent_attention:
        up = _attention_layers(shape) * _latent_up_projections(shape)
        parts["mla_up_proj"] = ("attention projections", up)
    return {name: (term, FLOPS_PER_WEIGHT * count) for name, (term, count) in parts.items()}


def _uses_ffn_hidden_size(shape: ModelShape) -> bool:
    if shape.num_mlp_layers is not None:
        return shape.num_mlp_layers > 0 or bool(shape.num_experts and shape.moe_ffn_hidden_size is None)
    return not shape.num_experts or shape.moe_ffn_hidden_size is None or shape.num_moe_layers != shape.num_layers


def _attention_layers(shape: ModelShape) -> int:
    """Layers, and depths of multi-token prediction, whose tokens meet each other."""
    if shape.num_attention_layers is not None:
        return shape.num_attention_layers
    return (shape.num_layers or 0) + (shape.mtp_num_layers or 0) - (shape.num_linear_attention_layers or 0)


def _summed_keys(shape: ModelShape, seq_length: int) -> float:
    """Keys that a token meets on average, summed over the layers; causal: half of the matrix is zero."""
    windows = min(shape.num_window_layers or 0, _attention_layers(shape))
    whole = (_attention_layers(shape) - windows) * linear.mean_keys(seq_length, None)
    return whole + (windows * linear.mean_keys(seq_length, shape.sliding_window) if windows else 0.0)


def _projections(shape: ModelShape) -> int:
    """Weights of the query, key, value and output projections of one layer."""
    if shape.multi_latent_attention:
        return _latent_projections(shape)
    hidden, heads, groups, width = sizes(shape, "hidden_size", "num_attention_heads", *GROUPED)
    gate = hidden * width * heads if shape.attention_output_gate else 0
    return 2 * hidden * width * (heads + groups) + gate


def _latent_projections(shape: ModelShape) -> int:
    """The same for multi-latent attention; each + 1 is the norm of the compressed query, or key and value."""
    hidden, heads, rank, content, position, value = sizes(shape, "hidden_size", "num_attention_heads", *LATENT)
    query_width = heads * (content + position)
    # MaxText prints 0 where the query is not compressed.
    query_rank = shape.q_lora_rank
    query = query_rank * (hidden + query_width + 1) if query_rank else hidden * query_width
    key_value = rank * (hidden + heads * (content + value) + 1) + hidden * position
    return query + key_value + heads * value * hidden


def _latent_up_projections(shape: ModelShape) -> int:
    """Of those the products that widen the compressed query, key and value; a query without rank is not compressed."""
    heads, rank, content, position, value = sizes(shape, "num_attention_heads", *LATENT)
    return rank * heads * (content + value) + (shape.q_lora_rank or 0) * heads * (content + position)


def _core(shape: ModelShape) -> int:
    """Products of one layer per pair of tokens: query with key, then weight with value."""
    (heads,) = sizes(shape, "num_attention_heads")
    if shape.multi_latent_attention:
        return heads * sum(sizes(shape, "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim"))
    (width,) = sizes(shape, "kv_channels")
    return 2 * heads * width


def _matrices(shape: ModelShape) -> int:
    return 3 if shape.gated_linear_unit else 2


def _mlp_weights(shape: ModelShape) -> dict[str, float]:
    """Weights of the MLPs that one token meets, over layers and depths: dense, routed to, shared by all tokens."""
    (layers, hidden), depths = sizes(shape, "num_layers", "hidden_size"), shape.mtp_num_layers or 0
    moe_layers = (shape.num_moe_layers or 0) if shape.num_experts else 0
    dense_layers = layers - moe_layers
    if shape.num_mlp_layers is not None:
        dense_layers = shape.num_mlp_layers
    # Megatron builds the depths like the last layer, which has experts in every published model with both.
    elif moe_layers:
        moe_layers += depths
    else:
        dense_layers += depths
    width = shape.ffn_hidden_size or 0  # only unknown where no layer uses it
    expert = width if shape.moe_ffn_hidden_size is None else shape.moe_ffn_hidden_size
    weights = hidden * _matrices(shape)
    routed = moe_layers * (shape.moe_router_topk or 0) * expert * min(1, shape.moe_capacity_factor or 1)
    latent = shape.moe_latent_size
    # Routed experts of a latent width, between a product down to it and one up again.
    of_experts = weights * routed if latent is None else latent * (_matrices(shape) * routed + 2 * hidden * moe_layers)
    shared = moe_layers * (shape.moe_shared_expert_intermediate_size or 0)
    return {"dense": weights * dense_layers * width, "routed": of_experts, "shared": weights * shared}


FORMULA = Formula(
    name="megatron",
    title="Megatron-LM since core 0.12: grouped queries, gated MLP, experts, MLA, MTP, causal half of the attention",
    phrase="Megatron's formula",
    source="Megatron-LM megatron/training/training.py num_floating_point_operations, core 0.12 and later",
    text=(
        "6 [(l+m) (2 h d (a+g) + a d s) + h u (f l_dense + (k f_e + f_s) l_moe) + m (3h + 2h^2) + h V (m+1)], "
        "u = 3 with a gated MLP, else 2"
    ),
    needs=needs,
    terms=terms,
    symbols={
        "attention projections": "6 · (l + m) · 2 h d (a + g)",
        "attention core": "6 · (l + m) · a d s",
        "linear attention": "6 · (l_delta · w_delta + l_mamba · w_mamba)",
        "mlp": "6 · h u (f · l_dense + (k f_e + f_s) · l_moe)",
        "multi-token prediction": "6 · m (3 h + 2 h²)",
        "logits": "6 · h V (m + 1)",
    },
    selective=("attention core",),
    full=("attention projections", "attention core", "linear attention", "mlp", "multi-token prediction"),
    of_depths=("multi-token prediction",),
    modules=modules,
    printed_as={"none": "M8"},
    real_model=True,
)
