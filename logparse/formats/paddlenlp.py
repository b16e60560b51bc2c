"""PaddleNLP 2.3 to 3.x and PaddleFormers: one line per ``logging_steps``.

``interval_runtime`` is the time of the whole interval, ``interval_steps_per_second`` that of a step. To 2.4 the samples
per second are those of one step and one device, and the TFLOP/s are divided by 2^40 and hold what is recomputed.
"""

from logparse.formats._base import (
    NUMBER,
    TEBI,
    Choice,
    Companion,
    LogFormat,
    Name,
    Reading,
    Record,
    Sample,
    SettingSentence,
    evaluation,
    event,
)
from logparse.formats._hf_config import HF_CHOICES, HF_CONFIG, HF_NAMES
from logparse.formats._preference import PREFERENCE_CHOICES, PREFERENCE_SENTENCES

GIB = float(2**30)

FORMAT = LogFormat(
    name="paddlenlp",
    title="PaddleNLP and PaddleFormers Trainer",
    framework="PaddleNLP",
    pauses_inside=True,
    rate_covers="interval",
    marker=("_runtime: ",),
    # Not that of an evaluation, nor of the whole training at its end.
    head=rf"(?:^|\W)loss: (?P<loss>{NUMBER}), ",
    pair=r"([a-z_]+): ([^,\s]+)(?:, |\s*$)",
    separator=", ",
    labels={
        "global_step": Reading("step"),
        "learning_rate": Reading("learning_rate"),
        "global_norm": Reading("grad_norm"),
        "interval_steps_per_second": Reading("logged_steps_per_second"),
        "interval_samples_per_second": Reading("logged_samples_per_second"),
        "interval_tokens_per_second_per_device": Reading("logged_tokens_per_second_per_device"),
        "interval_hardware_tflops_per_device": Reading("logged_tflops_per_second_per_device", scale=TEBI),
        "max_memory_allocated": Reading("max_memory_allocated_bytes", scale=GIB),
        "max_memory_reserved": Reading("max_memory_reserved_bytes", scale=GIB),
        "epoch": Reading("epochs_done"),  # to 2.7
    },
    ignored=frozenset(
        {"interval_runtime", "progress_or_epoch", "current_memory_allocated", "current_memory_reserved", "ppl"}
    ),
    ignored_patterns=(r"\w*loss\w*",),
    required=("step", "loss"),
    companions=(
        Companion(
            "Total optimization steps",
            # To 2.3 the quotient of a division.
            r"Total optimization steps = (?P<train_steps>[\d,]+)(?:\.0+)?\s*$",
            belongs_to="banner",
        ),
        Companion("Num examples = ", r"Num examples = (?P<epoch_samples>[\d,]+)", belongs_to="banner"),
    ),
    records=(
        evaluation("eval_loss: ", rf"eval_loss: (?P<loss>{NUMBER})"),
        Record("timers", "eval_runtime: ", rf"(?P<name>eval_runtime): (?P<max_ms>{NUMBER})", scale=1000),
        event("training starts", "Running training", r"\*\*\*\*\* Running training"),
        event("training ends", "Training completed", r"Training completed"),
        event("save starts", "Saving model checkpoint to", r"Saving model checkpoint to .*checkpoint-(?P<step>\d+)"),
    ),
    sentences=(
        *PREFERENCE_SENTENCES,
        # A folder of this machine names no model.
        SettingSentence(
            "model", "] - model_name_or_path ", r"- model_name_or_path +:(?:[\w-]+/)?(?P<model_name>\w[\w.-]*)\s*$"
        ),
        SettingSentence("banner", "Total train batch", r"Total train batch size .*\) = (?P<global_batch_size>\d+)"),
        SettingSentence("banner", "Instantaneous batch", r"batch size per device = (?P<micro_batch_size>\d+)"),
        *(
            SettingSentence("arguments", marker, rf"INFO\] - {name} +:(?P<{name}>\S+)\s*$")
            for name, marker in (
                ("world_size", "world_size  "),
                ("tensor_parallel_degree", "tensor_parallel_degree  "),
                ("pipeline_parallel_degree", "pipeline_parallel_degree  "),
                ("bf16", "] - bf"),
                ("fp16", "] - fp16  "),
                ("max_seq_length", "max_seq_length  "),
            )
        ),
    ),
    blocks=(HF_CONFIG,),
    names=(
        *HF_NAMES,
        Name("model_name", "model:model_name"),
        Name("global_batch_size", "banner:global_batch_size"),
        Name("micro_batch_size", "banner:micro_batch_size"),
        Name("world_size", "arguments:world_size"),
        Name("tensor_model_parallel_size", "arguments:tensor_parallel_degree"),
        Name("pipeline_model_parallel_size", "arguments:pipeline_parallel_degree"),
        Name("seq_length", "arguments:max_seq_length"),
    ),
    choices=(
        Choice("precision", "bf16", {"arguments:bf16": "True"}),
        Choice("precision", "fp16", {"arguments:fp16": "True"}),
        Choice("precision", "fp32", {"arguments:bf16": "False", "arguments:fp16": "False"}),
        *PREFERENCE_CHOICES,
        *HF_CHOICES,
    ),
    samples=(
        Sample(
            "[2022-08-31 14:25:42,866] [    INFO] -   Num examples = 2,560\n"
            "[2022-08-31 14:25:42,867] [    INFO] -   Total optimization steps = 3100.0\n"
            "[2023-04-13 22:24:50,556] [    INFO] - loss: 1.45257711, learning_rate: 5e-06, global_step: 10, "
            "interval_runtime: 2.5, interval_samples_per_second: 256.0, interval_steps_per_second: 4.0, epoch: 0.25",
            {
                "timestamp": "2023-04-13T22:24:50.556000",
                "step": 10,
                "train_steps": 3100,
                "epoch_samples": 2560,
                "loss": 1.45257711,
                "learning_rate": 5e-06,
                "logged_samples_per_second": 256.0,
                "logged_steps_per_second": 4.0,
                "epochs_done": 0.25,
            },
        ),
        Sample(
            "[    INFO] - loss: 12.0635252, learning_rate: 2e-06, global_step: 1, max_memory_allocated: 7.5, "
            "max_memory_reserved: 7.75, interval_runtime: 1.1518, interval_samples_per_second: 0.8682, "
            "interval_tokens_per_second_per_device: 889.0448, interval_steps_per_second: 0.8682, progress_or_epoch: 0.0",
            {
                "step": 1,
                "loss": 12.0635252,
                "learning_rate": 2e-06,
                "max_memory_allocated_bytes": 7.5 * GIB,
                "max_memory_reserved_bytes": 7.75 * GIB,
                "logged_samples_per_second": 0.8682,
                "logged_tokens_per_second_per_device": 889.0448,
                "logged_steps_per_second": 0.8682,
            },
        ),
    ),
)
