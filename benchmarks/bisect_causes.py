"""Simulate searches for the cause of a slowdown: how often each names the causes that are there, and in how many runs.

Runs of one kind differ by 0.4 %. Each side has five runs, and each run that the plan asks for is done once.

    python benchmarks/bisect_causes.py [SEEDS]
"""

import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from analysis.compare.bisect import Bisection, OtherRun, make_plan
from analysis.compare.comparability import Change
from analysis.compare.verdict import DEFAULT_METRIC
from analysis.metrics import JUDGED

SEEDS, RUNS, SPREAD, MOST = 100, 5, 0.004, 60
# The number of candidates, and the effect of each cause among them by its place.
CASES: tuple[tuple[int, Mapping[int, float]], ...] = (
    (8, {2: 0.04}),
    (16, {5: 0.04}),
    (6, {1: 0.03, 4: 0.03}),
    (3, {0: 0.03, 1: 0.03, 2: 0.03}),
    (8, {0: 0.03, 3: 0.03, 6: 0.03}),
    (8, {2: 0.05, 5: 0.01}),
)


def search(number: int, effects: Mapping[int, float], seed: int) -> Bisection:
    """Do the runs that the plan asks for until it asks for none."""
    rng = np.random.default_rng(seed)
    candidates = [
        Change("setting", f"c{place}", ("on",), ("off",), ((RUNS, RUNS), (RUNS, RUNS))) for place in range(number)
    ]

    def run(bad: Sequence[Change]) -> float:
        logs = (math.log1p(by) for place, by in effects.items() if candidates[place] in bad)
        return 1000 * math.exp(rng.normal(0, SPREAD) + sum(logs))

    sides = [run(()) for _ in range(RUNS)], [run(candidates) for _ in range(RUNS)]
    done: list[OtherRun] = []
    while True:
        found = make_plan(JUDGED[DEFAULT_METRIC], "job", candidates, sides, done)
        if not found.to_try or len(done) >= MOST:
            return found
        good = tuple(change for change in candidates if change not in found.to_try)
        done.append(OtherRun(f"{len(done)}", "run", "r", run(found.to_try), good, found.to_try))


def main() -> None:
    """Print a row for each case."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS
    print("| candidates | causes | outcomes | names just these | the rest is noise | runs: mean, most |")
    print("| ---: | --- | --- | ---: | ---: | ---: |")
    for number, effects in CASES:
        found = [search(number, effects, seed) for seed in range(seeds)]
        wanted = {f"c{place}" for place in effects}
        right = sum({change.name for change in one.named} == wanted for one in found)
        whole = sum(one.share is not None and one.share.is_all for one in found)
        runs = [len(one.trials) for one in found]
        outcomes = ", ".join(f"{name} {n}" for name, n in Counter(one.outcome for one in found).most_common())
        causes = ", ".join(f"+{by:.0%}" for by in effects.values())
        print(f"| {number} | {causes} | {outcomes} | {right} | {whole} | {np.mean(runs):.1f}, {max(runs)} |")


if __name__ == "__main__":
    main()
