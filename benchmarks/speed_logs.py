"""The logs that speed.py reads: made up, alike on every machine, written once."""

import os
import random
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path

MIB = 2**20
BEGIN = datetime(2026, 1, 1)
MEGATRON_HEAD = (
    " > using world size: 8, data-parallel size: 8, tensor-model-parallel size: 1, pipeline-model-parallel size: 1 \n"
)
MINDFORMERS_HEAD = (
    "2026-01-01 00:00:00,000 - mindformers./output/log[mindformers/trainer/base_trainer.py:89] - INFO - "
    "Now Running Task is: text_generation, Model is: llama2_7b\n"
)
NOISE = (
    "WARNING:root:some library said something about a tensor of shape [4096, 4096] at 0x7f00 and went on",
    "[rank3]: token 1234 loss mask applied, micro batch 17 of 32, allocator has 12.5 GiB free",
    "INFO | dataloader worker 3 | fetched shard 000123 in 0.532 s, prefetch 8",
    "Loading extension module utils... time to load utils op: 0.123 seconds",
)
# Of Megatron at --timing-log-level 2.
TIMERS = (
    *("forward-backward", "forward-compute", "backward-compute", "batch-generator", "layernorm-grads-all-reduce"),
    *("embedding-grads-all-reduce", "all-grads-sync", "params-all-gather", "optimizer-copy-to-main-grad"),
    *("optimizer-clip-main-grad", "optimizer-count-zeros", "optimizer-inner-step", "optimizer"),
)
CALLBACK = "mindformers./output/log[mindformers/core/callback/callback.py"
LINES_PER_STEP = 200
FILES, RANK = 1000, "rank_{:04d}.log"


def megatron_lines(chance: random.Random) -> Iterator[str]:
    """Step lines of Megatron core, one after another."""
    clock = BEGIN
    for step in count(1):
        ms = 7000 + chance.gauss(0, 50)
        clock += timedelta(milliseconds=ms)
        yield (
            f" [{clock:%Y-%m-%d %H:%M:%S.%f}] iteration {step:8d}/100000000 | "
            f"consumed samples: {step * 256:12d} | "
            f"elapsed time per iteration (ms): {ms:.1f} | throughput per GPU (TFLOP/s/GPU): {150 * 7000 / ms:.1f} | "
            f"learning rate: {1e-5:.6E} | global batch size: {256:5d} | lm loss: {2 + chance.random():.6E} | "
            f"loss scale: 1.0 | grad norm: {chance.random():.3f} | number of skipped iterations: {0:3d} | "
            f"number of nan iterations: {0:3d} |\n"
        )


def sparse(chance: random.Random) -> Iterator[str]:
    """One step line in ``LINES_PER_STEP``; the others are of a few kinds."""
    between = [noise(chance, LINES_PER_STEP - 1) for _ in range(64)]
    for line in megatron_lines(chance):
        yield chance.choice(between) + line


def noise(chance: random.Random, lines: int) -> str:
    """Lines that no format knows."""
    return "".join(f"{chance.choice(NOISE)} {chance.randrange(10**9)}\n" for _ in range(lines))


def tqdm(chance: random.Random) -> Iterator[str]:
    """Each step line behind eight states of a progress bar on the same line, a carriage return before each."""
    for step, line in enumerate(megatron_lines(chance)):
        tenths = step % 11
        drawn = f"{10 * tenths:3d}%|{'█' * tenths}{' ' * (10 - tenths)}| {step}/100000000"
        states = (f"\r{drawn} [{n:02d}:{step % 60:02d}<19:26:40, {chance.uniform(6, 8):.2f}s/it]" for n in range(8))
        yield "".join(states) + "\r" + line


def timers(chance: random.Random) -> Iterator[str]:
    """After each step line a block with the times of its parts."""
    for line in megatron_lines(chance):
        parts = ((name, chance.uniform(1, 7000)) for name in TIMERS)
        block = "".join(f"    {name + ' ':.<48}: ({ms:.2f}, {ms * 1.01:.2f})\n" for name, ms in parts)
        yield f"{line}(min, max) time across ranks (ms):\n{block}"


def mindformers(chance: random.Random) -> Iterator[str]:
    """The two lines of each step of MindFormers 1.3, in one long epoch."""
    clock = BEGIN
    for step in count(1):
        ms = round(7000 + chance.gauss(0, 50))
        clock += timedelta(milliseconds=ms)
        stamp = f"{clock:%Y-%m-%d %H:%M:%S},{clock.microsecond // 1000:03d}"
        yield (
            f"{stamp} - {CALLBACK}:529] - INFO - {{ Epoch:[  1/  1], step:[{step:5d}/100000000], "
            f"loss: {2 + chance.random():.3f}, per_step_time: {ms}ms, lr: 2.5641025e-08, overflow cond: False, "
            f"loss_scale: 1.0, global_norm: [{chance.random():.6f}], train_throughput_per_npu: {150 * 7000 / ms:.3f}T\n"
            f"{stamp} - {CALLBACK}:554] - INFO -    0.0% |{'':50}| {32 * 1000 / ms / 8:.5f} samples/s/p  10:01:16 }}\n"
        )


KINDS: dict[str, tuple[str, Callable[[random.Random], Iterator[str]]]] = {
    "dense": (MEGATRON_HEAD, megatron_lines),
    "sparse": (MEGATRON_HEAD, sparse),
    "MindFormers": (MINDFORMERS_HEAD, mindformers),
    "tqdm": (MEGATRON_HEAD, tqdm),
    "timers": (MEGATRON_HEAD, timers),
}


def log_of_size(folder: Path, kind: str, mib: int) -> Path:
    """A log of ``mib`` MiB, whole steps."""
    head, text = KINDS[kind]

    def portions() -> Iterator[str]:
        size = len(head.encode())
        yield head
        for step in text(random.Random(kind)):
            if size >= mib * MIB:
                return
            size += len(step) if step.isascii() else len(step.encode())
            yield step

    return written(folder / f"{kind}-{mib}.log", portions)


def log_of_ten(folder: Path, kind: str) -> Path:
    """A log with ten step lines, and nothing between them but what belongs to a step."""
    head, text = KINDS["dense" if kind == "sparse" else kind]
    steps = text(random.Random(kind))
    return written(folder / f"{kind}-ten.log", lambda: (head, *(next(steps) for _ in range(10))))


def rank_files(folder: Path, mib: int) -> Path:
    """A folder of ``FILES`` rank files of ``mib`` MiB each, of which only the last has step lines.

    The others are links to one file, since reading them from a disk is not what is to be measured.
    """
    ranks = folder / f"ranks-{mib}"
    chance = random.Random("ranks")
    silent = written(folder / f"silent-{mib}.log", lambda: (noise(chance, 8192) for _ in range(mib * MIB // 640_000)))
    last = log_of_size(folder, "dense", mib)
    ranks.mkdir(exist_ok=True)
    for number in range(FILES):
        rank = ranks / RANK.format(number)
        rank.unlink(missing_ok=True)
        os.link(last if number == FILES - 1 else silent, rank)
    return ranks


def written(path: Path, portions: Callable[[], Iterator[str] | tuple[str, ...]]) -> Path:
    """Write a file unless it is there and younger than this module."""
    if not path.exists() or path.stat().st_mtime < Path(__file__).stat().st_mtime:
        part = path.with_suffix(".part")
        with part.open("w", encoding="utf-8", newline="") as out:
            out.writelines(portions())
        part.replace(path)
    return path
