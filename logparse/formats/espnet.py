"""ESPnet 2: ``(trainer:754) INFO: 1epoch:train:1-100batch: iter_time=0.001, forward_time=0.1, loss=85.1, ..., train_time=0.412``.

The line is the mean of the batches that it names. ``train_time`` is from update to update, in seconds: with ``accum_grad`` that
of several batches, which are what the line counts. ``context.corrections`` divides it.

Source: espnet/espnet, espnet2/train/trainer.py, train_one_epoch, and espnet2/train/reporter.py, 202301 and 2024.
"""

from logparse.formats._base import NUMBER, LogFormat, Reading, Sample

FORMAT = LogFormat(
    name="espnet",
    title="ESPnet 2",
    framework="ESPnet",
    time_of="update",
    trains_on="speech",
    traces=(r"\bespnet2?[/.]",),
    pauses_inside=False,
    rate_covers="interval",
    marker=("epoch:train:",),
    head=r"\b(?P<epoch>\d+)epoch:train: ?\d+-(?P<step_in_epoch>\d+)batch: ",
    pair=rf"([A-Za-z_]+)=({NUMBER})(?:, |\s*$)",
    separator=", ",
    labels={
        "loss": Reading("loss"),
        "grad_norm": Reading("grad_norm"),
        "train_time": Reading("elapsed_time_per_iteration_ms", scale=1000),
    },
    ignored_patterns=(r".*",),
    samples=(
        Sample(
            "[node1] 2023-05-06 12:00:00,125 (trainer:754) INFO: 1epoch:train:101-200batch: iter_time=0.001, forward_time=0.125, "
            "loss_ctc=90.5, loss=85.125, backward_time=0.150, grad_norm=12.5, clip=100.000, loss_scale=1.000, "
            "optim_step_time=0.025, optim0_lr0=2.500e-05, train_time=0.415",
            {
                "timestamp": "2023-05-06T12:00:00.125000",
                "step": 200,
                "epoch": 1,
                "step_in_epoch": 200,
                "loss": 85.125,
                "grad_norm": 12.5,
                "elapsed_time_per_iteration_ms": 415.0,
            },
        ),
    ),
)
