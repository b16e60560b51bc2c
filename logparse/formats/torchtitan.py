"""torchtitan 0.1 to 0.2 and what is built on it (Primus, forks for XPU and NPU): one line per ``log_freq`` steps.

``step: 10  loss: ...  memory: ...GiB(...%)  tps: 5,856  tflops: ...  mfu: ...%``. No time: ``tps`` is tokens of one
device per second, the mean since the line before, rounded to a whole number.
"""

from logparse.formats._base import (
    NUMBER,
    Block,
    Choice,
    Companion,
    LogFormat,
    Name,
    Reading,
    Sample,
    SettingSentence,
    evaluation,
    event,
)

GIB = float(2**30)
_MESH = "device mesh with"
_BATCH = "Trainer is initialized with"
# The arguments of a model that are printed, by the names of Llama's; other models have some of them.
_SHAPE = {"dim": "hidden_size", "n_layers": "num_layers", "n_heads": "num_attention_heads", "vocab_size": "vocab_size"}
# What has neither a Llama's nor a Qwen's MLP is not taken for one.
_LLAMA = {"model:multiple_of": r"\d+"}
_QWEN = {"model:hidden_dim": r"\d+", "model:head_dim": r"\d+"}


def _batch(name: str, printed: str) -> list[SettingSentence]:
    """On the line of the trainer; before 2025-06 on the one that training starts."""
    pattern = rf"{printed} (?P<{name}>\d+)"
    return [SettingSentence("batch", marker, pattern) for marker in (_BATCH, "Training starts at step")]


FORMAT = LogFormat(
    name="torchtitan",
    title="torchtitan (also Primus on torchtitan)",
    framework="torchtitan",
    # tps is over all that passed since the line before, saves and validation too.
    pauses_inside=True,
    rate_covers="interval",
    marker=("tps: ", "wps: "),
    # The text before ``step:`` excludes ``validate step:``.
    head=r"(?:INFO - |\] )step: *(?P<step>\d+) ",
    pair=r"([a-z_]+): *(\S+)(?:\s|$)",
    separator=r"\s",
    labels={
        "loss": Reading("loss"),
        "grad_norm": Reading("grad_norm"),
        "memory": Reading("max_memory_reserved_bytes", scale=GIB, suffix=r"GiB\([\d.]+%\)"),
        "tps": Reading("logged_tokens_per_second_per_device"),
        "wps": Reading("logged_tokens_per_second_per_device"),  # before 2024-11
        "tflops": Reading("logged_tflops_per_second_per_device"),
        "mfu": Reading("logged_mfu", scale=0.01, suffix="%", absent=r"N/A"),
    },
    required=("step", "loss"),
    companions=(Companion(", total steps ", r", total steps (?P<train_steps>\d+)", belongs_to="since"),),
    records=(
        event("training starts", "Training starts at step", r"Training starts at step"),
        event("training ends", "Training completed", r"Training completed"),
        event("save starts", "Saving the checkpoint", r"Saving the checkpoint"),
        event("save ends", "Finished saving the checkpoint", r"Finished saving the checkpoint in (?P<seconds>[\d.]+)"),
        event(
            "checkpoint loaded", "Loading the checkpoint", r"Loading the checkpoint (?:at step |.*step-)(?P<step>\d+)"
        ),
        evaluation("validate step:", rf"validate step: *(?P<step>\d+)\s+loss: *(?P<loss>{NUMBER})", "validation"),
    ),
    blocks=(
        Block(
            kind="model",
            marker="Building ",
            start=r"Building \S+ \S+ ?with \{$",
            end=r"^\}",
            entry=r'"(\w+)": (\{|[^,]*)',
            nested=True,
            max_lines=200,
        ),
    ),
    sentences=(
        SettingSentence("mesh", _MESH, r"device mesh with parallelism: (?P<parallelism>\w+=\d+(?:, \w+=\d+)*)"),
        SettingSentence("mesh", _MESH, r"Building \d+-D device mesh with (?P<dimensions>\[[^]]*\], \[[^]]*\])"),
        *_batch("local_batch_size", "local batch size"),
        *_batch("global_batch_size", "global batch size"),
        *_batch("gradient_accumulation_steps", "gradient accumulation steps"),
        *_batch("seq_length", "sequence length"),
        SettingSentence("model", "ModelArgs(", r"Building (?P<flavour>\S+ \S+) with \w+ModelArgs\("),
        *(
            SettingSentence("model", "ModelArgs(", rf"^(?>.*?ModelArgs\().*\b{name}=(?P<{name}>[^,)]+)")
            for name in (*_SHAPE, "n_kv_heads", "multiple_of", "ffn_dim_multiplier", "hidden_dim", "head_dim")
        ),
        SettingSentence(
            "pipeline",
            "Using pipeline schedule",
            r"Using pipeline schedule \w+ with (?P<microbatches>\d+) microbatches and (?P<stages>\d+) stages",
        ),
        SettingSentence("checkpointing", "activation checkpointing", r"Applied (?P<mode>\w+) activation checkpointing"),
        SettingSentence(
            "precision",
            "mixed_precision_param",
            r"['\"]mixed_precision_param['\"]: ['\"](?P<mixed_precision_param>\w+)",
        ),
        # Without FSDP, and with tensor or pipeline parallelism, the weights' own type is computed in.
        SettingSentence("precision", "Mixed precision", r"Mixed precision training is (?P<mixed>disabled)"),
        SettingSentence("precision", "training.dtype", r"training\.dtype\W+(?P<dtype>\w+)"),
        SettingSentence("precision", " training active", r"(?P<low_precision>Float8|MXFP8|MX) .*training active"),
        SettingSentence("precision", "Swapped to ", r"Swapped to (?P<low_precision>Float8|MX)Linear"),
        # Without linear layers it is of experts alone.
        SettingSentence(
            "precision", " quantization for ", r"to use dynamic (?P<quantized>\w+) quantization for .*\blinear"
        ),
        SettingSentence(
            "peak", "Peak flops undefined for", r"Peak flops undefined for.*, fallback to (?P<fallback>\w+)"
        ),
        # On a CPU it divides by the peak of a device that the run does not use.
        SettingSentence("peak", "CPU capacity: ", r"CPU capacity: (?P<fallback>.+?) with [0-9.]+ ?GiB"),
        # Primus dumps the arguments.
        SettingSentence(
            "checkpointing",
            "activation_checkpoint.mode",
            r"activation_checkpoint\.mode\W+(?P<mode>none|full|selective)(?! ignored)",
        ),
        SettingSentence("model", "total parameters", r"Model (?P<model_name>\S+ \S+) size: [\d,]+ total parameters"),
        SettingSentence("parameters", " total parameters", r"size: (?P<of_model>[\d,]+) total parameters"),
    ),
    names=(
        Name("model_parameters", "parameters:of_model"),
        Name("device_mesh", "mesh:parallelism"),
        Name("device_mesh", "mesh:dimensions"),
        Name("global_batch_size", "batch:global_batch_size"),
        # The pipeline cuts the local batch into micro-batches of its own.
        *(
            Name("micro_batch_size", "batch:local_batch_size", when={f"mesh:{printed}": no_pipeline})
            for printed, no_pipeline in (("parallelism", "(?!.*pp=(?!1,)).*"), ("dimensions", "(?!.*pp).*"))
        ),
        Name("num_microbatches", "pipeline:microbatches"),
        Name("pipeline_stages", "pipeline:stages"),
        Name("seq_length", "batch:seq_length"),
        *(Name(quantity, f"model:{name}", when=kind) for kind in (_LLAMA, _QWEN) for name, quantity in _SHAPE.items()),
        # A model configured by transformers' names; its other sizes have no one meaning here.
        Name("num_layers", "model:num_hidden_layers"),
        *(Name("num_query_groups", "model:n_kv_heads", when=kind) for kind in (_LLAMA, _QWEN)),
        Name("ffn_multiple_of", "model:multiple_of"),
        Name("ffn_dim_multiplier", "model:ffn_dim_multiplier", when=_LLAMA),
        Name("ffn_hidden_size", "model:hidden_dim", when=_QWEN),
        Name("kv_channels", "model:head_dim", when=_QWEN),
        # Every second layer, or some operators: not the core of the attention, as elsewhere.
        Name("recompute_scheme", "checkpointing:mode", when={"checkpointing:mode": "selective"}),
        Name("model_name", "model:model_name"),
        # The printed MFU is then a share of that device's peak.
        Name("mfu_peak_device", "peak:fallback"),
    ),
    choices=(
        Choice("group_query_attention", "False", {"model:n_kv_heads": "null|None"}),
        Choice("gated_linear_unit", "True", _LLAMA),
        Choice("gated_linear_unit", "True", _QWEN),
        Choice("untie_embeddings_and_output_weights", "True", _LLAMA),
        *(
            Choice("uncounted", "experts", {f"model:{name}": value})
            for name, value in (("moe_args.num_experts", r"\d+"), ("moe_enabled", "true"))
        ),
        Choice("recompute", "none", {"checkpointing:mode": "none"}),
        Choice("recompute", "full", {"checkpointing:mode": "full"}),
        Choice("recompute", "selective", {"checkpointing:mode": "selective"}),
        Choice("precision", "fp8", {"precision:quantized": "(?:mxfp8|float8|fp8).*"}),
        Choice("precision", "fp4", {"precision:quantized": "(?:mxfp4|nvfp4|fp4).*"}),
        Choice("precision", "fp8", {"precision:low_precision": ".+"}),
        Choice("precision", "bf16", {"precision:mixed": "disabled", "precision:dtype": "bfloat16"}),
        Choice("precision", "fp32", {"precision:mixed": "disabled"}),
        Choice("precision", "bf16", {"precision:mixed_precision_param": "bfloat16"}),
        Choice("precision", "fp32", {"precision:mixed_precision_param": "float32"}),
    ),
    samples=(
        Sample(
            "[rank0]:[titan] 2025-07-01 10:01:00,101 - root - INFO - Training starts at step 1, with local batch size 1, "
            "global batch size 8, sequence length 8192, total steps 1000 (warmup 200)\n"
            "[rank0]:[titan] 2025-07-01 10:02:03,456 - root - INFO - step: 20  loss:  6.1384  grad_norm:  1.2031  "
            "memory: 49.50GiB(62.10%)  tps: 5,856  tflops: 1,010.16  mfu: 34.29%",
            {
                "timestamp": "2025-07-01T10:02:03.456000",
                "step": 20,
                "train_steps": 1000,
                "loss": 6.1384,
                "grad_norm": 1.2031,
                "max_memory_reserved_bytes": 49.5 * GIB,
                "logged_tokens_per_second_per_device": 5856.0,
                "logged_tflops_per_second_per_device": 1010.16,
                "logged_mfu": 0.3429,
            },
        ),
        Sample(
            "[2025-09-11 14:09:47,568581][I][components/metrics:437:log] step:  2  loss: 14.4458  "
            "memory:  8.50GiB(13.20%)  tps: 6,697  tflops: 62.15  mfu: N/A",
            {
                "timestamp": "2025-09-11T14:09:47.568581",
                "step": 2,
                "loss": 14.4458,
                "max_memory_reserved_bytes": 8.5 * GIB,
                "logged_tokens_per_second_per_device": 6697.0,
                "logged_tflops_per_second_per_device": 62.15,
            },
        ),
    ),
)
