"""NeMo AutoModel, 2025 to 2026: ``step 9 | epoch 0 | loss 0.69 | grad_norm 1.54 | lr 1.00e-05 | mem 24.90 GiB | tps 11278.56(1409.82/gpu)``.

No time. ``tps`` counts the tokens of the step, which vary, over all devices and over one, so the stamps of whole seconds
give the time; steps count from 0.

Source: NVIDIA-NeMo/Automodel, nemo_automodel/recipes/llm/train_ft.py.
"""

from logparse.formats._base import NUMBER, Companion, LogFormat, Name, Reading, Sample, SettingSentence, evaluation

GIB = float(2**30)

FORMAT = LogFormat(
    name="nemo-automodel",
    title="NeMo AutoModel",
    framework="NeMo AutoModel",
    traces=(r"\bnemo_automodel[/.]",),
    marker=("/gpu)",),
    head=r"(?:\| |^)step (?P<step>\d+) \| epoch \d+ \| ",
    pair=r"(\w+) ([^|]*?)\s*(?:\||$)",
    separator=r"\|",
    from_zero=True,
    labels={
        "loss": Reading("loss"),
        "grad_norm": Reading("grad_norm"),
        "lr": Reading("learning_rate"),
        "mem": Reading("max_memory_allocated_bytes", scale=GIB, suffix=" GiB"),
        "tps": Reading("logged_tokens_per_second", suffix=r"\(.*\)"),
    },
    ignored=frozenset({"num_label_tokens"}),
    ignored_patterns=(r".*loss.*",),
    required=("step", "loss"),
    companions=(
        Companion("| tps ", rf"tps [\d.]+\((?P<logged_tokens_per_second_per_device>{NUMBER})/gpu\)"),
        Companion("Max train steps: ", r"- Max train steps: (?P<train_steps>\d+)", belongs_to="file"),
    ),
    records=(evaluation("[val] ", rf"\[val\] .*step (?P<step>\d+) \| epoch \d+ \| loss (?P<loss>{NUMBER})", "val"),),
    sentences=(
        SettingSentence(
            "scheduler", "Gradient accumulation", r"- Gradient accumulation steps: (?P<num_microbatches>\d+)"
        ),
    ),
    names=(Name("num_microbatches", "scheduler:num_microbatches"),),
    samples=(
        Sample(
            "2026-08-10 15:55:18 | INFO | root | - Max train steps: 18500\n"
            "2026-08-10 15:55:20 | INFO | root | step 9 | epoch 0 | loss 0.6974 | grad_norm 1.5436 | lr 1.00e-05 | "
            "mem 24.50 GiB | tps 11278.56(1409.82/gpu) | num_label_tokens 21541",
            {
                "timestamp": "2026-08-10T15:55:20",
                "step": 9,
                "train_steps": 18500,
                "loss": 0.6974,
                "grad_norm": 1.5436,
                "learning_rate": 1e-5,
                "max_memory_allocated_bytes": 24.5 * GIB,
                "logged_tokens_per_second": 11278.56,
                "logged_tokens_per_second_per_device": 1409.82,
            },
        ),
    ),
)
