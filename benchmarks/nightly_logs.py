"""Write the logs of the nightly story in docs/nightly.md: six jobs, thirty nights each.

From the sixteenth night on they run a newer release that prints the settings of a dense model's experts differently. In
the last three nights every tenth step of one job takes three times as long; the newest night of another was 20 %
slower, alone, and so was the tenth of a third. Runs of one job differ by 0.4 %. The same numbers each time.

    python benchmarks/nightly_logs.py FOLDER
"""

import sys
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
from release_logs import LINE, SETTINGS

NIGHTS, STEPS, UPGRADE = 30, 20, 16
SPREAD, STEP_SPREAD = 0.004, 0.003
RELEASES = ("8.0.RC1", "8.0.RC2")
# What tells the models apart, and their time per step on 8 devices.
MODELS = {
    "llama-7b": ({"num_layers": 32, "hidden_size": 4096, "ffn_hidden_size": 11008, "num_attention_heads": 32}, 5000.0),
    "llama-13b": ({"num_layers": 40, "hidden_size": 5120, "ffn_hidden_size": 13824, "num_attention_heads": 40}, 9300.0),
    "qwen-1b": ({"num_layers": 24, "hidden_size": 2048, "ffn_hidden_size": 5504, "num_attention_heads": 16}, 1200.0),
}
DEVICES = (8, 16)
TAIL_JOB, TAIL_FROM = "llama-13b-16", 28
ODD_NIGHTS = {("qwen-1b-8", 30): 1.2, ("llama-7b-16", 10): 1.2}


def settings_of(model: str, devices: int, night: int) -> dict[str, object]:
    """What the framework prints: a newer one gives a dense model the width of experts that it has not."""
    shape, _ = MODELS[model]
    told = SETTINGS | shape | {"world_size": devices, "data_parallel_size": devices // 2, "train_iters": STEPS}
    return told | ({"moe_ffn_hidden_size": 0} if night < UPGRADE else {"moe_ffn_hidden_size": shape["ffn_hidden_size"]})


def steps(rng: np.random.Generator, begin: datetime, job: str, night: int, usual: float) -> list[str]:
    """The step lines of a night; the first is slow, as ever."""
    pace = usual * np.exp(rng.normal(0, SPREAD)) * ODD_NIGHTS.get((job, night), 1.0)
    clock, lines = begin, []
    for step in range(1, STEPS + 1):
        slow = 4 if step == 1 else 3 if job == TAIL_JOB and night >= TAIL_FROM and step % 10 == 0 else 1
        ms = pace * slow * np.exp(rng.normal(0, STEP_SPREAD))
        clock += timedelta(milliseconds=ms)
        loss = 2 + 8 * np.exp(-step / 12) + rng.normal(0, 0.002)
        figures = {"ms": ms, "tflops": 748_000 / ms, "loss": loss, "norm": 1 + 8 / step}
        lines.append(LINE.format(clock=clock, step=step, steps=STEPS, consumed=32 * step, **figures))
    return lines


def write_night(folder: Path, model: str, devices: int, night: int) -> None:
    """One log: what its launcher and Megatron print before training, then its steps."""
    job = f"{model}-{devices}"
    rng = np.random.default_rng([list(MODELS).index(model), devices, night])
    release, settings = RELEASES[night >= UPGRADE], settings_of(model, devices, night)
    begin = datetime(2026, 3, 1, 20, list(MODELS).index(model), devices) + timedelta(days=night - 1)
    lines = [f"CANN version: {release}", "-" * 24 + " arguments " + "-" * 24]
    lines += [f"  {name} {'.' * (48 - len(name))} {settings[name]}" for name in sorted(settings)]
    lines.append("-" * 20 + " end of arguments " + "-" * 21)
    lines += steps(rng, begin, job, night, MODELS[model][1] * 8 / devices)
    place = folder / release
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{job}-{night:02}.log").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Write all 180 into the folder that the command line names."""
    for model in MODELS:
        for devices in DEVICES:
            for night in range(1, NIGHTS + 1):
                write_night(Path(sys.argv[1]), model, devices, night)


if __name__ == "__main__":
    main()
