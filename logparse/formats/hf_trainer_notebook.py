"""The bar that the Hugging Face Trainer draws in a notebook: ``[ 22/290 02:50 < 38:04, 0.12 it/s, Epoch 0.36/5]``.

Its clock has whole seconds, and its rate is the mean since the start; the last bar of a training prints none. The bar of
an evaluation has no epoch.

Source: huggingface/transformers 4.x and 5.x, src/transformers/utils/notebook.py, NotebookProgressBar.
"""

from logparse.formats._base import NUMBER, LogFormat, Sample
from logparse.formats.hf_trainer import FORMAT as DICTS

FORMAT = LogFormat(
    name="hf-trainer-notebook",
    title="Hugging Face Trainer (bar in a notebook)",
    framework="Hugging Face Trainer",
    log_of="hf-trainer",
    beneath=3,
    rate_covers="start",
    marker=(", Epoch ",),
    head=(
        r"\[ *(?P<step>[1-9]\d*)/(?P<train_steps>\d+) (?P<runtime_seconds>\d[\d:]*)"
        rf"(?: < [\d:]+, (?P<logged_steps_per_second>{NUMBER}) it/s)?, Epoch (?P<epochs_done>[\d.]+)/(?P<epochs>\d+)\]"
    ),
    pair="",
    labels={},
    required=("step",),
    redrawn=True,
    companions=tuple(c for c in DICTS.companions if c.marker == "Total batch size "),
    **DICTS.of_the_run,
    samples=(
        Sample(
            " [ 22/290 02:50 < 38:04, 0.12 it/s, Epoch 0.36/5]",
            {
                "step": 22,
                "train_steps": 290,
                "runtime_seconds": 170.0,
                "logged_steps_per_second": 0.12,
                "epochs_done": 0.36,
                "epochs": 5,
            },
        ),
        Sample(
            "\\        /    Total batch size = 8 | Total steps = 290\n [290/290 1:02:50, Epoch 5/5]",
            {
                "step": 290,
                "train_steps": 290,
                "runtime_seconds": 3770.0,
                "epochs_done": 5.0,
                "epochs": 5,
                "global_batch_size": 8,
            },
        ),
    ),
)
