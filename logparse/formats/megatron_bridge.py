"""Megatron-Bridge 0.2 to 0.6, its first rank: ``Step Time : 6.13s GPU utilization: 426.6MODEL_TFLOP/s/GPU``.

The last rank prints Megatron's own line, which is read where the log has it. These lines have no step: they are counted.
The utilization is no percentage.
"""

from logparse.formats._base import LogFormat, Reading, Sample
from logparse.formats.nemo import FORMAT as NEMO

FORMAT = LogFormat(
    name="megatron-bridge",
    title="Megatron-Bridge (Step Time)",
    framework="Megatron-Bridge",
    beneath=1,
    marker=("Step Time : ",),
    head=r"\bStep ",
    pair=r"(Time|GPU utilization) ?: ?(\S+)(?:\s|$)",
    separator=r"\s",
    labels={
        "Time": Reading("elapsed_time_per_iteration_ms", scale=1000, suffix="s"),
        "GPU utilization": Reading("logged_tflops_per_second_per_device", suffix=r"(?:MODEL_)?TFLOP/s/GPU"),
    },
    counted=True,
    **NEMO.of_the_run,
    samples=(
        Sample(
            "Step Time : 6.13s GPU utilization: 426.6MODEL_TFLOP/s/GPU",
            {"step": 1, "elapsed_time_per_iteration_ms": 6130.0, "logged_tflops_per_second_per_device": 426.6},
        ),
        Sample(
            "0: Step Time : 12.50s GPU utilization: 1310.2TFLOP/s/GPU",
            {"step": 1, "elapsed_time_per_iteration_ms": 12500.0, "logged_tflops_per_second_per_device": 1310.2},
        ),
    ),
)
