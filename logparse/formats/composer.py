"""Composer 0.8 and later, LLM Foundry: ``[batch=12/4800]:`` and a line for each value after it.

Batches count from 0 (``time/batch``). Rates are means over a window of batches. No time of a step: ``time/train`` is a
clock of training alone, in hours of four decimals; where it gives none, as in a log of one record, the rates do.
``mfu`` is a ratio. In 2023 the clock
is ``wall_clock/train`` in seconds; before, each line had the batch in front of it.
"""

from logparse.formats._base import Choice, Companion, LogFormat, Name, PairLines, Reading, Sample, SettingSentence

# Of the configuration, which is printed as YAML: LLM Foundry's names, and those of its MPT models.
_SIZES = {
    "num_nodes": "num_nodes",
    "num_gpus_per_node": "devices_per_node",
    "global_train_batch_size": "global_batch_size",
    "max_seq_len": "seq_length",
    "n_layers": "num_layers",
    "d_model": "hidden_size",
    "n_heads": "num_attention_heads",
    "vocab_size": "vocab_size",
}


def _setting(name: str) -> SettingSentence:
    return SettingSentence("config", f"{name}: ", rf"^\s*{name}: (?P<{name}>\w+)\s*$")


FORMAT = LogFormat(
    name="composer",
    title="Composer, LLM Foundry",
    framework="Composer",
    rate_covers="recent",
    marker=("[batch=",),
    head=r"(?:\[epoch=\d+\]\[batch=\d+/\d+\]|\[batch=\d+/(?P<train_steps>\d+)\]):(?:\s*$| trainer/global_step: (?P<step>\d+))",
    pair="",
    from_zero=True,
    pair_lines=PairLines(
        marker=(
            *("Train time/", "Train loss/", "Train throughput/", "Train lr-", "loss/train/total: "),
            *("Train trainer/global_step: ", "Train wall_clock/train: "),
        ),
        pair=r"^.*?(?:\bTrain |\]: )([\w/-]+): (\S+)\s*$",
    ),
    labels={
        "time/batch": Reading("step"),
        "trainer/global_step": Reading("step"),  # to 0.13
        "time/sample": Reading("consumed_samples"),
        "time/token": Reading("consumed_tokens"),
        "time/train": Reading("runtime_seconds", scale=3600),
        "wall_clock/train": Reading("runtime_seconds"),  # to 0.13
        "loss/train/total": Reading("loss"),
        "lr-DecoupledAdamW/group0": Reading("learning_rate"),
        "lr-DecoupledLionW/group0": Reading("learning_rate"),
        "lr-DecoupledSGDW/group0": Reading("learning_rate"),
        "throughput/batches_per_sec": Reading("logged_steps_per_second"),
        "throughput/samples_per_sec": Reading("logged_samples_per_second"),
        "throughput/device/samples_per_sec": Reading("logged_samples_per_second_per_device"),
        "throughput/tokens_per_sec": Reading("logged_tokens_per_second"),
        "throughput/device/tokens_per_sec": Reading("logged_tokens_per_second_per_device"),
        "throughput/device/flops_per_sec": Reading("logged_tflops_per_second_per_device", scale=1e-12),
        "throughput/device/mfu": Reading("logged_mfu"),
    },
    ignored_patterns=(r"(?:time|loss|throughput|lr-\w+)/.*",),
    required=("step",),
    companions=(
        Companion("wall_clock/train: ", r"\]: wall_clock/train: (?P<runtime_seconds>[\d.]+)", belongs_to="next"),
    ),
    sentences=(
        *(_setting(name) for name in _SIZES),
        _setting("precision"),
        # The recipes for ResNet and DeepLab; no language model of these examples trains with SGD or has an IoU. The
        # first batches are enough, and a setting on every line is slow to read.
        SettingSentence("recipe", "lr-DecoupledSGDW/", r"\bbatch=\d{1,2}/\d+\]: lr-Decoupled(?P<of_images>SGDW)/"),
        SettingSentence("recipe", "/MIoU: ", r"\bbatch=\d{1,2}/\d+\]: metrics/\w+/(?P<of_images>MIoU): "),
    ),
    names=tuple(Name(quantity, f"config:{name}") for name, quantity in _SIZES.items()),
    choices=(
        Choice("precision", "bf16", {"config:precision": "amp_bf16"}),
        Choice("precision", "fp16", {"config:precision": "amp_fp16"}),
        Choice("precision", "fp8", {"config:precision": "amp_fp8"}),
        Choice("training_data", "images", {"recipe:of_images": "SGDW|MIoU"}),
    ),
    samples=(
        Sample(
            "[epoch=1][batch=5/5]:\n"
            "\t Train time/batch: 4\n"
            "\t Train time/sample: 4096\n"
            "\t Train time/batch_in_epoch: 4\n"
            "\t Train time/token: 29254495\n"
            "\t Train trainer/device_train_microbatch_size: 8\n"
            "\t Train loss/train/total: 8.4213\n"
            "\t Train throughput/batches_per_sec: 0.0027\n"
            "\t Train throughput/samples_per_sec: 2.7330\n"
            "\t Train throughput/tokens_per_sec: 20082.8418\n"
            "\t Train throughput/device/tokens_per_sec: 1255.1776\n"
            "\t Train throughput/device/mfu: 0.3921\n"
            "\t Train time/train: 0.5249\n"
            "\t Train lr-DecoupledAdamW/group0: 0.0002",
            {
                "step": 4,
                "consumed_samples": 4096,
                "consumed_tokens": 29254495,
                "runtime_seconds": 0.5249 * 3600,
                "loss": 8.4213,
                "learning_rate": 0.0002,
                "logged_steps_per_second": 0.0027,
                "logged_samples_per_second": 2.733,
                "logged_tokens_per_second": 20082.8418,
                "logged_tokens_per_second_per_device": 1255.1776,
                "logged_mfu": 0.3921,
            },
        ),
        Sample(
            "[epoch=0][batch=16/625]: wall_clock/train: 17.1607\n"
            "[epoch=0][batch=16/625]: lr-DecoupledSGDW/group0: 0.0061\n"
            "[epoch=0][batch=16/625]: trainer/global_step: 16\n"
            "[epoch=0][batch=16/625]: memory/alloc_retries: 3\n"
            "[epoch=0][batch=16/625]: loss/train/total: 7.1292",
            {"step": 16, "runtime_seconds": 17.1607, "loss": 7.1292},
        ),
        Sample(
            "[batch=7/900]:\n"
            "\t Train trainer/global_step: 6\n"
            "\t Train loss/train/total: 9.1021\n"
            "\t Train throughput/batches_per_sec: 0.4100\n"
            "\t Train wall_clock/train: 17.0732",
            {
                "step": 6,
                "train_steps": 900,
                "loss": 9.1021,
                "logged_steps_per_second": 0.41,
                "runtime_seconds": 17.0732,
            },
        ),
    ),
)
