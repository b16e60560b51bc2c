"""Meta lingua: ``step: 10  acc: 0  loss: 9.1234  grad: 1.23e+00  flops: 4.10e+14  wps: 4.35e+04  iter:  0.1234  data: 0.001``.

``wps`` is tokens of one device per second, the mean since the line before, and ``flops`` follows from it, both of three
digits; ``iter`` is the last pass alone. The stamps, with microseconds, give the time. The clock after them counts from the
start of the process, set-up included, and is not read.

Source: facebookresearch/lingua, apps/main/train.py; printed in the README of a fork, on two A100.
"""

from logparse.formats._base import NUMBER, Companion, LogFormat, Reading, Sample

FORMAT = LogFormat(
    name="lingua",
    title="Meta lingua",
    framework="lingua",
    traces=(r"\blingua[/.](?:distributed|checkpoint|optim|args)\b",),
    marker=("  wps: ",),
    head=r"- (?:\d+ days?, )?\d+:\d\d:\d\d - step: (?P<step>\d+)  acc: \d+  ",
    pair=rf"([a-z_]+): +({NUMBER})%?(?: W)?(?:\s|$)",
    separator=r"\s",
    labels={
        "loss": Reading("loss"),
        "grad": Reading("grad_norm"),
        "flops": Reading("logged_tflops_per_second_per_device", scale=1e-12),
        "wps": Reading("logged_tokens_per_second_per_device"),
        "lr": Reading("learning_rate"),
    },
    ignored_patterns=(r".*",),
    required=("step",),
    companions=(Companion("  wps: ", r"(?P<timestamp>\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d+) - [^-]*- step: "),),
    samples=(
        Sample(
            "0: INFO    26-03-02 10:19:25.125000 - 0:00:05 - Starting build of optimizer...\n"
            "0: INFO    26-03-02 10:20:30.123456 - 0:01:10 - step: 20  acc: 0  loss:  9.1250  grad: 1.25e+00  "
            "flops: 4.00e+14  wps: 4.25e+04  iter:  0.3750  data: 0.001  lr: 3.00e-06  mem: 71%  pow: 512.5 W",
            {
                "timestamp": "2026-03-02T10:20:30.123456",
                "step": 20,
                "loss": 9.125,
                "grad_norm": 1.25,
                "logged_tflops_per_second_per_device": 400.0,
                "logged_tokens_per_second_per_device": 42500.0,
                "learning_rate": 3e-6,
            },
        ),
    ),
)
