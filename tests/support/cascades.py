"""Injected failures: a root on one rank, and what it brings about on the others, in a disturbed order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from helpers import megatron_line

from logparse.failures.signatures import Signature, signatures

# Roots that print on behalf of the whole job, without a rank.
_OF_JOB = ("slurm.", "lsf.", "pbs.", "k8s.", "host.oom", "host.slurm", "exit.", "killed.", "signal.", "preempt.")
BEGIN = datetime(2026, 1, 17, 7, 32)
CONSEQUENCES = (
    "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:77, remote process exited",
    "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.7]:4242",
    "RuntimeError: Inner:torch_npu/csrc/OpParamMaker.cpp:281 OPS function error: HcclAllreduce, error code is 6",
    "ncclSystemError: System call (e.g. socket, malloc) or external library call failed",
    "RuntimeError: NPU function error: aclrtSynchronizeStream, error code is 507048",
)
TRACEBACK = ("Traceback (most recent call last):", '  File "train.py", line 80, in <module>', "    loss = model(batch)")
WAITS = (
    "[Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12) ran for 600012 milliseconds",
    "EI0002: [PID: 5] The wait execution of the Notify register times out.",
    "EI0006: [PID: 5] Getting socket times out. Reason: Remote Rank did not send.",
)
# What stopped ranks print later, each of which is a cause in other logs.
FALLOUT = (
    "terminate called after throwing an instance of 'c10::DistBackendError'",
    "Fatal Python error: Aborted",
    "RuntimeError: the process group is gone",
    "Segmentation fault (core dumped)",
    "OSError: [Errno 107] Transport endpoint is not connected",
    "KeyboardInterrupt",
    "E0117 07:42:01.1 elastic/multiprocessing/api.py] failed (exitcode: -6) local_rank: 0 (pid: 42)",
    "E0117 07:42:01.1 elastic/multiprocessing/api.py] failed (exitcode: -9) local_rank: 1 (pid: 43)",
    "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-01-17T07:42:02 ***",
    "srun: error: node7: task 3: Killed",
)
# Deaths that only the launcher reports.
REPORTED = tuple(
    f"E0117 07:32:00.1 elastic/multiprocessing/api.py] failed (exitcode: {code}) local_rank: 3 (pid: 4245)"
    for code in (-9, -11, -7)
)
FRAMES = (
    "W0117 07:40:00.1 elastic/multiprocessing/api.py:897] Sending process 4242 closing signal SIGTERM",
    "E0117 07:40:01.1 torch/distributed/elastic/api.py:869] failed (exitcode: 1) local_rank: {rank} (pid: 4245)",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    "srun: error: node7: tasks 0-3,5-7: Terminated",
    "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
)


@dataclass(frozen=True)
class Injected:
    """A log with a failure, the line of its root, and whose it is."""

    text: str
    signature: Signature
    line: int
    rank: int | None


def roots() -> list[tuple[Signature, str]]:
    """The root lines that are drawn from."""
    causes = [
        (signature, sample) for signature in signatures() if signature.role == "root" for sample in signature.sample
    ]
    reporter = next(signature for signature in signatures() if signature.id == "exit.torchrun")
    return causes + [(reporter, sample) for sample in REPORTED]


def inject(seed: int, ranks: int = 8) -> Injected:
    """A run of ``ranks`` that fails; the same for the same ``seed``."""
    draw = random.Random(seed)
    signature, sample = draw.choice(roots())
    of_job = signature.id.startswith(_OF_JOB)
    rank = None if of_job else draw.randrange(ranks)
    stamped, prefix = draw.random() < 0.5, draw.choice(("[rank{}]: ", "{}: [rank{}]: ", "[rank{}]:[rank{}]: "))
    root = _line(prefix, rank, sample, 0.0, stamped)
    trace = [_line(prefix, rank, text, 0.0, stamped) for text in TRACEBACK]
    # The traceback of a Python exception is above it, at the same time.
    timeline = [(0.0, "\n".join([*trace, root]) if _is_python(sample) else root)]
    others = [other for other in range(ranks) if other != rank]
    for other in draw.sample(others, draw.randrange(1, ranks - 1)):
        # Clocks differ by up to two seconds, so that a consequence may be above its root.
        after = draw.uniform(-2.0, 2.0) if not of_job else draw.uniform(0.1, 2.0)
        timeline.append((after, _line(prefix, other, draw.choice(CONSEQUENCES), after, stamped)))
    if draw.random() < 0.4:
        for other in draw.sample(others, 2):
            after = 600 + draw.uniform(0, 2)
            wait = draw.choice(WAITS).format(rank=other)
            timeline.append((after, _line(prefix, other, wait, after, stamped)))
    lines = [line for _, text in sorted(timeline) for line in text.split("\n")]
    lines += draw.sample(FALLOUT, draw.choice((0, 0, 1, 2, 3)))
    lines += [frame.format(rank=rank or 0) for frame in FRAMES if draw.random() < 0.7]
    lines = _torn(lines, root, draw)
    head = [megatron_line(step) for step in range(1, draw.randrange(2, 30))] if draw.random() < 0.7 else ["starting"]
    whole = [*head, *lines]
    at = next(number for number, line in enumerate(whole, 1) if line.endswith(root))
    return Injected("".join(f"{line}\n" for line in whole), signature, at, rank)


def _is_python(text: str) -> bool:
    return text.split(":")[0].endswith(("Error", "Exception"))


def _line(prefix: str, rank: int | None, text: str, after: float, stamped: bool) -> str:
    """A line as a rank prints it, or the job; with ``stamped`` after the clock that kubectl puts in front."""
    stamp = f"{BEGIN + timedelta(seconds=after):%Y-%m-%dT%H:%M:%S.%fZ} " if stamped else ""
    return stamp + ("" if rank is None else prefix.replace("{}", str(rank))) + text


def _torn(lines: Sequence[str], root: str, draw: random.Random) -> list[str]:
    """Some lines with the prefix of another rank in front, as two ranks write at once."""
    return [f"[rank{draw.randrange(8)}]: {line}" if line != root and draw.random() < 0.1 else line for line in lines]
