"""How often the gate is right: verdicts on simulated runs. Prints tables; docs/statistics.md sums them up.

A run has a pace of its own (run-to-run spread) and steps that scatter around it and resemble their neighbours (AR(1),
0.7, 1 %); its number is the median of 200 steps, as in `logparse analyze`. The seeds are fixed.

    python benchmarks/gate_power.py [TRIALS]
"""

import sys
from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from analysis.compare.threshold import NOISE
from analysis.compare.verdict import DEFAULT_METRIC, VERDICTS, judge
from analysis.metrics import JUDGED
from analysis.stats.noise import noise_floor

# Less work is no verdict on numbers alone.
TOLD = [verdict for verdict in VERDICTS if verdict != "less work"]

STEPS, STEP_SPREAD, RESEMBLANCE = 200, 0.01, 0.7
TRIALS = 2000
# Runs a side, spread between runs, true slowdown, threshold: None is what the noise of the two sides tells.
Case = tuple[int, float, float, float | None]
ALIKE: list[Case] = [(n, 0.005, 0.0, threshold) for threshold in (None, 0.0, 0.01, 0.03) for n in (3, 4, 5, 7, 10)]
SLOWER: list[Case] = [
    (5, 0.001, 0.01, None),
    (5, 0.0025, 0.01, None),
    (5, 0.005, 0.02, None),
    (5, 0.005, 0.03, None),
    (5, 0.01, 0.03, None),
    (3, 0.01, 0.03, None),
    (5, 0.01, 0.06, None),
    (5, 0.005, 0.03, 0.01),
    (5, 0.0075, 0.03, 0.01),
    (5, 0.01, 0.03, 0.01),
    (3, 0.005, 0.03, 0.01),
    (3, 0.01, 0.03, 0.01),
    (5, 0.005, 0.06, 0.03),
    (5, 0.01, 0.06, 0.03),
    (3, 0.005, 0.06, 0.03),
    (3, 0.01, 0.06, 0.03),
    (5, 0.005, 0.02, 0.03),
    (10, 0.01, 0.02, 0.01),
    (5, 0.005, -0.06, 0.03),
]


def simulate(rng: np.random.Generator, runs: int, spread: float, slow: float) -> NDArray[np.float64]:
    """The median step time of each run, ms."""
    noise = rng.normal(0, STEP_SPREAD * np.sqrt(1 - RESEMBLANCE**2), (runs, STEPS))
    steps = np.empty((runs, STEPS))
    steps[:, 0] = rng.normal(0, STEP_SPREAD, runs)
    for step in range(1, STEPS):
        steps[:, step] = RESEMBLANCE * steps[:, step - 1] + noise[:, step]
    pace = rng.normal(0, spread, (runs, 1)) + np.log1p(slow)
    return np.median(1000 * np.exp(pace + steps), axis=1)


def verdicts(
    runs: int, spread: float, slow: float, threshold: float | None, trials: int, seed: int = 0
) -> Counter[str]:
    """How many of ``trials`` got each verdict."""
    rng = np.random.default_rng(
        [seed, runs, round(spread * 1e6), round((slow + 1) * 1e6), round((threshold or 0.0) * 1e6)]
    )
    metric, found = JUDGED[DEFAULT_METRIC], Counter[str]()
    both = simulate(rng, runs * trials, spread, 0.0), simulate(rng, runs * trials, spread, slow)
    for old, new in zip(*(side.reshape(trials, runs) for side in both), strict=True):
        found[judge(metric, old.tolist(), new.tolist(), threshold, noise_floor([old, new])).verdict] += 1
    return found


def table(cases: list[Case], trials: int) -> Iterator[str]:
    """The rows of a Markdown table."""
    yield f"| runs a side | spread | true change | threshold | {' | '.join(TOLD)} |"
    yield f"| {' | '.join(['---:'] * (4 + len(TOLD)))} |"
    for runs, spread, slow, threshold in cases:
        found = verdicts(runs, spread, slow, threshold, trials)
        shares = " | ".join(f"{found[verdict] / trials:.1%}" for verdict in TOLD)
        limit = NOISE if threshold is None else f"{threshold:.0%}"
        yield f"| {runs} + {runs} | {spread:.2%} | {slow:+.0%} | {limit} | {shares} |"


def main() -> None:
    """Print both tables."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS
    for title, cases in (("The same release twice", ALIKE), ("A release that changed", SLOWER)):
        print(f"{title}, {trials} trials:\n")
        for line in table(cases, trials):
            print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
