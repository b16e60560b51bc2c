"""RWKV-LM: the bar of a mini-epoch, of v1 to v3 with the step of the run and of v4 and later from Lightning.

``miniE 2 s 1666 prog 40.00% : ppl 3.5 loss 1.25 lr 1.39e-04: 100%|██| 833/833 [03:17<00:00,  4.21it/s]``; its pace is a moving
mean, and the mean of all its steps once it is full. ``Epoch 0:   5%|▌ | 50/1000 [00:25<08:00, 1.98it/s, loss=7.3, lr=0.0006, REAL
it/s=2.010, Kt/s=65.80]``: ``REAL it/s`` is of one step, ``Kt/s`` thousands of tokens of all devices. With accumulated gradients
an update is several of these steps.

Source: BlinkDL/RWKV-LM, RWKV-v4neo/src/trainer.py.
"""

from logparse.formats._base import NUMBER, LogFormat, Reading, Sample

_RATE = r"(?:(?P<logged_steps_per_second>[0-9.]+)it/s|(?P<logged_seconds_per_step>[0-9.]+)s/it)"

FORMAT = LogFormat(
    name="rwkv",
    title="RWKV-LM",
    framework="RWKV-LM",
    rate_covers="interval",
    marker=(" prog ", "REAL it/s="),
    head=(
        rf"(?:\bminiE \d+ s (?P<step>\d+) prog [\d.]+% : ppl {NUMBER} loss (?P<loss>{NUMBER}) lr (?P<learning_rate>{NUMBER}): +"
        rf"\d+%\|[^|\r]*\| *\d+/\d+ \[[\d:]+<[\d:?]+, +{_RATE}|"
        r"\bEpoch (?P<epoch>\d+): +\d+%\|[^|\r]*\| *(?P<step_in_epoch>\d+)/(?P<steps_per_epoch>\d+) \[[\d:]+<[\d:]+, +"
        r"[\d.]+(?:it/s|s/it), )"
    ),
    pair=r"([\w/ ]+?)=([^,\]]*)(?:, |\])",
    separator=r", |\]",
    labels={
        "loss": Reading("loss"),
        "lr": Reading("learning_rate"),
        "REAL it/s": Reading("logged_steps_per_second"),
        "Kt/s": Reading("logged_tokens_per_second", scale=1000),
    },
    ignored_patterns=(r".*",),
    required=("step",),
    redrawn=True,
    first_epoch=0,
    samples=(
        Sample(
            "miniE 2 s 1666 prog 40.00% : ppl 3.495054 loss 1.251349 lr 1.386290e-04: 100%|██████████| 833/833 "
            "[03:17<00:00,  4.21it/s]",
            {"step": 1666, "loss": 1.251349, "learning_rate": 1.38629e-4, "logged_steps_per_second": 4.21},
        ),
        Sample(
            "Epoch 1:   5%|▌         | 50/1000 [00:25<08:00,  1.98it/s, loss=7.310, lr=0.0006, REAL it/s=2.010, Kt/s=65.80]",
            {
                "step": 1050,
                "epoch": 1,
                "step_in_epoch": 50,
                "steps_per_epoch": 1000,
                "loss": 7.31,
                "learning_rate": 6e-4,
                "logged_steps_per_second": 2.01,
                "logged_tokens_per_second": 65800.0,
            },
        ),
    ),
)
