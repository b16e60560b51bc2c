"""nanotron 0.1 to 0.5 and later: one line per step with numbers for people, ``elapsed_time_per_iteration_ms: 11.5K``.

Three significant digits, so that a time is 0.5 % coarse at most, and a batch of a thousand or more is taken from the
settings. In 2026 the batch is counted in tokens. ``model_tflops_per_gpu`` is of full attention; the hardware's is the same.
"""

from logparse.formats._base import Block, Choice, LogFormat, Name, Reading, Sample

_ROUNDED = r"[\d.]+[KMGT]"
# Of the printed Config, by the names of its fields.
_SIZES = {
    "tp": "tensor_model_parallel_size",
    "pp": "pipeline_model_parallel_size",
    "dp": "data_parallel_size",
    "context_parallel_size": "context_parallel_size",
    "expert_parallel_size": "expert_model_parallel_size",
    "sequence_length": "seq_length",
    "micro_batch_size": "micro_batch_size",
    "batch_accumulation_per_replica": "num_microbatches",
    "num_hidden_layers": "num_layers",
    "hidden_size": "hidden_size",
    "intermediate_size": "ffn_hidden_size",
    "num_attention_heads": "num_attention_heads",
    "num_key_value_heads": "num_query_groups",
    "vocab_size": "vocab_size",
}

FORMAT = LogFormat(
    name="nanotron",
    title="nanotron",
    framework="nanotron",
    marker=("_per_iteration_ms: ",),
    head=r"\biteration: (?P<step>\d+) / (?P<train_steps>\d+) \|",
    pair=r"([a-z_]+): ([^|]*?)\s*(?:\||$)",
    separator=r"\|",
    labels={
        "elapsed_time_per_iteration_ms": Reading("elapsed_time_per_iteration_ms", multiples=True),
        "time_per_iteration_ms": Reading("elapsed_time_per_iteration_ms", multiples=True),
        "tokens_per_sec": Reading("logged_tokens_per_second", multiples=True),
        "tokens_per_sec_per_gpu": Reading("logged_tokens_per_second_per_device", multiples=True),
        "consumed_tokens": Reading("consumed_tokens", absent=_ROUNDED),
        "global_batch_size": Reading("global_batch_size", absent=_ROUNDED),
        "lm_loss": Reading("loss", multiples=True),
        "lr": Reading("learning_rate"),
        "model_tflops_per_gpu": Reading("logged_tflops_per_second_per_device", multiples=True),
        "grad_norm": Reading("grad_norm", multiples=True),
        "cuda_max_memory_reserved": Reading("max_memory_reserved_bytes", multiples=True),
    },
    ignored=frozenset(
        {
            "hardware_tflops_per_gpu",
            "cuda_memory_allocated",
            "hd_total_memory_tb",
            "hd_used_memory_tb",
            "hd_free_memory_tb",
            "eta",
        }
    ),
    ignored_patterns=(r"\w*loss\w*",),
    blocks=(
        Block(
            "config",
            "Config(general=GeneralArgs(",
            start=r"\bConfig\(general=GeneralArgs\(",
            end=r"\|TP=\d+[^\]]*\]:\s*(?:[A-Z][a-z_]+:|$)",
            entry=r"\b([a-z_]+)=([^,()]{1,1024}+)[,)]",
            max_lines=200,
        ),
    ),
    names=tuple(Name(quantity, f"config:{name}") for name, quantity in _SIZES.items()),
    choices=(
        Choice("gated_linear_unit", "True", {"config:hidden_act": "'?silu'?"}),
        Choice("untie_embeddings_and_output_weights", "True", {"config:tie_word_embeddings": "False"}),
        Choice("untie_embeddings_and_output_weights", "False", {"config:tie_word_embeddings": "True"}),
        Choice("precision", "bf16", {"config:dtype": r"torch\.bfloat16"}),
        Choice("recompute", "full", {"config:recompute_layer": "True"}),
        Choice("recompute", "none", {"config:recompute_layer": "False"}),
    ),
    samples=(
        Sample(
            "10/17/2025 16:31:56 [INFO|DP=0|PP=0|TP=0]: iteration: 327281 / 378950 | consumed_tokens: 85.8G | "
            "elapsed_time_per_iteration_ms: 11.5K | tokens_per_sec: 22.8K | tokens_per_sec_per_gpu: 11.4K | "
            "global_batch_size: 64 | lm_loss: 2.38 | lr: 1e-05 | model_tflops_per_gpu: 38.3 | "
            "hardware_tflops_per_gpu: 38.3 | grad_norm: 1.25",
            {
                "timestamp": "2025-10-17T16:31:56",
                "step": 327281,
                "train_steps": 378950,
                "elapsed_time_per_iteration_ms": 11500.0,
                "logged_tokens_per_second": 22800.0,
                "logged_tokens_per_second_per_device": 11400.0,
                "global_batch_size": 64,
                "loss": 2.38,
                "learning_rate": 1e-05,
                "logged_tflops_per_second_per_device": 38.3,
                "grad_norm": 1.25,
            },
        ),
        Sample(
            "[default0]:03/02/2026 10:00:00 [INFO|DP=0|PP=0|TP=0|node]: iteration: 1 / 500 | consumed_tokens: 512 | "
            "time_per_iteration_ms: 412 | tokens_per_sec: 1.25M | tokens_per_sec_per_gpu: 39.1K | "
            "global_batch_size: 2.1M | lm_loss: 10.6 | lr: 0.0003 | model_tflops_per_gpu: 310 | grad_norm: 1.21 | "
            "cuda_memory_allocated: 75.2M | cuda_max_memory_reserved: 54.7G | eta: 0:03:25",
            {
                "timestamp": "2026-03-02T10:00:00",
                "step": 1,
                "train_steps": 500,
                "consumed_tokens": 512,
                "elapsed_time_per_iteration_ms": 412.0,
                "logged_tokens_per_second": 1250000.0,
                "logged_tokens_per_second_per_device": 39100.0,
                "loss": 10.6,
                "learning_rate": 0.0003,
                "logged_tflops_per_second_per_device": 310.0,
                "grad_norm": 1.21,
                "max_memory_reserved_bytes": 54.7e9,
            },
        ),
    ),
)
