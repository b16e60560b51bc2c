"""Lightning 1.x, outside NeMo: its bar, ``Epoch 3:  12%|█▏ | 120/1016 [01:23<04:56, 3.21it/s, loss=2.31, v_num=0]``.

The bar counts the batches of training and of validation, ``Validating:`` or ``Validation DataLoader 0:`` those of one
validation: its batches are no steps. Epochs count from 0, batches of an epoch from 1; with ``accumulate_grad_batches`` an
update is several batches. The clock of whole seconds gives the time, or the moving mean of the bar where the clock gives
none. CloudWatch prints ``#015`` for the carriage return in front. ``loss`` is a mean of 20 batches and is not read.

Source: Lightning-AI/pytorch-lightning, pytorch_lightning/callbacks/progress/tqdm_progress.py of 1.5 (progress.py before), and
logs of its issues 4225 and 14094; with ``#015`` in aws-samples/sagemaker-distributed-training-workshop#6.
"""

from logparse.formats._base import Companion, LogFormat, Sample
from logparse.formats.lightning import FORMAT as LATER

FORMAT = LogFormat(
    name="lightning-1",
    title="Lightning 1.x (progress bar)",
    framework="Lightning",
    beneath=1,
    pauses_inside=True,
    rate_covers="recent",
    marker=("v_num=",),
    head=(
        r"(?:\b|#015)Epoch (?P<epoch>\d+): +(?:\d+%)?(?:\|[^|\r]*\|)? *(?P<step_in_epoch>\d+)/(?P<steps_per_epoch>\d+) "
        r"\[(?P<runtime_seconds>[\d:]+)<[\d:?]+, *(?:(?P<logged_seconds_per_step>[0-9.]+)s/it|"
        r"(?P<logged_steps_per_second>[0-9.]+)it/s|[^,\]\r]*), loss=[^,\]\r]*, v_num=[^\]\r]*\]?"
    ),
    pair="",
    labels={},
    clock_of_epoch=True,
    required=("step",),
    redrawn=True,
    first_epoch=0,
    companions=tuple(
        Companion(word, rf"{word}(?: \d+)?: +\d+%(?:\|[^|\r]*\|)? *\d+/(?P<validation_batches>\d+) \[", "next")
        for word in ("Validating", "Validation DataLoader")
    ),
    **LATER.of_the_run,
    samples=(
        Sample(
            "Validating:  50%|█████     | 8/16 [00:02<00:02, 37.48it/s]\n"
            "Epoch 0: 100%|██████████| 1008/1016 [00:33<00:00, 30.25it/s, loss=0.223, v_num=7]\n"
            "Epoch 1:  12%|█▏        | 120/1016 [00:04<00:30, 30.00it/s, loss=0.210, v_num=7, acc=0.875]",
            {
                "step": 1120,
                "epoch": 1,
                "step_in_epoch": 120,
                "steps_per_epoch": 1000,
                "runtime_seconds": 4.0,
                "logged_steps_per_second": 30.0,
            },
        ),
        Sample(
            "Validation DataLoader 0:  50%|█████     | 8/16 [00:02<00:02, 37.48it/s]\n"
            "Epoch 0: 100% 1010/1016 [00:33<00:00, 30.25it/s, loss=0.223, v_num=7]\n"
            "Epoch 1:  12% 121/1016 [00:05<00:30, 30.00it/s, loss=0.210, v_num=7]",
            {
                "step": 1121,
                "epoch": 1,
                "step_in_epoch": 121,
                "steps_per_epoch": 1000,
                "runtime_seconds": 5.0,
                "logged_steps_per_second": 30.0,
            },
        ),
    ),
)
