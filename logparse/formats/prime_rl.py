"""prime-rl's trainers, 2025 to 2026: ``Step 4 | Time: 0.36s | Loss: 12.28 | Grad. Norm: 27.4 | LR: 1.00e-06 | Throughput: 4771 tokens/s``.

The time is that of one step, of reinforcement learning with the wait for its batch. ``Throughput`` is of all devices over
the last steps, and 0 on the first. The stamp has no date and is not read.
"""

from logparse.formats._base import Choice, LogFormat, Reading, Sample, SettingSentence

GIB = float(2**30)

FORMAT = LogFormat(
    name="prime-rl",
    title="prime-rl",
    framework="prime-rl",
    traces=(r"\bprime_rl[/.]",),
    pauses_inside=False,
    marker=(" | Time: ",),
    # The orchestrator prints lines of its own, with a reward.
    head=r"\bStep (?P<step>\d+) \| ",
    pair=r"([A-Z][\w. ]*?): ([^|]*?)\s*(?:\||$)",
    separator=r"\|",
    labels={
        "Time": Reading("elapsed_time_per_iteration_ms", scale=1000, suffix="s"),
        "Loss": Reading("loss"),
        "KL Loss": Reading("loss"),
        "Grad. Norm": Reading("grad_norm"),
        "LR": Reading("learning_rate"),
        "Throughput": Reading("logged_tokens_per_second", suffix=" tokens/s"),
        "MFU": Reading("logged_mfu", scale=0.01, suffix="%"),
        "Peak Mem.": Reading("max_memory_reserved_bytes", scale=GIB, suffix=r"(?:/[\d.]+)? GiB(?: \([\d.]+%\))?"),
    },
    ignored=frozenset({"Entropy", "Mismatch KL", "Max Vio"}),
    required=("step", "elapsed_time_per_iteration_ms", "loss"),
    # A step of reinforcement learning waits for rollouts, of which no formula counts the work.
    sentences=(SettingSentence("step", " | Entropy: ", r" \| (?P<generates>Entropy): ", first=True),),
    choices=(Choice("mixed_step", "rollouts", {"step:generates": ".+"}),),
    samples=(
        Sample(
            "02:40:54 SUCCESS Step 4 | Time: 0.36s | Loss: 12.2812 | Grad. Norm: 27.4527 | LR: 1.00e-06 | "
            "Throughput: 4771 tokens/s | MFU: 1.4% | Peak Mem.: 5.25/23.7 GiB (21.9%) | Max Vio: 1.0000",
            {
                "step": 4,
                "elapsed_time_per_iteration_ms": 360.0,
                "loss": 12.2812,
                "grad_norm": 27.4527,
                "learning_rate": 1e-6,
                "logged_tokens_per_second": 4771.0,
                "logged_mfu": 1.4 * 0.01,
                "max_memory_reserved_bytes": 5.25 * GIB,
            },
        ),
        Sample(
            "10:00:20 SUCCESS Step 7 | Time: 31.50s | Loss: 0.0125 | Entropy: 0.3125 | Mismatch KL: 0.0010 | "
            "Grad. Norm: 0.2500 | LR: 1.00e-06 | Throughput: 21500 tokens/s | MFU: 25.0% | Peak Mem.: 61.5 GiB",
            {
                "step": 7,
                "elapsed_time_per_iteration_ms": 31500.0,
                "loss": 0.0125,
                "grad_norm": 0.25,
                "learning_rate": 1e-6,
                "logged_tokens_per_second": 21500.0,
                "logged_mfu": 0.25,
                "max_memory_reserved_bytes": 61.5 * GIB,
            },
        ),
    ),
)
