"""timm: ``Train: 0 [  50/1251 (  4%)]  Loss: 6.95 (6.95)  Time: 0.512s, 2000.00/s  (0.600s, 1706.00/s)  LR: 1.0e-06  Data: 0.01 (0.02)``.

Epochs and updates count from 0. ``Time`` is that of the last update, loading data included, and in parentheses the mean of the
epoch; images/s are of all devices.

Source: huggingface/pytorch-image-models, train.py.
"""

from logparse.formats._base import NUMBER, Companion, LogFormat, Reading, Sample, event

FORMAT = LogFormat(
    name="timm",
    title="timm",
    framework="timm",
    trains_on="images",
    pauses_inside=False,
    rate_covers="step",
    marker=("%)]  Loss: ",),
    head=r"\bTrain: (?P<epoch>\d+) \[ *(?P<step_in_epoch>\d+)/(?P<steps_per_epoch>\d+) \( *[\d.]+%\)\]  ",
    pair=rf"(\w[\w ]*): +({NUMBER}s?)(?:,? |\s*$)",
    separator=r"\s",
    labels={
        "Loss": Reading("loss"),
        "Time": Reading("elapsed_time_per_iteration_ms", scale=1000, suffix="s"),
        "LR": Reading("learning_rate"),
    },
    ignored_patterns=(r".*",),
    companions=(Companion("  Time: ", rf"\bTime: +[\d.]+s, +(?P<logged_samples_per_second>{NUMBER})/s"),),
    records=(event("save ends", "Current checkpoints:", r"Current checkpoints:"),),
    samples=(
        Sample(
            "Train: 1 [  50/1251 (  4%)]  Loss: 6.250 (6.50)  Time: 0.512s, 2000.00/s  (0.640s, 1600.00/s)  LR: 1.250e-04  "
            "Data: 0.010 (0.128)\n"
            "Train: 1 [ 100/1251 (  8%)]  Loss",
            {
                "step": 1301,
                "epoch": 1,
                "step_in_epoch": 50,
                "steps_per_epoch": 1251,
                "loss": 6.25,
                "elapsed_time_per_iteration_ms": 512.0,
                "logged_samples_per_second": 2000.0,
                "learning_rate": 1.25e-4,
            },
        ),
    ),
    first_epoch=0,
)
