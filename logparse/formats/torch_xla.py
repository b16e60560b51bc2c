"""The examples of PyTorch/XLA: ``| Training Device=xla:0/0 Epoch=1 Step=20 Loss=6.79297 Rate=117.16 GlobalRate=45.84 Time=06:13:36``.

``Rate`` is samples/s of one device, a moving mean; ``GlobalRate`` is the mean since the start. Every process prints the
line; those of the first device of a host are read. The clock has no day.

Source: pytorch/xla 1.x and 2.x, torch_xla/test/test_utils.py, print_training_update.
"""

from logparse.formats._base import NUMBER, Companion, LogFormat, Sample

FORMAT = LogFormat(
    name="torch-xla",
    title="PyTorch/XLA (examples)",
    framework="PyTorch/XLA",
    trains_on="images",
    marker=(" GlobalRate=",),
    head=(
        r"\| Training Device=(?:xla:(?:\d+/)?[01]|\S*TPU:0) (?:Epoch=(?P<epoch>\d+) )?Step=(?P<step_in_epoch>\d+) "
        rf"Loss=(?P<loss>{NUMBER}) Rate=(?P<logged_samples_per_second_per_device>{NUMBER}) "
    ),
    pair="",
    labels={},
    required=("step",),
    companions=(Companion(" Time=", r" GlobalRate=\S+ Time=(?P<timestamp>\d\d:\d\d:\d\d)"),),
    samples=(
        Sample(
            "| Training Device=xla:0/0 Epoch=1 Step=20 Loss=6.75000 Rate=117.25 GlobalRate=45.84 Time=06:13:36\n"
            "| Training Device=xla:0/6 Epoch=1 Step=20 Loss=6.79297 Rate=117.16 GlobalRate=45.81 Time=06:13:36",
            {
                "timestamp": "1908-01-01T06:13:36",
                "step": 20,
                "epoch": 1,
                "step_in_epoch": 20,
                "loss": 6.75,
                "logged_samples_per_second_per_device": 117.25,
            },
        ),
    ),
)
