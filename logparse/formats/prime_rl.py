"""prime-rl's trainers, 2025 to 2026: ``Step 4 | Time: 0.36s | Loss: 12.28 | Grad. Norm: 27.4 | LR: 1.00e-06 | Throughput: 4771 tokens/s``.

From 2026-08 on without colons, and with a time in whole units: ``Step 4 |   1m 5s | Loss 12.28 | Throughput 4771 tokens/s``.
The time is that of one step, of reinforcement learning with the wait for its batch. ``Throughput`` is of all devices over
the last ten steps, and 0 on the first; without colons that of reinforcement learning covers the forward and backward
passes of one step, and only fine-tuning prints the size of the memory after it. The stamp has no date and is not read.

Source: PrimeIntellect-ai/prime-rl 0.2 to 0.8.1, src/prime_rl/trainer/sft/train.py, trainer/rl/train.py, utils/utils.py.
"""

from logparse.formats._base import NUMBER, Choice, Companion, LogFormat, Reading, Sample, SettingSentence

GIB = float(2**30)
MEMORY = Reading("max_memory_reserved_bytes", scale=GIB, suffix=r"(?:/[\d.]+)? GiB(?: \([\d.]+%\))?")

FORMAT = LogFormat(
    name="prime-rl",
    title="prime-rl",
    framework="prime-rl",
    traces=(r"\bprime_rl[/.]",),
    pauses_inside=False,
    rate_covers="step",
    marker=(" | Time: ", " | Loss "),
    # The orchestrator prints lines of its own, with a reward; a validation has no time.
    head=r"\bStep (?P<step>\d+) \| +(?:(?P<logged_seconds_per_step>\d[\d.]*(?:ms|[smhd])(?: \d+[smh])?) \| )?",
    not_steps=r"Loss \S+\s*$",
    pair=r"([A-Z][A-Za-z. ]*?:?) ([-+.\d][^|]*?|nan|inf)\s*(?:\||$)",
    separator=r"\|",
    labels={
        "Time:": Reading("elapsed_time_per_iteration_ms", scale=1000, suffix="s"),
        **dict.fromkeys(("Loss", "Loss:", "KL Loss:"), Reading("loss")),
        **dict.fromkeys(("Grad. Norm", "Grad. Norm:"), Reading("grad_norm")),
        **dict.fromkeys(("LR", "LR:"), Reading("learning_rate")),
        "Throughput:": Reading("logged_tokens_per_second", suffix=" tokens/s"),
        "MFU:": Reading("logged_mfu", scale=0.01, suffix="%"),
        **dict.fromkeys(("Peak Mem.", "Peak Mem.:"), MEMORY),
    },
    # Without a colon the share and the rate are of other times in fine-tuning and in reinforcement learning.
    ignored_patterns=("(?:Entropy|Mismatch KL|Max Vio|Routing Conf.|Accuracy|Importance Ratio):?", "Throughput|MFU"),
    required=("step", "loss"),
    companions=(
        Companion(" tokens/s | MFU ", rf"Throughput (?P<logged_tokens_per_second>{NUMBER}) .* Peak Mem\. [\d.]+/"),
    ),
    # A step of reinforcement learning waits for rollouts, of which no formula counts the work.
    sentences=(SettingSentence("step", " | Entropy", r" \| (?P<generates>Entropy):? ", first=True),),
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
        Sample(
            "10:00:20 SUCCESS Step 7 |  1m 5s | Loss 0.0125 | Entropy 0.3125 | Mismatch KL 0.0010 | Grad. Norm 0.2500 | "
            "LR 1.00e-06 | Throughput 21500 tokens/s | MFU 25.0% | Peak Mem. 61.5 GiB",
            {
                "step": 7,
                "logged_seconds_per_step": 65.0,
                "loss": 0.0125,
                "grad_norm": 0.25,
                "learning_rate": 1e-6,
                "max_memory_reserved_bytes": 61.5 * GIB,
            },
        ),
        Sample(
            "10:00:20 SUCCESS Step 8 |   850ms | Loss 2.1250 | Grad. Norm 0.2500 | LR 1.00e-06 | "
            "Throughput 38550 tokens/s | MFU 25.0% | Peak Mem. 61.5/80.0 GiB (76.9%)\n"
            "10:00:20 INFO Saving checkpoint at step 8",
            {
                "step": 8,
                "logged_seconds_per_step": 0.85,
                "loss": 2.125,
                "grad_norm": 0.25,
                "learning_rate": 1e-6,
                "logged_tokens_per_second": 38550.0,
                "max_memory_reserved_bytes": 61.5 * GIB,
            },
        ),
    ),
)
