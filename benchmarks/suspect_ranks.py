"""How often the rank at fault is suspected, and a healthy run accused: the figures of docs/failures.md.

Runs are simulated (tests/support/simulated_ranks.py), each with a seed of its own.

    python benchmarks/suspect_ranks.py [SICK] [HEALTHY]
"""

import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

from simulated_ranks import Simulated, simulate

from logparse.decode.read_run import diagnose_run
from logparse.failures.ranks.suspicions import Suspect

SICK, HEALTHY = 200, 500


def suspects_of(run: Simulated) -> tuple[Suspect, ...]:
    """Who is suspected in a simulated run."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in run.files.items():
            (Path(folder) / name).write_text(text)
        return diagnose_run([folder if len(run.files) > 1 else str(Path(folder, *run.files))]).suspects


def main(sick: int, healthy: int) -> None:
    """Print in how many runs the answer is right, and the kinds in which it is not."""
    missed: Counter[str] = Counter()
    accused: Counter[str] = Counter()
    for seed in range(sick):
        run = simulate(seed, healthy=False)
        missed[run.kind] += run.culprit not in [suspect.rank for suspect in suspects_of(run)]
    for seed in range(healthy):
        run = simulate(seed, healthy=True)
        accused[run.kind] += bool(suspects_of(run))
    print(f"at fault and among the suspects: {sick - missed.total()} of {sick}; missed {dict(+missed)}")
    print(f"healthy and nobody suspected: {healthy - accused.total()} of {healthy}; accused {dict(+accused)}")


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*given, *(SICK, HEALTHY)[len(given) :])
