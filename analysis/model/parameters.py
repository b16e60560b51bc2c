"""How many parameters a transformer has, counted from its shape.

Comes in: a ModelShape, its vocabulary, and details too small for the shape. Goes out: the count by part, or None
where a needed size is unknown. Rules of thumb (12 l h^2 and the like) are not here; they belong to analysis.flops.
"""

from __future__ import annotations

from typing import Literal, TypeVar

from analysis.model.shape import ModelShape
from logparse.light_dataclass import dataclass

Value = TypeVar("Value", int, bool)


@dataclass(frozen=True)
class Details:
    """Parts that hardly matter for the work of a step and are needed for an exact count.

    ``bias`` names the linear layers that have one: query, key and value; those and the attention output; or all.
    ``position_embeddings`` is the number of learned positions. ``router_bias`` is one number per expert.
    The defaults are those of LLaMA; a model without them differs by well under 0.1 %, a small one with
    learned positions by up to 2 %.
    """

    bias: Literal["none", "qkv", "attention", "all"] = "none"
    norm: Literal["rms", "layer"] = "rms"
    qk_norm: bool = False
    embedding_norm: bool = False
    position_embeddings: int = 0
    router_bias: bool = False

    def norm_parameters(self, width: int) -> int:
        """Weights of a norm over ``width``; LayerNorm has a bias in addition to its scale."""
        return width * (2 if self.norm == "layer" else 1)


NO_DETAILS = Details()


@dataclass(frozen=True)
class Parameters:
    """Parameters of a model by part; ``attention``, ``mlp``, the parts of the experts and the norms are of one layer.

    ``embedding`` holds tokens, positions and their norm; ``output`` is 0 where it is tied to the embedding.
    ``attention_whole`` is the part of ``attention`` that each tensor-parallel rank holds in full: norms, the bias of
    the output and the products of MLA that compress (``linear_q_down_proj`` and ``linear_kv_down_proj`` are
    "duplicated" in Megatron-LM, core/transformer/multi_latent_attention.py).
    ``active_routed`` is the part of ``routed`` that one token meets: the experts it is sent to.
    """

    embedding: int
    output: int
    final_norm: int
    attention: int
    attention_whole: int
    layer_norms: int
    mlp: int
    routed: int
    active_routed: int
    shared: int
    router: int
    num_dense_layers: int
    num_moe_layers: int
    mtp_projection: int
    mtp_norms: int
    num_mtp_layers: int

    @property
    def moe(self) -> int:
        """Everything that replaces the MLP in a layer with experts."""
        return self.router + self.shared + self.routed

    @property
    def active_moe(self) -> int:
        """The part of ``moe`` that one token meets."""
        return self.router + self.shared + self.active_routed

    @property
    def total(self) -> int:
        """All parameters."""
        return self._sum(self.moe)

    @property
    def active(self) -> int:
        """Parameters that one token meets, the whole embedding included; the total in a dense model."""
        return self._sum(self.active_moe)

    def _sum(self, moe: int) -> int:
        dense_layer = self.attention + self.layer_norms + self.mlp
        moe_layer = self.attention + self.layer_norms + moe
        mtp_layer = self.mtp_projection + self.mtp_norms + (moe_layer if self.num_moe_layers else dense_layer)
        layers = self.num_dense_layers * dense_layer + self.num_moe_layers * moe_layer
        return self.embedding + layers + self.num_mtp_layers * mtp_layer + self.final_norm + self.output


class _UnknownError(Exception):
    """A size that the count needs is None; never leaves this module."""


def count_parameters(
    shape: ModelShape, vocab_size: int | None = None, *, details: Details = NO_DETAILS, include_mtp: bool = False
) -> Parameters | None:
    """Count the parameters of ``shape`` by part; None where a needed size is unknown.

    The vocabulary is ``vocab_size`` if given, else the padded one of the shape. Frameworks say by absence that a model
    is dense (``num_experts``), has no shared expert (``moe_shared_expert_intermediate_size``), no MLA
    (``multi_latent_attention``), no compressed query (``q_lora_rank``) or no multi-token prediction
    (``mtp_num_layers``): None means that here. Layers of multi-token prediction share embedding and output with the
    model and count only with ``include_mtp``.

    Sources: Vaswani et al. 2017 (attention, MLP); Shazeer 2020 (gated MLP); Ainslie et al. 2023 (query groups);
    Jiang et al. 2024 (experts); DeepSeek-AI 2024, sections 2.1 and 2.2 of the V3 report (MLA, shared experts, MTP).
    """
    try:
        return _count(shape, vocab_size if vocab_size is not None else shape.padded_vocab_size, details, include_mtp)
    except _UnknownError:
        return None


def _known(value: Value | None) -> Value:
    if value is None:
        raise _UnknownError
    return value


def _count(shape: ModelShape, vocab_size: int | None, details: Details, include_mtp: bool) -> Parameters:
    if shape.special_layers:
        raise _UnknownError
    hidden = _known(shape.hidden_size)
    norm = details.norm_parameters(hidden)
    embedding = _known(vocab_size) * hidden
    num_moe_layers = _known(shape.num_moe_layers) if shape.num_experts else 0
    num_dense_layers = _known(shape.num_layers) - num_moe_layers
    expert, shared, router = _experts(shape, details) if num_moe_layers else (0, 0, 0)
    attention, attention_whole = (
        _latent_attention(shape) if shape.multi_latent_attention else _attention(shape, details)
    )
    return Parameters(
        embedding=embedding + details.position_embeddings * hidden + (norm if details.embedding_norm else 0),
        output=embedding if _known(shape.untie_embeddings_and_output_weights) else 0,
        final_norm=norm,
        attention=attention,
        attention_whole=attention_whole,
        layer_norms=2 * norm,
        mlp=_mlp(shape, shape.ffn_hidden_size, details) if num_dense_layers else 0,
        routed=(shape.num_experts or 0) * expert,
        active_routed=_known(shape.moe_router_topk) * expert if num_moe_layers else 0,
        shared=shared,
        router=router,
        num_dense_layers=num_dense_layers,
        num_moe_layers=num_moe_layers,
        # V3 report, section 2.2: two joined states are projected to one; each has a norm, and so has the output.
        mtp_projection=2 * hidden * hidden,
        mtp_norms=3 * norm,
        num_mtp_layers=(shape.mtp_num_layers or 0) if include_mtp else 0,
    )


def _attention(shape: ModelShape, details: Details) -> tuple[int, int]:
    """All parameters, and those that tensor parallelism does not split."""
    hidden, channels = _known(shape.hidden_size), _known(shape.kv_channels)
    query = _known(shape.num_attention_heads) * channels
    query_key_value = query + 2 * _known(shape.num_query_groups) * channels
    input_bias = query_key_value if details.bias != "none" else 0
    output_bias = hidden if details.bias in ("attention", "all") else 0
    norms = 2 * details.norm_parameters(channels) if details.qk_norm else 0
    whole = output_bias + norms
    return hidden * query_key_value + input_bias + query * hidden + whole, whole


def _latent_attention(shape: ModelShape) -> tuple[int, int]:
    """MLA: each low-rank product has a norm on its inner state; the part with position is one head for all keys.

    All parameters, and those that tensor parallelism does not split: what compresses, and the norms.
    """
    hidden, heads, rank = _known(shape.hidden_size), _known(shape.num_attention_heads), _known(shape.kv_lora_rank)
    plain, position, value = _known(shape.qk_head_dim), _known(shape.qk_pos_emb_head_dim), _known(shape.v_head_dim)
    query = heads * (plain + position)
    query_rank = shape.q_lora_rank or 0
    whole = hidden * (rank + position) + rank + query_rank * (hidden + 1)
    queries = query * (query_rank or hidden)
    return whole + queries + rank * heads * (plain + value) + heads * value * hidden, whole


def _mlp(shape: ModelShape, ffn_hidden_size: int | None, details: Details) -> int:
    hidden, inner = _known(shape.hidden_size), _known(ffn_hidden_size)
    inputs = 2 if _known(shape.gated_linear_unit) else 1
    biases = inputs * inner + hidden if details.bias == "all" else 0
    return (inputs + 1) * hidden * inner + biases


def _experts(shape: ModelShape, details: Details) -> tuple[int, int, int]:
    """Parameters of one routed expert, of all shared experts and of the router of one layer."""
    router = _known(shape.num_experts) * (_known(shape.hidden_size) + (1 if details.router_bias else 0))
    shared = shape.moe_shared_expert_intermediate_size
    expert = _mlp(shape, shape.moe_ffn_hidden_size, details)
    return expert, _mlp(shape, shared, details) if shared else 0, router
