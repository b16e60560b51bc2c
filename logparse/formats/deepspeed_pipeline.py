"""DeepSpeed's pipeline engine, 0.3 to 0.19: one printed line per ``steps_per_print`` steps.

``steps: N loss: ... iter time (s): ... samples/sec: ...``. The time is the mean of the interval, to the ms.
"""

from logparse.formats._base import NUMBER, LogFormat, Reading, Sample
from logparse.formats.deepspeed import FORMAT as ENGINE

FORMAT = LogFormat(
    name="deepspeed-pipeline",
    title="DeepSpeed, pipeline engine",
    beneath=1,
    marker=("iter time (s): ",),
    head=rf"\bsteps: (?P<step>[1-9]\d*) loss: (?P<loss>{NUMBER}) ",
    pair=rf"([A-Za-z_][^:]*?): ({NUMBER})(?:\s|$)",
    separator=r"\s",
    labels={
        "iter time (s)": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "samples/sec": Reading("logged_samples_per_second"),
    },
    # Other losses that the model names.
    ignored_patterns=(r"\w+(?: \w+)*",),
    **ENGINE.of_the_run,
    samples=(
        Sample(
            "steps: 20 loss: 6.3155 iter time (s): 0.834 samples/sec: 19.185",
            {
                "step": 20,
                "loss": 6.3155,
                "elapsed_time_per_iteration_ms": 834.0,
                "logged_samples_per_second": 19.185,
            },
        ),
        Sample(
            "steps: 400 loss: 2.8161 aux loss: 0.0132 iter time (s): 4.127 samples/sec: 62.031",
            {
                "step": 400,
                "loss": 2.8161,
                "elapsed_time_per_iteration_ms": 4127.0,
                "logged_samples_per_second": 62.031,
            },
        ),
    ),
)
