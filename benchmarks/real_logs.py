"""Measure how long `logparse analyze --json` takes for the logs of real trainers, next to a plain loop. Prints a table.

A log is grown from a short one: what follows its first step line is repeated to --mib MiB, with its steps numbered on
and other digits in its decimals. So all the lines between the steps stay, in the share that the trainer prints.
By default the logs of ``fixtures/`` of the large families, and one file with all of them in turn. Fixtures are quiet:
give logs of real runs, with their warnings, timers and bars.

    python benchmarks/real_logs.py                                    the fixtures, 48 MiB each; five minutes
    python benchmarks/real_logs.py --mib 16 path/to/train.log ...     logs of yours
    python benchmarks/real_logs.py --extremes                         only step lines; one step line in 1,000
    python benchmarks/real_logs.py --small                            a log of 34 kB, in imports of polars
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

import regex

from logparse.decode.read_run import read_run

ROOT = Path(__file__).parent.parent
MIB = 2**20
FAMILIES = (
    "megatron/core-v0.12-llama2-7b",
    "megatron/ascendspeed-llama2-7b",
    "megatron/deepspeed-ms",
    "megatron/v2.5-gpt",
    "mindformers/family-b-1.5",
    "ms-swift/console",
    "torchtitan/llama3-8b-2d",
    "hf-trainer/bar-and-banner",
    "deepspeed/engine-zero2",
    "nemo/progress-printer",
    "verl/grpo",
    "composer/mpt-1b-8gpu",
)
# Decimals that differ from turn to turn.
DECIMALS = regex.compile(r"(?<=[ :=]-?\d\.)\d*[1-9]\d+(?![\d.])(?<!epoch['\"]?[ :=]+\d+\.\d+)")
STEP = regex.compile(
    r"(?i)(?<=\b(?:iteration|step|global_step|current_steps|total_train_steps|steps?:\[?)[ =:'\"/]{0,3}\s*)\d+"
    r"|\d+(?=/\d+ \[\d)"
)
# A bar with more steps than its total would be none.
TOTAL = regex.compile(r"(?<=\d/)\d+(?= \[\d)")
EPOCH = regex.compile(r"(?<=\bepoch['\"]?[ :=]+)\d+\.\d+")
PASSED = regex.compile(r"(?<=\d \[|\"elapsed_time\": \")(?:\d+:)?\d\d?:\d\d(?=[<,\"])")
STAMP = regex.compile(r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
NUMBER = r"(\S*?)([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
LOGPARSE = str(Path(sys.executable).with_name("logparse"))
POLARS = (sys.executable, "-c", "import polars")
SMALL = ROOT / "fixtures" / FAMILIES[0] / "run.log"
STEP_LINE, EXTREME_MIB, SPARSE = "elapsed time per iteration", 200, 1000
# What a short script does: of each line with a marker of the format, the pairs that the format reads, typed.
LOOP = """import sys, regex
pair, markers, rows = regex.compile(sys.argv[2]), sys.argv[3:], []
def typed(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        return value
for line in open(sys.argv[1], errors="replace"):
    if any(marker in line for marker in markers):
        rows.append({match[1]: typed(match[2]) for match in pair.finditer(line)})
"""


class Cost(NamedTuple):
    """What a command took: seconds by the clock, seconds of CPU, and the most memory in MiB."""

    wall: float
    cpu: float
    memory: float


def main() -> None:
    """Measure what is asked for and print it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("logs", nargs="*", type=Path, help="short logs to grow; by default some of fixtures/")
    parser.add_argument("--mib", type=int, default=48, help="size to grow each log to")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each; the fastest counts")
    parser.add_argument(
        "--extremes", action="store_true", help=f"measure two invented logs of {EXTREME_MIB} MiB instead"
    )
    parser.add_argument("--small", action="store_true", help="measure one small log instead, in 15 pairs of commands")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "run.log"
        if options.small:
            measure_small()
        elif options.extremes:
            measure_extremes(log, options.rounds)
        else:
            measure_logs(options.logs, log, options.mib, options.rounds)


def measure_logs(given: Sequence[Path], grown: Path, mib: int, rounds: int) -> None:
    """Print the cost of each log, grown to ``mib`` MiB, and of one file with all of them in turn."""
    logs = given or [ROOT / "fixtures" / name / "run.log" for name in FAMILIES]
    print("| log | MB/s | CPU, s | memory, MiB | plain loop, MB/s | step lines |\n| --- |", " ---: |" * 5, sep="")
    for name, parts in [
        *((label(log), [log]) for log in logs),
        *([("all in one file", logs)] if len(logs) > 1 else []),
    ]:
        write_grown(grown, [log.read_text(encoding="utf-8", errors="replace") for log in parts], mib * MIB)
        size = grown.stat().st_size / 1e6
        cost = cheapest(rounds, LOGPARSE, "analyze", str(grown), "--json")
        loop = cheapest(rounds, *loop_of(parts[0], grown))
        rows = len(read_run([str(grown)]).steps)
        shown = f"{size / cost.wall:.1f} | {cost.cpu:.2f} | {cost.memory:.0f} | {size / loop.wall:.1f} | {rows:,}"
        print(f"| {name} | {shown} |", flush=True)


def measure_extremes(log: Path, rounds: int) -> None:
    """Print the cost of a log of step lines alone next to a plain loop, and of one with few next to ``grep -c``."""
    steps = [line for line in cut(SMALL.read_text(encoding="utf-8"))[1].splitlines(keepends=True) if STEP_LINE in line]
    others = "".join(f"[worker {n % 64}] wrote sample {n} of the data to the cache\n" for n in range(1, SPARSE))
    peers = {
        "dense": (steps, loop_of(SMALL, log)),
        "sparse": ([step + others for step in steps], ("grep", "-c", "iteration", str(log))),
    }
    for name, (body, peer) in peers.items():
        write_grown(log, ["".join(body)], EXTREME_MIB * MIB)
        ours, other = cheapest(rounds, LOGPARSE, "analyze", str(log), "--json"), cheapest(rounds, *peer)
        times = (
            f"{ours.wall:.1f} s, {ours.wall / other.wall:.2f} times {'grep -c' if peer[0] == 'grep' else 'the loop'}"
        )
        print(f"{name}: {times}, {ours.memory:.0f} MiB of memory", flush=True)


def measure_small() -> None:
    """Print how many imports of polars a small log costs, in CPU seconds: the median of 15 pairs."""
    for command in ("analyze", "diagnose"):
        more = ("--hw", "910b3") if command == "analyze" else ()
        pairs = [(cost_of(LOGPARSE, command, str(SMALL), *more), cost_of(*POLARS)) for _ in range(15)]
        times = statistics.median(ours.cpu / polars.cpu for ours, polars in pairs)
        cpu = statistics.median(ours.cpu for ours, _ in pairs)
        print(f"{command} of a log of 34 kB: {cpu:.2f} s of CPU, {times:.1f} times import polars", flush=True)


def label(log: Path) -> str:
    """The folder and the name of a log; of a fixture its two folders."""
    return (
        str(log.parent.relative_to(ROOT / "fixtures")) if log.is_relative_to(ROOT) else f"{log.parent.name}/{log.name}"
    )


def loop_of(log: Path, grown: Path) -> tuple[str, ...]:
    """The command of the plain loop over ``grown``, for the format of ``log``; without pairs it types every number."""
    fmt = read_run([str(log)]).format
    return sys.executable, "-c", LOOP, str(grown), fmt.pair or NUMBER, *fmt.marker


def cheapest(rounds: int, *command: str) -> Cost:
    """The fastest of some runs of ``command``."""
    return min(cost_of(*command) for _ in range(rounds))


def cost_of(*command: str) -> Cost:
    """Run ``command`` and return its cost. Raises CalledProcessError where it fails."""
    # Into a file: grep stops at its first match where nobody reads what it prints.
    with tempfile.TemporaryFile() as printed:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=printed, stderr=subprocess.DEVNULL, cwd=ROOT)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def write_grown(path: Path, texts: Sequence[str], size: int) -> None:
    """Write each text up to its first step line, then the rest of all in turn with steps numbered on, to ``size``."""
    parts = [cut(text) for text in texts]
    with path.open("w", encoding="utf-8", newline="") as out:
        written = sum(out.write(head) for head, _ in parts)
        for portion in portions([body for _, body in parts]):
            written += out.write(portion)
            if written >= size:
                return


def cut(text: str) -> tuple[str, str]:
    """What is before the line of the first counter, and the rest."""
    first = STEP.search(text)
    begin = text.rfind("\n", 0, first.start()) + 1 if first else 0
    return text[:begin], text[begin:] if text.endswith("\n") else text[begin:] + "\n"


def portions(bodies: Sequence[str]) -> Iterator[str]:
    """The bodies in turn, again and again, with other decimals; what a run counts goes on from turn to turn."""
    draw = random.Random(1)
    bodies = [TOTAL.sub(lambda total: total.group() + "0000", body) for body in bodies]
    spans = [[span(body, counted) for counted in COUNTED] for body in bodies]
    for turn in count(0):
        for body, spans_of_body in zip(bodies, spans, strict=True):
            grown = body
            for counted, most in zip(COUNTED, spans_of_body, strict=True):
                grown = counted.pattern.sub(partial(_counted_on, counted, turn * most), grown)
            yield DECIMALS.sub(lambda d: "".join(draw.choices("0123456789", k=len(d.group()))), grown)


class Counted(NamedTuple):
    """Something that grows along a run: how it is found, read as a number, and written."""

    pattern: regex.Pattern[str]
    read: Callable[[str], float]
    write: Callable[[float], str]


def _seconds(passed: str) -> float:
    return sum(int(part) * 60**place for place, part in enumerate(reversed(passed.split(":"))))


def _passed(seconds: float) -> str:
    return f"{seconds // 3600:.0f}:{seconds // 60 % 60:02.0f}:{seconds % 60:02.0f}"


def _stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


COUNTED = (
    Counted(STEP, int, "{:.0f}".format),
    Counted(EPOCH, float, "{:.4f}".format),
    Counted(PASSED, _seconds, _passed),
    Counted(STAMP, lambda stamp: datetime.fromisoformat(f"{stamp}+00:00").timestamp(), _stamp),
)


def span(body: str, counted: Counted) -> float:
    """How far something is counted in ``body``: from 0, or for stamps from the first one."""
    values = [counted.read(text) for text in counted.pattern.findall(body)]
    return max(values, default=0) - (min(values, default=0) if counted.pattern is STAMP else 0)


def _counted_on(counted: Counted, more: float, match: regex.Match[str]) -> str:
    return counted.write(counted.read(match.group()) + more).rjust(len(match.group())) if more else match.group()


if __name__ == "__main__":
    main()
