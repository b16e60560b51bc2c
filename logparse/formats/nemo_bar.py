"""NeMo 1.x, and NeMo 2 with a bar: Lightning's progress bar, whose postfix holds the metrics of the last step.

``Epoch 0:   1%|▏| 2/200 [00:06<11:04, 3.36s/it, loss=5.07, reduced_train_loss=5.070, global_step=1.000, ...]``. Steps count
from 0, and numbers are shortened to three digits where that is shorter. Each batch draws the bar twice, first with the
metrics of the batch before. The bar's clock of whole seconds runs on through validation; where ``train_step_timing in s``
is there, it is the time.
"""

from logparse.formats._base import NUMBER, Companion, LogFormat, Reading, Sample
from logparse.formats.nemo import FORMAT as LINES

FORMAT = LogFormat(
    name="nemo-bar",
    title="NeMo 1.x (progress bar)",
    framework="NeMo",
    time_of="window",
    marker=("d_train_loss=",),
    head=(
        r"\bEpoch \d+: [^|\r]*\|[^|\r]*\| *\d+/\d+ \[(?P<runtime_seconds>[\d:]+)<"
        rf"(?:[\d:]+, +[^,\]\r]*, v_num=[^,\]\r]*, global_step=(?P<step>{NUMBER}), |"
        rf"[^\]\r]*?\breduced_train_loss=(?P<loss>{NUMBER}), )"
    ),
    pair=r"([A-Za-z][\w ()]*)=([^,\]]*)(?:, |\])",
    separator=r", |\]",
    labels={
        "global_step": Reading("step"),
        "reduced_train_loss": Reading("loss"),
        "train_step_timing in s": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "train_step_timing (s)": Reading("elapsed_time_per_iteration_ms", scale=1000),
        # Shortened to three digits it counts no batch.
        "consumed_samples": Reading("consumed_samples", absent=r".*e.*"),
        "lr": Reading("learning_rate"),
        "grad_norm": Reading("grad_norm"),
    },
    # tps counts the tokens of each batch, of all devices in 2.x; an update of the weights may be of several.
    ignored=frozenset({"v_num", "tps", "train_backward_timing in s", "train_epoch_timing in s"}),
    # Values of validation stay on the bar for all steps after it.
    ignored_patterns=(r"(?:val|validation|test)_.*",),
    required=("step",),
    redrawn=True,
    # At the end; of the mean time of the second half of the steps. -1 where it is unknown.
    companions=(
        Companion(
            "TFLOPs per sec per GPU=",
            r"TFLOPs per sec per GPU=(?P<logged_tflops_per_second_per_device>[0-9.]+)",
        ),
    ),
    **LINES.of_the_run,
    samples=(
        Sample(
            "Epoch 0:   1%|▏         | 2/200 [00:06<11:05,  3.36s/it, loss=5.07, v_num=, reduced_train_loss=5.060, "
            "global_step=1.000, consumed_samples=8192.0]",
            {"step": 1, "runtime_seconds": 6.0, "loss": 5.06, "consumed_samples": 8192},
        ),
        Sample(
            "Epoch 0:   0%|          | 41/90000 [02:03<74:58:10,  0.33it/s, v_num=ab12, global_step=4.000, "
            "train_step_timing in s=3.050, reduced_train_loss=2.410, tps=5120.0, lr=2e-6]",
            {
                "step": 4,
                "runtime_seconds": 123.0,
                "loss": 2.41,
                "elapsed_time_per_iteration_ms": 3050.0,
                "learning_rate": 2e-6,
            },
        ),
        Sample(
            "Epoch 0: : 100%|██████████| 20/20 [01:20<00:00, v_num=None, reduced_train_loss=6.120, global_step=19.00, "
            "consumed_samples=640.0, train_step_timing in s=3.900]\n"
            "[NeMo I 2025-02-01 10:00:05 nemo_logging:393] TFLOPs per sec per GPU=412.35",
            {
                "step": 19,
                "consumed_samples": 640,
                "runtime_seconds": 80.0,
                "loss": 6.12,
                "elapsed_time_per_iteration_ms": 3900.0,
                "logged_tflops_per_second_per_device": 412.35,
            },
        ),
        Sample(
            "Epoch 0: :   3%|▎         | 9000/301500 [1:42:42<55:37:46, v_num=0-56, reduced_train_loss=2.130, "
            "global_step=9e+3, consumed_samples=6.3e+5, train_step_timing in s=0.615]",
            {"step": 9000, "runtime_seconds": 6162.0, "loss": 2.13, "elapsed_time_per_iteration_ms": 615.0},
        ),
    ),
)
