"""Write down what logparse says of many logs, or compare two such snapshots. Exit code 1 where they differ.

    python benchmarks/snapshot.py write out/before                    every fixture and every sample
    python benchmarks/snapshot.py write out/before path/to/logs ...   and the logs in these folders
    python benchmarks/snapshot.py compare out/before out/after        name every line that differs

Give `write` the Python of another checkout to write what that checkout says. A log becomes one file: the exit code,
stdout and stderr of `analyze --json`, `analyze -v` and `diagnose`, and the tables of `analyze -o`, a row a line.
Logs are named relative to their folder, so a snapshot does not depend on where that is.
"""

import argparse
import gzip
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import zip_longest
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
OUTPUT = "OUTPUT"
ANALYZE = ("--hw", "910b3", "--lang", "en")
COMMANDS = {
    "json": ("analyze", "{log}", "--json", *ANALYZE, "--no-charts", "-o", OUTPUT),
    "screen": ("analyze", "{log}", "-v", *ANALYZE),
    "diagnose": ("diagnose", "{log}", "--lang", "en"),
}
# What lies next to logs.
NO_LOGS = {".json", ".csv", ".tsv", ".md", ".toml"}
# With more files than this a folder is a collection of runs.
MOST_FILES = 8
SHOWN_DIFFERENCES = 12


def find_logs(folder: Path) -> list[str]:
    """The logs of ``folder`` or below it, relative to it, and each folder of several logs, which may be one run."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    logs = [path for path in files if path.suffix not in NO_LOGS and path.name[0] != "."]
    several = [path for path, number in Counter(log.parent for log in logs).items() if 1 < number <= MOST_FILES]
    return [str(path.relative_to(folder)) for path in (*logs, *several)]


def write_samples(folder: Path) -> None:
    """Write the sample lines of every format, signature and detail, each as a log of its own."""
    from logparse.failures.details import detail_patterns
    from logparse.failures.signatures import signatures
    from logparse.formats import all_formats

    lines = [(f"formats/{fmt.name}", sample.text) for fmt in all_formats() for sample in fmt.samples]
    lines += [(f"signatures/{entry.id}", text) for entry in signatures() for text in entry.sample]
    lines += [(f"details/{entry.code}", text) for entry in detail_patterns() for text in entry.sample]
    for number, (name, text) in enumerate(lines):
        path = folder / f"{name}-{number}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8", errors="surrogateescape")


def write_one(folder: Path, out: Path, log: str) -> None:
    """Write what each command says of ``log`` in ``folder`` to a file of ``out``."""
    import analysed
    from helpers import run_logparse

    parts = []
    with tempfile.TemporaryDirectory() as tables, analysed.analysed_once():
        for name, words in COMMANDS.items():
            arguments = (word.replace("{log}", f"./{log}").replace(OUTPUT, tables) for word in words)
            done = run_logparse(*arguments, cwd=folder, COLUMNS="160", NO_COLOR="1")
            said = f"{done.stdout}\n-- stderr\n{done.stderr}".replace(tables, OUTPUT)
            parts.append(f"==== {name}: exit code {done.returncode}\n{said}")
        parts += map(rows_of, sorted(Path(tables).glob("*.parquet")))
    analysed.forget()
    path = out / f"{log}.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("\n".join(parts).encode(errors="surrogateescape"), compresslevel=1, mtime=0))


def rows_of(table: Path) -> str:
    """The types and rows of a Parquet table, a row a line."""
    import polars as pl

    frame = pl.read_parquet(table)
    return f"==== {table.name}: {frame.schema}\n{frame.write_ndjson()}"


def write(out: Path, folders: Sequence[Path], jobs: int) -> None:
    """Write the snapshot of the fixtures, the samples and ``folders``, with ``jobs`` processes."""
    os.environ["POLARS_MAX_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as scratch, ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        samples = Path(scratch)
        write_samples(samples)
        named = {"fixtures": ROOT / "fixtures", "samples": samples} | {path.name: path.resolve() for path in folders}
        for name, folder in named.items():
            logs = find_logs(folder)
            for number, _ in enumerate(pool.map(partial(write_one, folder, out / name), logs), 1):
                print(f"\r{name}: {number} of {len(logs)}", end="", file=sys.stderr, flush=True)
            print(file=sys.stderr)


def compare(before: Path, after: Path) -> int:
    """Print every line that differs; the number of logs with such lines."""
    names = sorted({path.relative_to(side) for side in (before, after) for path in side.rglob("*.gz")})
    different = 0
    for name in names:
        if missing := [side for side in (before, after) if not (side / name).exists()]:
            print(f"{name.with_suffix('')}: only in {after if missing == [before] else before}")
            different += 1
        elif lines := list(differences(*(lines_of(side / name) for side in (before, after)))):
            more = len(lines) - SHOWN_DIFFERENCES
            print(
                name.with_suffix(""),
                *lines[:SHOWN_DIFFERENCES],
                *([f"  and {more} more"] if more > 0 else []),
                sep="\n",
            )
            different += 1
    print(f"{len(names)} logs compared, {different} differ")
    return different


def lines_of(path: Path) -> list[str]:
    """The lines of one log's snapshot."""
    return gzip.decompress(path.read_bytes()).decode(errors="surrogateescape").split("\n")


def differences(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Each pair of lines that differ, with their number and the part they are in."""
    part = ""
    for number, (was, now) in enumerate(zip_longest(old, new, fillvalue=""), 1):
        part = was if was.startswith("==== ") else part
        if was != now:
            yield f"  {part[5:30]}, line {number}\n    - {was[:300]}\n    + {now[:300]}"


def main() -> int:
    """Write or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(required=True, dest="action")
    writing = actions.add_parser("write", help="write a snapshot")
    writing.add_argument("out", type=Path, help="folder of the snapshot; a new one")
    writing.add_argument("folders", type=Path, nargs="*", help="folders of logs besides fixtures/ and the samples")
    writing.add_argument("--jobs", type=int, default=os.cpu_count(), help="logs at a time (default: one for each core)")
    comparing = actions.add_parser("compare", help="compare two snapshots")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.action == "compare":
        return int(compare(given.before, given.after) > 0)
    if given.out.exists():
        parser.error(f"{given.out} exists; name a new folder")
    write(given.out, given.folders, given.jobs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
