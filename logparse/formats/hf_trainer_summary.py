"""The last line of the Hugging Face Trainer, where nothing else is printed: ``{'train_runtime': 112.8, ...}``.

With ``report_to`` and a large ``logging_steps``, a log of standard output alone holds only this dict: the time of the
training, its steps per second and its epochs. It is one row, at the last step.

Source: huggingface/transformers 4.x and 5.x, src/transformers/trainer_utils.py, speed_metrics.
"""

from logparse.formats._base import NUMBER, LogFormat, Reading, Sample
from logparse.formats.hf_trainer import FORMAT as DICTS

FORMAT = LogFormat(
    name="hf-trainer-summary",
    title="Hugging Face Trainer (last line alone)",
    framework="Hugging Face Trainer",
    log_of="hf-trainer",
    # Under its bar.
    beneath=4,
    rate_covers="run",
    marker=("{'train_runtime': ",),
    head=rf"\{{'train_runtime': '?(?P<training_seconds>{NUMBER})'?, ",
    pair=DICTS.pair,
    separator=DICTS.separator,
    labels={
        "train_samples_per_second": Reading("logged_samples_per_second"),
        "train_steps_per_second": Reading("logged_steps_per_second"),
        "epoch": Reading("training_epochs"),
    },
    ignored=DICTS.ignored | {"train_loss"},
    ignored_patterns=DICTS.ignored_patterns,
    required=("step",),
    **DICTS.of_the_run,
    samples=(
        Sample(
            "{'train_runtime': 112.8251, 'train_samples_per_second': 5.105, 'train_steps_per_second': 0.319, "
            "'train_loss': 0.2694, 'epoch': 3.0}",
            {
                "step": 36,
                "train_steps": 36,
                "training_seconds": 112.8251,
                "training_epochs": 3.0,
                "logged_samples_per_second": 5.105,
                "logged_steps_per_second": 0.319,
            },
        ),
    ),
)
