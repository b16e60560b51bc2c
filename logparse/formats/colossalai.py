"""ColossalAI 0.3, its benchmark scripts: ``INFO: Step time: 19.714`` in seconds; the bar after it has the step.

ColossalAI has no line of its own for a step: other examples print what their author chose. A step's time of these scripts
is of forward, backward and optimizer, up to the device's last kernel.
"""

from logparse.formats._base import Companion, LogFormat, Reading, Sample

FORMAT = LogFormat(
    name="colossalai",
    title="ColossalAI (benchmark scripts)",
    framework="ColossalAI",
    marker=("Step time: ",),
    head=r"\bStep ",
    pair=r"\b(time): ([\d.]+)(?:\s|$)",
    separator=r"\s",
    labels={"time": Reading("elapsed_time_per_iteration_ms", scale=1000)},
    companions=(
        Companion("Step: ", r"\bStep: +\d+%\|[^|]*\| *(?P<step>[1-9]\d*)/(?P<train_steps>\d+) \[", belongs_to="behind"),
    ),
    samples=(
        Sample(
            "                    INFO     colossalai - colossalai - INFO: Step time: 22.885  \n"
            "Step:  20%|██        | 1/5 [00:22<01:31, 22.90s/it]",
            {"step": 1, "train_steps": 5, "elapsed_time_per_iteration_ms": 22885.0},
        ),
    ),
)
