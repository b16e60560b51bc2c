"""Commands run as processes of their own: how long they take, what they cost, what they hold.

Nothing large is imported or held here: Linux takes what a process held when it started another for a peak of that one.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

MIB = 2**20
# What a reader cannot be faster than in a ratio; below, the clock and the start of a process say more than the reader.
SHORTEST_SECONDS = 0.002

# Of the time by the clock, what a process of one thread computes where nobody takes its core.
CORE_SHARE = 0.9


@dataclass(frozen=True)
class Case:
    """A row of the table: ``reader`` on ``log``. ``start`` is the same command on ten lines, whose time is taken off.

    ``fails`` where the command may end with another code than 0; ``once`` where one run is enough.
    """

    log: str
    reader: str
    command: tuple[str, ...]
    start: tuple[str, ...] = ()
    fails: bool = False
    once: bool = False


@dataclass(frozen=True)
class Run:
    """One process: seconds by the clock, seconds of all its threads, bytes at most, what it printed."""

    wall: float
    cpu: float
    peak: int
    printed: str


@dataclass
class Figures:
    """All runs of a case, and of the same on ten lines."""

    runs: list[Run] = field(default_factory=list)
    starts: list[Run] = field(default_factory=list)

    @property
    def wall(self) -> float:
        """Seconds of the fastest run."""
        return min(run.wall for run in self.runs)

    @property
    def usual(self) -> float:
        """Seconds of the run in the middle."""
        return median(run.wall for run in self.runs)

    @property
    def start(self) -> float:
        """Seconds of the fastest on ten lines."""
        return min((run.wall for run in self.starts), default=0.0)

    @property
    def net(self) -> float:
        """Seconds of the fastest run less those on ten lines."""
        return max(self.wall - self.start, SHORTEST_SECONDS)

    @property
    def cpu(self) -> float:
        """Seconds of all threads of the cheapest run less those on ten lines."""
        starts = min((run.cpu for run in self.starts), default=0.0)
        return max(min(run.cpu for run in self.runs) - starts, SHORTEST_SECONDS)

    @property
    def had_a_core(self) -> bool:
        """Whether a reader of one thread hardly waited for others."""
        return sum(run.cpu for run in self.runs) >= CORE_SHARE * sum(run.wall for run in self.runs)

    @property
    def peak(self) -> int:
        """Bytes held at most, start-up included."""
        return max(run.peak for run in self.runs)

    @property
    def printed(self) -> list[str]:
        """The words of the first run."""
        return self.runs[0].printed.split()


Results = dict[tuple[str, str], Figures]


def run(command: Sequence[str], fails: bool = False) -> Run:
    """Run to the end. Raises RuntimeError with what it said where it fails and may not."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as talk:
        begin = time.perf_counter()
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=talk)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode and not fails:
            talk.seek(0)
            said = talk.read().decode(errors="replace")[-1000:]
            raise RuntimeError(f"{' '.join(command)} ended with {child.returncode}: {said}")
        out.seek(0)
        unit = 1 if sys.platform == "darwin" else 1024
        return Run(
            wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit, out.read(1000).decode(errors="replace")
        )


def measure(cases: Sequence[Case], rounds: int, results: Results) -> None:
    """Run the cases in turn, again and again, so that a noisy moment meets all of them."""
    for number in range(rounds):
        for case in cases if number == 0 else (case for case in cases if not case.once):
            figures = results.setdefault((case.log, case.reader), Figures())
            if case.start:
                figures.starts.append(run(case.start))
            figures.runs.append(run(case.command, case.fails))
            print(f"{case.log}, {case.reader}: {figures.runs[-1].wall:.2f} s", file=sys.stderr, flush=True)


def machine() -> str:
    """The processor, its cores, memory, and the versions of what was run."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    def of(name: str) -> str:
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            return f"{name} not installed"

    told = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    models = [line.partition(":")[2].strip() for line in told.splitlines() if line.startswith("model name")]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    grep = run(("grep", "--version")).printed.splitlines()[0]
    parts = (
        f"{models[0] if models else platform.processor()}, {cores} cores, {memory:.0f} GiB",
        f"{platform.system()} {platform.release().partition('-')[0]}, Python {platform.python_version()}",
        *(of(name) for name in ("polars", "pyarrow", "duckdb")),
        grep,
    )
    return "; ".join(parts)
