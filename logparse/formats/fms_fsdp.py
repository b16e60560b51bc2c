"""fms-fsdp: a record of several lines, ``step: 100``, then ``loss: 7.1``, ``current step time: 3.2`` and others, one on each.

``current step time`` is the mean of the steps since the record before, in seconds, a save included; ``overall`` values are
since the start and are not read. The lines of the loss and the learning rate are not read either: their words are on the
step lines of most other trainers, which would be read more slowly.

Source: foundation-model-stack/fms-fsdp, fms_fsdp/utils/train_utils.py.
"""

from logparse.formats._base import LogFormat, PairLines, Reading, Sample

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
            *("current step time: ", "current token per gpu per sec: "),
        ),
        pair=r"^(?:\[?\w+\]?: ?)?([A-Za-z][A-Za-z ]*): (\S+)\s*$",
    ),
    labels={
        "tokens seen": Reading("consumed_tokens"),
        "gradient norm": Reading("grad_norm"),
        "reserved memory": Reading("max_memory_reserved_bytes"),
        "allocated memory": Reading("max_memory_allocated_bytes"),
        "current step time": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "current token per gpu per sec": Reading("logged_tokens_per_second_per_device"),
    },
    ignored_patterns=(r".*",),
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
    ),
)
