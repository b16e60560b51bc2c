"""Write the logs of the story in docs/releases.md: three releases, five runs each, the second 4 % slower.

In the second release `overlap_grad_reduce` is off. Runs of one release differ by 0.4 %, steps of one run by 0.3 % and
resemble their neighbours. Beside their folder, in `bisect`, lies the run that `logparse bisect` asks for: the first
release with that setting of the second. The same numbers each time.

    python benchmarks/release_logs.py fixtures/releases
"""

import sys
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

STEPS = 20
MS = 5000.0
SPREAD, STEP_SPREAD, RESEMBLANCE = 0.004, 0.003, 0.6
# Release, day, slowdown, and the setting that made it.
RELEASES = (("8.0.RC1", 3, 1.00, True), ("8.0.RC2", 17, 1.04, False), ("8.0.RC3", 31, 1.00, True))
TRIAL = ("8.0.RC1", 1, datetime(2026, 4, 9, 20), 1.04, False)
SETTINGS = {
    "bf16": True,
    "context_parallel_size": 1,
    "data_parallel_size": 4,
    "ffn_hidden_size": 11008,
    "fp16": False,
    "global_batch_size": 32,
    "group_query_attention": False,
    "hidden_size": 4096,
    "lr": 0.0003,
    "micro_batch_size": 1,
    "num_attention_heads": 32,
    "num_layers": 32,
    "num_query_groups": 1,
    "padded_vocab_size": 32000,
    "pipeline_model_parallel_size": 1,
    "recompute_granularity": None,
    "seed": 1234,
    "seq_length": 4096,
    "sequence_parallel": True,
    "swiglu": True,
    "tensor_model_parallel_size": 2,
    "train_iters": STEPS,
    "untie_embeddings_and_output_weights": True,
    "use_distributed_optimizer": True,
    "world_size": 8,
}
LINE = (
    " [{clock:%Y-%m-%d %H:%M:%S}] iteration {step:8d}/{steps:8d} | consumed samples: {consumed:12d} |"
    " elapsed time per iteration (ms): {ms:.1f} | throughput per GPU (TFLOP/s/GPU): {tflops:.1f} |"
    " learning rate: 3.000000E-04 | global batch size:    32 | lm loss: {loss:.6E} | loss scale: 1.0 |"
    " grad norm: {norm:.3f} | number of skipped iterations:   0 | number of nan iterations:   0 |"
)


def write_log(path: Path, release: str, number: int, begin: datetime, slow: float, overlap: bool) -> None:
    """One run: what its launcher and Megatron print before training, then its steps."""
    rng = np.random.default_rng([number, begin.toordinal()])
    settings = SETTINGS | {"overlap_grad_reduce": overlap, "save": f"/data/checkpoints/{release}-{number}"}
    lines = [f"CANN version: {release}", "torch_npu version: 2.1.0.post6", "-" * 24 + " arguments " + "-" * 24]
    lines += [f"  {name} {'.' * (48 - len(name))} {settings[name]}" for name in sorted(settings)]
    lines.append("-" * 20 + " end of arguments " + "-" * 21)
    lines += steps(rng, begin, slow)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def steps(rng: np.random.Generator, begin: datetime, slow: float) -> list[str]:
    """The step lines of a run; the first one is slow, as ever."""
    pace = MS * slow * np.exp(rng.normal(0, SPREAD))
    drift, clock, lines = 0.0, begin, []
    for step in range(1, STEPS + 1):
        drift = RESEMBLANCE * drift + rng.normal(0, STEP_SPREAD * np.sqrt(1 - RESEMBLANCE**2))
        ms = pace * np.exp(drift) * (4 if step == 1 else 1)
        clock += timedelta(milliseconds=ms)
        loss = 2 + 8 * np.exp(-step / 12) + rng.normal(0, 0.002)
        figures = {"ms": ms, "tflops": 748_000 / ms, "loss": loss, "norm": 1 + 8 / step}
        lines.append(LINE.format(clock=clock, step=step, steps=STEPS, consumed=32 * step, **figures))
    return lines


def main() -> None:
    """Write all fifteen into the folder that the command line names, and the one asked for beside it."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for release, day, slow, overlap in RELEASES:
        for number in range(1, 6):
            begin = datetime(2026, 3, 1, 20) + timedelta(days=day + number - 1)
            write_log(folder / f"{release}-{number}.log", release, number, begin, slow, overlap)
    tried = folder.parent / "bisect"
    tried.mkdir(exist_ok=True)
    write_log(tried / "overlap-off.log", *TRIAL)


if __name__ == "__main__":
    main()
