"""Measure the error rates of one metric under other kinds of noise. Prints two tables; docs/nightly.md sums them up.

A job has two independent numbers a night, judged by the rules of the gate without sides. The seeds are fixed; no
setting was chosen with these series. For pauses and other changes see nights_of_eight_jobs.py.

    python benchmarks/nights.py [TRIALS]
"""

import sys
from collections.abc import Iterator, Sequence

import numpy as np
from changes_against_otava import resembling
from numpy.typing import NDArray

from analysis.compare.verdict import DEFAULT_METRIC, judge
from analysis.metrics import JUDGED
from analysis.stats.noise import noise_floor
from analysis.stats.prediction import watch

TRIALS, NIGHTS, SLOWER = 300, 90, 0.05
METRICS, SEED = 2, 20_000
KINDS = (
    "independent",
    "correlation 0.5",
    "drift of 4 %",
    "5 % of nights 5 to 20 % slower",
    "four nodes, 1.5 %",
    "four nodes, 1.5 %, `block_by`",
    "a third of the runs four times noisier",
)
BEFORE = (5, 10, 20, 30)
# Runs a side of two sides; their nodes are unknown.
SIDES = ((1, 1), (3, 3), (5, 5), (10, 10), (1, 10), (1, 20), (1, 30))
# Of two sides: independent, and one node a side.
BETWEEN = (
    "independent",
    "correlation 0.5",
    "5 % of nights 5 to 20 % slower",
    "one node a side, 1.5 %",
    "unequal, 1 to 4",
)


def noise(kind: str, rng: np.random.Generator, runs: int) -> tuple[NDArray[np.float64], list[int] | None]:
    """Logarithms of 1 % noise, and the nodes of the nights if they are recorded."""
    values = resembling(rng, runs, 0.5 if kind == "correlation 0.5" else 0.0)
    nodes = rng.integers(0, 4, runs)
    if kind == "drift of 4 %":
        values += np.linspace(0, 0.04, runs)
    elif kind == "5 % of nights 5 to 20 % slower":
        values += (rng.random(runs) < 0.05) * rng.uniform(0.05, 0.2, runs)
    elif kind.startswith("four nodes"):
        values = values / 2 + rng.normal(0, 0.015, 4)[nodes]
    elif kind == "a third of the runs four times noisier":
        values += (rng.random(runs) < 1 / 3) * rng.normal(0, 0.04, runs)
    return values, nodes.tolist() if kind.endswith("`block_by`") else None


def alarms(values: NDArray[np.float64], nodes: list[int] | None) -> list[bool]:
    """Whether each night is called a regression."""
    found = watch(np.exp(values).tolist(), 1, blocks=nodes)
    return [night.state == "confirmed" and (night.change or 0) > 0 for night in found]


def false_alarms(kind: str, trials: int, before: int = 20) -> float:
    """Alarms of a job in 90 nights without a change: an alarm that lasts is one."""
    begun = 0
    for trial in range(trials):
        rng = np.random.default_rng([SEED, trial, KINDS.index(kind)])
        job = [alarms(*noise(kind, rng, before + NIGHTS)) for _ in range(METRICS)]
        any_of = [any(night) for night in zip(*job, strict=True)]
        begun += sum(now and not earlier for earlier, now in zip(any_of[before - 1 :], any_of[before:], strict=False))
    return begun / trials


def found_within_two(kind: str, trials: int, before: int, slower: float = SLOWER) -> float:
    """The share of regressions that are called so on their second night."""
    right = 0
    for trial in range(trials):
        rng = np.random.default_rng([SEED + 1, trial, KINDS.index(kind)])
        values, nodes = noise(kind, rng, before + 2)
        values[before:] += np.log1p(slower)
        right += alarms(values, nodes)[-1]
    return right / trials


def two_sides(kind: str, rng: np.random.Generator, old: int, new: int) -> tuple[Sequence[float], Sequence[float]]:
    """Runs of two sides without a change between them."""
    values, _ = noise(kind if kind in KINDS else "independent", rng, old + new)
    if kind.startswith("one node"):
        values = values / 2 + np.repeat(rng.normal(0, 0.015, 2), (old, new))
    elif kind.startswith("unequal"):
        values *= np.repeat((0.5, 2.0), (old, new))
    return np.exp(values[:old]).tolist(), np.exp(values[old:]).tolist()


def false_verdicts(kind: str, trials: int, new: int, old: int, threshold: float | None) -> float:
    """The share of two equal sides that are called a regression; without a threshold it follows from their noise."""
    wrong = 0
    for trial in range(trials):
        rng = np.random.default_rng([SEED + 2, trial, BETWEEN.index(kind), new, old])
        sides = two_sides(kind, rng, old, new)
        wrong += judge(JUDGED[DEFAULT_METRIC], *sides, threshold, noise_floor(sides)).verdict == "regression"
    return wrong / trials


def table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> None:
    """Print a table of Markdown."""
    print(f"| {' | '.join(head)} |\n| --- |{' ---: |' * (len(head) - 1)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def main() -> None:
    """Print all tables."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS
    print(f"\nJobs without a change, {trials} trials of 90 nights, and jobs 5 % slower, {trials} trials each:\n")
    head = ("noise of 1 %", "false alarms in 90 nights", *(f"found on night 2, {n} before" for n in BEFORE))
    table(
        head,
        (
            [kind, f"{false_alarms(kind, trials):.2f}"]
            + [f"{found_within_two(kind, trials, before):.1%}" for before in BEFORE]
            for kind in KINDS
        ),
    )
    tail = found_within_two("independent", trials, 20, slower=0.2)
    print(f"\nEvery tenth step three times as long, including stalls + 20 %: {tail:.1%} on night 2.")
    print(f"\nTwo equal sides, called a regression, {trials} trials:\n")
    head = ("noise of 1 %", "threshold", *(f"{new} against {old}" for new, old in SIDES))
    table(
        head,
        (
            [
                kind,
                f"{threshold:.0%}" if threshold else "default",
                *(f"{false_verdicts(kind, trials, *sides, threshold):.1%}" for sides in SIDES),
            ]
            for kind in BETWEEN
            for threshold in (None, 0.03)
        ),
    )


if __name__ == "__main__":
    main()
