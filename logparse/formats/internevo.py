"""InternEvo and InternLM's trainer, 2023 to 2024: one line per step, ``label=value`` parted by blanks, at first by commas.

``tflops=186.6 step=1 loss=11.63 tgs (tokens/gpu/second)=3917.95 ...``. Steps count from 0. No time: ``fwd_bwd_time``
leaves out the optimizer; ``tgs`` is tokens of one device over the time of that step. ``tflops`` counts recomputation.
``num_samples_in_batch`` are documents packed into the batch, not its sequences.
"""

from logparse.formats._base import NUMBER, Choice, LogFormat, Name, Reading, Sample, SettingSentence

_RATE = "tgs (tokens/gpu/second)"
_PARALLEL = {
    "data": "data_parallel_size",
    "pipeline": "pipeline_model_parallel_size",
    "tensor": "tensor_model_parallel_size",
}


# Of the configuration, printed as lines at the start, or as the Python file that it is.
_PACK = "pack_sample_into_one"
_DATA = {"seq_len": "seq_length", "micro_bsz": "micro_batch_size", "micro_num": "num_microbatches"}
# Constants of the file with its names, and what they are.
_CONSTANTS = {
    "SEQ_LEN": "seq_len",
    "HIDDEN_SIZE": "hidden",
    "NUM_ATTENTION_HEAD": "heads",
    "NUM_LAYER": "layers",
    "VOCAB_SIZE": "vocabulary",
}
_OF_FILE = {
    "seq_len": "seq_length",
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "layers": "num_layers",
    "vocabulary": "vocab_size",
}
_TYPES = {"fp16": "float16|half", "bf16": "bfloat16", "fp32": "float32"}


def _size(kind: str) -> SettingSentence:
    return SettingSentence(
        "parallel", "Distributed environment is", rf"^(?>.*?initialized, ).*\b{kind} parallel size: (?P<{kind}>\d+)"
    )


FORMAT = LogFormat(
    name="internevo",
    title="InternEvo (InternLM)",
    framework="InternEvo",
    pauses_inside=False,
    rate_covers="step",
    marker=(f"{_RATE}=",),
    head=rf"\btflops=(?P<logged_tflops_per_second_per_device>{NUMBER})[ ,]step=(?P<step>\d+)[ ,]",
    # Of the norms of several groups none is that of the model.
    pair=r"(tgs \(tokens/gpu/second\)|[A-Za-z_][\w/]*)=(\{[^{}]*\}|[^\s,{}]+)(?:[\s,]|$)",
    separator=r"[\s,]",
    labels={
        "loss": Reading("loss"),
        _RATE: Reading("logged_tokens_per_second_per_device"),
        "lr": Reading("learning_rate"),
        "loss_scale": Reading("loss_scale"),
        "grad_norm": Reading("grad_norm", absent=r"\{.*\}"),
        "moe_loss": Reading("load_balancing_loss"),
        "num_consumed_tokens": Reading("consumed_tokens"),
    },
    ignored=frozenset(
        {
            "real_tgs",
            "micro_num",
            "inf_nan_skip_batches",
            "num_samples_in_batch",
            "largest_length",
            "largest_batch",
            "smallest_batch",
            "adam_beta2",
            "fwd_bwd_time",
            "acc",
            "perplexity",
            "loss_from_metric",
        }
    ),
    ignored_patterns=(r"(?:tgs|acc|tokens|loss)/\w+",),
    required=("step", "loss"),
    sentences=(
        *(_size(kind) for kind in _PARALLEL),
        *(SettingSentence("data", f"{name}: ", rf"(?:^|\s){name}: (?P<{name}>\d+)\s*$") for name in _DATA),
        SettingSentence("data", f"{_PACK}: ", rf"(?:^|\s){_PACK}: (?P<{_PACK}>\w+)\s*$"),
        *(
            SettingSentence("file", f"{constant} = ", rf"^\s*{constant} = (?P<{name}>\d+)\s*(?:#.*)?$")
            for constant, name in _CONSTANTS.items()
        ),
        # Documents show parts of other configurations below that of the run.
        SettingSentence("file", 'dtype="torch.', r'^\s*dtype="torch\.(?P<dtype>\w+)"', first=True),
        SettingSentence(
            "file", "checkpoint=", r"^\s*checkpoint=(?P<checkpoint>True|False|[01](?:\.\d+)?),", first=True
        ),
        SettingSentence("file", f"{_PACK}=", rf"^\s*{_PACK}=(?P<{_PACK}>\w+),"),
    ),
    names=(
        *(Name(quantity, f"parallel:{kind}") for kind, quantity in _PARALLEL.items()),
        *(Name(quantity, f"data:{name}") for name, quantity in _DATA.items()),
        *(Name(quantity, f"file:{name}") for name, quantity in _OF_FILE.items()),
    ),
    # Samples are packed to the length; without this, attention stays within each of them.
    choices=(
        *(Choice("packed_documents", "True", {f"{kind}:{_PACK}": "False"}) for kind in ("data", "file")),
        *(Choice("precision", name, {"file:dtype": spelled}) for name, spelled in _TYPES.items()),
        # The share of layers that are computed again.
        Choice("recompute", "none", {"file:checkpoint": r"False|0(?:\.0+)?"}),
        Choice("recompute", "full", {"file:checkpoint": r"True|1(?:\.0+)?"}),
    ),
    samples=(
        Sample(
            "2023-07-07 12:29:01,636\tINFO train.py:323 in record_current_batch_training_metrics -- "
            "tflops=189.83371103277346,step=1,loss=11.613704681396484,tgs (tokens/gpu/second)=4274.45,"
            "lr=6.000000000000001e-07,loss_scale=65536.0,grad_norm=65.150786641452,micro_num=4,"
            "num_consumed_tokens=262144,inf_nan_skip_batches=0,fwd_bwd_time=3.67",
            {
                "timestamp": "2023-07-07T12:29:01.636000",
                "step": 1,
                "logged_tflops_per_second_per_device": 189.83371103277346,
                "loss": 11.613704681396484,
                "logged_tokens_per_second_per_device": 4274.45,
                "learning_rate": 6.000000000000001e-07,
                "loss_scale": 65536.0,
                "grad_norm": 65.150786641452,
                "consumed_tokens": 262144,
            },
        ),
        Sample(
            "2024-08-28 10:56:01,469\tINFO pipeline.py:681 in record_current_batch_training_metrics -- "
            "tflops=105.89925496973669 step=49 loss=0.32518792152404785 real_tgs=2956.7 "
            "tgs (tokens/gpu/second)=3359.06 tgs/last_tgs_1=3359.06 tgs/tgs_all=3181.84 lr=8.756803171472813e-05 "
            "loss_scale=65536.0 grad_norm={'0_default': 1.4511364692486448, '1_fp32': 5.752340752537247} "
            "moe_loss=3.296875 micro_num=8 num_consumed_tokens=52428800 acc/en=0.1 loss/cn=nan fwd_bwd_time=4.0",
            {
                "timestamp": "2024-08-28T10:56:01.469000",
                "step": 49,
                "logged_tflops_per_second_per_device": 105.89925496973669,
                "loss": 0.32518792152404785,
                "logged_tokens_per_second_per_device": 3359.06,
                "learning_rate": 8.756803171472813e-05,
                "loss_scale": 65536.0,
                "load_balancing_loss": 3.296875,
                "consumed_tokens": 52428800,
            },
        ),
    ),
)
