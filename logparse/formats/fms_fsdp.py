"""fms-fsdp: a record of several lines, ``step: 100``, then ``loss: 7.1``, ``current step time: 3.2`` and others, one on each.

``current step time`` is the mean of the steps since the record before, in seconds, a save included. Until 2024-04, and in
the training of speculators, it is ``speed for these 100 steps``. ``overall`` values are since the start and are not read.
The lines of the loss and the learning rate are not read either: their words are on the step lines of most other trainers,
which would be read more slowly.

Source: foundation-model-stack/fms-fsdp, main_training_llama.py, fms_fsdp/utils/train_utils.py and checkpointing_utils.py,
speculator/train_speculator_utils.py.
"""

from logparse.formats._base import (
    Choice,
    Companion,
    LogFormat,
    Name,
    PairLines,
    Reading,
    Record,
    Sample,
    SettingSentence,
    event,
)

# The configuration of the run, on one line. ``tp_size`` is of the speculator's base model only.
_CONFIG = "running with these configs"
_SETTINGS = (
    *("model_variant", "seq_length", "batch_size", "sharding_strategy"),
    *("fsdp_activation_checkpointing", "selective_checkpointing", "mixed_precision"),
)
_CHECKPOINTING = "config:fsdp_activation_checkpointing"
_SHARDED = {"config:sharding_strategy": "fsdp|hsdp|ddp"}

FORMAT = LogFormat(
    name="fms-fsdp",
    title="fms-fsdp",
    framework="fms-fsdp",
    traces=(r"\bfms_fsdp[/.]",),
    pauses_inside=True,
    rate_covers="interval",
    marker=("step: ",),
    head=r"^(?:\[?\w+\]?: ?)?step: (?P<step>\d+)\s*$",
    pair="",
    pair_lines=PairLines(
        marker=(
            *("tokens seen: ", "gradient norm: ", "reserved memory: ", "allocated memory: "),
            *("current step time: ", "current token per gpu per sec: ", "speed for these ", "active memory: "),
        ),
        pair=r"^(?:\[?\w+\]?: ?)?([A-Za-z][A-Za-z ]*?)(?: \d+ steps)?: (\S+)\s*$",
    ),
    labels={
        "tokens seen": Reading("consumed_tokens"),
        "gradient norm": Reading("grad_norm"),
        "reserved memory": Reading("max_memory_reserved_bytes"),
        "allocated memory": Reading("max_memory_allocated_bytes"),
        "active memory": Reading("max_memory_allocated_bytes"),
        "current step time": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "speed for these": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "current token per gpu per sec": Reading("logged_tokens_per_second_per_device"),
    },
    ignored_patterns=(r".*",),
    companions=(Companion("Training for ", r"Training for (?P<train_steps>\d+) steps\s*$", belongs_to="file"),),
    records=(
        Record(
            "timers",
            "model_save_time",
            r"^model_save_time = (?P<max_ms>[\d.]+)",
            fixed={"name": "save-checkpoint"},
            scale=1000,
        ),
        event("checkpoint loaded", "start_step = ", r"^start_step = (?P<step>\d+)"),
    ),
    sentences=tuple(
        SettingSentence("config", _CONFIG, rf"^(?>.*?{_CONFIG} ).*\b{name}='?(?P<{name}>[^',)]+)") for name in _SETTINGS
    ),
    names=(
        Name("model_name", "config:model_variant"),
        Name("seq_length", "config:seq_length"),
        Name("micro_batch_size", "config:batch_size"),
        Name("batch_size_per_device", "config:batch_size"),
    ),
    choices=(
        *(
            Choice(quantity, "1", _SHARDED)
            for quantity in ("tensor_model_parallel_size", "pipeline_model_parallel_size", "num_microbatches")
        ),
        Choice("recompute", "none", {_CHECKPOINTING: "False"}),
        Choice("recompute", "full", {_CHECKPOINTING: "True", "config:selective_checkpointing": "1"}),
        Choice("precision", "fp32", {"config:mixed_precision": "False"}),
    ),
    samples=(
        Sample(
            "step: 100\nloss: 7.125\nLR: 0.00015\ntokens seen: 104857600\ngradient norm: 1.5\nreserved memory: 51539607552\n"
            "allocated memory: 47244640256\ncurrent step time: 3.25\noverall step time: 3.5\n"
            "current token per gpu per sec: 5041\noverall token per gpu per sec: 4681",
            {
                "step": 100,
                "consumed_tokens": 104857600,
                "grad_norm": 1.5,
                "max_memory_reserved_bytes": 51539607552.0,
                "max_memory_allocated_bytes": 47244640256.0,
                "elapsed_time_per_iteration_ms": 3250.0,
                "logged_tokens_per_second_per_device": 5041.0,
            },
        ),
        Sample(
            "Training for 1000 steps\nstep: 200\ntokens seen: 209715200\nactive memory: 47244640256\nspeed for these 100 steps: 3.25\n"
            "overall speed: 3.5\ntoken per day: 25885440000",
            {
                "step": 200,
                "train_steps": 1000,
                "consumed_tokens": 209715200,
                "max_memory_allocated_bytes": 47244640256.0,
                "elapsed_time_per_iteration_ms": 3250.0,
            },
        ),
    ),
)
