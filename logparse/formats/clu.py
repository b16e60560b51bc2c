"""T5X, Scenic, Flax examples and others with clu's writer: ``[1000] learning_rate=0.01, loss=2.31, timing/steps_per_second=3.41``.

The rate is the mean since the line before. absl's stamp has no year and is not read. Tokens per second are of all devices.
T5X names the collection of a line: ``[1000] collection=train``, or ``collection=training_eval/c4`` of an evaluation.

Source: google/CommonLoopUtils 2026-01, clu/metric_writers/logging_writer.py; google-research/t5x 2026-04, t5x/trainer.py,
MetricsManager.
"""

from logparse.formats._base import NUMBER, LogFormat, Reading, Sample, evaluation

FORMAT = LogFormat(
    name="clu",
    title="T5X, Scenic, Flax examples (clu)",
    framework="clu",
    traces=(r"\bt5x[/.]", r"\bscenic[/.]"),
    pauses_inside=True,
    rate_covers="interval",
    marker=("steps_per_second", "steps_per_sec="),
    head=r"\] \[(?P<step>\d+)\] (?:collection=train )?",
    not_steps="collection=(?:train[^ ]|t[^r]|[^t])",
    pair=rf"([\w/]+)=({NUMBER})(?:, |\s*$)",
    separator=", ",
    labels={
        "timing/steps_per_second": Reading("logged_steps_per_second"),
        "steps_per_second": Reading("logged_steps_per_second"),
        "steps_per_sec": Reading("logged_steps_per_second"),
        "timing/target_tokens_per_second": Reading("logged_tokens_per_second"),
        "timing/target_tokens_per_second_per_core": Reading("logged_tokens_per_second_per_device"),
        "loss": Reading("loss"),
        "train_loss": Reading("loss"),
        "learning_rate": Reading("learning_rate"),
        "train_learning_rate": Reading("learning_rate"),
        "train/loss": Reading("loss"),
    },
    ignored_patterns=(r".*",),
    required=("step", "logged_steps_per_second"),
    records=(
        evaluation(
            "] collection=training_eval/",
            rf"\] \[(?P<step>\d+)\] collection=training_eval/(?P<dataset>\S+) (?:.*, )?loss=(?P<loss>{NUMBER})",
        ),
    ),
    samples=(
        Sample(
            "I0302 10:20:30.123456 140 logging_writer.py:48] [1000] accuracy=0.5, cross_ent_loss=900.0, learning_rate=0.01, "
            "loss=2.3125, timing/steps_per_second=3.4125, timing/target_tokens_per_second=447283.0",
            {
                "timestamp": "1904-03-02T10:20:30.123456",
                "step": 1000,
                "learning_rate": 0.01,
                "loss": 2.3125,
                "logged_steps_per_second": 3.4125,
                "logged_tokens_per_second": 447283.0,
            },
        ),
        Sample(
            "I0302 10:20:30.123456 140 logging_writer.py:48] [1000] collection=train learning_rate=0.01, loss=2.3125, "
            "timing/steps_per_second=3.4125",
            {
                "timestamp": "1904-03-02T10:20:30.123456",
                "step": 1000,
                "learning_rate": 0.01,
                "loss": 2.3125,
                "logged_steps_per_second": 3.4125,
            },
        ),
        Sample(
            "I0302 10:20:30.123456 140 logging_writer.py:35] [200] steps_per_second=12.5, train_learning_rate=0.1, train_loss=6.5",
            {
                "timestamp": "1904-03-02T10:20:30.123456",
                "step": 200,
                "learning_rate": 0.1,
                "loss": 6.5,
                "logged_steps_per_second": 12.5,
            },
        ),
    ),
)
