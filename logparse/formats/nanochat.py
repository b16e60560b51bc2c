"""nanochat, 2025 to 2026, base_train, mid_train and chat_sft: one line per step with its time.

``step 00010/04000 (0.25%) | loss: ... | dt: 461.17ms | tok/sec: 1,136,864 | ...``. ``tok/sec`` is over all devices,
``loss`` a moving mean. Pretraining counts steps from 0, fine-tuning from 1. ``mfu`` is in percent with two decimals, and
0.00 on a device whose peak nanochat does not know.
"""

from logparse.formats._base import Block, Choice, LogFormat, Name, Reading, Sample, SettingSentence

_SHAPE = {
    "sequence_len": "seq_length",
    "vocab_size": "vocab_size",
    "n_layer": "num_layers",
    "n_head": "num_attention_heads",
    "n_kv_head": "num_query_groups",
    "n_embd": "hidden_size",
}
_LOADED = "Building model with config: {"
_MFU = Reading("logged_mfu", scale=0.01)


def _loaded(name: str, value: str = r"\d+") -> SettingSentence:
    return SettingSentence("loaded", _LOADED, rf"'{name}': '?(?P<{name}>{value})")


FORMAT = LogFormat(
    name="nanochat",
    title="nanochat",
    framework="nanochat",
    marker=("lrm: ",),
    head=r"\bstep (?P<step>\d+)(?:/(?P<train_steps>\d+))? \([\d.]+%\) \|",
    pair=r"([A-Za-z_][\w /]*): ([^|]*?)\s*(?:\||$)",
    separator=r"\|",
    from_zero=True,
    labels={
        "loss": Reading("loss"),
        "dt": Reading("elapsed_time_per_iteration_ms", suffix="ms"),
        "tok/sec": Reading("logged_tokens_per_second"),
        "mfu": _MFU,
        "bf16_mfu": _MFU,
        "epoch": Reading("epoch", suffix=r"(?: pq: \d+ rg: \d+)?"),
    },
    ignored=frozenset({"lrm", "total time", "eta"}),
    blocks=(
        Block(
            kind="model",
            marker="Model config:",
            start=r"^Model config:\s*$",
            end=r"^\}",
            entry=r'"(\w+)": "?([^",]*)',
            max_lines=40,
        ),
    ),
    sentences=(
        SettingSentence("devices", "Distributed world size: ", r"Distributed world size: (?P<world_size>\d+)"),
        SettingSentence(
            "batch",
            "Tokens / micro-batch / rank: ",
            r"Tokens / micro-batch / rank: (?P<micro_batch_size>\d+) x (?P<seq_length>\d+) =",
        ),
        SettingSentence(
            "batch", "=> gradient accumulation", r"=> gradient accumulation steps: (?P<num_microbatches>\d+)"
        ),
        SettingSentence("precision", "COMPUTE_DTYPE: ", r"COMPUTE_DTYPE: torch\.(?P<compute_dtype>\w+)"),
        SettingSentence("precision", "training enabled (", r"FP8 training enabled \((?P<fp8_recipe>\w+)"),
        *(_loaded(name) for name in _SHAPE),
        _loaded("window_pattern", "[A-Z]+"),
    ),
    names=(
        Name("world_size", "devices:world_size"),
        Name("data_parallel_size", "devices:world_size"),
        Name("micro_batch_size", "batch:micro_batch_size"),
        Name("num_microbatches", "batch:num_microbatches"),
        Name("seq_length", "batch:seq_length"),
        *(Name(quantity, f"{kind}:{name}") for kind in ("model", "loaded") for name, quantity in _SHAPE.items()),
    ),
    choices=(
        Choice("precision", "fp8", {"precision:fp8_recipe": ".+"}),
        Choice("precision", "bf16", {"precision:compute_dtype": "bfloat16"}),
        Choice("precision", "fp16", {"precision:compute_dtype": "float16"}),
        Choice("precision", "fp32", {"precision:compute_dtype": "float32"}),
        Choice("untie_embeddings_and_output_weights", "True", {"model:n_layer": r"\d+"}),
        Choice("untie_embeddings_and_output_weights", "True", {"loaded:n_layer": r"\d+"}),
        # Most layers see half the sequence; the pattern shows which.
        *(Choice("uncounted", "windows", {f"{kind}:window_pattern": ".*S.*"}) for kind in ("model", "loaded")),
    ),
    samples=(
        Sample(
            "step 00011/04000 (0.28%) | loss: 8.164339 | lrm: 0.30 | dt: 458.37ms | tok/sec: 1,143,809 | "
            "bf16_mfu: 43.37 | epoch: 1 pq: 0 rg: 33 | total time: 0.01m | eta: 30.5m",
            {
                "step": 11,
                "train_steps": 4000,
                "loss": 8.164339,
                "elapsed_time_per_iteration_ms": 458.37,
                "logged_tokens_per_second": 1143809.0,
                "logged_mfu": 0.4337,
                "epoch": 1,
            },
        ),
        Sample(
            "step 00133 (0.00%) | loss: nan | lrm: 1.00 | dt: 4.98ms | tok/sec: 25,696 | mfu: 0.00 | epoch: 1 | "
            "total time: 0.01m",
            {
                "step": 133,
                "loss": float("nan"),
                "elapsed_time_per_iteration_ms": 4.98,
                "logged_tokens_per_second": 25696.0,
                "logged_mfu": 0.0,
                "epoch": 1,
            },
        ),
    ),
)
