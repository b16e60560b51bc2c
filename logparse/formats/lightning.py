"""Lightning 2.x, outside NeMo: its bar, ``Epoch 3:  12%|█▏ | 120/1000 [01:23<04:56, 3.21it/s, v_num=0, train_loss=2.31]``.

Epochs count from 0, batches of an epoch from 1; with ``accumulate_grad_batches`` an update of the weights is several
batches. The bar's clock of whole seconds gives the time and begins again with each epoch; it includes validation within
the epoch. The bar of a batch shows the metrics of the batch before: they are not read. The bar of 1.x (``loss=`` in front)
is ``lightning-1``. If the length of an epoch is unknown, only steps of the first epoch are read.
"""

from logparse.formats._base import LogFormat, Sample
from logparse.formats._lightning import TRAINER, TRAINER_CHOICES, TRAINER_NAMES

FORMAT = LogFormat(
    name="lightning",
    title="Lightning 2.x (progress bar)",
    framework="Lightning",
    traces=(r"\bpytorch_lightning[/.]|\blightning[/.](?:pytorch|fabric)[/.]",),
    beneath=1,
    marker=("v_num=",),
    # Before the first batch the remaining time is unknown.
    head=(
        r"\bEpoch (?P<epoch>\d+): +(?:\d+%)?\|[^|\r]*\| *(?P<step_in_epoch>\d+)/(?:(?P<steps_per_epoch>\d+)|\?) "
        r"\[(?P<runtime_seconds>[\d:]+)<[\d:]+, [^,\]\r]*, v_num=[^\]\r]*\]?"
    ),
    pair="",
    labels={},
    clock_of_epoch=True,
    required=("step",),
    redrawn=True,
    first_epoch=0,
    sentences=TRAINER,
    names=TRAINER_NAMES,
    choices=TRAINER_CHOICES,
    samples=(
        Sample(
            "Epoch 3:  12%|█▏        | 120/1000 [01:23<10:08,  1.45it/s, v_num=0, train_loss=2.310]",
            {
                "step": 3120,
                "epoch": 3,
                "step_in_epoch": 120,
                "steps_per_epoch": 1000,
                "runtime_seconds": 83.0,
            },
        ),
        Sample(
            "Epoch 0: |          | 938/? [1:02:08<00:00,  0.25it/s, v_num=xy7k]",
            {"step": 938, "epoch": 0, "step_in_epoch": 938, "runtime_seconds": 3728.0},
        ),
    ),
)
