"""Simulated runs with one rank that is slow or does not come, and healthy ones, as trainers print them.

Ranks of a healthy run differ by what their devices are (0.3 to 2 %) and by 1 to 3 % from step to step; now and then a
rank has a spike. A slow rank takes 15 to 60 % more.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from helpers import megatron_line

STAMP = "2026-01-17 {:02}:{:02}:{:02}"
DIE = "To avoid data inconsistency, we are taking the entire process down."


@dataclass(frozen=True)
class Simulated:
    """The files of a run by their names, how they were made, and the rank at fault; None of a healthy run."""

    files: dict[str, str]
    kind: str
    culprit: int | None


@dataclass
class Job:
    """A job of ``ranks`` whose ``culprit`` takes ``factor`` times as long; ``draw`` decides all chance."""

    draw: random.Random
    ranks: int
    culprit: int | None
    noise: float
    factor: float
    offsets: list[float] = field(default_factory=list)

    def times(self, milliseconds: float, slow: bool = True) -> list[float]:
        """What each rank takes for one interval; ``slow`` where the culprit's defect shows."""
        own = [milliseconds * offset * max(0.5, self.draw.gauss(1, self.noise)) for offset in self.offsets]
        if self.culprit is not None and slow:
            own[self.culprit] *= self.factor
        if self.draw.random() < 0.1:
            # A pause of one rank, as for garbage collection.
            own[self.draw.randrange(self.ranks)] *= self.draw.uniform(1.2, 3)
        return own


def simulate(seed: int, healthy: bool) -> Simulated:
    """A simulated run, the same for the same ``seed``."""
    draw = random.Random(seed * 2 + healthy)
    kinds: list[Callable[[Job], dict[str, str]]] = [*SLOW, *(HEALTHY if healthy else MISSING)]
    make = kinds[seed % len(kinds)]
    ranks = draw.choice((4, 8, 16) if make in IN_FILES else (4, 8, 16, 64) if make in MISSING else (8, 16, 32, 64, 256))
    culprit = None if healthy else draw.randrange(ranks)
    job = Job(draw, ranks, culprit, draw.uniform(0.01, 0.03), draw.uniform(1.15, 1.6))
    spread = draw.uniform(0.003, 0.02)
    job.offsets = [draw.gauss(1, spread) for _ in range(ranks)]
    return Simulated(make(job), make.__name__, culprit)


def straggler(job: Job) -> dict[str, str]:
    """Megatron's --log-straggler: of each interval the ranks with the largest and the smallest values."""
    lines = [megatron_line(1)]
    in_data = job.draw.random() < 0.3
    for step in range(2, 2 + job.draw.randrange(8, 30)):
        compute, data = job.times(3000, not in_data), job.times(40, slow=False)
        if in_data and job.culprit is not None:
            data[job.culprit] += job.draw.uniform(0.8, 1.2) * 900
        power = [9e5 / time for time in compute]
        parts = [
            *_ends("Rtt", compute, "ms"),
            *_ends("Pwr", [6e5 * one for one in job.offsets], "mW"),
            *_ends("DRtt", data, "ms"),
            *_ends("Etpt", power, "TF"),
        ]
        lines += [f"[{STAMP.format(7, step // 60, step % 60)}] | " + " | ".join(parts) + " |", megatron_line(step)]
        if job.draw.random() < 0.2:
            lines.append(_list("Bottom", "lowest", sorted(range(job.ranks), key=power.__getitem__), power))
            lines.append(_list("Top   ", "highest", sorted(range(job.ranks), key=lambda r: -power[r]), power))
    return _file(lines)


def lowest_ranks(job: Job) -> dict[str, str]:
    """Megatron's --straggler-minmax-count: of each interval the four lowest and the four highest ranks."""
    lines = []
    for step in range(1, job.draw.randrange(8, 30)):
        power = [9e5 / time for time in job.times(3000)]
        lines.append(_list("Bottom", "lowest", sorted(range(job.ranks), key=power.__getitem__), power))
        lines.append(_list("Top   ", "highest", sorted(range(job.ranks), key=lambda rank: -power[rank]), power))
        lines.append(megatron_line(step))
    return _file(lines)


def timer_tables(job: Job) -> dict[str, str]:
    """Megatron's timers of all ranks; the last stage of a pipeline computes longer by design."""
    stages = job.draw.choice((1, 2, 4) if job.ranks > 8 else (1, 2))
    longer = [1.3 if stages > 1 and rank >= job.ranks - job.ranks // stages else 1.0 for rank in range(job.ranks)]
    lines = [_settings(pipeline_model_parallel_size=stages, world_size=job.ranks)]
    for step in range(1, job.draw.randrange(5, 12)):
        lines += [megatron_line(step), "times across ranks (ms):"]
        whole = 6000 * job.factor if job.culprit is not None else 6000
        tables = {
            "forward-backward": [whole * job.draw.gauss(1, 0.001) for _ in longer],
            "forward-compute": [time * more for time, more in zip(job.times(1500), longer, strict=True)],
            "backward-compute": [time * more for time, more in zip(job.times(3000), longer, strict=True)],
            "batch-generator": job.times(20, slow=False),
        }
        for name, times in tables.items():
            lines.append(f"  {name}:")
            lines += [f"     rank {rank:2d}: {time:.2f}" for rank, time in enumerate(times)]
    return _file(lines)


def data_times(job: Job) -> dict[str, str]:
    """XTuner's step lines of all ranks; where one is slow, the others wait for it in the step."""
    lines = []
    in_data = job.draw.random() < 0.6
    for step in range(1, job.draw.randrange(8, 20)):
        data, compute = job.times(0.05, slow=False), job.times(2.0, slow=False)
        if job.culprit is not None and in_data:
            late = job.draw.uniform(0.4, 1.5)
            data[job.culprit] += late
            compute = [time + late * (rank != job.culprit) for rank, time in enumerate(compute)]
        elif job.culprit is not None:
            compute[job.culprit] *= job.factor
        for rank in job.draw.sample(range(job.ranks), job.ranks):
            head = f"[XTuner][RANK {rank}][{STAMP.format(8, step // 60, step % 60)}][INFO] Step {step}/100 data_time: "
            lines.append(
                f"{head}{data[rank]:.4f} lr: 0.000020 time: {compute[rank]:.4f} text_tokens: 4024.0 total_loss: 2.480 "
                "reduced_llm_loss: 2.480 max_memory: 31.50 GB reserved_memory: 35.00 GB tgs: 2010 e2e_tgs: 1990"
            )
    return _file(lines)


def files_of_ranks(job: Job) -> dict[str, str]:
    """A file of each rank, with step times of its own."""
    lines: list[list[str]] = [[] for _ in range(job.ranks)]
    for step in range(1, job.draw.randrange(8, 20)):
        for rank, time in enumerate(job.times(1000)):
            lines[rank].append(megatron_line(step, time))
    return {f"rank_{rank}.log": "\n".join(own) + "\n" for rank, own in enumerate(lines)}


def watchdog(job: Job) -> dict[str, str]:
    """Time-outs of NCCL on every rank but the one that did not come, which prints nothing or an earlier work.

    Peers of the missing rank wait in their group, the others for these. Some ranks are killed before they print.
    """
    others = [rank for rank in range(job.ranks) if rank != job.culprit]
    prefix = job.draw.choice(("[rank{0}]:", "{0}: [rank{0}]:"))
    lines = _begin(job, prefix)
    states, printed_late = job.draw.random() < 0.6, job.draw.random() < 0.5
    per_group = job.draw.choice((job.ranks, max(2, job.ranks // 4)))
    numbers = (job.draw.randrange(10, 9999), job.draw.randrange(10, 9999))
    lost = (
        job.draw.sample(others, job.draw.choice((0, 0, 0, 0, 1, 2)))
        if job.ranks > 8 and job.culprit is not None
        else []
    )
    late_at = job.draw.choice(others)
    for rank in job.draw.sample(others, len(others)):
        if printed_late and states and job.culprit is not None and rank == late_at:
            lines.append(_state(prefix, job.culprit, 0, numbers[0] - 1, numbers[0] - 1))
        if rank in lost:
            continue
        group = int(job.culprit is not None and rank // per_group != job.culprit // per_group)
        head = f"{prefix.format(rank)}[E117 07:42:01.{job.draw.randrange(10**9):09} ProcessGroupNCCL.cpp:632]"
        lines.append(
            f"{head} [Rank {rank % per_group}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum="
            f"{numbers[group]}, OpType={('ALLREDUCE', '_REDUCE_SCATTER_BASE')[group]}, NumelIn=4096, NumelOut=4096, "
            f"Timeout(ms)=600000) ran for {600000 + job.draw.randrange(90)} milliseconds before timing out."
        )
        if states:
            lines.append(_state(prefix, rank, group, numbers[group] + job.draw.randrange(3), numbers[group] - 1))
        lines.append(f"{head} [Rank {rank % per_group}] {DIE}")
    return _file([*lines, "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "])


def _begin(job: Job, prefix: str) -> list[str]:
    """The first lines of a run: they show how many ranks there are in two ways, in one, or in none."""
    lines = [_settings(world_size=job.ranks)] if job.draw.random() < 0.8 else []
    if job.draw.random() < 0.8:
        warning = (
            "[W117 07:30:01.1 ProcessGroupNCCL.cpp:4561] using GPU to perform barrier as devices used by this process"
        )
        lines += [f"{prefix.format(rank)}{warning}" for rank in job.draw.sample(range(job.ranks), job.ranks)]
    return lines + [megatron_line(step) for step in range(1, 9)]


def _state(prefix: str, rank: int, group: int, enqueued: int, completed: int) -> str:
    return (
        f"{prefix.format(rank)}[E117 07:42:02.1 ProcessGroupNCCL.cpp:2268] [PG ID {group} PG GUID {group}(a) "
        f"Rank {rank}]  failure detected by watchdog at work sequence id: {completed + 1} PG status: last enqueued "
        f"work: {enqueued}, last completed work: {completed}"
    )


def notify(job: Job) -> dict[str, str]:
    """HCCL's time-outs on every rank but one; each names the rank before it in a ring."""
    lines = _begin(job, "[rank{0}]: ")
    others = [rank for rank in range(job.ranks) if rank != job.culprit]
    for rank in job.draw.sample(others, len(others)):
        remote = (rank - 1) % job.ranks if job.draw.random() < 0.8 else "unknown"
        lines.append(
            f"[rank{rank}]: EI0002: [PID: {4000 + rank}] 2026-01-17-07:42:01.{job.draw.randrange(999):03} The wait "
            "execution of the Notify register times out. Reason: The Notify register has not received the "
            f"Notify record from remote rank: [{remote}]."
        )
    return _file(lines)


def named(job: Job) -> dict[str, str]:
    """Ranks that others name: by a barrier that watches them, or by a report on the ranks that lag."""
    barrier = f"[rank0]: RuntimeError: [Rank 0]: Ranks {job.culprit} failed to pass monitoredBarrier in 600000 ms"
    lagging = f"\t - To our best knowledge, ranks [{job.culprit}] are the lagging ranks that caused this timeout."
    lines = [megatron_line(step) for step in range(1, 9)]
    if job.draw.random() < 0.5:
        return _file([*lines, barrier])
    watched = (
        "[rank1]:[E117 07:42:01.1 ProcessGroupNCCL.cpp:99] [Rank 1] Watchdog caught collective operation timeout: Work"
    )
    return _file([*lines, f"{watched}NCCL(SeqNum=12, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600012 ms", lagging])


def stopped_file(job: Job) -> dict[str, str]:
    """Files of ranks, one of which stops some minutes before the others time out."""
    files = {}
    for rank in range(job.ranks):
        late = rank != job.culprit
        lines = [megatron_line(step, clock=STAMP.format(7, 30, step)) for step in range(1, 9 if not late else 10)]
        if late:
            lines.append(
                f"[rank{rank}]:[E117 07:42:01.1 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective "
                "operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600012 ms"
            )
        files[f"rank_{rank}.log"] = "\n".join(lines) + "\n"
    return files


def all_wait(job: Job) -> dict[str, str]:
    """All ranks time out in the same work: a network or a switch, and no rank."""
    return watchdog(job)


def completed(job: Job) -> dict[str, str]:
    """Files of ranks that end as planned, written out at slightly different times."""
    files = {}
    for rank in range(job.ranks):
        second = job.draw.randrange(5)
        lines = [megatron_line(step, clock=STAMP.format(7, 30, step + second)) for step in range(1, 30)]
        lines.append("[after training is done] datetime: 2026-01-17 07:31:00 ")
        files[f"rank_{rank}.log"] = "\n".join(lines) + "\n"
    return files


SLOW = (straggler, lowest_ranks, timer_tables, data_times, files_of_ranks)
MISSING = (watchdog, notify, named, stopped_file, watchdog)
HEALTHY = (all_wait, completed)
IN_FILES = (files_of_ranks, stopped_file, completed)


def _settings(**values: int) -> str:
    rows = [f"  {name} {'.' * (48 - len(name))} {value}" for name, value in values.items()]
    return "\n".join([f"{'-' * 24} arguments {'-' * 24}", *rows, f"{'-' * 20} end of arguments {'-' * 21}"])


def _ends(name: str, values: Sequence[float], unit: str) -> list[str]:
    least, most = (values.index(end(values)) for end in (min, max))
    return [f"Mn{name}/Rnk: {values[least]:.2f}{unit}/{least}", f"Mx{name}/Rnk: {values[most]:.2f}{unit}/{most}"]


def _list(end: str, which: str, ranks: Sequence[int], power: Sequence[float]) -> str:
    return (
        f"^^^^ {end} 4 Ranks with {which:<7} Etpt(TF): "
        + ", ".join(f"{power[rank]:.2f}/{rank}" for rank in ranks[:4])
        + ","
    )


def _file(lines: Sequence[str]) -> dict[str, str]:
    return {"run.log": "\n".join(lines) + "\n"}
