"""minimind: ``Epoch:[1/2](100/39695), loss: 7.518, logits_loss: 7.518, aux_loss: 0.0, lr: 0.0005, epoch_time: 4767.0min``.

A step is a batch; with ``accumulation_steps`` an update takes several. ``epoch_time`` is what remains of the epoch, in whole
minutes: no line prints the time of a step. Versions of 2024 count epochs from 0 and are not read.

Source: jingyaogong/minimind 2025-02 to 2026-08, trainer/train_pretrain.py, train_epoch.
"""

from logparse.formats._base import LogFormat, Reading, Sample

FORMAT = LogFormat(
    name="minimind",
    title="minimind",
    framework="minimind",
    marker=("epoch_time: ", "epoch_Time:"),
    head=(r"\bEpoch:\[(?P<epoch>[1-9]\d*)/(?P<epochs>\d+)\]\((?P<step_in_epoch>\d+)/(?P<steps_per_epoch>\d+)\),?\s"),
    pair=r"([A-Za-z_]+): ?([^,\s]+)(?:,?\s|$)",
    separator=r",?\s",
    labels={
        "loss": Reading("loss"),
        "lr": Reading("learning_rate"),
        "learning_rate": Reading("learning_rate"),
    },
    ignored_patterns=(r".*",),
    required=("step",),
    samples=(
        Sample(
            "Epoch:[2/2](100/39695), loss: 2.5125, logits_loss: 2.5000, aux_loss: 0.0125, lr: 0.00025000, epoch_time: 4767.0min",
            {
                "step": 39795,
                "train_steps": 79390,
                "epoch": 2,
                "epochs": 2,
                "step_in_epoch": 100,
                "steps_per_epoch": 39695,
                "loss": 2.5125,
                "learning_rate": 0.00025,
            },
        ),
        Sample(
            "Epoch:[1/3](200/24681) loss:4.125 lr:0.00050000 epoch_Time:96.0min:",
            {
                "step": 200,
                "train_steps": 74043,
                "epoch": 1,
                "epochs": 3,
                "step_in_epoch": 200,
                "steps_per_epoch": 24681,
                "loss": 4.125,
                "learning_rate": 0.0005,
            },
        ),
    ),
)
