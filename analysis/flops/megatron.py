"""The Megatron-LM formula since core 0.12: every matrix product of the model as built, causal half of the attention.

Comes in: a shape. A feature that is None is one the model does not have, as in Megatron's own arguments: no experts, no
shared experts, no multi-token prediction, no multi-latent attention, and with it no query compression. An expert whose
width is None is as wide as ``ffn_hidden_size``. Megatron's state-space layers, latent experts and gated attention
output are not counted here.
"""

from __future__ import annotations

from analysis.flops._base import Formula, sizes
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
    return ALWAYS + attention + experts + (("ffn_hidden_size",) if _uses_ffn_hidden_size(shape) else ())


def terms(shape: ModelShape, seq_length: int) -> dict[str, float]:
    """FLOPs per token, forward and backward."""
    layers, hidden, vocab = sizes(shape, "num_layers", "hidden_size", "padded_vocab_size")
    depths = shape.mtp_num_layers or 0
    weights = {
        "attention projections": (layers + depths) * _projections(shape),
        "attention core": (layers + depths) * _core(shape) * seq_length / 2,  # causal: half of the matrix is zero
        "mlp": hidden * _matrices(shape) * _summed_mlp_width(shape),
        "multi-token prediction": depths * (3 * hidden + 2 * hidden**2),
        "logits": hidden * vocab * (depths + 1),
    }
    return {name: FLOPS_PER_WEIGHT * count for name, count in weights.items()}


def _uses_ffn_hidden_size(shape: ModelShape) -> bool:
    return not shape.num_experts or shape.moe_ffn_hidden_size is None or shape.num_moe_layers != shape.num_layers


def _projections(shape: ModelShape) -> int:
    """Weights of the query, key, value and output projections of one layer."""
    if shape.multi_latent_attention:
        return _latent_projections(shape)
    hidden, heads, groups, width = sizes(shape, "hidden_size", "num_attention_heads", *GROUPED)
    return 2 * hidden * width * (heads + groups)


def _latent_projections(shape: ModelShape) -> int:
    """The same for multi-latent attention; each + 1 is the norm of the compressed query, or key and value."""
    hidden, heads, rank, content, position, value = sizes(shape, "hidden_size", "num_attention_heads", *LATENT)
    query_width = heads * (content + position)
    query_rank = shape.q_lora_rank
    query = hidden * query_width if query_rank is None else query_rank * (hidden + query_width + 1)
    key_value = rank * (hidden + heads * (content + value) + 1) + hidden * position
    return query + key_value + heads * value * hidden


def _core(shape: ModelShape) -> int:
    """Products of one layer per pair of tokens: query with key, then weight with value."""
    (heads,) = sizes(shape, "num_attention_heads")
    if shape.multi_latent_attention:
        return heads * sum(sizes(shape, "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim"))
    (width,) = sizes(shape, "kv_channels")
    return 2 * heads * width


def _matrices(shape: ModelShape) -> int:
    return 3 if shape.gated_linear_unit else 2


def _summed_mlp_width(shape: ModelShape) -> int:
    """Inner widths one token passes through, summed over the layers and the depths of multi-token prediction."""
    (layers,) = sizes(shape, "num_layers")
    depths = shape.mtp_num_layers or 0
    if not shape.num_experts:
        return (layers + depths) * sizes(shape, "ffn_hidden_size")[0]
    topk, moe_layers = sizes(shape, *EXPERTS)
    dense_width = shape.ffn_hidden_size or 0  # only unknown where no layer uses it
    expert_width = dense_width if shape.moe_ffn_hidden_size is None else shape.moe_ffn_hidden_size
    moe_width = topk * expert_width + (shape.moe_shared_expert_intermediate_size or 0)
    # Megatron builds them like the last layer, which has experts in every published model with both.
    depth_width = moe_width if moe_layers else dense_width
    return (layers - moe_layers) * dense_width + moe_layers * moe_width + depths * depth_width


FORMULA = Formula(
    name="megatron",
    title="Megatron-LM since core 0.12: grouped queries, gated MLP, experts, MLA, MTP, causal half of the attention",
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
        "mlp": "6 · h u (f · l_dense + (k f_e + f_s) · l_moe)",
        "multi-token prediction": "6 · m (3 h + 2 h²)",
        "logits": "6 · h V (m + 1)",
    },
    selective=("attention core",),
    full=("attention projections", "attention core", "mlp", "multi-token prediction"),
    printed_as={"none": "M8"},
    as_built=True,
)
