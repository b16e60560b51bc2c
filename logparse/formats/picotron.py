"""picotron: ``[rank 0] Step: 12    | Loss: 8.5469 | Global batch size: 524.29K | Tokens/s: 84.10K | Tokens/s/GPU: 10.51K | ...``.

No time: the rates are of the step itself, without its save, of three digits or more. ``Global batch size`` is tokens, rounded
too, so it gives no batch. ``MFU`` is against 989.5 TFLOP/s, ``Memory usage`` in 10**9 bytes.

Source: huggingface/picotron, train.py and picotron/utils.py (``to_readable_format``).
"""

from logparse.formats._base import LogFormat, Reading, Sample

FORMAT = LogFormat(
    name="picotron",
    title="picotron",
    framework="picotron",
    traces=(r"\bpicotron[/.]",),
    pauses_inside=False,
    rate_covers="step",
    marker=(" | Tokens/s/GPU: ",),
    head=r"Step: (?P<step>\d+) +\| ",
    pair=r"([A-Z][A-Za-z/ ]*): +([^|]*?)\s*(?:\||$)",
    separator=r"\|",
    labels={
        "Loss": Reading("loss"),
        "Tokens/s": Reading("logged_tokens_per_second", multiples=True),
        "Tokens/s/GPU": Reading("logged_tokens_per_second_per_device", multiples=True),
        "MFU": Reading("logged_mfu", scale=0.01, suffix="%"),
        "Memory usage": Reading("max_memory_reserved_bytes", scale=1e9, suffix="GB"),
    },
    ignored=frozenset({"Global batch size", "Tokens"}),
    required=("step", "loss"),
    samples=(
        Sample(
            "[rank 0] Step: 12    | Loss: 8.5469 | Global batch size: 524.29K | Tokens/s:  84.10K | Tokens/s/GPU:  10.51K | "
            "Tokens:   6.29M/1.00B | MFU: 15.25% | Memory usage:  41.75GB",
            {
                "step": 12,
                "loss": 8.5469,
                "logged_tokens_per_second": 84100.0,
                "logged_tokens_per_second_per_device": 10510.0,
                "logged_mfu": 15.25 * 0.01,
                "max_memory_reserved_bytes": 41.75 * 1e9,
            },
        ),
    ),
)
