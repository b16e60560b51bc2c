"""MindFormers in PyNative mode: LossCallback of 1.9 to 2.1, one line per step, counted from the start."""

from logparse.formats._base import LogFormat, Reading, Sample
from logparse.formats.mindformers import FORMAT as GRAPH_MODE
from logparse.formats.mindformers import PAIR

FORMAT = LogFormat(
    name="mindformers-pynative",
    title="MindFormers, PyNative mode (LossCallback)",
    marker=("{ step:[",),
    head=r"\{ step:\[\s*(?P<step>\d+)/\s*(?P<train_steps>\d+)\],",
    pair=PAIR,
    labels={
        "consumed_samples": Reading("consumed_samples"),
        "global_batch_size": Reading("global_batch_size"),
        "loss": Reading("loss", absent=r"N/A.*"),  # a pipeline stage that is not the last
        "load_balancing_loss": Reading("load_balancing_loss"),
        "mtp_1_loss": Reading("mtp_loss"),
        "per_step_time": Reading("elapsed_time_per_iteration_ms", suffix="ms"),
        "lr": Reading("learning_rate"),
        "grad_norm": Reading("grad_norm"),
        "throughput": Reading("logged_tflops_per_second_per_device", suffix="T"),
    },
    ignored=frozenset({"lm_loss", "indexer_loss"}),
    ignored_patterns=(r"mtp_\d+_loss",),
    **GRAPH_MODE.of_the_run,
    samples=(
        Sample(
            "2026-05-02 08:00:01,500 - mindformers/w/output/log[mindformers/pynative/callback/loss_callback.py:337] - "
            "INFO - { step:[   10/ 1000], consumed_samples: 2560, global_batch_size: 256, loss:   9.876543, "
            "per_step_time:   1234ms, lr: 1.000000e-05, grad_norm: NaN, throughput: 180.12T }",
            {
                "timestamp": "2026-05-02T08:00:01.500000",
                "step": 10,
                "train_steps": 1000,
                "consumed_samples": 2560,
                "global_batch_size": 256,
                "loss": 9.876543,
                "elapsed_time_per_iteration_ms": 1234.0,
                "learning_rate": 1e-5,
                "grad_norm": float("nan"),
                "logged_tflops_per_second_per_device": 180.12,
            },
        ),
        Sample(
            "{ step:[   11/ 1000], consumed_samples: None, global_batch_size: None, "
            "loss: N/A (non-last PP stage, refer to last stage for real loss), per_step_time:   1240ms, lr: 1.000000e-05 }",
            {
                "step": 11,
                "train_steps": 1000,
                "elapsed_time_per_iteration_ms": 1240.0,
                "learning_rate": 1e-5,
            },
        ),
    ),
)
