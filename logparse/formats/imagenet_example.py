"""The ImageNet example of pytorch/examples and scripts like it: ``Epoch: [0][  10/5005]  Time  0.345 ( 0.600)  Data  0.010 ( 0.100)  Loss 6.9 (7.0)``.

``Time`` is that of the last batch, loading data included, and in parentheses the mean of the epoch. Epochs count from 0, batches
from 0 or, since 2022, from 1.

Source: pytorch/examples, imagenet/main.py.
"""

from logparse.formats._base import NUMBER, LogFormat, Reading, Sample

FORMAT = LogFormat(
    name="imagenet-example",
    title="pytorch/examples, ImageNet",
    framework="pytorch/examples",
    trains_on="images",
    pauses_inside=False,
    rate_covers="step",
    marker=("Epoch: [",),
    head=r"\bEpoch: \[(?P<epoch>\d+)\]\[ *(?P<step_in_epoch>\d+)/(?P<steps_per_epoch>\d+)\]\s+",
    pair=rf"([A-Za-z]+):? +({NUMBER}) \( *[^()]*\)(?:\s+|$)",
    separator=r"\s",
    labels={
        "Time": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "Loss": Reading("loss"),
    },
    ignored_patterns=(r".*",),
    first_epoch=0,
    samples=(
        Sample(
            "Epoch: [1][  10/5005]\tTime  0.345 ( 0.600)\tData  0.010 ( 0.100)\tLoss 6.8750e+00 (7.0000e+00)\tAcc@1   0.39 (  0.12)",
            {
                "step": 5015,
                "epoch": 1,
                "step_in_epoch": 10,
                "steps_per_epoch": 5005,
                "elapsed_time_per_iteration_ms": 345.0,
                "loss": 6.875,
            },
        ),
    ),
)
