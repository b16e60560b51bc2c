"""The model's configuration as transformers prints it: ``Model config Qwen2Config {`` and a line of JSON for each value.

Sizes by transformers' names; ``model_type`` says which models have a gated MLP (transformers, models/*/modeling_*).
"""

from __future__ import annotations

from logparse.formats._base import NUMBER, Block, Choice, Name, SettingSentence

HF_CONFIG = Block(
    kind="model",
    marker="odel config ",
    start=r"Model config \w+Config \{\s*$",
    end=r"^\s*\}\s*$",
    # A line of the list layer_types is "sliding_attention", and the like: the setting ``sliding``.
    entry=r'^\s{0,12}"(\w+)(?:": |(?=_attention",?\s*$))(\{|[^,\[]*)',
    nested=True,
    max_lines=1000,
    # A save of adapters prints it again.
    at_start=False,
)
# Rates of the whole run, evaluations and saves included, as the Trainer prints them at its end. Its tokens per second are
# of one process or of all, by version.
SUMMARY = tuple(
    SettingSentence(
        "summary", f"train_{name}", rf"['\"]train_{name}['\"]: ['\"]?(?P<{column}>{NUMBER})['\",}}]", last=True
    )
    for name, column in (
        ("samples_per_second", "logged_samples_per_second"),
        ("steps_per_second", "logged_steps_per_second"),
        ("runtime", "train_runtime"),
    )
)
_GATED = (
    "llama|mistral|mixtral|qwen2|qwen2_moe|qwen3|qwen3_moe|gemma|gemma2|gemma3_text|phi3|internlm2|baichuan|olmo2|yi"
)
_COUNT = r"[1-9]\d*"
_LATENT = {"model:kv_lora_rank": _COUNT}
_SIZES = {
    "num_hidden_layers": "num_layers",
    "hidden_size": "hidden_size",
    "intermediate_size": "ffn_hidden_size",
    "num_attention_heads": "num_attention_heads",
    "num_key_value_heads": "num_query_groups",
    "head_dim": "kv_channels",
    "vocab_size": "vocab_size",
    "num_experts_per_tok": "moe_router_topk",
    "moe_intermediate_size": "moe_ffn_hidden_size",
    "shared_expert_intermediate_size": "moe_shared_expert_intermediate_size",
    "n_shared_experts": "num_shared_experts",
    "first_k_dense_replace": "first_k_dense_replace",
    "_name_or_path": "model_name",
}
_LATENT_SIZES = {
    "q_lora_rank": "q_lora_rank",
    "kv_lora_rank": "kv_lora_rank",
    "qk_nope_head_dim": "qk_head_dim",
    "qk_rope_head_dim": "qk_pos_emb_head_dim",
    "v_head_dim": "v_head_dim",
}
# Settings that change the work of a step and that no formula here counts, with the values that switch them on.
_NOT_COUNTED = {
    "use_sliding_window": "true",
    "text_config.model_type": r"\w+",
    "vision_config.model_type": r"\w+",
    "is_encoder_decoder": "true",
    "num_decoder_layers": _COUNT,
    "num_nextn_predict_layers": _COUNT,
}
HF_NAMES = (
    *(Name(quantity, f"model:{name}") for name, quantity in _SIZES.items()),
    *(Name("num_experts", f"model:{name}") for name in ("num_experts", "num_local_experts", "n_routed_experts")),
    *(Name(quantity, f"model:{name}", when=_LATENT) for name, quantity in _LATENT_SIZES.items()),
)
HF_CHOICES = (
    *(Choice("uncounted", name.split(".")[0], {f"model:{name}": value}) for name, value in _NOT_COUNTED.items()),
    *(Choice("uncounted", "layer_types", {f"model:{name}": "_attention"}) for name in ("sliding", "linear", "chunked")),
    # Of encoders, attention is of all tokens, and the head is often no vocabulary.
    Choice("uncounted", "encoder models", {"model:model_type": r"\w*(?:bert|electra|ernie|nezha)\w*(?:-v\d)?"}),
    # Mistral has a window without a switch.
    Choice("uncounted", "sliding_window", {"model:sliding_window": _COUNT, "model:model_type": "mistral|gemma.*"}),
    Choice("multi_latent_attention", "True", _LATENT),
    Choice("gated_linear_unit", "True", {"model:model_type": _GATED}),
    Choice("gated_linear_unit", "True", {"model:model_type": "deepseek.*"}),
    Choice("gated_linear_unit", "False", {"model:model_type": "gpt2|gpt_neox|opt|bloom|falcon|phi"}),
    Choice("untie_embeddings_and_output_weights", "True", {"model:tie_word_embeddings": "false"}),
    Choice("untie_embeddings_and_output_weights", "False", {"model:tie_word_embeddings": "true"}),
)
