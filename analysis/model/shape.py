"""The shape of a transformer, as far as it is known: what the formulas and the parameter count need.

Comes in: quantities by glossary name. Goes out: a frozen record in which unknown is None. Nothing is guessed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from logparse.light_dataclass import dataclass, fields, replace

# The ``mixed_step`` of a step that also generates.
ROLLOUTS = "rollouts"
# That of a step whose samples may be pairs of sequences.
PREFERENCE = "preference training"


@dataclass(frozen=True)
class ModelShape:
    """Sizes of a decoder-only transformer by glossary name; None is unknown.

    ``num_experts`` None means a dense model. ``num_moe_layers`` counts layers with experts among ``num_layers``.
    ``num_linear_attention_layers``, ``num_mamba_layers`` and ``num_window_layers`` None mean that the model has none;
    ``num_attention_layers`` and ``num_mlp_layers`` are known of a hybrid model, whose layers hold one part each.
    ``num_layers`` are those that work, without layers that return their input. An expert takes ``moe_capacity_factor``
    times the mean of its tokens at most. ``uncounted`` is what else the layers hold that no formula here counts, as
    the framework names it; ``mixed_step`` is the work of a step other than training. ``lora``: ``adapter_parameters``
    are trained and the weights are frozen.
    """

    num_layers: int | None = None
    hidden_size: int | None = None
    ffn_hidden_size: int | None = None
    gated_linear_unit: bool | None = None
    num_attention_heads: int | None = None
    num_query_groups: int | None = None
    kv_channels: int | None = None
    padded_vocab_size: int | None = None
    untie_embeddings_and_output_weights: bool | None = None
    num_experts: int | None = None
    moe_router_topk: int | None = None
    moe_capacity_factor: float | None = None
    moe_ffn_hidden_size: int | None = None
    moe_shared_expert_intermediate_size: int | None = None
    num_moe_layers: int | None = None
    multi_latent_attention: bool | None = None
    q_lora_rank: int | None = None
    kv_lora_rank: int | None = None
    qk_head_dim: int | None = None
    qk_pos_emb_head_dim: int | None = None
    v_head_dim: int | None = None
    mtp_num_layers: int | None = None
    attention_output_gate: bool | None = None
    moe_latent_size: int | None = None
    num_linear_attention_layers: int | None = None
    linear_key_head_dim: int | None = None
    linear_value_head_dim: int | None = None
    linear_num_key_heads: int | None = None
    linear_num_value_heads: int | None = None
    linear_conv_kernel_dim: int | None = None
    num_mamba_layers: int | None = None
    mamba_state_dim: int | None = None
    mamba_head_dim: int | None = None
    mamba_num_groups: int | None = None
    mamba_num_heads: int | None = None
    num_attention_layers: int | None = None
    num_mlp_layers: int | None = None
    sliding_window: int | None = None
    num_window_layers: int | None = None
    uncounted: str | None = None
    mixed_step: str | None = None
    lora: bool | None = None
    adapter_parameters: int | None = None

    @property
    def all_trained(self) -> ModelShape:
        """The same where every weight is trained, as a framework counts that knows of no adapters."""
        return replace(self, lora=None, adapter_parameters=None)

    @property
    def special_layers(self) -> str | None:
        """What some layers have instead of attention and MLP, or in addition; None of a plain transformer."""
        linear = "linear attention" if self.num_linear_attention_layers else None
        return self.uncounted or linear or ("Mamba" if self.num_mamba_layers else None)

    @classmethod
    def from_quantities(cls, quantities: Mapping[str, Any]) -> ModelShape:
        """Take the sizes among ``quantities`` (glossary name to value) and leave the rest."""
        sizes = {f.name: quantities[f.name] for f in fields(cls) if quantities.get(f.name) is not None}
        return cls(**sizes | ({"num_layers": layers} if (layers := working_layers(quantities)) is not None else {}))

    def missing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of ``names`` that are unknown."""
        return tuple(n for n in names if getattr(self, n) is None)


def working_layers(quantities: Mapping[str, Any]) -> int | None:
    """The transformer layers without those that do nothing."""
    layers: int | None = quantities.get("num_layers")
    return None if layers is None else layers - (quantities.get("num_noop_layers") or 0)
