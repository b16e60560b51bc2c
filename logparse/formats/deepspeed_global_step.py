"""DeepSpeed's throughput timer, 0.6 to 0.19, where the engine's ``step=`` lines were cut: ``epoch=0/micro_step=80/global_step=20, RunningAvgSamplesPerSec=161.2``.

``global_step`` counts updates of the weights; ``0/17`` in its place, to 0.7, the passes of an epoch. ``CurrSamplesPerSec`` is
of the last step alone and excludes the time between steps; the stamps of the lines give the time.

Source: deepspeedai/DeepSpeed 0.7 and 0.9 to 0.19, deepspeed/utils/timer.py, ThroughputTimer.stop.
"""

from logparse.formats._base import LogFormat, Reading, Sample
from logparse.formats.deepspeed import FORMAT as ENGINE

FORMAT = LogFormat(
    name="deepspeed-global-step",
    title="DeepSpeed (lines of the timer alone)",
    framework="DeepSpeed",
    log_of="deepspeed",
    beneath=3,
    rate_of_passes=True,
    marker=("RunningAvgSamplesPerSec=",),
    head=(
        r"(?:\bepoch=\d+/micro_step=\d+/global_step=|\[timer\.py:\d+:stop\] \d+/)(?P<step>\d+), "
        r"RunningAvgSamplesPerSec=[^,]*, "
    ),
    pair=r"(\w+)=([^,\s]+)(?:, |\s*$)",
    separator=", ",
    labels={
        "CurrSamplesPerSec": Reading("logged_samples_per_second"),
        "MaxMemAllocated": Reading("max_memory_allocated_bytes", scale=float(2**30), suffix="GB"),
    },
    ignored=frozenset({"MemAllocated"}),
    required=("step",),
    **ENGINE.of_the_run,
    samples=(
        Sample(
            "[2024-05-06 07:08:09,250] [INFO] [timer.py:260:stop] epoch=0/micro_step=80/global_step=20, "
            "RunningAvgSamplesPerSec=161.25, CurrSamplesPerSec=160.5, MemAllocated=3.96GB, MaxMemAllocated=22.95GB",
            {
                "timestamp": "2024-05-06T07:08:09.250000",
                "step": 20,
                "logged_samples_per_second": 160.5,
                "max_memory_allocated_bytes": 22.95 * 2**30,
            },
        ),
        Sample(
            "stdout: [2022-12-20 08:26:26,101] [INFO] [timer.py:197:stop] 0/17, RunningAvgSamplesPerSec=158.25, "
            "CurrSamplesPerSec=159.5, MemAllocated=1.75GB, MaxMemAllocated=2.5GB",
            {
                "timestamp": "2022-12-20T08:26:26.101000",
                "step": 17,
                "logged_samples_per_second": 159.5,
                "max_memory_allocated_bytes": 2.5 * 2**30,
            },
        ),
    ),
)
