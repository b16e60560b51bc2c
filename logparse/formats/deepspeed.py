"""DeepSpeed's engine, 0.3 to 0.19, under a script that prints no step lines of its own.

``step=N, skipped=..., lr=[...], mom=[...]``, then the line of the throughput timer. Neither has the time of a step:
``CurrSamplesPerSec`` is of the last step alone and excludes the time between steps. The stamps of the lines give it.
"""

from logparse.formats._base import NUMBER, Companion, LogFormat, Reading, Sample
from logparse.formats._deepspeed import BLOCKS, CHOICES, NAMES, RECORDS, SENTENCES

FORMAT = LogFormat(
    name="deepspeed",
    title="DeepSpeed, engine (step= and SamplesPerSec lines)",
    beneath=2,
    rate_of_passes=True,
    marker=("skipped=",),
    head=r"\bstep=(?P<step>[1-9]\d*), ",
    pair=r"(\w+)=(\[[\[(].*|\[[^\]]*\]|[^,\s]*)(?:,|\s|$)",
    separator=",",
    labels={
        "lr": Reading("learning_rate", suffix=r",.*"),  # one of each group of parameters; the first
        # Since the start of training; a correction takes the rows apart.
        "skipped": Reading("skipped_iterations"),
    },
    # The betas of Adam.
    ignored=frozenset({"mom"}),
    required=("step",),
    companions=(
        Companion(
            "SamplesPerSec=",
            rf"\d+/(?:micro_step=)?\d+.*?, (?:RunningAvgSamplesPerSec={NUMBER}, )?(?:Curr)?SamplesPerSec="
            rf"(?P<logged_samples_per_second>{NUMBER})",
        ),
    ),
    records=RECORDS,
    blocks=BLOCKS,
    sentences=SENTENCES,
    names=NAMES,
    choices=CHOICES,
    samples=(
        Sample(
            "[2025-03-02 10:20:31,104] [INFO] [logging.py:96:log_dist] [Rank 0] step=20, skipped=1, "
            "lr=[9.5e-06, 9.5e-06], mom=[(0.9, 0.95), (0.9, 0.95)]\n"
            "[2025-03-02 10:20:31,105] [INFO] [timer.py:258:stop] epoch=0/micro_step=80/global_step=20, "
            "RunningAvgSamplesPerSec=161.25, CurrSamplesPerSec=160.5, MemAllocated=3.96GB, MaxMemAllocated=22.95GB",
            {
                "timestamp": "2025-03-02T10:20:31.104000",
                "step": 20,
                "learning_rate": 9.5e-06,
                "skipped_iterations": 1,
                "logged_samples_per_second": 160.5,
            },
        ),
        Sample(
            "machine1: [2021-07-01 01:24:59,832] [INFO] [logging.py:60:log_dist] [Rank 0] step=150, skipped=17, "
            "lr=[0.00035], mom=[[0.9, 0.95]]\n"
            "machine1: [2021-07-01 01:24:59,852] [INFO] [timer.py:154:stop] 0/1200, SamplesPerSec=463.86",
            {
                "timestamp": "2021-07-01T01:24:59.832000",
                "step": 150,
                "learning_rate": 0.00035,
                "skipped_iterations": 17,
                "logged_samples_per_second": 463.86,
            },
        ),
    ),
)
