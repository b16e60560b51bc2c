"""Do our change points agree with Apache Otava's? On every series it publishes, and on 50 simulated ones.

Where they differ, Otava is asked again in other WAYS, to see what the difference is due to. Then both are judged by the
truth, on simulated series that neither was set up with. Otava 0.8.0 pins its own numpy, so it is installed in an
environment of its own (needs uv and a package index); its series are read from its source archive. Prints the tables of
docs/statistics.md.

    python benchmarks/changes_against_otava.py
"""

import ast
import csv
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis.stats.series_changes import find_changes_or_drift

OTAVA = "apache-otava==0.8.0"
SIMULATED = range(50)
# Neither method was set up while looking at these.
FRESH = range(1000, 1200)
FLAT = 500
# Kinds of noise without a change of level, and so many series of each.
NIGHTS = (
    "independent",
    "alike by 0.3",
    "alike by 0.5",
    "drift of 2 %",
    "5 % of runs 5 to 20 % off",
    "two runs 15 % off, one between",
    "newest run 20 % off",
    "first run 20 % off",
    "four nodes, 1.5 %",
    "a third four times noisier",
)
SERIES = range(7000, 7200)
# Places so near each other are the same change: noise hides which run was the first.
NEAR = 2
# Shortest stretch of a simulated series.
SHORTEST = 12
# Shortest list of numbers in Otava's tests that is a series.
FEWEST = 6
# Options of Otava's compute_change_points; "shared" and "corrected" are of ASK_OTAVA: one significance for all places
# of a series together, and a t test that is given the deviations it expects (Otava's divide by n).
WAYS: dict[str, dict[str, float]] = {
    "defaults": {},
    "p 0.001 / runs": {"shared": 1},
    "one window": {"window_len": 10_000},
    "windows of 35": {"window_len": 35},
    "deviations by n - 1": {"corrected": 1},
}
ASK_OTAVA = """
import json, math, sys
from otava import analysis

asked = json.load(sys.stdin)
shared, corrected = (asked["how"].pop(name, 0) for name in ("shared", "corrected"))
test = analysis.ttest_ind_from_stats

def with_sample_deviations(mean_1, std_1, n_1, mean_2, std_2, n_2, **options):
    std_1, std_2 = (std * math.sqrt(n / max(n - 1, 1)) for std, n in ((std_1, n_1), (std_2, n_2)))
    return test(mean_1, std_1, n_1, mean_2, std_2, n_2, **options)

if corrected:
    analysis.ttest_ind_from_stats = with_sample_deviations
for series in asked["series"]:
    how = asked["how"] | ({"max_pvalue": 0.001 / len(series)} if shared else {})
    print(json.dumps([int(point.index) for point in analysis.compute_change_points(series, **how)[0]]))
"""


@dataclass(frozen=True)
class Case:
    """A series; ``truth`` are the places where a simulated one changes."""

    name: str
    values: list[float]
    truth: tuple[int, ...] | None = None


def published(folder: Path) -> list[Case]:
    """The different series of Otava's source archive, without those that have a number below or at 0: we take logs."""
    command = ["download", "-q", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "-d", str(folder), OTAVA]
    subprocess.run([sys.executable, "-m", "pip", *command], check=True)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    found: dict[tuple[float, ...], str] = {}
    for kind, read in (("tests/*.py", _lists), ("**/*.csv", _columns), ("**/*.sql", _inserted)):
        for path in sorted(folder.glob(f"*/{kind}")):
            for name, values in read(path):
                found.setdefault(tuple(map(float, values)), f"{path.name}, {name}")
    return [Case(name, list(values)) for values, name in found.items() if min(values) > 0]


def _lists(path: Path) -> Iterator[tuple[str, list[float]]]:
    """Lists of numbers; those compared with something are results that a test expects."""
    tree = ast.parse(path.read_text())
    expected = {id(part) for node in ast.walk(tree) if isinstance(node, ast.Compare) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.List) or id(node) in expected or len(node.elts) < FEWEST:
            continue
        if all(isinstance(e, ast.Constant) and isinstance(e.value, int | float) for e in node.elts):
            yield f"line {node.lineno}", ast.literal_eval(node)


def _columns(path: Path) -> Iterator[tuple[str, list[float]]]:
    """Metrics of a table of runs; of several branches the main one, as Otava refuses to mix them."""
    text = path.read_text()
    table = list(csv.DictReader(text.splitlines(), delimiter=";" if ";" in text else ","))
    rows = [row for row in table if row.get("branch", "main") == "main"]
    for name in (name for name in table[0] if name.startswith("metric")):
        yield name, [float(row[name]) for row in rows]


def _inserted(path: Path) -> Iterator[tuple[str, list[float]]]:
    """Three metrics of the two configurations in the PostgreSQL example."""
    found = re.findall(r"'aggregate-\w+', (\d), (\d+), (\d+), (\d+)\)", path.read_text())
    rows = [list(map(float, row)) for row in found]
    for configuration in sorted({row[0] for row in rows}):
        for column, name in enumerate(("mean", "stderr", "diff"), start=1):
            yield f"{name} {configuration:.0f}", [row[column] for row in rows if row[0] == configuration]


def simulated(number: int) -> Case:
    """60 to 300 runs of 1 % noise around steps of 2 to 10 %, at least 12 runs long; every fifth has no change."""
    rng = np.random.default_rng(number)
    n, wanted = int(rng.integers(60, 300)), 0 if number % 5 == 0 else int(rng.integers(1, 4))
    places: list[int] = []
    while len(places) < wanted:
        place = int(rng.integers(SHORTEST, n - SHORTEST))
        if _is_free(place, places):
            places.append(place)
        elif not any(_is_free(other, places) for other in range(SHORTEST, n - SHORTEST)):
            places.clear()
    level = np.zeros(n)
    for place in sorted(places):
        level[place:] += rng.choice([-1, 1]) * rng.uniform(0.02, 0.10)
    values = 5000 * np.exp(level + rng.normal(0, 0.01, n))
    return Case(f"simulated {number}", values.tolist(), tuple(sorted(places)))


def _is_free(place: int, places: list[int]) -> bool:
    return all(abs(place - other) >= SHORTEST for other in places)


def resembling(rng: np.random.Generator, runs: int, alike: float, noise: float = 0.01) -> np.ndarray:
    """Noise of which neighbours correlate by ``alike``."""
    added = rng.normal(0, noise * np.sqrt(1 - alike**2), runs + 100)
    for at in range(1, runs + 100):
        added[at] += alike * added[at - 1]
    return added[100:]


def night(kind: str, number: int, runs: int = 60) -> Case:
    """Sixty nights of one of NIGHTS, without a change of level."""
    rng = np.random.default_rng([number, NIGHTS.index(kind)])
    alike = {"alike by 0.3": 0.3, "alike by 0.5": 0.5}.get(kind, 0.0)
    values, at = resembling(rng, runs, alike), int(rng.integers(5, runs - 5))
    if kind == "drift of 2 %":
        values += np.linspace(0, 0.02, runs)
    elif kind == "5 % of runs 5 to 20 % off":
        values += (rng.random(runs) < 0.05) * rng.uniform(0.05, 0.2, runs)
    elif kind == "four nodes, 1.5 %":
        values = values / 2 + rng.choice(rng.normal(0, 0.015, 4), runs)
    elif kind == "a third four times noisier":
        values += (rng.random(runs) < 0.3) * rng.normal(0, 0.04, runs)
    elif kind == "two runs 15 % off, one between":
        values[[at, at + 2]] += 0.15
    elif kind in ("newest run 20 % off", "first run 20 % off"):
        values[-1 if kind.startswith("newest") else 0] += 0.2
    return Case(f"{kind} {number}", (5000 * np.exp(values)).tolist(), ())


def stepped(number: int) -> Case:
    """The steps of a simulated series in noise of which neighbours are alike by 0.5."""
    case, rng = simulated(number), np.random.default_rng([number, 1])
    level = np.zeros(len(case.values))
    for place in case.truth or ():
        level[place:] += rng.choice([-1, 1]) * rng.uniform(0.02, 0.10)
    values = 5000 * np.exp(level + resembling(rng, len(level), 0.5))
    return Case(f"alike {number}", values.tolist(), case.truth)


def flat(number: int) -> Case:
    """30 to 200 runs of 1 % noise without a change."""
    rng = np.random.default_rng(50_000 + number)
    values = 5000 * np.exp(rng.normal(0, 0.01, int(rng.integers(30, 201))))
    return Case(f"flat {number}", values.tolist(), ())


def install_otava(folder: Path) -> Path:
    """The python of an environment with Otava."""
    python = folder / "otava/bin/python"
    subprocess.run(["uv", "venv", "-q", str(folder / "otava")], check=True)
    subprocess.run(["uv", "pip", "install", "-q", "--python", str(python), OTAVA], check=True)
    return python


def ask_otava(python: Path, cases: list[Case], way: str) -> list[list[int]]:
    """Otava's change points of each case."""
    given = json.dumps({"how": WAYS[way], "series": [case.values for case in cases]})
    done = subprocess.run([str(python), "-c", ASK_OTAVA], input=given, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def ask_us(cases: list[Case]) -> list[list[int]]:
    """Our change points of each case."""
    return [[at for at, _ in find_changes_or_drift(case.values)[0]] for case in cases]


def agree(ours: Sequence[int], theirs: Sequence[int]) -> bool:
    """The same number of changes, each near the other's."""
    pairs = zip(ours, theirs, strict=False)
    return len(ours) == len(theirs) and all(abs(a - b) <= NEAR for a, b in pairs)


def judge(case: Case, found: list[int]) -> tuple[int, int, int]:
    """How many changes were missed, put farther than NEAR from the truth, and invented."""
    missing, left, missed = list(case.truth or ()), list(found), []
    for reach in (NEAR, SHORTEST // 2):
        for place in tuple(missing):
            if close := [at for at in left if abs(at - place) <= reach]:
                left.remove(min(close, key=lambda at: abs(at - place)))
                missing.remove(place)
        missed.append(len(missing))
    return missed[1], missed[0] - missed[1], len(left)


def print_differences(cases: list[Case], python: Path) -> None:
    """A row for each case that differs, and how many agree."""
    ours, theirs = ask_us(cases), {way: ask_otava(python, cases, way) for way in WAYS}
    print("| series | runs | true | Otava 0.8.0 | logparse | agrees with Otava at |")
    print("| --- | ---: | --- | --- | --- | --- |")
    for index, (case, mine, other) in enumerate(zip(cases, ours, theirs["defaults"], strict=True)):
        if not agree(mine, other):
            truth = "" if case.truth is None else list(case.truth)
            ways = "; ".join(way for way in WAYS if agree(mine, theirs[way][index])) or "-"
            print(f"| {case.name} | {len(case.values)} | {truth} | {other} | {mine} | {ways} |")
    for name, known in (("published", False), ("simulated", True)):
        chosen = [index for index, case in enumerate(cases) if (case.truth is not None) == known]
        counts = (f"{way}: {sum(agree(ours[i], theirs[way][i]) for i in chosen)}" for way in WAYS)
        print(f"\n{len(chosen)} {name} series, agreeing with Otava at {', '.join(counts)}")


def print_judgement(python: Path) -> None:
    """How right each method is about fresh series."""
    fresh, none = [simulated(number) for number in FRESH], [flat(number) for number in range(FLAT)]
    changes = sum(len(case.truth or ()) for case in fresh)
    methods = {f"Otava 0.8.0, {way}": [ask_otava(python, cases, way) for cases in (fresh, none)] for way in WAYS}
    columns = f"all right, of {len(fresh)} | missed, of {changes} | misplaced | false | false alarm, of {FLAT}"
    print(f"\n| method | {columns} |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, (found, alarms) in (methods | {"logparse": [ask_us(fresh), ask_us(none)]}).items():
        counts = [judge(case, places) for case, places in zip(fresh, found, strict=True)]
        missed, misplaced, false = (sum(column) for column in zip(*counts, strict=True))
        right = sum(not any(count) for count in counts)
        print(f"| {name} | {right} | {missed} | {misplaced} | {false} | {sum(map(bool, alarms))} |")


def print_nights(python: Path) -> None:
    """How often each finds a change in 60 nights that have none; then steps in noise that is alike."""
    print(f"\n| noise, 60 runs | Otava 0.8.0 finds a change in, of {len(SERIES)} | logparse |")
    print("| --- | ---: | ---: |")
    for kind in NIGHTS:
        cases = [night(kind, number) for number in SERIES]
        theirs, ours = ask_otava(python, cases, "defaults"), ask_us(cases)
        print(f"| {kind} | {sum(map(bool, theirs))} | {sum(map(bool, ours))} |")
    cases = [stepped(number) for number in SERIES]
    changes = sum(len(case.truth or ()) for case in cases)
    print(f"\n| steps, neighbours alike by 0.5 | missed, of {changes} | misplaced | false |")
    print("| --- | ---: | ---: | ---: |")
    for name, found in (("Otava 0.8.0", ask_otava(python, cases, "defaults")), ("logparse", ask_us(cases))):
        counts = [judge(case, places) for case, places in zip(cases, found, strict=True)]
        print(f"| {name} | {' | '.join(str(sum(column)) for column in zip(*counts, strict=True))} |")


def main() -> None:
    """Print what differs, then who is right."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "source").mkdir()
        python = install_otava(folder)
        print_differences([*published(folder / "source"), *map(simulated, SIMULATED)], python)
        print_judgement(python)
        print_nights(python)


if __name__ == "__main__":
    main()
