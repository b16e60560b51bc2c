"""mmcv 1.x, of MMDetection 2 and its kin: ``Epoch [1][50/7330]  lr: 1.978e-03, eta: 3:00:00, time: 0.345, data_time: 0.010, memory: 1234, loss: 2.3``.

``time`` is the mean of the iterations since the line before, loading data included. An iteration is one pass of each device.

Source: open-mmlab/mmcv 1.x, mmcv/runner/hooks/logger/text.py.
"""

from logparse.formats._base import LogFormat, Reading, Sample, event

MIB = float(2**20)

FORMAT = LogFormat(
    name="mmcv",
    title="mmcv 1.x (MMDetection 2, MMSegmentation 0.x)",
    framework="mmcv",
    trains_on="images",
    traces=(r"\bmmcv[/.](?:runner|utils|ops)\b",),
    pauses_inside=True,
    rate_covers="interval",
    marker=("Epoch [", "Iter ["),
    head=(
        r"\b(?:Iter \[(?P<step>\d+)/(?P<train_steps>\d+)\]|Epoch \[(?P<epoch>\d+)\]\[(?P<step_in_epoch>\d+)/"
        r"(?P<steps_per_epoch>\d+)\])\s+"
    ),
    pair=r"([A-Za-z_][\w./]*): (\d+ days?, [\d:]+|[^\s,]+)(?:,\s*|\s*$)",
    separator=",",
    labels={
        "lr": Reading("learning_rate"),
        "time": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "memory": Reading("max_memory_allocated_bytes", scale=MIB),
        "loss": Reading("loss"),
        "grad_norm": Reading("grad_norm"),
    },
    ignored_patterns=(r".*",),
    records=(
        event("save starts", "Saving checkpoint at ", r"Saving checkpoint at \d+ epochs"),
        event("save starts", "Saving checkpoint at ", r"Saving checkpoint at (?P<step>\d+) iterations"),
    ),
    samples=(
        Sample(
            "2022-03-02 10:20:30,123 - mmdet - INFO - Epoch [2][50/7330]\tlr: 1.978e-03, eta: 1 day, 3:00:00, time: 0.345, "
            "data_time: 0.010, memory: 1234, loss_cls: 0.5, loss: 2.3125",
            {
                "timestamp": "2022-03-02T10:20:30.123000",
                "step": 7380,
                "epoch": 2,
                "step_in_epoch": 50,
                "steps_per_epoch": 7330,
                "learning_rate": 1.978e-3,
                "elapsed_time_per_iteration_ms": 345.0,
                "max_memory_allocated_bytes": 1234 * MIB,
                "loss": 2.3125,
            },
        ),
        Sample(
            "2022-03-02 10:20:30,123 - mmseg - INFO - Iter [100/80000]\tlr: 9.989e-03, eta: 9:10:00, time: 0.415, "
            "data_time: 0.008, memory: 8000, decode.loss_ce: 1.25, loss: 1.75",
            {
                "timestamp": "2022-03-02T10:20:30.123000",
                "step": 100,
                "train_steps": 80000,
                "learning_rate": 9.989e-3,
                "elapsed_time_per_iteration_ms": 415.0,
                "max_memory_allocated_bytes": 8000 * MIB,
                "loss": 1.75,
            },
        ),
    ),
)
