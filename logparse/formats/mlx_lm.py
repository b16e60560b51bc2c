"""MLX-LM's fine-tuning on Apple devices: ``Iter 20: Train loss 2.10, Learning Rate 1.000e-05, It/sec 13.913, Tokens/sec 4560.7``.

``It/sec`` and ``Tokens/sec`` are means since the line before, without validation; tokens are those that are trained on, of
all devices. An iteration is one pass; with accumulated gradients an update is several. ``It/sec`` of the last line counts a
full interval (``context.corrections``). From 2026-06 on it prints a table (``mlx_lm_table``).

Source: ml-explore/mlx-lm 0.1 to 0.31, mlx_lm/tuner/trainer.py, train.
"""

from logparse.formats._base import NUMBER, Companion, LogFormat, Reading, Sample, evaluation, event

FORMAT = LogFormat(
    name="mlx-lm",
    title="MLX-LM",
    framework="MLX-LM",
    time_of="full interval",
    traces=(r"\bmlx_lm[/.]",),
    pauses_inside=False,
    rate_covers="interval",
    marker=(": Train loss ",),
    head=rf"\bIter (?P<step>\d+): Train loss (?P<loss>{NUMBER}), ",
    pair=r"([A-Z][\w/ ]*?) ([-+0-9.e]+|nan)(?: GB)?(?:, |\s*$)",
    separator=", ",
    labels={
        "Learning Rate": Reading("learning_rate"),
        "It/sec": Reading("logged_steps_per_second"),
        "Tokens/sec": Reading("logged_tokens_per_second"),
        "Trained Tokens": Reading("consumed_tokens"),
        "Peak mem": Reading("max_memory_allocated_bytes", scale=1e9),
    },
    ignored_patterns=(r".*",),
    required=("step",),
    companions=(Companion("Starting training..., iters: ", r"iters: (?P<train_steps>\d+)", belongs_to="file"),),
    records=(
        evaluation(": Val loss ", rf"\bIter (?P<step>\d+): Val loss (?P<loss>{NUMBER})", "val"),
        event("save ends", ": Saved adapter weights to ", r"\bIter (?P<step>\d+): Saved adapter"),
    ),
    samples=(
        Sample(
            "Starting training..., iters: 100\n"
            "Iter 20: Train loss 2.101, Learning Rate 1.000e-05, It/sec 13.913, Tokens/sec 4560.749, Trained Tokens 6568, "
            "Peak mem 10.500 GB",
            {
                "step": 20,
                "train_steps": 100,
                "loss": 2.101,
                "learning_rate": 1e-5,
                "logged_steps_per_second": 13.913,
                "logged_tokens_per_second": 4560.749,
                "consumed_tokens": 6568,
                "max_memory_allocated_bytes": 10.5e9,
            },
        ),
        Sample(
            "Iter 10: Train loss 3.608, It/sec 0.015, Tokens/sec 1.425",
            {"step": 10, "loss": 3.608, "logged_steps_per_second": 0.015, "logged_tokens_per_second": 1.425},
        ),
    ),
)
