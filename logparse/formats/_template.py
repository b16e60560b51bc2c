"""Copy this file to add a format; README.md in this folder explains how. One line says which trainer prints it.

The line that this template reads:

    step 12/500 | time 3.25 s | loss 2.5000 | batch 64 |
"""

from logparse.formats._base import LogFormat, Name, Reading, Sample, SettingSentence

FORMAT = LogFormat(
    name="template",
    title="an example trainer",
    framework="Example",
    marker=("| time ",),
    head=r"step (?P<step>\d+)/(?P<train_steps>\d+) \|",
    pair=r"(\w+) ([^|]*?)\s*\|",
    separator=r"\|",
    labels={
        "time": Reading("elapsed_time_per_iteration_ms", scale=1000, suffix=" s"),
        "loss": Reading("loss"),
        "batch": Reading("global_batch_size"),
    },
    ignored=frozenset({"colour"}),
    sentences=(SettingSentence("start", "training on", r"training on (?P<devices>\d+) devices"),),
    names=(Name("world_size", "start:devices"),),
    samples=(
        Sample(
            "step 12/500 | time 3.25 s | loss 2.5000 | batch 64 |",
            {
                "step": 12,
                "train_steps": 500,
                "elapsed_time_per_iteration_ms": 3250.0,
                "loss": 2.5,
                "global_batch_size": 64,
            },
        ),
    ),
)
