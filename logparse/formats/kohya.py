"""kohya's sd-scripts and musubi-tuner: their bar, ``steps:  10%|█ | 160/1600 [05:00<45:00,  1.88s/it, avr_loss=0.123]``.

A step is an update. The bar's clock of whole seconds gives the time, with sampling and saving, or its moving mean where the
clock gives none. ``avr_loss`` is a mean over an epoch of steps.

Source: kohya-ss/sd-scripts, fine_tune.py and its other scripts.
"""

from logparse.formats._base import BAR_RATE, NUMBER, LogFormat, Name, Sample, SettingSentence

FORMAT = LogFormat(
    name="kohya",
    title="kohya sd-scripts, musubi-tuner",
    framework="kohya",
    trains_on="images",
    traces=(r"\bsd-scripts/|\bmusubi[-_]tuner/|\bkohya_ss/",),
    rate_covers="recent",
    marker=("steps: ",),
    head=(
        r"\bsteps: +\d+%\|[^|\r]*\| *(?P<step>[1-9]\d*)/(?P<train_steps>\d+) \[(?P<runtime_seconds>[\d:]+)<"
        + BAR_RATE
        + rf"(?:, (?:avr_loss|loss)=(?P<loss>{NUMBER}))?"
    ),
    pair="",
    labels={},
    required=("step",),
    redrawn=True,
    sentences=(
        SettingSentence("banner", "batch size per device", r"batch size per device / [^:]+: (?P<micro_batch_size>\d+)"),
        SettingSentence(
            "banner", "gradient accumulation", r"gradient accumulation steps / \S+ = (?P<num_microbatches>\d+)"
        ),
    ),
    names=(
        Name("micro_batch_size", "banner:micro_batch_size"),
        Name("batch_size_per_device", "banner:micro_batch_size"),
        Name("num_microbatches", "banner:num_microbatches"),
    ),
    samples=(
        Sample(
            "steps:  10%|█         | 160/1600 [05:00<45:00,  1.88s/it, avr_loss=0.123]",
            {
                "step": 160,
                "train_steps": 1600,
                "runtime_seconds": 300.0,
                "logged_seconds_per_step": 1.88,
                "loss": 0.123,
            },
        ),
        Sample(
            "steps:   1%|          | 10/1600 [00:08<21:12,  1.25it/s, loss=0.25]",
            {"step": 10, "train_steps": 1600, "runtime_seconds": 8.0, "logged_steps_per_second": 1.25, "loss": 0.25},
        ),
    ),
)
