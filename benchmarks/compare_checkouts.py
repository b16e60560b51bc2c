"""Do two checkouts say the same of every log? Prints where they do not; exit code 1 where they may not differ.

    python benchmarks/compare_checkouts.py --before ../old/.venv/bin/logparse --after .venv/bin/logparse fixtures

Each log is given to `analyze`, with a device so that MFU and HFU exist, and to `formulas` of both commands. Exit codes,
stderr, JSON documents and Parquet tables are compared cell for cell, as Python writes the values: NaN is NaN, 1 is not
1.0, and the text of an object is compared with the bare text that stood in its place.

A place is a path in a document or a column of a table. One listed in ALLOWED may differ or be missing; the values of
one in RENAMED may be other words, one for one over all logs; one that the first command never has is new. Everything
else must be as it was. With --keep the outputs stay in a folder; a later call takes those of the first command there.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from os import environ
from pathlib import Path

import polars as pl

COMMANDS = {
    "analyze": ("--json", "--lang", "en", "--hw", "910b3", "--no-charts", "-o", "tables"),
    "formulas": ("--json", "--lang", "en"),
}
# Places that may differ, and why; * is any part of a place.
ALLOWED = {
    "analyze: runs[].framework.evidence*": "says in a code what the name was known by",
    "analyze: runs[].formula.recompute_origin*": "has the form of every other origin",
    "analyze: runs[].versions.*.origin*": "has the form of every other origin",
    "rates.parquet:covers": "a sentence, told by the name of the rate",
}
# Places whose values may be other words, one for one: texts that became codes.
RENAMED = (
    *("analyze: runs[].time_breakdown[].part", "time_breakdown.parquet:part", "steps.parquet:excluded_reason"),
    "analyze: runs[].planned.gap[].part",
)
# Objects of a document with a key for each thing that the log tells.
OPEN = re.compile(r"\b(context|versions)\.[^.]+|\b(unread_labels)\..+")
# What lies beside logs.
NO_LOGS = {".json", ".csv", ".tsv", ".md"}
# Errors are broken into lines by the width of the screen.
ENVIRONMENT = environ | {"COLUMNS": "200", "NO_COLOR": "1"}

# By place, and there by where in the log's outputs: the values as Python writes them.
Cells = dict[str, dict[str, str]]


@dataclass
class Difference:
    """All differences of one kind at one place; ``example`` is the first of them."""

    example: str
    logs: set[Path] = field(default_factory=set)
    cells: int = 0


@dataclass
class Findings:
    """What comparing gave: ``known`` are places of the first command, ``words`` its values with those of the second."""

    known: set[str] = field(default_factory=set)
    exits: Counter[str] = field(default_factory=Counter)
    cells: int = 0
    differences: dict[tuple[str, str], Difference] = field(default_factory=dict)
    words: defaultdict[str, Counter[tuple[str, str]]] = field(default_factory=lambda: defaultdict(Counter))


def find_logs(places: Iterable[Path]) -> Iterator[Path]:
    """The files named, and those in the folders named."""
    for place in places:
        found = sorted(place.rglob("*")) if place.is_dir() else [place]
        yield from (p.absolute() for p in found if p.is_file() and p.suffix not in NO_LOGS and p.name[0] != ".")


def run_side(program: Path, log: Path, folder: Path, timeout: float, reuse: bool) -> None:
    """Write into ``folder`` all that ``program`` says of ``log``; with ``reuse`` only if that does not lie there."""
    stamp, kept = sha256(log.read_bytes() + repr(COMMANDS).encode()).hexdigest(), folder / "exits.json"
    if reuse and kept.exists() and json.loads(kept.read_text())["stamp"] == stamp:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    exits = {name: run_command(program, name, log, folder, timeout) for name in COMMANDS}
    kept.write_text(json.dumps({"stamp": stamp, "exits": exits}))


def run_command(program: Path, name: str, log: Path, folder: Path, timeout: float) -> int | str:
    """The exit code. The command works in ``folder``, so that what it says does not depend on where that lies."""
    command = [program, name, log, *COMMANDS[name]]
    with (folder / f"{name}.json").open("wb") as document, (folder / f"{name}.stderr").open("wb") as said:
        run = partial(subprocess.run, cwd=folder, env=ENVIRONMENT, stdin=subprocess.DEVNULL, timeout=timeout)
        try:
            return run(command, stdout=document, stderr=said, check=False).returncode
        except subprocess.TimeoutExpired:
            return "timeout"


def read_cells(folder: Path) -> Cells:
    """Everything in the ``folder`` of a log."""
    cells: Cells = defaultdict(dict)
    for name, code in json.loads((folder / "exits.json").read_text())["exits"].items():
        cells[f"{name}: exit code"] = {"": str(code)}
        lines = (folder / f"{name}.stderr").read_bytes().splitlines()
        cells[f"{name}: stderr"] = {f"line {number}": repr(line) for number, line in enumerate(lines, 1)}
        for path, value in leaves(read_document(folder / f"{name}.json")):
            cells[f"{name}: {place_of(path)}"][path] = repr(value)
    for table in sorted(folder.glob("tables/*.parquet")):
        cells |= read_columns(table)
    return cells


def read_document(file: Path) -> object:
    """What a command printed; bare text where that is no whole document, as of one that was stopped."""
    printed = file.read_bytes().decode(errors="backslashreplace")
    try:
        return json.loads(printed)
    except json.JSONDecodeError:
        return printed


def place_of(path: str) -> str:
    """A path in a document without the numbers in lists and the keys that differ from log to log."""
    return OPEN.sub(r"\1\2.*", re.sub(r"\[\d+]", "[]", path))


def leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Every value of a JSON document with its path. The text of an object stands where a bare text would."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, path if key == "text" else f"{path}.{key}".lstrip("."))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}[{index}]")
    else:
        yield path, value


def read_columns(table: Path) -> Cells:
    """Of each column of a table the type and the values."""
    frame = pl.read_parquet(table)
    types = {f"{table.name}:{column} (type)": {"": str(kind)} for column, kind in frame.schema.items()}
    values = {
        f"{table.name}:{column.name}": {f"row {row}": repr(value) for row, value in enumerate(column)}
        for column in frame
    }
    return types | values


def compare_log(log: Path, before: Cells, after: Cells, findings: Findings) -> None:
    """Add to ``findings`` where the cells of ``log`` differ."""
    findings.known |= before.keys()
    findings.cells += sum(map(len, before.values()))
    findings.exits.update(f"{place} {cells['']}" for place, cells in before.items() if place.endswith("exit code"))
    for place in before | after:
        old, new = before.get(place, {}), after.get(place, {})
        if place in RENAMED:
            findings.words[place].update((old[where], new[where]) for where in old.keys() & new.keys())
        if old != new:
            for where in old | new:
                note_cell(log, place, where, old.get(where), new.get(where), findings)


def note_cell(log: Path, place: str, where: str, old: str | None, new: str | None, findings: Findings) -> None:
    """Add one cell to ``findings`` if it differs; None is no cell."""
    kind = "missing" if new is None else "added" if old is None else "changed"
    if old == new or (kind == "changed" and place in RENAMED):
        return
    example = f"{log.parent.name}/{log.name}, {where or 'it'}: {old or 'nothing'} -> {new or 'nothing'}"
    difference = findings.differences.setdefault((place, kind), Difference(example))
    difference.logs.add(log)
    difference.cells += 1


def judge(place: str, kind: str, known: set[str]) -> str:
    """Why a place may differ in this way; empty where it may not."""
    if kind == "added" and place not in known:
        return "new"
    column = place.removesuffix(" (type)")
    patterns = {re.escape(pattern).replace(r"\*", ".*"): reason for pattern, reason in ALLOWED.items()}
    return next((reason for pattern, reason in patterns.items() if re.fullmatch(pattern, column)), "")


def confusions(words: Counter[tuple[str, str]]) -> list[tuple[str, str]]:
    """Pairs of words of which one has another partner too, and null that is not null on both sides."""
    olds, news = Counter(old for old, _ in words), Counter(new for _, new in words)
    return [(a, b) for a, b in words if olds[a] > 1 or news[b] > 1 or (a == "None") != (b == "None")]


def tell_differences(findings: Findings) -> int:
    """Print them by what is to be thought of them; the number of places that may not differ."""
    told: dict[str, list[str]] = defaultdict(list)
    for (place, kind), found in sorted(findings.differences.items()):
        many = f"{place}: {kind} in {len(found.logs)} logs, {found.cells} cells"
        told[judge(place, kind, findings.known)].append(f"  {many}\n    {found.example}")
    for reason in sorted(told, reverse=True):
        print(f"\nMay differ: {reason}" if reason else "\nMAY NOT DIFFER", *told[reason], sep="\n")
    return len(told[""])


def tell_words(findings: Findings) -> int:
    """Print which word became which; the number of places where that is not one for one."""
    wrong = 0
    for place, words in sorted(findings.words.items()):
        confused = confusions(words)
        wrong += bool(confused)
        if any(old != new for old, new in words):
            print(f"\nOther words: {place}{': NOT ONE FOR ONE' if confused else ''}")
            for (old, new), cells in sorted(words.items()):
                print(f"  {old} -> {new}, {cells} cells{'  <- NOT ONE FOR ONE' if (old, new) in confused else ''}")
    return wrong


def compare(sides: dict[str, Path], logs: list[Path], keep: Path, jobs: int, timeout: float) -> Findings:
    """Run both commands over ``logs``, some at a time, and compare what they wrote into ``keep``."""
    findings = Findings()

    def folder(side: str, log: Path) -> Path:
        return keep / side / str(log).strip("/").replace("/", "--")

    def run(log: Path) -> Path:
        for side, program in sides.items():
            run_side(program, log, folder(side, log), timeout, reuse=side == "before")
        return log

    with ThreadPoolExecutor(jobs) as pool:
        for number, log in enumerate(pool.map(run, logs), 1):
            compare_log(log, read_cells(folder("before", log)), read_cells(folder("after", log)), findings)
            print(f"\r{number} of {len(logs)} logs", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return findings


def main() -> int:
    """Compare, and tell what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    program = partial(parser.add_argument, type=lambda text: Path(text).absolute(), required=True, metavar="PROGRAM")
    program("--before", help="the command that is right")
    program("--after", help="the command to try")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where outputs stay and those of --before are reused")
    parser.add_argument("--jobs", type=int, default=2, help="logs at a time (default: 2)")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one command (default: 600)")
    parser.add_argument("logs", type=Path, nargs="+", metavar="LOG", help="log or folder of logs")
    given = parser.parse_args()
    logs = list(dict.fromkeys(find_logs(given.logs)))
    with tempfile.TemporaryDirectory() as scratch:
        keep = (given.keep or Path(scratch)).absolute()
        found = compare({"before": given.before, "after": given.after}, logs, keep, given.jobs, given.timeout)
    wrong = tell_differences(found) + tell_words(found)
    print("\nExits before:", ", ".join(f"{what}: {count} logs" for what, count in sorted(found.exits.items())))
    print(f"{found.cells:,} cells of {len(logs)} logs compared; {wrong} places differ that may not")
    return 1 if wrong or not logs else 0


if __name__ == "__main__":
    sys.exit(main())
