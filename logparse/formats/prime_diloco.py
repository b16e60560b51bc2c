"""prime, DiLoCo: ``step: 5, loss: 10.85, tokens_per_second: 627185.73, mfu: 50.70, diloco_peers: 2`` of one worker.

No time: the rate is the mean of the last ten steps on the devices of the worker (a node), and so is ``mfu``. The outer step
is not in it. ``batch_size`` of the printed configuration is that of the worker too. The stamp has no date and is not read.

Source: PrimeIntellect-ai/prime (also prime-diloco), src/zeroband/train.py and src/zeroband/utils/logger.py; a log is in pull
request 25 of prime-diloco.
"""

from logparse.formats._base import LogFormat, Name, Reading, Sample, SettingSentence

FORMAT = LogFormat(
    name="prime-diloco",
    title="prime (DiLoCo)",
    framework="prime",
    traces=(r"\bzeroband[/.]",),
    pauses_inside=False,
    rate_covers="recent",
    marker=(", tokens_per_second: ",),
    head=r"\[Rank \d+\] step: (?P<step>\d+), ",
    pair=r"([a-z_]+): ([^,\s]+)(?:, |\s*$)",
    separator=r", ",
    labels={
        "loss": Reading("loss"),
        "tokens_per_second": Reading("logged_tokens_per_second"),
        "mfu": Reading("logged_mfu", scale=0.01),
    },
    ignored_patterns=(r".*",),
    required=("step", "loss"),
    sentences=tuple(
        SettingSentence("config", f"  {name}: ", rf"\[DEBUG\] \[Rank \d+\] +{name}: (?P<{name}>\d+)\s*$")
        for name in ("batch_size", "micro_bs", "seq_length")
    ),
    names=(
        Name("global_batch_size", "config:batch_size"),
        Name("micro_batch_size", "config:micro_bs"),
        Name("seq_length", "config:seq_length"),
    ),
    samples=(
        Sample(
            "10:20:30 [INFO] [Rank 0] step: 5, loss: 10.8542, tokens_per_second: 627185.50, mfu: 50.50, diloco_peers: 2",
            {"step": 5, "loss": 10.8542, "logged_tokens_per_second": 627185.5, "logged_mfu": 50.5 * 0.01},
        ),
        Sample(
            "10:20:30 [INFO] [Rank 0] step: 6, loss: 10.8125, tokens_per_second: 625519.25, mfu: 50.25",
            {"step": 6, "loss": 10.8125, "logged_tokens_per_second": 625519.25, "logged_mfu": 50.25 * 0.01},
        ),
    ),
)
