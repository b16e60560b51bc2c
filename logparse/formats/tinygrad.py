"""tinygrad's training scripts: ``   12 4.36 s run, 11.9375 loss, 0.00003 LR, 1454.57 GB used, 398116.13 GFLOPS``.

ResNet, BERT and CIFAR print milliseconds, ``3211 2269.50 ms run,   52.72 ms python, ...``, with accuracies in between. The
memory is of all devices; the FLOP/s count all operations, so neither is read. BERT and ResNet count steps from 0, llama3
from 1. Without a step and ``run``, as llama3 printed in the middle of 2025, lines are not read.

Source: tinygrad/tinygrad 0.9 to 0.11, examples/mlperf/model_train.py and examples/hlb_cifar10.py. Printed in
tinygrad/tinygrad#13803 and #9706.
"""

from logparse.formats._base import NUMBER, LogFormat, Reading, Sample

FORMAT = LogFormat(
    name="tinygrad",
    title="tinygrad",
    framework="tinygrad",
    traces=(r"\btinygrad[/.](?:tensor|engine|runtime|nn|device)\b",),
    pauses_inside=False,
    rate_covers="step",
    marker=("s run, ",),
    head=(
        r"(?:^|[\r\s])(?P<step>\d+) +(?:(?P<elapsed_time_per_iteration_ms>[\d.]+) m|(?P<logged_seconds_per_step>[\d.]+) )s run, "
    ),
    pair=rf" *(?:(?P<label>\w+)=(?P<value>\w+)|(?P<number>{NUMBER}) (?P<unit>[A-Za-z][\w /*]*?))(?:, |\s*$)",
    separator=", ",
    labels={"loss": Reading("loss"), "LR": Reading("learning_rate")},
    ignored_patterns=(r".*",),
    required=("step",),
    samples=(
        Sample(
            "   12 4.25 s run, 11.9375 loss, 0.000000000003 LR, 1454.57 GB used, 398116.13 GFLOPS",
            {"step": 12, "logged_seconds_per_step": 4.25, "loss": 11.9375, "learning_rate": 3e-12},
        ),
        Sample(
            " 3211 2269.50 ms run,   52.72 ms python,   9.12 ms fetch data, 2207.66 ms AMD * 8,  1.36 loss, 0.000003 LR, "
            "1085.78 GB used, 511371.64 GFLOPS",
            {"step": 3211, "elapsed_time_per_iteration_ms": 2269.5, "loss": 1.36, "learning_rate": 3e-6},
        ),
    ),
)
