"""DeepSpeed's throughput timer, 0.6 to 0.19, where the engine's ``step=`` lines were cut: ``epoch=0/micro_step=80/global_step=20, RunningAvgSamplesPerSec=161.2``.

``global_step`` counts updates of the weights. ``CurrSamplesPerSec`` is of the last step alone and excludes the time between
steps; the stamps of the lines give the time.

Source: deepspeedai/DeepSpeed 0.9 to 0.19, deepspeed/utils/timer.py, ThroughputTimer.stop.
"""

from logparse.formats._base import LogFormat, Sample
from logparse.formats._deepspeed import BLOCKS, CHOICES, NAMES, RECORDS, SENTENCES

FORMAT = LogFormat(
    name="deepspeed-global-step",
    title="DeepSpeed (lines of the timer alone)",
    framework="DeepSpeed",
    log_of="deepspeed",
    beneath=3,
    marker=("/global_step=",),
    head=r"\bepoch=\d+/micro_step=\d+/global_step=(?P<step>\d+), RunningAvgSamplesPerSec=",
    pair="",
    labels={},
    required=("step",),
    records=RECORDS,
    blocks=BLOCKS,
    sentences=SENTENCES,
    names=NAMES,
    choices=CHOICES,
    samples=(
        Sample(
            "[2024-05-06 07:08:09,250] [INFO] [timer.py:260:stop] epoch=0/micro_step=80/global_step=20, "
            "RunningAvgSamplesPerSec=161.25, CurrSamplesPerSec=160.5, MemAllocated=3.96GB, MaxMemAllocated=22.95GB",
            {"timestamp": "2024-05-06T07:08:09.250000", "step": 20},
        ),
    ),
)
