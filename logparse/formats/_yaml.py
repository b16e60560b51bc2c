"""Settings of a configuration that is printed as YAML, a line each: NeMo's, Megatron-Bridge's, with what precedes them.

The first of a name counts. A name that several sections have is not to be read so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from logparse.formats._base import Choice, Name, SettingSentence

# NeMo's and Megatron-Bridge's names of sizes, and ours.
SIZES: Mapping[str, str] = {
    "num_nodes": "num_nodes",
    "devices": "devices_per_node",
    "global_batch_size": "global_batch_size",
    "micro_batch_size": "micro_batch_size",
    "encoder_seq_length": "seq_length",
    "seq_length": "seq_length",
    "num_layers": "num_layers",
    "hidden_size": "hidden_size",
    "ffn_hidden_size": "ffn_hidden_size",
    "num_attention_heads": "num_attention_heads",
    "num_query_groups": "num_query_groups",
    "kv_channels": "kv_channels",
    "make_vocab_size_divisible_by": "make_vocab_size_divisible_by",
    "num_moe_experts": "num_experts",
    "moe_router_topk": "moe_router_topk",
    "moe_ffn_hidden_size": "moe_ffn_hidden_size",
    "moe_shared_expert_intermediate_size": "moe_shared_expert_intermediate_size",
    "moe_layer_freq": "moe_layer_freq",
    "tensor_model_parallel_size": "tensor_model_parallel_size",
    "pipeline_model_parallel_size": "pipeline_model_parallel_size",
    "context_parallel_size": "context_parallel_size",
    "expert_model_parallel_size": "expert_model_parallel_size",
    "multi_latent_attention": "multi_latent_attention",
    "mtp_num_layers": "mtp_num_layers",
}


def yaml_sentences(names: Iterable[str]) -> tuple[SettingSentence, ...]:
    """Each of ``names`` where it is alone on its line, indented, with a value of one word and perhaps a comment."""
    return tuple(
        SettingSentence("yaml", f"{name}: ", rf"^(?:\d+: ?)?[|\s]\s*{name}: (?P<{name}>[^\s#]+)\s*(?:#.*)?$")
        for name in names
    )


def yaml_names() -> tuple[Name, ...]:
    """The quantities that SIZES and what NeMo prints of its vocabulary and its recomputation give."""
    return (*(Name(quantity, f"yaml:{name}") for name, quantity in SIZES.items()), *_NEMO_NAMES)


# NeMo 1's names and Megatron's own, which NeMo 2 and Megatron-Bridge print.
_RECOMPUTED: Mapping[str, str] = {
    f"{prefix}_{name}": f"recompute_{name}"
    for prefix in ("activations_checkpoint", "recompute")
    for name in ("granularity", "method", "num_layers")
}
_NEMO_NAMES = (
    # The model is built with the size that overrides the tokenizer's padded one. Source: NeMo, megatron_gpt_model.py.
    Name("padded_vocab_size", "yaml:override_vocab_size"),
    Name("padded_vocab_size", "vocabulary:padded_size"),
    *(Name(ours, f"yaml:{name}") for name, ours in _RECOMPUTED.items() if not name.endswith("granularity")),
)
# What NeMo writes in words.
NEMO_WORDS = (
    "precision",
    "fp8",
    "activation",
    "share_embeddings_and_output_weights",
    "gated_linear_unit",
    "bf16",
    "fp16",
    "override_vocab_size",
    # Steps whose mean the timer prints.
    "buffer_size",
    *_RECOMPUTED,
)
NEMO_SENTENCES = (
    *yaml_sentences((*SIZES, *NEMO_WORDS)),
    SettingSentence("vocabulary", "Padded vocab_size: ", r"Padded vocab_size: (?P<padded_size>\d+)"),
)
_GATED = {"activation": "(?:fast-)?(?:swiglu|geglu|reglu)", "gated_linear_unit": "(?i:true)"}
NEMO_CHOICES = (
    *(
        Choice("recompute", ours, {f"yaml:{name}_granularity": printed})
        for name in ("activations_checkpoint", "recompute")
        for ours, printed in (("full", "full"), ("selective", "selective"), ("none", "null|None"))
    ),
    Choice("precision", "fp8", {"yaml:fp8": "(?i:true|hybrid|e4m3)"}),
    Choice("precision", "bf16", {"yaml:precision": "bf16.*"}),
    Choice("precision", "bf16", {"yaml:bf16": "(?i:true)"}),
    Choice("precision", "fp16", {"yaml:precision": "16.*|fp16.*"}),
    Choice("precision", "fp32", {"yaml:precision": "32.*|fp32.*"}),
    *(Choice("gated_linear_unit", "True", {f"yaml:{name}": value}) for name, value in _GATED.items()),
    Choice("gated_linear_unit", "False", {"yaml:activation": "gelu|relu|squared-relu"}),
    Choice("untie_embeddings_and_output_weights", "True", {"yaml:share_embeddings_and_output_weights": "(?i:false)"}),
    Choice("untie_embeddings_and_output_weights", "False", {"yaml:share_embeddings_and_output_weights": "(?i:true)"}),
)
