"""Measure what following a day of logs costs: memory, CPU, and how long a line waits. Prints a table.

A job of --ranks ranks prints a line each for --steps steps; each rank has a file of its own. Between two refreshes as
many lines are written as --rate says, one step after the other. At several lengths of the logs some refreshes are
measured as the command would ask for them: the clock of the log is simulated, what a refresh takes is not.

    python benchmarks/watched_logs.py                        24 hours of 8 ranks at 1,000 lines a second; five minutes
    python benchmarks/watched_logs.py --ranks 1 --rate 10    one file, slowly
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from analysis.run.options import RunOptions
from analysis.watch.refresh import SHARE, Follower

SETTINGS = {
    "world_size": 8,
    "num_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "ffn_hidden_size": 11008,
    "seq_length": 4096,
    "global_batch_size": 64,
    "micro_batch_size": 1,
    "padded_vocab_size": 32000,
    "tensor_model_parallel_size": 8,
    "swiglu": True,
    "bf16": True,
    "log_interval": 1,
    "train_iters": 20000,
}
BEGIN = datetime(2026, 8, 1)
# Where along the logs the refreshes are measured, how many of them, and seconds between two at least.
LENGTHS, REFRESHES, EVERY = (0.01, 0.1, 0.25, 0.5, 0.75, 1.0), 3, 2.0


class Job:
    """The files of a job's ranks, which print their steps in turn."""

    def __init__(self, folder: Path, ranks: int) -> None:
        self.files = [(folder / f"rank_{rank}.log").open("w", encoding="utf-8") for rank in range(ranks)]
        self.step = 0
        head = "".join(f"  {name} {'.' * 40} {value}\n" for name, value in SETTINGS.items())
        for file in self.files:
            file.write(f"------------------------ arguments ------------------------\n{head}")
            file.write("-------------------- end of arguments ---------------------\n")

    def go_on(self, steps: int) -> None:
        """Print so many more steps on each rank."""
        for rank, file in enumerate(self.files):
            file.writelines(map(line_of, range(self.step + 1, self.step + steps + 1), [rank] * steps))
            file.flush()
        self.step += steps


def line_of(step: int, rank: int) -> str:
    """A step line of a rank; times and losses differ."""
    stamp = BEGIN + timedelta(seconds=5 * step)
    ms = 5000 + (step * 7919 + rank * 31) % 97 - 48 + (step % 500 == 0) * 20_000
    return (
        f" [{stamp:%Y-%m-%d %H:%M:%S}] iteration {step:8d}/   20000 | consumed samples: {step * 64:12d} | elapsed time"
        f" per iteration (ms): {ms:.1f} | learning rate: 1.500E-04 | global batch size:    64 | lm loss: "
        f"{2 + 8 / (step + 10) ** 0.5 + (step * 104729 % 89) / 10_000:.6E} | loss scale: 1.0 | grad norm: "
        f"{0.5 + (step * 1299709 % 83) / 1000:.3f} | number of skipped iterations:   0 |"
        " number of nan iterations:   0 |\n"
    )


def main() -> None:
    """Measure what is asked for and print it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--ranks", type=int, default=8, help="files that are followed")
    parser.add_argument("--steps", type=int, default=17_280, help="lines of each")
    parser.add_argument("--rate", type=float, default=1000.0, help="lines a second, of all ranks")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), options.ranks, options.steps, options.rate)


def measure(folder: Path, ranks: int, steps: int, rate: float) -> None:
    """Print a row for each length of the logs."""
    job = Job(folder, ranks)
    follower = Follower([str(folder)], RunOptions(hw="910b3"))
    print("| steps of each rank | lines | refresh, CPU s | refresh, s | wait, s | share of a core | memory, MiB |")
    print("|", " ---: |" * 7, sep="")
    at = 0.0
    for length in LENGTHS:
        job.go_on(max(int(steps * length) - job.step, 1))
        moment = follower.refresh(at)
        took: list[tuple[float, float, float]] = []
        for _ in range(REFRESHES):
            wait = follower.seconds_to_wait(EVERY)
            at += wait
            job.go_on(max(int(rate * wait / ranks), 1))
            begin = time.perf_counter()
            moment = follower.refresh(at)
            took.append((moment.seconds, time.perf_counter() - begin, wait))
        print(row_of(job.step, ranks, took), flush=True)
    assert moment.runs, moment.refusal
    print(f"\nblocks that were read again: {follower.read_again}; share that the command allows: {SHARE:.0%}")


def row_of(step: int, ranks: int, took: Sequence[tuple[float, float, float]]) -> str:
    """A row of the table: means over some refreshes."""
    cpu, wall, wait = (sum(values) / len(took) for values in zip(*took, strict=True))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    share = cpu / (wall + wait)
    return f"| {step:,} | {step * ranks:,} | {cpu:.2f} | {wall:.2f} | {wait:.1f} | {share:.1%} | {memory:.0f} |"


if __name__ == "__main__":
    main()
