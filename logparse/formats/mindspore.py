"""MindSpore's own callbacks: LossMonitor prints the loss of a step, TimeMonitor the time of an epoch or a sink."""

from logparse.formats._base import NUMBER, Companion, LogFormat, Sample

FORMAT = LogFormat(
    name="mindspore",
    title="MindSpore LossMonitor and TimeMonitor",
    framework="MindSpore",
    marker=("loss is ",),
    head=rf"epoch:\s*(?P<epoch>\d+)\s+step:\s*(?P<step_in_epoch>\d+),\s*loss is (?P<loss>{NUMBER})",
    pair="",
    labels={},
    required=("step_in_epoch",),
    companions=(
        Companion(
            "per step time:",
            rf"epoch time:\s*{NUMBER} ms,\s*per step time:\s*(?P<elapsed_time_per_iteration_ms>{NUMBER}) ms",
            belongs_to="all",
        ),
    ),
    samples=(
        Sample(
            "epoch: 1 step: 3, loss is 2.3012\nTrain epoch time: 605.500 ms, per step time: 201.833 ms",
            {
                "step": 3,
                "epoch": 1,
                "step_in_epoch": 3,
                "loss": 2.3012,
                "elapsed_time_per_iteration_ms": 201.833,
            },
        ),
    ),
)
