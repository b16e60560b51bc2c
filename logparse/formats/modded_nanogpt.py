"""modded-nanogpt's speed runs, 2024 to 2026: one line per step with the training time so far, in whole ms.

``step:13/1393 train_time:370ms step_avg:123.47ms``. Steps count from 1. The clock stops in validation; in records
up to 2025 it begins again after ten steps. ``step_avg`` is the mean since then.
"""

from logparse.formats._base import NUMBER, LogFormat, Reading, Sample, evaluation

_CLOCK = Reading("runtime_seconds", scale=0.001, suffix="ms")

FORMAT = LogFormat(
    name="modded-nanogpt",
    title="modded-nanogpt",
    framework="modded-nanogpt",
    marker=("_avg:",),
    # Lines of validation have the clock too; the head takes train_ of the next label to exclude them.
    head=r"\bstep:(?P<step>\d+)/(?P<train_steps>\d+) train_",
    pair=r"([a-z_]+):(\S+)(?:\s|$)",
    separator=r"\s",
    labels={"loss": Reading("loss"), "time": _CLOCK, "train_time": _CLOCK},
    ignored=frozenset({"step_avg"}),
    required=("step", "runtime_seconds"),
    records=(evaluation("_avg:", rf"\bstep:(?P<step>\d+)/\d+ val_loss:(?P<loss>{NUMBER}) ", "validation"),),
    samples=(
        Sample(
            "step:13/1393 train_time:370ms step_avg:123.47ms",
            {"step": 13, "train_steps": 1393, "runtime_seconds": 0.37},
        ),
        Sample(
            "step:2/5100 train_loss:10.9581 train_time:560ms step_avg:nanms",
            {"step": 2, "train_steps": 5100, "loss": 10.9581, "runtime_seconds": 0.56},
        ),
    ),
)
