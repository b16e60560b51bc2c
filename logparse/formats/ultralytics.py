"""Ultralytics YOLO: the bar of an epoch, ``  1/100  2.34G  1.23  2.34  1.34  23  640: 100%|██| 50/50 [00:12<00:00,  4.12it/s]``.

From 2025-09 on ``... 640: 100% ━━━━━━━━━━━━ 50/50 4.1it/s 12.2s``. A step is a batch. The bar's clock begins again with each
epoch; a bar of validation has no memory in front. The rate of the last bar of an epoch is the mean of the epoch.

YOLOv5, v7 and YOLOR count epochs from 0, so that ``0/49`` is the first of 50. Their lines show it only where epoch 0 or the line
of the plan (``Starting training for 50 epochs``) is in the log; elsewhere the steps are those of an epoch earlier. The times
are the same.

Source: ultralytics/ultralytics 8.0 to 8.4, ultralytics/engine/trainer.py and utils/tqdm.py; ultralytics/yolov5 7.0, train.py.
Printed in ultralytics/ultralytics#7618, ultralytics/yolov5#8 and #11686, WongKinYiu/yolor#94.
"""

from logparse.formats._base import Companion, LogFormat, Sample

FORMAT = LogFormat(
    name="ultralytics",
    title="Ultralytics YOLO",
    framework="Ultralytics",
    trains_on="images",
    traces=(r"\bultralytics[/.](?:engine|models|utils|nn)\b", r"^Ultralytics (?:YOLO)?v?\d"),
    rate_covers="recent",
    # The memory, and the blanks of the next column: three before seven characters.
    marker=("G   ",),
    head=(
        r"(?:^|[\r\s])(?P<epoch>\d+)/(?P<epochs>\d+) +[\d.]+[GM]B? +[-+\d. naife]+: +\d+%(?:\|[^|\r]*\||[ ━╸╺─]+) *"
        r"(?P<step_in_epoch>[1-9]\d*)/(?P<steps_per_epoch>\d+) (?:\[(?P<runtime_seconds>[\d:]+)<[\d:]+, *)?"
        r"(?:(?P<logged_seconds_per_step>[0-9.]+)s/it|(?P<logged_steps_per_second>[0-9.]+)it/s)"
    ),
    pair="",
    labels={},
    clock_of_epoch=True,
    required=("step",),
    redrawn=True,
    companions=(
        Companion("Starting training for ", r"Starting training for (?P<planned_epochs>\d+) epochs", belongs_to="file"),
        # The clock of the newer bar, which has a decimal below a minute.
        Companion("it/s ", r"━ \d+/\d+ [\d.]+it/s (?P<runtime_seconds>[\d:.]+)s?(?:\s*$|\s*\r)"),
        Companion("s/it ", r"━ \d+/\d+ [\d.]+s/it (?P<runtime_seconds>[\d:.]+)s?(?:\s*$|\s*\r)"),
    ),
    samples=(
        Sample(
            "      0/49      6.4G   0.02250  0.002875 0.0003750   0.02600        11       640: 100%|██████████| 1500/1500 "
            "[12:30<00:00,  2.00it/s]",
            {
                "step": 1500,
                "train_steps": 75000,
                "epoch": 0,
                "epochs": 49,
                "step_in_epoch": 1500,
                "steps_per_epoch": 1500,
                "runtime_seconds": 750.0,
                "logged_steps_per_second": 2.0,
            },
        ),
        Sample(
            "      3/100      2.34G      1.234      2.345      1.345         23        640: 100%|██████████| 50/50 "
            "[00:12<00:00,  4.12it/s]",
            {
                "step": 150,
                "train_steps": 5000,
                "epoch": 3,
                "epochs": 100,
                "step_in_epoch": 50,
                "steps_per_epoch": 50,
                "runtime_seconds": 12.0,
                "logged_steps_per_second": 4.12,
            },
        ),
        Sample(
            "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
            "      2/100      2.34G      1.234      2.345      1.345         23        640: 100% ━━━━━━━━━━━━ 50/50 4.1it/s 12.2s",
            {
                "step": 100,
                "train_steps": 5000,
                "epoch": 2,
                "epochs": 100,
                "step_in_epoch": 50,
                "steps_per_epoch": 50,
                "runtime_seconds": 12.2,
                "logged_steps_per_second": 4.1,
            },
        ),
        Sample(
            "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
            "      2/100      2.34G      1.234      2.345      1.345         23        640: 100% ━━━━━━━━━━━━ 50/50 1.5s/it 1:15",
            {
                "step": 100,
                "train_steps": 5000,
                "epoch": 2,
                "epochs": 100,
                "step_in_epoch": 50,
                "steps_per_epoch": 50,
                "runtime_seconds": 75.0,
                "logged_seconds_per_step": 1.5,
            },
        ),
        # Epochs from 0, since the plan has one more than the last.
        Sample(
            "Starting training for 50 epochs...\n"
            "      3/49      6.4G   0.02250   0.02875  0.003750        11       640: 100%|██████████| 50/50 [00:25<00:00,  2.00it/s]",
            {
                "step": 200,
                "train_steps": 2500,
                "epoch": 3,
                "epochs": 49,
                "planned_epochs": 50,
                "step_in_epoch": 50,
                "steps_per_epoch": 50,
                "runtime_seconds": 25.0,
                "logged_steps_per_second": 2.0,
            },
        ),
    ),
)
