"""What do a thousand files of ranks cost, of which one holds the step lines? Prints times and their ratio.

    python benchmarks/rank_files.py [FILES] [MIB] [FOLDER]

Builds FILES files (1,000) of MIB each (10) in FOLDER (a temporary one), so it takes 10 GB of disk; they are read from
the page cache where that is large enough. The time to beat is 1.3 times that of reading the one file plus the probes:
three spots of 64 KiB of every file. All times are CPU seconds of the process, the best of ROUNDS.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from logparse.formats import all_formats
from logparse.read.find import search_all
from logparse.read.named import find_sources
from logparse.read.parse import read_run
from logparse.read.probe import probe
from logparse.read.reader import CORES

ROUNDS = 5
CHATTER = "[2026-01-01 00:00:00,{n:06d}] [INFO] [rank{rank}] worker.py:123:run some chatter of a rank, number {n}\n"
STEP = (
    " [2026-01-01 00:00:00] iteration {n:8d}/{last:8d} | consumed samples: {samples:12d} |"
    " elapsed time per iteration (ms): {ms:.1f} | learning rate: 1.000000E-04 | global batch size:    32 |"
    " lm loss: 2.345678E+00 | loss scale: 1.0 | grad norm: 0.876 | number of skipped iterations:   0 |\n"
)


def build(folder: Path, files: int, size: int) -> Path:
    """Write the files; the last rank prints the steps. Gives back its file."""
    count = size // len(CHATTER.format(n=0, rank=0))
    chatter = "".join(CHATTER.format(n=n, rank=0) for n in range(count))
    for rank in range(files - 1):
        (folder / f"worker_{rank}.log").write_text(chatter)
    last = folder / f"worker_{files - 1}.log"
    steps = size // len(STEP.format(n=1, last=1, samples=1, ms=1000))
    last.write_text("".join(STEP.format(n=n, last=steps, samples=32 * n, ms=1000 + n % 7) for n in range(1, steps + 1)))
    return last


def best(work: Callable[[], object]) -> float:
    """CPU seconds of ``work``, the best of ROUNDS."""
    times = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def main(files: int = 1000, mib: int = 10, place: str | None = None) -> None:
    """Build, measure, print."""
    with tempfile.TemporaryDirectory(dir=place) as name:
        folder = Path(name)
        one = build(folder, files, mib << 20)
        alone = best(lambda: read_run([str(one)]))
        search = search_all(all_formats())
        probes = best(lambda: probe(find_sources([name]), search, CORES))
        together = best(lambda: read_run([name]))
    print(f"the one file      {alone:8.2f} s")
    print(f"the probes        {probes:8.2f} s")
    print(f"all {files:,} files   {together:8.2f} s, {together / (alone + probes):.2f} times the two above")


if __name__ == "__main__":
    asked = sys.argv[1:]
    main(*map(int, asked[:2]), *asked[2:])
