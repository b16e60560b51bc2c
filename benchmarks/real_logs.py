"""Measure how fast the logs of real trainers are read, next to a plain loop. Prints a table.

A log is grown from a short one: what follows its first step line is repeated to --mib MiB, with its steps numbered on
and other digits in its decimals. So all the lines between the steps stay, in the share that the trainer prints.
By default the logs of ``fixtures/`` of the large families, and one file with all of them in turn.

    python benchmarks/real_logs.py                                    the fixtures, 48 MiB each; two minutes
    python benchmarks/real_logs.py --mib 16 path/to/train.log ...     logs of yours
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

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
# Counters that grow from step to step, and decimals that differ.
STEP = regex.compile(r"(?i)(?<=\b(?:iteration|step|global_step|total_train_steps|steps?:\[?)[ =:'\"/]{0,3}\s*)\d+")
DECIMALS = regex.compile(r"(?<=\d\.)\d*[1-9]\d+(?![\d.])")
# A process prints its seconds by the clock and of CPU, and how many step lines it read.
TIMED = """import re, sys, time
{imports}
begin, cpu = time.perf_counter(), time.process_time()
{work}
print(time.perf_counter() - begin, time.process_time() - cpu, rows)
"""
READER = TIMED.format(
    imports=f"from {read_run.__module__} import read_run", work="rows = len(read_run([sys.argv[1]]).steps)"
)
# What a short script does: the lines with a marker of the format, each number on them made a float.
LOOP = TIMED.format(
    imports="number = re.compile(r'[-+]?[0-9]+(?:[.][0-9]+)?(?:[eE][-+]?[0-9]+)?')",
    work="""rows = 0
for line in open(sys.argv[1], errors='replace'):
    if any(marker in line for marker in sys.argv[2:]):
        values = [float(text) for text in number.findall(line)]
        rows += 1""",
)
SMALL = ("logparse", "analyze", str(ROOT / "fixtures/megatron/core-v0.12-llama2-7b/run.log"))


def main() -> None:
    """Grow the logs one by one, read each and print a row."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("logs", nargs="*", type=Path, help="short logs to grow; by default some of fixtures/")
    parser.add_argument("--mib", type=int, default=48, help="size to grow each log to")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each; the fastest counts")
    options = parser.parse_args()
    logs = options.logs or [ROOT / "fixtures" / name / "run.log" for name in FAMILIES]
    print("| log | MB/s | CPU, s | plain loop, MB/s | step lines |\n| --- | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        grown = Path(folder) / "run.log"
        for name, parts in [*((label(log), [log]) for log in logs), *([("mix", logs)] if len(logs) > 1 else [])]:
            write_grown(grown, [log.read_text(encoding="utf-8", errors="replace") for log in parts], options.mib * MIB)
            size = grown.stat().st_size / 1e6
            wall, cpu, rows = min(timed(READER, grown) for _ in range(options.rounds))
            loop = min(timed(LOOP, grown, *markers(parts))[0] for _ in range(options.rounds))
            print(f"| {name} | {size / wall:.1f} | {cpu:.2f} | {size / loop:.1f} | {rows:,.0f} |", flush=True)
    print(
        f"\n`logparse analyze` of a 34 kB log takes {small_log(options.rounds):.1f} times as long as `import polars`."
    )


def label(log: Path) -> str:
    """The folder and the name of a log; of a fixture its two folders."""
    return (
        str(log.parent.relative_to(ROOT / "fixtures")) if log.is_relative_to(ROOT) else f"{log.parent.name}/{log.name}"
    )


def markers(logs: Sequence[Path]) -> list[str]:
    """What the step lines of ``logs`` contain, by their formats."""
    return list(dict.fromkeys(marker for log in logs for marker in read_run([str(log)]).format.marker))


def timed(code: str, *arguments: object) -> tuple[float, float, float]:
    """Seconds by the clock, seconds of CPU, and step lines, as a process of its own prints them."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    wall, cpu, rows = map(float, done.stdout.split())
    return wall, cpu, rows


def small_log(rounds: int) -> float:
    """How many imports of polars the analysis of a small log takes; the fastest of both."""
    commands = ([str(Path(sys.executable).with_name(SMALL[0])), *SMALL[1:]], [sys.executable, "-c", "import polars"])
    ours, polars = (min(seconds(command) for _ in range(2 * rounds)) for command in commands)
    return ours / polars


def seconds(command: Sequence[str]) -> float:
    """Seconds by the clock of a command."""
    begin = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    return time.perf_counter() - begin


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
    """The bodies in turn, again and again, with other numbers."""
    draw = random.Random(1)
    longest = [max((int(n) for n in STEP.findall(body)), default=0) for body in bodies]
    turn = 0
    while True:
        for body, most in zip(bodies, longest, strict=True):
            numbered = STEP.sub(partial(_numbered_on, turn * most), body)
            yield DECIMALS.sub(lambda d: "".join(draw.choices("0123456789", k=len(d.group()))), numbered)
        turn += 1


def _numbered_on(more: int, counter: regex.Match[str]) -> str:
    return str(int(counter.group()) + more).rjust(len(counter.group()))


if __name__ == "__main__":
    main()
