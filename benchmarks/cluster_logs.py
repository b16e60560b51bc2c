"""Write the logs of a cluster: a folder of jobs, each with a file for every rank, as torchrun leaves them.

A job is Megatron on as many devices as it has ranks. The last rank prints the step lines, as in Megatron; the others
print what they say at the start, some of it twice. Every tenth job fails: one of its ranks prints an exception. Jobs
differ by 1 % in their pace. The same numbers each time. `measure` runs `logparse analyze --each` over them.

    python benchmarks/cluster_logs.py write FOLDER [JOBS] [RANKS] [STEPS]
    python benchmarks/cluster_logs.py measure FOLDER OUT [OPTION...]
    python benchmarks/cluster_logs.py discover FOLDER
"""

import resource
import subprocess
import sys
import time
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


def step_lines(rng: np.random.Generator, begin: datetime, ranks: int, steps: int, done: int) -> list[str]:
    """The lines of the steps that a job has ``done``; its first step is slow."""
    pace, clock, lines = MS * np.exp(rng.normal(0, SPREAD)), begin, []
    for step in range(1, done + 1):
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
            lines += step_lines(rng, begin, ranks, steps, steps // 2 if fails else steps)
        if fails and rank == ranks // 2:
            lines.append(EXCEPTION.format(rank=rank).rstrip())
        place = folder / f"job_{job:05}/attempt_0/{rank}"
        place.mkdir(parents=True, exist_ok=True)
        (place / "stdout.log").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_cluster(folder: Path, jobs: int = JOBS, ranks: int = RANKS, steps: int = STEPS) -> None:
    """All jobs of the cluster below ``folder``."""
    for job in range(jobs):
        write_job(folder, job, ranks, steps)


def memory_of(process: int) -> tuple[int, int]:
    """MiB that the command and the largest of its workers hold now; the workers of Ray are not its children."""
    sizes = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
            name = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        own = int(folder.name) == process
        if own or int(status["PPid"]) == process or name.startswith(b"ray::task"):
            sizes[own] = max(sizes.get(own, 0), int(status.get("VmRSS", "0").split()[0]) >> 10)
    return sizes.get(True, 0), sizes.get(False, 0)


def measure(folder: str, out: str, *options: str) -> None:
    """Print time and memory of the command, each minute and at its end."""
    program = str(Path(sys.executable).with_name("logparse"))
    begin, most, next_line = time.monotonic(), (0, 0), 60.0
    command = [program, "analyze", "--each", folder, "-o", out, "--force", "-q", *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            most = tuple(map(max, most, memory_of(process.pid)))
            if time.monotonic() - begin > next_line:
                print(f"{next_line:6.0f} s  command {most[0]} MiB, largest worker {most[1]} MiB", flush=True)
                next_line += 60
            time.sleep(0.5)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{time.monotonic() - begin:.0f} s wall, {used.ru_utime + used.ru_stime:.0f} s CPU (without Ray),"
        f" command {most[0]} MiB, largest worker {most[1]} MiB, exit {process.returncode}: {' '.join(options)}"
    )


def discover(folder: str) -> None:
    """Print time and memory of finding the runs."""
    from logparse.inputs.run_discovery import named_runs

    runs = named_runs([folder], each=True)
    files, mib = sum(len(files) for _, files in runs), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{len(runs):,} runs of {files:,} files: {time.process_time():.1f} s CPU, {mib} MiB")


if __name__ == "__main__":
    what, place, *others = sys.argv[1:]
    if what == "write":
        write_cluster(Path(place), *map(int, others))
    else:
        {"measure": measure, "discover": discover}[what](place, *others)
