"""The MetricLogger of DETR, DINO, MAE, BEiT, DeiT and torchvision's references: ``Epoch: [0]  [  20/1251]  eta: 0:10:00  lr: 0.0001  loss: 6.9 (7.0)  time: 0.51  data: 0.01  max mem: 12345``.

Epochs and iterations count from 0. ``time`` is the mean of the last iterations (20 in most), loading data included, ``loss`` their
median. An iteration is one pass; with accumulated gradients an update is several. Some forks print no ``eta``.

Source: facebookresearch/mae, util/misc.py. Printed in keke-nice/rPPG-MAE#8 and, without ``eta``, Alpha-VLLM/LLaMA2-Accessory#48.
"""

from logparse.formats._base import LogFormat, Reading, Sample

MIB = float(2**20)

FORMAT = LogFormat(
    name="metric-logger",
    title="DINO, MAE, DETR, torchvision references (MetricLogger)",
    framework="MetricLogger",
    trains_on="images",
    pauses_inside=False,
    marker=("  eta: ", "  max mem: "),
    head=r"\bEpoch: \[(?P<epoch>\d+)(?:/\d+)?\]  ?\[ *(?P<step_in_epoch>\d+)/(?P<steps_per_epoch>\d+)\]  (?:eta: (?:\d+ days?, )?[\d:]+  )?",
    pair=r"([A-Za-z_][\w/ ]*?): ([^\s()]+)(?: \([^()]*\))?(?:\s+|$)",
    separator=r"\s",
    labels={
        "lr": Reading("learning_rate"),
        "loss": Reading("loss"),
        "time": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "max mem": Reading("max_memory_allocated_bytes", scale=MIB),
        "grad_norm": Reading("grad_norm"),
    },
    ignored_patterns=(r".*",),
    first_epoch=0,
    samples=(
        Sample(
            "[01:30:20.250000] Epoch: [0]  [30/1500]  lr: 0.000001  closs: 1.5300 (1.5400)  time: 4.5625  data: 0.0002  max mem: 39000",
            {
                "step": 30,
                "epoch": 0,
                "step_in_epoch": 30,
                "steps_per_epoch": 1500,
                "learning_rate": 1e-6,
                "elapsed_time_per_iteration_ms": 4562.5,
                "max_memory_allocated_bytes": 39000 * MIB,
            },
        ),
        Sample(
            "Epoch: [2]  [  20/1251]  eta: 0:10:00  lr: 0.000100  loss: 6.9000 (7.0125)  grad_norm: 2.5000 (2.7500)  time: 0.5120  "
            "data: 0.0010  max mem: 12345",
            {
                "step": 2522,
                "epoch": 2,
                "step_in_epoch": 20,
                "steps_per_epoch": 1251,
                "learning_rate": 1e-4,
                "loss": 6.9,
                "grad_norm": 2.5,
                "elapsed_time_per_iteration_ms": 512.0,
                "max_memory_allocated_bytes": 12345 * MIB,
            },
        ),
        Sample(
            "Epoch: [0/100]  [   0/5004]  eta: 1 day, 6:10:00  loss: 11.0 (11.0)  lr: 0.0 (0.0)  time: 21.500  data: 9.25  max mem: 8000",
            {
                "step": 0,
                "epoch": 0,
                "step_in_epoch": 0,
                "steps_per_epoch": 5004,
                "learning_rate": 0.0,
                "loss": 11.0,
                "elapsed_time_per_iteration_ms": 21500.0,
                "max_memory_allocated_bytes": 8000 * MIB,
            },
        ),
    ),
)
