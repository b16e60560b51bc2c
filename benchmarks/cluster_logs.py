"""Write the logs of a cluster: a folder of jobs, each with a file for every rank, as torchrun leaves them.

A job is Megatron on as many devices as it has ranks. The last rank prints the step lines, as in Megatron; the others
print what they say at the start, some of it twice. Every tenth job fails: one of its ranks prints an exception. Jobs
differ by 1 % in their pace. The same numbers each time.

    python benchmarks/cluster_logs.py FOLDER [JOBS] [RANKS] [STEPS]
"""

import sys
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
from release_logs import LINE, SETTINGS

JOBS, RANKS, STEPS = 50, 200, 200
MS, SPREAD, STEP_SPREAD, FAILING = 5000.0, 0.01, 0.003, 10
EXCEPTION = """\
[rank{rank}]: Traceback (most recent call last):
[rank{rank}]:   File "/workspace/pretrain_gpt.py", line 212, in <module>
[rank{rank}]:     pretrain(train_valid_test_datasets_provider, model_provider, forward_step)
[rank{rank}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 512.00 MiB free.
"""


def settings_lines(ranks: int, steps: int) -> list[str]:
    """The settings, as the first rank prints them."""
    settings = SETTINGS | {"world_size": ranks, "data_parallel_size": ranks // 2, "train_iters": steps}
    settings |= {"global_batch_size": 4 * ranks}
    lines = (f"  {name} {'.' * (48 - len(name))} {settings[name]}" for name in sorted(settings))
    return ["-" * 24 + " arguments " + "-" * 24, *lines, "-" * 20 + " end of arguments " + "-" * 21]


def rank_lines(rank: int, begin: datetime) -> list[str]:
    """What every rank prints before the first step."""
    stamp = f"{begin:%Y-%m-%d %H:%M:%S}"
    return [
        f"{stamp} INFO initialised process group of rank {rank} by nccl",
        f" > number of parameters on (tensor, pipeline) model parallel rank ({rank % 2}, 0): 3369418752",
        *(f"{stamp} INFO rank {rank} loaded shard {shard} of the data set" for shard in range(20)),
        f"[before the start of training step] datetime: {stamp} ",
    ]


def step_lines(rng: np.random.Generator, begin: datetime, ranks: int, steps: int) -> list[str]:
    """The step lines of a job; its first step is slow."""
    pace, clock, lines = MS * np.exp(rng.normal(0, SPREAD)), begin, []
    for step in range(1, steps + 1):
        ms = pace * (4 if step == 1 else 1) * np.exp(rng.normal(0, STEP_SPREAD))
        clock += timedelta(milliseconds=ms)
        figures = {"ms": ms, "tflops": 960_000 / ms, "loss": 2 + 8 * np.exp(-step / 40), "norm": 1 + 8 / step}
        line = LINE.format(clock=clock, step=step, steps=steps, consumed=4 * ranks * step, **figures)
        lines.append(line.replace("global batch size:    32", f"global batch size: {4 * ranks:5d}"))
    return lines


def write_job(folder: Path, job: int, ranks: int, steps: int) -> None:
    """The files of one job: FOLDER/job_N/attempt_0/RANK/stdout.log."""
    rng, begin = np.random.default_rng(job), datetime(2026, 3, 1) + timedelta(hours=job)
    fails = job % FAILING == FAILING - 1
    for rank in range(ranks):
        lines = settings_lines(ranks, steps) if rank == 0 else []
        lines += rank_lines(rank, begin)
        if rank == ranks - 1:
            lines += step_lines(rng, begin, ranks, steps // 2 if fails else steps)
        if fails and rank == ranks // 2:
            lines.append(EXCEPTION.format(rank=rank).rstrip())
        place = folder / f"job_{job:05}/attempt_0/{rank}"
        place.mkdir(parents=True, exist_ok=True)
        (place / "stdout.log").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_cluster(folder: Path, jobs: int = JOBS, ranks: int = RANKS, steps: int = STEPS) -> None:
    """All jobs of the cluster below ``folder``."""
    for job in range(jobs):
        write_job(folder, job, ranks, steps)


if __name__ == "__main__":
    write_cluster(Path(sys.argv[1]), *map(int, sys.argv[2:]))
