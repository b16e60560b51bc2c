"""MaxText, 2023 to 2026: one line per step, with its time and the rates of one device.

``completed step: 10, seconds: 2.167, TFLOP/s/device: 36.722, Tokens/s/device: 3780.1, ...``. Steps count from 0.
``total_weights`` are tokens that have a loss.
"""

from logparse.formats._base import (
    NUMBER,
    Choice,
    Companion,
    LogFormat,
    Name,
    Reading,
    Sample,
    SettingSentence,
    evaluation,
)
from logparse.formats._preference import PREFERENCE

# The configuration, a line for each value; sizes of Llama-like models under the names of any.
_SIZES = {
    "global_batch_size_to_train_on": "global_batch_size",
    "max_target_length": "seq_length",
    "gradient_accumulation_steps": "num_microbatches",
    "num_decoder_layers": "num_layers",
    "emb_dim": "hidden_size",
    "mlp_dim": "ffn_hidden_size",
    "num_query_heads": "num_attention_heads",
    "num_kv_heads": "num_query_groups",
    "head_dim": "kv_channels",
    "vocab_size": "vocab_size",
    "num_experts": "num_experts",
    "num_experts_per_tok": "moe_router_topk",
    "moe_mlp_dim": "moe_ffn_hidden_size",
    "shared_experts": "num_shared_experts",
    "first_num_dense_layers": "first_k_dense_replace",
    "interleave_moe_layer_step": "moe_layer_freq",
    "per_device_batch_size": "batch_size_per_device",
    "model_name": "model_name",
}
# Of a model without latent attention these are printed too, and mean nothing.
_MLA = {"config:attention_type": "mla"}
_LATENT_SIZES = {
    "q_lora_rank": "q_lora_rank",
    "kv_lora_rank": "kv_lora_rank",
    "qk_nope_head_dim": "qk_head_dim",
    "qk_rope_head_dim": "qk_pos_emb_head_dim",
    "v_head_dim": "v_head_dim",
}
_OTHERS = ("dtype", "quantization", "remat_policy", "mlp_activations", "logits_via_embedding", "attention_type")
# Settings that change the work of a step and that no formula here counts, with the values that switch them on.
_NOT_COUNTED = {
    "attention_type": "(?!global$|full$|mla$|autoselected$).+",
    "sliding_window_size": r"[1-9]\d*",
    "mtp_num_layers": r"[1-9]\d*",
    "use_multimodal": "True",
    "use_indexer": "True",
    "use_audio": "True",
    "moba": "True",
    "chunk_attn_window_size": r"[1-9]\d*",
    "compress_ratios": r"\[.*[1-9].*\]",
    "inhomogeneous_layer_cycle_interval": r"[2-9]|\d\d+",
    "global_head_dim": r"[1-9]\d*",
    "global_num_kv_heads": r"[1-9]\d*",
    "num_kv_shared_layers": r"[1-9]\d*",
    "share_kv_projections": "True",
    "hidden_size_per_layer_input": r"[1-9]\d*",
    "use_double_wide_mlp": "True",
    "moe_expert_input_dim": r"[1-9]\d*",
    "engram_layers": r"\[.*\d.*\]",
    "mhc_expansion_rate": r"[2-9]|\d\d+",
    "lora": r"\{.*'enable_lora': True.*\}",
    "trainable_parameters_mask": r"\[.*\w.*\]",
}
# Experts drop the tokens beyond their capacity; -1 is no limit.
_CAPACITY = {"capacity_factor": r"(?!0*\.?0*$)[\d.]+", "num_experts": r"[2-9]|[1-9]\d+"}


def _param(name: str) -> SettingSentence:
    return SettingSentence("config", "Config param ", rf"Config param {name}: (?P<{name}>.+?)\s*$")


FORMAT = LogFormat(
    name="maxtext",
    title="MaxText",
    framework="MaxText",
    time_of="dispatch",
    marker=("eted step: ",),
    head=r"completed step: (?P<step>\d+), ",
    pair=r"([A-Za-z_][\w/]*): ([^,\s]+)(?:, |\s*$)",
    separator=", ",
    from_zero=True,
    labels={
        "seconds": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "TFLOP/s/device": Reading("logged_tflops_per_second_per_device"),
        "TFLOP/s": Reading("logged_tflops_per_second_per_device"),  # 2023
        "Tokens/s/device": Reading("logged_tokens_per_second_per_device"),
        "loss": Reading("loss"),
        "moe_lb_loss": Reading("load_balancing_loss"),
    },
    ignored=frozenset({"total_weights", "perplexity", "lm_loss", "reward_accuracy"}),
    ignored_patterns=(r"\w*(?:loss|reward|accuracy)\w*",),
    # A notebook prints the configuration of each of its parts: the last one before a step is of it.
    companions=(
        Companion("Config param steps: ", r"Config param steps: (?P<train_steps>[1-9]\d*)\s*$", belongs_to="next"),
    ),
    records=(
        evaluation(
            "eval metrics after step", rf"eval metrics after step: (?P<step>\d+), loss=(?P<loss>{NUMBER})", "eval"
        ),
    ),
    sentences=(
        *(
            _param(name)
            for name in dict.fromkeys((*_SIZES, *_LATENT_SIZES, *_OTHERS, *_NOT_COUNTED, *_CAPACITY, "use_dpo"))
        ),
        SettingSentence("mesh", "Num_devices: ", r"Num_devices: (?P<num_devices>\d+)"),
        SettingSentence("running", "Running Model: ", r"Running Model: (?P<model_name>[\w.+-]+)"),
    ),
    names=(
        *(Name(quantity, f"config:{name}") for name, quantity in _SIZES.items()),
        *(Name(quantity, f"config:{name}", when=_MLA) for name, quantity in _LATENT_SIZES.items()),
        Name("world_size", "mesh:num_devices"),
        Name("model_name", "running:model_name"),
        Name("moe_capacity_factor", "config:capacity_factor", {f"config:{name}": v for name, v in _CAPACITY.items()}),
    ),
    choices=(
        Choice("mixed_step", PREFERENCE, {"config:use_dpo": "True"}),
        *(Choice("uncounted", name, {f"config:{name}": value}) for name, value in _NOT_COUNTED.items()),
        Choice("multi_latent_attention", "True", _MLA),
        Choice("precision", "fp8", {"config:quantization": ".*fp8.*"}),
        Choice("precision", "bf16", {"config:dtype": "bfloat16"}),
        Choice("precision", "fp32", {"config:dtype": "float32"}),
        Choice("recompute", "full", {"config:remat_policy": "full"}),
        Choice("gated_linear_unit", "True", {"config:mlp_activations": r"\[.*(?:silu|gelu).*linear.*\]"}),
        Choice("untie_embeddings_and_output_weights", "True", {"config:logits_via_embedding": "False"}),
        Choice("untie_embeddings_and_output_weights", "False", {"config:logits_via_embedding": "True"}),
    ),
    samples=(
        Sample(
            "INFO:MaxText.pyconfig:Config param steps: 500\n"
            "I0706 16:50:26.759790 140110937163584 metric_logger.py:214] completed step: 4, seconds: 2.25, "
            "TFLOP/s/device: 86.678, Tokens/s/device: 16549.111, total_weights: 6425, loss: 0.684, perplexity: 2.003",
            {
                "timestamp": "1904-07-06T16:50:26.759790",
                "step": 4,
                "train_steps": 500,
                "elapsed_time_per_iteration_ms": 2250.0,
                "logged_tflops_per_second_per_device": 86.678,
                "logged_tokens_per_second_per_device": 16549.111,
                "loss": 0.684,
            },
        ),
        Sample(
            "completed step: 11, seconds: 28.5, TFLOP/s/device: 1520.276, Tokens/s/device: 579.059, "
            "total_weights: 4194304, loss: nan",
            {
                "step": 11,
                "elapsed_time_per_iteration_ms": 28500.0,
                "logged_tflops_per_second_per_device": 1520.276,
                "logged_tokens_per_second_per_device": 579.059,
                "loss": float("nan"),
            },
        ),
    ),
)
