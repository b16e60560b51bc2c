"""How fast the step lines of each format are read: MB/s of a log that holds nothing else. Prints a table.

The log is the first sample of the format, again and again with other numbers, of more digits or fewer, so that no two
lines are alike; a sample that no others fit stays as it is. By the clock with all cores, the fastest of three runs, and
by the processor time of one job, start-up left out. The seeds are fixed.

    python benchmarks/format_speed.py [MIB [FORMAT ...]]
"""

import random
import sys
import tempfile
import time
from pathlib import Path

import regex

from logparse.formats import all_formats
from logparse.formats._base import TIMESTAMP, LogFormat
from logparse.read.parse import read_run

MIB = 2**20
# Samples with other numbers, which come again in turn.
VARIANTS = 500


def main() -> None:
    """A row for each format, the fastest first."""
    mib, *names = sys.argv[1:] or ["16"]
    chosen = [fmt for fmt in all_formats() if not names or fmt.name in names]
    rows = sorted((measured(fmt, int(mib)) for fmt in chosen), reverse=True)
    print("| format | MB/s, all cores | MB/s, a core | step lines/s, a core |")
    print("| --- | ---: | ---: | ---: |")
    for by_clock, name, of_core, steps in rows:
        print(f"| {name} | {by_clock:,.0f} | {of_core:,.0f} | {steps:,.0f} |")


def measured(fmt: LogFormat, mib: int) -> tuple[float, str, float, float]:
    """MB/s by the clock, the format's name, MB/s by the processor's, and step lines per second."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "run.log"
        log.write_text(text_of(fmt, mib * MIB), encoding="utf-8")
        size = log.stat().st_size / 1e6
        begin = time.process_time()
        steps = read_run([str(log)], format_name=fmt.name, jobs=1).steps
        of_core = time.process_time() - begin
        count = len(steps)
        del steps
        by_clock = min(seconds(log, fmt) for _ in range(3))
        return size / by_clock, fmt.name, size / of_core, count / of_core


def seconds(log: Path, fmt: LogFormat) -> float:
    """How long reading takes with all cores, by the clock."""
    begin = time.perf_counter()
    read_run([str(log)], format_name=fmt.name)
    return time.perf_counter() - begin


def text_of(fmt: LogFormat, size: int) -> str:
    """At least ``size`` characters."""
    draw, text = random.Random(1), fmt.samples[0].text
    variants = [other_numbers(text, fmt, draw) for _ in range(VARIANTS)]
    block = "".join(f"{variant}\n" for variant in variants)
    return block * -(-size // len(block))


def other_numbers(text: str, fmt: LogFormat, draw: random.Random) -> str:
    """Numbers of other lengths; exponents, time stamps, words such as ``bf16``, and what is before the head stay.

    So does a fraction of zeros, as of a step that is printed as ``12.0``.
    """
    found = regex.search(fmt.head, text, regex.M)
    # Where samples of an epoch tell the step, other digits of the head would tell none.
    begin = 0 if found is None else found.end() if "samples_in_epoch" in found.groupdict() else found.start()
    kept = rf"(?:{TIMESTAMP}|(?<=\d\.)0+(?!\d)|(?<=[A-Za-z_]\d*)\d+|(?<=[eE][-+])\d+)(*SKIP)(*FAIL)"
    number = rf"{kept}|(?P<fraction>(?<=\d\.)\d+)|(?P<parted>\d*[,:]\d[\d,:]*)|\d+"
    varied = text[:begin] + regex.sub(number, lambda one: _other_number(one, draw), text[begin:])
    return varied if regex.search(fmt.head, varied, regex.M) else text


def _other_number(found: regex.Match[str], draw: random.Random) -> str:
    """Digits before the point may be one less or more, those of a long fraction fewer; a clock stays as wide."""
    digits = found.group()
    if found["parted"]:
        return regex.sub(r"(?<=\d)\d", lambda _: draw.choice("0123456789"), digits)
    width = len(digits)
    if found["fraction"]:
        width -= draw.choice((0, 0, 0, 1, 2)) if width > 6 else 0
        return "".join(draw.choice("0123456789") for _ in range(width))
    # Milliseconds since 1970 are as wide for centuries.
    width = max(1, width + draw.choice((-1, 0, 0, 0, 1))) if width < 12 else width
    return draw.choice("123456789") + "".join(draw.choice("0123456789") for _ in range(width - 1))


if __name__ == "__main__":
    main()
