"""Measure the error rates of the gate on real repeats: MLPerf Training v3.1 to v5.1, ten runs of each of 107 systems.

The first five runs of a system are compared with its last five, as they are and with the last five 1 % slower. Numbers
of ``fixtures/mlperf-repeats.csv`` in samples/s are converted to seconds per sample. The 1 % is judged only for systems
where so many runs detect it in 80 of 100 cases.

    python benchmarks/mlperf_repeats.py
"""

import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from analysis.compare.verdict import DEFAULT_METRIC, judge
from analysis.metrics import JUDGED
from analysis.stats.noise import noise_floor
from analysis.stats.prediction import watch

FILE = Path(__file__).parent.parent / "fixtures/mlperf-repeats.csv"
SLOWER, EACH = 0.01, 5
Sides = tuple[list[float], list[float]]


def systems() -> Iterator[Sides]:
    """The times of the first five runs of each system, and of the others, in the order in which they ran."""
    with FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            runs = [float(row[f"run_{number}"]) for number in range(1, 2 * EACH + 1)]
            times = runs if row["unit"] == "s/step" else [1 / rate for rate in runs]
            yield times[:EACH], times[EACH:]


def allows(first: Sequence[float], last: Sequence[float]) -> bool:
    """Whether five runs a side of a system detect SLOWER."""
    noise = noise_floor([first, last])
    return noise is not None and noise.visible(len(first), len(last)) <= SLOWER


def by_sides(first: Sequence[float], last: Sequence[float]) -> bool:
    """Whether two sides are called a regression, at the default threshold."""
    return judge(JUDGED[DEFAULT_METRIC], first, last, None, noise_floor([first, last])).verdict == "regression"


def by_nights(first: Sequence[float], last: Sequence[float]) -> bool:
    """Whether a night of the last is called a regression."""
    found = watch([*first, *last], 1)
    return any(night.state == "confirmed" and (night.change or 0) > 0 for night in found)


def called(is_regression: Callable[..., bool], sides: Sequence[Sides], slower: float = 0.0) -> int:
    """How many of ``sides`` are called a regression with their last runs so much slower."""
    return sum(is_regression(first, [time * (1 + slower) for time in last]) for first, last in sides)


def main() -> None:
    """Print how often each rule is right; docs/nightly.md sums it up."""
    every = list(systems())
    able = [sides for sides in every if allows(*sides)]
    print(f"| {EACH} runs, then {EACH} | called a regression of {len(every)} | 1 % slower: found of {len(able)} |")
    print("| --- | ---: | ---: |")
    for name, how in (("two sides", by_sides), ("ten nights", by_nights)):
        print(f"| {name} | {called(how, every)} | {called(how, able, SLOWER)} |")


if __name__ == "__main__":
    main()
