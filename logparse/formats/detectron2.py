"""Detectron2: ``[03/02 10:20:30 d2.utils.events]:  eta: 0:10:00  iter: 19  total_loss: 2.3  time: 0.3456  last_time: 0.34``.

Iterations count from 0. ``time`` is the mean of the iterations since the line before, in 0.5 and earlier (without ``last_time``)
since the start, so that a slow one is seen little. Evaluation and saves are not in it. The stamp has no year.

Source: facebookresearch/detectron2, detectron2/utils/events.py.
"""

from logparse.formats._base import LogFormat, Reading, Sample

MIB = float(2**20)

FORMAT = LogFormat(
    name="detectron2",
    title="Detectron2",
    framework="Detectron2",
    trains_on="images",
    traces=(r"\bdetectron2[/.]", r" d2\.(?:utils|engine|checkpoint)"),
    pauses_inside=False,
    rate_covers="interval",
    marker=("  iter: ",),
    head=r"  iter: (?P<step>\d+)  ",
    pair=r"([A-Za-z_][\w/.]*): (\S+)(?:\s+|$)",
    separator=r"\s",
    labels={
        "total_loss": Reading("loss"),
        "time": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "lr": Reading("learning_rate"),
        "max_mem": Reading("max_memory_allocated_bytes", scale=MIB, suffix="M"),
    },
    ignored_patterns=(r".*",),
    samples=(
        Sample(
            "[03/02 10:20:30 d2.utils.events]:  eta: 1 day, 0:10:00  iter: 39  total_loss: 2.312  loss_cls: 0.9  time: 0.3450  "
            "last_time: 0.3389  data_time: 0.0123  last_data_time: 0.0101   lr: 0.00039962  max_mem: 2304M",
            {
                "timestamp": "1904-03-02T10:20:30",
                "step": 39,
                "loss": 2.312,
                "elapsed_time_per_iteration_ms": 345.0,
                "learning_rate": 0.00039962,
                "max_memory_allocated_bytes": 2304 * MIB,
            },
        ),
    ),
)
