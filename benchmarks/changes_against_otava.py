"""Do our change points agree with Apache Otava's? On the series it publishes, and on 50 simulated ones.

Otava 0.8.0 pins its own numpy, so it is installed in an environment of its own (needs uv and a package index); its
published series are read from its source archive. Prints the tables of docs/releases.md.

    python benchmarks/changes_against_otava.py
"""

import ast
import csv
import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis.releases.trend import find_changes

OTAVA = "apache-otava==0.8.0"
SIMULATED = 50
# Places so near each other are the same change: noise hides which run was the first.
NEAR = 2
ASK_OTAVA = """
import json, sys
from otava.analysis import compute_change_points
for series in json.load(sys.stdin):
    print(json.dumps([int(c.index) for c in compute_change_points(series)[0]]))
"""


@dataclass(frozen=True)
class Case:
    """A series; ``truth`` are the places where a simulated one changes."""

    name: str
    values: list[float]
    truth: tuple[int, ...] | None = None


def published(folder: Path) -> Iterator[Case]:
    """The series of Otava's source archive."""
    command = ["download", "-q", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "-d", str(folder), OTAVA]
    subprocess.run([sys.executable, "-m", "pip", *command], check=True)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    (root,) = (path for path in folder.iterdir() if path.is_dir())
    yield Case("tigerbeetle", _tigerbeetle(root / "tests/tigerbeetle_test.py"))
    for path in (root / "examples/csv/data/local_sample.csv", root / "tests/resources/sample.csv"):
        yield from _columns(path)


def _tigerbeetle(path: Path) -> list[float]:
    lists = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.List))
    return [float(v) for v in ast.literal_eval(max(lists, key=lambda node: len(node.elts)))]


def _columns(path: Path) -> Iterator[Case]:
    rows = list(csv.DictReader(path.read_text().splitlines()))
    for name in (name for name in rows[0] if name.startswith("metric")):
        values = [float(row[name]) for row in rows]
        yield Case(f"{path.name}, {name}", values)


def simulated(number: int) -> Case:
    """60 to 300 runs of 1 % noise around steps of 2 to 10 %, at least 12 runs long; every fifth has no change."""
    rng = np.random.default_rng(number)
    n, wanted = int(rng.integers(60, 300)), 0 if number % 5 == 0 else int(rng.integers(1, 4))
    places: list[int] = []
    while len(places) < wanted:
        place = int(rng.integers(12, n - 12))
        if all(abs(place - other) >= 12 for other in places):
            places.append(place)
    level = np.zeros(n)
    for place in sorted(places):
        level[place:] += rng.choice([-1, 1]) * rng.uniform(0.02, 0.10)
    values = 5000 * np.exp(level + rng.normal(0, 0.01, n))
    return Case(f"simulated {number}", values.tolist(), tuple(sorted(places)))


def ask_otava(folder: Path, cases: list[Case]) -> list[list[int]]:
    """Otava's change points of each case, with its defaults."""
    python = folder / "otava/bin/python"
    subprocess.run(["uv", "venv", "-q", str(folder / "otava")], check=True)
    subprocess.run(["uv", "pip", "install", "-q", "--python", str(python), OTAVA], check=True)
    given = json.dumps([case.values for case in cases])
    done = subprocess.run([str(python), "-c", ASK_OTAVA], input=given, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def agree(ours: list[int], theirs: list[int]) -> bool:
    """The same number of changes, each near the other's."""
    pairs = zip(ours, theirs, strict=False)
    return len(ours) == len(theirs) and all(abs(a - b) <= NEAR for a, b in pairs)


def main() -> None:
    """Print every case that differs, and how many agree."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "source").mkdir()
        cases = [*published(folder / "source"), *(simulated(number) for number in range(SIMULATED))]
        theirs = ask_otava(folder, cases)
    ours = [[at for at, _ in find_changes(case.values)] for case in cases]
    print("| series | runs | true | Otava 0.8.0 | logparse | agree |\n| --- | ---: | --- | --- | --- | --- |")
    for case, mine, other in zip(cases, ours, theirs, strict=True):
        same = agree(mine, other)
        if case.truth is None or not same:
            truth = "" if case.truth is None else list(case.truth)
            print(f"| {case.name} | {len(case.values)} | {truth} | {other} | {mine} | {'yes' if same else 'no'} |")
    agreed = [agree(a, b) for case, a, b in zip(cases, ours, theirs, strict=True) if case.truth is not None]
    found = [
        [agree(list(case.truth), x) for case, x in zip(cases, y, strict=True) if case.truth is not None]
        for y in (theirs, ours)
    ]
    print(f"\n{sum(agreed)} of {len(agreed)} simulated series agree;", end=" ")
    print(f"Otava finds the truth in {sum(found[0])}, logparse in {sum(found[1])}")


if __name__ == "__main__":
    main()
