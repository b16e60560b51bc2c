"""MindFormers in graph mode: MFLossMonitor of 0.2 to 2.1.

Families A (0.2 to 0.6, ``time:`` in ms for a whole sink) and B (0.7 to 2.1, ``per_step_time:``), whose second line
holds the progress bar and samples/s/p.
"""

from logparse.formats._base import NUMBER, Companion, LogFormat, Reading, Sample
from logparse.formats._mindformers import BLOCKS, CHOICES, NAMES, RECORDS, SENTENCES

PAIR = r"([A-Za-z_][\w ]*?)(?::\s*(\[[^\]]*\]|N/A[^)]*\)|[^\[\]{}]*?)| (\[[^\]]*\]))\s*(?:,(?:\s|$)|\}|$)"

FORMAT = LogFormat(
    name="mindformers",
    title="MindFormers, graph mode (MFLossMonitor)",
    marker=("Epoch:[",),
    # The comma excludes TrainingStateMonitor, whose lines start the same way.
    head=r"Epoch:\[\s*(?P<epoch>\d+)/\s*(?P<epochs>\d+)\],\s*step:\[\s*(?P<step_in_epoch>\d+)/\s*(?P<steps_per_epoch>\d+)\],",
    pair=PAIR,
    labels={
        "loss": Reading("loss", suffix=r"/.*"),  # this step / mean of the epoch
        "per_step_time": Reading("elapsed_time_per_iteration_ms", suffix="ms"),
        "time": Reading("elapsed_time_per_iteration_ms", suffix=" ms"),  # family A: a whole sink
        "lr": Reading("learning_rate", absent=r"None|Not Set LR.*"),
        "overflow cond": Reading("overflow"),
        "loss_scale": Reading("loss_scale", absent="None|unavailable"),
        "global_norm": Reading("grad_norm"),
        "load_balancing_loss": Reading("load_balancing_loss"),
        "mtp_loss": Reading("mtp_loss"),
        "train_throughput_per_npu": Reading("logged_tflops_per_second_per_device", suffix="T"),
    },
    ignored=frozenset({"lm_loss", "lm loss"}),  # the first part of loss, printed again
    required=("step_in_epoch", "elapsed_time_per_iteration_ms"),
    companions=(
        Companion("samples/s/p", rf"(?P<logged_samples_per_second_per_device>{NUMBER}) samples/s/p"),
        # The update of a step whose gradient norm is above its limit is left out.
        Companion("is_skip: [", r"is_skip: \[ ?(?P<skipped_iterations>True)\]"),
    ),
    records=RECORDS,
    blocks=BLOCKS,
    sentences=SENTENCES,
    names=NAMES,
    choices=CHOICES,
    samples=(
        Sample(
            "2025-03-01 10:00:00,123 - mindformers./output/log[mindformers/core/callback/callback.py:529] - INFO - "
            "{ Epoch:[  1/  2], step:[    2/ 6500], loss: 11.905, per_step_time: 2775ms, lr: 2.5641025e-08, "
            "overflow cond: False, loss_scale: 1.0, global_norm: [45.702465], train_throughput_per_npu: 171.176T\n"
            "2025-03-01 10:00:00,124 - mindformers./output/log[mindformers/core/callback/callback.py:554] - INFO -"
            "    0.0% |          | 0.36029 samples/s/p  10:01:16 }",
            {
                "timestamp": "2025-03-01T10:00:00.123000",
                "step": 2,
                "train_steps": 13000,
                "epoch": 1,
                "epochs": 2,
                "step_in_epoch": 2,
                "steps_per_epoch": 6500,
                "loss": 11.905,
                "elapsed_time_per_iteration_ms": 2775.0,
                "learning_rate": 2.5641025e-08,
                "overflow": False,
                "loss_scale": 1.0,
                "grad_norm": 45.702465,
                "logged_tflops_per_second_per_device": 171.176,
                "logged_samples_per_second_per_device": 0.36029,
            },
        ),
        Sample(
            "[INFO] 2023-07-11 10:48:37,162 [/w/mindformers/core/callback/callback.py:269] print_output_info: "
            "Epoch:[  2/  2], step:[  116/  125], loss:[2.220/2.240], time:1951.612 ms, lr:[2.4499998e-06], "
            "overflow cond: True, loss_scale: unavailable",
            {
                "timestamp": "2023-07-11T10:48:37.162000",
                "step": 241,
                "train_steps": 250,
                "epoch": 2,
                "epochs": 2,
                "step_in_epoch": 116,
                "steps_per_epoch": 125,
                "loss": 2.22,
                "elapsed_time_per_iteration_ms": 1951.612,
                "learning_rate": 2.4499998e-06,
                "overflow": True,
            },
        ),
        Sample(
            "- INFO - { Epoch:[  1/  1], step:[    3/   40], loss: 2.125, per_step_time: 1500ms, overflow cond: False\n"
            "- INFO - opt_global_step: 2, skip_data_grad_norm_threshold: 3.0, is_skip: [ True]",
            {
                "step": 3,
                "train_steps": 40,
                "epoch": 1,
                "epochs": 1,
                "step_in_epoch": 3,
                "steps_per_epoch": 40,
                "loss": 2.125,
                "elapsed_time_per_iteration_ms": 1500.0,
                "overflow": False,
                "skipped_iterations": 1,
            },
        ),
    ),
)
