"""How often two curves of losses are judged correctly: simulated pairs of trainings. Prints a table.

A curve falls from 10 to 2 with the noise of its batches. Both of a pair see the same batches unless said otherwise, so
that they differ by rounding alone, 0.02 to 0.2 % of the loss, with a correlation of neighbours from 0 to 0.5. Logs
print 4 to 7 significant digits. The truth of a jump is its step. The truth of a slope is the first step whose expected
difference exceeds three standard deviations of the noise; it must be found within 10 % of the way from the first step
of the slope. The seeds are fixed.

    python benchmarks/loss_pairs.py [PAIRS]
"""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analysis.compare.same_loss import LossDifference, compare_losses
from analysis.run.tables import STEP_COLUMNS
from logparse.schema import conform

Floats = NDArray[np.float64]
PAIRS = 100
# Noise of a batch, relative. Sizes of jumps in standard deviations of the noise of the difference.
BATCH_NOISE = 0.02
JUMPS = (1.5, 15.0)
BATCH, LENGTH = 128, 1024
NEAR_STEPS, NEAR_SHARE = 10, 0.1
LASTING = ("offset", "jump", "growing")


@dataclass(frozen=True)
class Pair:
    """Two curves, relative ``noise`` of their difference, and the step ``at`` which they part; None if they do not.

    ``way`` is from the first step of a slope to ``at``.
    """

    baseline: pl.DataFrame
    candidate: pl.DataFrame
    noise: float
    at: int | None = None
    way: int = 0


def curve(steps: int) -> Floats:
    """The expected loss of each step."""
    return 2 + 8 * np.exp(-np.arange(steps) / (0.15 * steps))


def noise_of(rng: np.random.Generator, steps: int, spread: float, correlation: float = 0.0) -> Floats:
    """Autoregressive noise."""
    fresh = rng.normal(0, spread, steps)
    values = fresh.copy()
    for at in range(1, steps):
        values[at] = correlation * values[at - 1] + np.sqrt(1 - correlation**2) * fresh[at]
    return values


def printed(losses: Floats, digits: int, batch: int = BATCH) -> pl.DataFrame:
    """The steps of a run whose log prints so many significant digits."""
    values = [float(f"{loss:.{digits - 1}e}") for loss in losses]
    steps = np.arange(1, len(losses) + 1)
    frame = pl.DataFrame({"step": steps, "loss": values, "consumed_samples": steps * batch})
    constant = {"global_batch_size": batch, "seq_length": LENGTH, "segment": 0, "iterations": 1}
    return conform(frame.with_columns(**{name: pl.lit(value) for name, value in constant.items()}), STEP_COLUMNS)


def simulate(
    rng: np.random.Generator, difference: Callable[[int, float], tuple[Floats, int | None, int]] | None = None
) -> Pair:
    """Two trainings on the same batches; ``difference`` gives the relative one, its step, and its way."""
    steps, digits = int(rng.integers(200, 3000)), int(rng.integers(4, 8))
    spread, correlation = float(np.exp(rng.uniform(np.log(0.0002), np.log(0.002)))), float(rng.uniform(0, 0.5))
    # What is printed with few digits has the noise of rounding, too.
    spread = max(spread, 10.0 ** (1 - digits))
    losses = curve(steps) * np.exp(noise_of(rng, steps, BATCH_NOISE))
    apart, at, way = difference(steps, spread) if difference else (np.zeros(steps), None, 0)
    other = losses * np.exp(apart + noise_of(rng, steps, spread, correlation))
    return Pair(printed(losses, digits), printed(other, digits), spread, at, way)


def same_data(rng: np.random.Generator) -> Pair:
    """Noise of rounding alone, as of bf16 and kernels whose order of additions varies."""
    return simulate(rng)


def other_order(rng: np.random.Generator) -> Pair:
    """The same training on batches in another order."""
    steps = int(rng.integers(200, 3000))
    one, two = (curve(steps) * np.exp(noise_of(rng, steps, BATCH_NOISE)) for _ in range(2))
    return Pair(printed(one, 7), printed(two, 5), BATCH_NOISE * np.sqrt(2))


def chaos(rng: np.random.Generator) -> Pair:
    """Rounding that is equal at first and grows to the noise of the training."""
    steps = int(rng.integers(400, 3000))
    losses = curve(steps) * np.exp(noise_of(rng, steps, BATCH_NOISE))
    grown = np.minimum(1e-7 * np.exp(np.arange(steps) / rng.uniform(5, 20)), rng.uniform(0.0002, 0.002))
    return Pair(printed(losses, 7), printed(losses * np.exp(grown * rng.normal(size=steps)), 7), 0.0)


def jump(rng: np.random.Generator) -> Pair:
    """A lasting difference from one step on, as of other data or a broken layer."""

    def difference(steps: int, spread: float) -> tuple[Floats, int, int]:
        at = int(rng.uniform(0.1, 0.9) * steps)
        size = np.exp(rng.uniform(*np.log(JUMPS))) * spread * rng.choice([-1, 1])
        return np.where(np.arange(steps) < at, 0.0, size), at + 1, 0

    return simulate(rng, difference)


def slope(rng: np.random.Generator) -> Pair:
    """A difference that grows, as of a wrong learning rate, from the first step in half of the pairs."""

    def difference(steps: int, spread: float) -> tuple[Floats, int, int]:
        way = int(rng.uniform(0.25, 0.5) * steps)
        begin = int(rng.uniform(0, steps - 2 * way)) if rng.random() < 0.5 else 0
        ramp = np.maximum(np.arange(steps) - begin, 0) * 3 * spread / way
        return ramp * rng.choice([-1, 1]), begin + way + 1, way

    return simulate(rng, difference)


def lost_sample(rng: np.random.Generator) -> Pair:
    """Equal to rounding, then batches that differ by a sample: more noise, no lasting difference."""
    steps, at = 1000, int(rng.integers(100, 900))
    losses = curve(steps) * np.exp(noise_of(rng, steps, BATCH_NOISE))
    spread = np.where(np.arange(steps) < at, 1e-6, 0.002)
    return Pair(printed(losses, 7), printed(losses * np.exp(spread * rng.normal(size=steps)), 7), 1e-6, at + 1)


def divergence(rng: np.random.Generator) -> Pair:
    """The candidate diverges: within ten steps its loss is twice as high, and stays there."""

    def difference(steps: int, _: float) -> tuple[Floats, int, int]:
        at = int(rng.uniform(0.1, 0.9) * steps)
        return np.clip((np.arange(steps) - at) / 10, 0, 1) * np.log(2), at + 1, 0

    return simulate(rng, difference)


def other_batch(rng: np.random.Generator) -> Pair:
    """The candidate has twice the batch; its loss is the same at equal tokens."""
    steps = 2 * int(rng.integers(200, 1000))
    losses = curve(steps) * np.exp(noise_of(rng, steps, BATCH_NOISE))
    other = curve(steps)[1::2] * np.exp(noise_of(rng, steps // 2, BATCH_NOISE / np.sqrt(2)))
    return Pair(printed(losses, 6), printed(other, 6, 2 * BATCH), BATCH_NOISE)


def judged(pair: Pair) -> LossDifference:
    """How the losses of a pair differ."""
    found = compare_losses([pair.baseline], [pair.candidate]).of("loss")
    assert found is not None
    return found


def is_right(pair: Pair, found: LossDifference) -> bool:
    """Whether a lasting difference is found where there is one, near its step, and none elsewhere."""
    parting = found.parting
    assert parting is not None
    if pair.at is None:
        return parting.shape not in LASTING
    return parting.at is not None and abs(parting.at - pair.at) <= (NEAR_SHARE * pair.way if pair.way else NEAR_STEPS)


KINDS = (same_data, other_order, chaos, jump, slope, lost_sample, divergence, other_batch)


def main() -> None:
    """Print for each kind how many pairs are judged correctly, and the shapes that are found."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    print(f"{pairs} pairs of each kind\n\n{'kind':<12} {'right':>5}  shapes")
    for kind in KINDS:
        rng = np.random.default_rng(65)
        each = [(pair, judged(pair)) for pair in (kind(rng) for _ in range(pairs))]
        right = sum(is_right(pair, found) for pair, found in each)
        shapes = Counter(found.parting.shape for _, found in each if found.parting)
        print(f"{kind.__name__:<12} {right:>5}  {', '.join(f'{name} {n}' for name, n in shapes.most_common())}")


if __name__ == "__main__":
    main()
