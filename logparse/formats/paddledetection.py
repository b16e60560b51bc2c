"""PaddleDetection 2.x: ``Epoch: [0] [  20/7330] learning_rate: 0.000333 loss: 2.3 eta: 1:23:45 batch_cost: 0.5012 data_cost: 0.0010 ips: 4.0 images/s``.

Epochs and batches count from 0. ``batch_cost`` is the mean of the last batches (``log_iter``), loading data included, and
``ips`` images/s of one device. The stamp has no year and is not read.

Source: PaddlePaddle/PaddleDetection, ppdet/engine/callbacks.py.
"""

from logparse.formats._base import LogFormat, Reading, Sample, event

FORMAT = LogFormat(
    name="paddledetection",
    title="PaddleDetection",
    framework="PaddleDetection",
    trains_on="images",
    traces=(r"\bppdet[/.]",),
    pauses_inside=False,
    marker=(" batch_cost: ",),
    head=r"\bEpoch: \[(?P<epoch>\d+)\] \[ *(?P<step_in_epoch>\d+)/(?P<steps_per_epoch>\d+)\] ",
    pair=r"([A-Za-z_][\w.]*): (\d+ days?, [\d:]+|\S+)(?: images/s)?,?(?:\s+|$)",
    separator=r"\s",
    labels={
        "learning_rate": Reading("learning_rate"),
        "loss": Reading("loss"),
        "batch_cost": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "ips": Reading("logged_samples_per_second_per_device"),
    },
    ignored_patterns=(r".*",),
    first_epoch=0,
    records=(event("save ends", "Save checkpoint: ", r"Save checkpoint: "),),
    samples=(
        Sample(
            "[05/01 12:00:00] ppdet.engine INFO: Epoch: [1] [  20/7330] learning_rate: 0.000333 loss_bbox: 0.5 loss: 2.312500 "
            "eta: 2 days, 1:23:45 batch_cost: 0.5125 data_cost: 0.0010 ips: 4.0000 images/s",
            {
                "timestamp": "1904-05-01T12:00:00",
                "step": 7350,
                "epoch": 1,
                "step_in_epoch": 20,
                "steps_per_epoch": 7330,
                "learning_rate": 0.000333,
                "loss": 2.3125,
                "elapsed_time_per_iteration_ms": 512.5,
                "logged_samples_per_second_per_device": 4.0,
            },
        ),
    ),
)
