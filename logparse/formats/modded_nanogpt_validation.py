"""modded-nanogpt, where only the lines of validation were kept: ``step:125/1480 val_loss:4.3719 train_time:29736ms step_avg:258.57ms``.

``train_time`` is the training time so far; the clock stops in validation, so two lines give the time of the steps between.

Source: KellerJordan/modded-nanogpt 2024-10 to 2026, train_gpt.py.
"""

from logparse.formats._base import LogFormat, Sample
from logparse.formats.modded_nanogpt import FORMAT as TRAINING

FORMAT = LogFormat(
    name="modded-nanogpt-validation",
    title="modded-nanogpt (lines of validation alone)",
    framework="modded-nanogpt",
    log_of="modded-nanogpt",
    beneath=3,
    marker=(" val_loss:",),
    head=r"\bstep:(?P<step>\d+)/(?P<train_steps>\d+) val_loss:\S+ ",
    pair=TRAINING.pair,
    separator=TRAINING.separator,
    labels={"train_time": TRAINING.labels["train_time"]},
    ignored=TRAINING.ignored,
    required=("step", "runtime_seconds"),
    records=TRAINING.records,
    samples=(
        Sample(
            "step:125/1480 val_loss:4.3750 train_time:29500ms step_avg:256.50ms\nstep:126/1480 next",
            {"step": 125, "train_steps": 1480, "runtime_seconds": 29.5},
        ),
    ),
)
