"""NeMo 2.x, ProgressPrinter: ``Training epoch 0, iteration 9/99 | lr: ... | train_step_timing in s: 8.512``.

Numbers have four significant digits; ``iteration`` and ``global_step`` count from 0; the plan is the
number of the last step. The time is that of one step, the other values are means since the line before.
"""

from logparse.formats._base import NUMBER, LogFormat, Reading, Sample
from logparse.formats._yaml import NEMO_CHOICES, NEMO_SENTENCES, yaml_names

FORMAT = LogFormat(
    name="nemo",
    title="NeMo 2.x (ProgressPrinter)",
    framework="NeMo",
    time_of="window",
    marker=("Training epoch ",),
    head=r"Training epoch \d+, iteration (?P<step_in_epoch>\d+)/(?P<train_steps>\d+) \|",
    pair=rf"([A-Za-z_][\w ]*?): ({NUMBER})(?:\s*\||\s*$|\\n)",
    separator=r"\|",
    from_zero=False,
    labels={
        "global_step": Reading("step"),
        "global_batch_size": Reading("global_batch_size"),
        "consumed_samples": Reading("consumed_samples"),
        "lr": Reading("learning_rate"),
        "reduced_train_loss": Reading("loss"),
        "grad_norm": Reading("grad_norm"),
        "train_step_timing in s": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "tokens_per_sec_per_gpu": Reading("logged_tokens_per_second_per_device"),
        "TFLOPS_per_GPU": Reading("logged_tflops_per_second_per_device"),
        "max_memory_reserved": Reading("max_memory_reserved_bytes"),
        "max_memory_allocated": Reading("max_memory_allocated_bytes"),
        "peak_memory_usage": Reading("max_memory_allocated_bytes"),
    },
    # Values of validation are printed again on each row after it.
    ignored=frozenset({"val_loss", "val_ppl", "memory_allocated", "train_backward_timing in s", "tokens_per_sec"}),
    sentences=NEMO_SENTENCES,
    names=yaml_names(),
    choices=NEMO_CHOICES,
    samples=(
        Sample(
            "i.pretrain/0 [default0]:Training epoch 0, iteration 45/99 | lr: 6.897e-06 | global_batch_size: 128 | "
            "global_step: 45 | max_memory_reserved: 127785762816 | max_memory_allocated: 115792977920 | "
            "reduced_train_loss: 11.96 | train_step_timing in s: 6.25 | TFLOPS_per_GPU: 1.249e+03 | "
            "consumed_samples: 5888 | val_loss: 3.6",
            {
                "step": 45,
                "train_steps": 99,
                "step_in_epoch": 45,
                "learning_rate": 6.897e-06,
                "global_batch_size": 128,
                "max_memory_reserved_bytes": 127785762816.0,
                "max_memory_allocated_bytes": 115792977920.0,
                "loss": 11.96,
                "elapsed_time_per_iteration_ms": 6250.0,
                "logged_tflops_per_second_per_device": 1249.0,
                "consumed_samples": 5888,
            },
        ),
        Sample(
            "Training epoch 1, iteration 0/999 | lr: 2.999e-06 | global_batch_size: 512 | global_step: 19 | "
            "reduced_train_loss: 11.03 | train_step_timing in s: 46.75 | tokens_per_sec_per_gpu: 6.859e+03",
            {
                "step": 19,
                "train_steps": 999,
                "step_in_epoch": 0,
                "learning_rate": 2.999e-06,
                "global_batch_size": 512,
                "loss": 11.03,
                "elapsed_time_per_iteration_ms": 46750.0,
                "logged_tokens_per_second_per_device": 6859.0,
            },
        ),
    ),
)
