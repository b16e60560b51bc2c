"""MindSpeed-MM's example of DeepSeek-OCR2, 2026: ``iteration 1/1000 | learning rate: ... | elapsed time per iteration: 5.12``.

The time, in ms, is the mean since the start; ``context.corrections`` takes it apart. ``tokens per sample`` is tokens/s of
all devices since the start.
"""

from logparse.formats._base import LogFormat, MeanSinceStart, Reading, Sample

FORMAT = LogFormat(
    name="mindspeed-mm-ocr",
    mean_since_start=MeanSinceStart(0, 0.005, resumed=True),
    title="MindSpeed-MM, example of DeepSeek-OCR2",
    framework="MindSpeed-MM",
    pauses_inside=True,
    marker=("elapsed time per iteration: ",),
    head=r"\biteration +(?P<step>\d+)/ *(?P<train_steps>\d+) \|",
    pair=r"([a-z][\w ]*): *([^|]*?)\s*(?:\||$)",
    separator=r"\|",
    labels={
        "learning rate": Reading("learning_rate"),
        "global batch size": Reading("global_batch_size"),
        "loss": Reading("loss"),
        "grad norm": Reading("grad_norm"),
        "elapsed time per iteration": Reading("elapsed_time_per_iteration_ms"),
    },
    ignored=frozenset({"tokens per sample"}),
    samples=(
        Sample(
            "iteration        2/    1000 | learning rate: 5.000000E-06 | global batch size:     8 | loss: 1.234567E+00 "
            "| grad norm: 2.345678E+00 | elapsed time per iteration: 5123.45 | tokens per sample: 1598.2",
            {
                "step": 2,
                "train_steps": 1000,
                "learning_rate": 5e-06,
                "global_batch_size": 8,
                "loss": 1.234567,
                "grad_norm": 2.345678,
                "elapsed_time_per_iteration_ms": 5123.45,
            },
        ),
        Sample(
            "iteration       10/    1000 | learning rate: 5.000000E-06 | global batch size:     8 | loss: 1.125000E+00 "
            "| elapsed time per iteration: 3123.45",
            {
                "step": 10,
                "train_steps": 1000,
                "learning_rate": 5e-06,
                "global_batch_size": 8,
                "loss": 1.125,
                "elapsed_time_per_iteration_ms": 3123.45,
            },
        ),
    ),
)
