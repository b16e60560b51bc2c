"""Where simulated pairs of losses part: benchmarks/loss_pairs.py, short."""

import loss_pairs
import numpy as np
import pytest

from analysis.stats.drift import fit_drift
from analysis.stats.parting import FEWEST, find_parting

PAIRS = 25
# Pairs of each kind that may be judged incorrectly.
WRONG = {loss_pairs.jump: 1, loss_pairs.slope: 1}


@pytest.mark.parametrize("kind", loss_pairs.KINDS, ids=lambda kind: kind.__name__)
def test_pairs_of_each_kind_are_judged_correctly(kind):
    rng = np.random.default_rng(1)
    pairs = [kind(rng) for _ in range(PAIRS)]
    right = sum(loss_pairs.is_right(pair, loss_pairs.judged(pair)) for pair in pairs)
    assert right >= PAIRS - WRONG.get(kind, 0)


def test_too_few_places_have_no_parting():
    few = np.zeros(FEWEST - 1)
    assert find_parting(few, few) is None
    assert find_parting(np.zeros(FEWEST), np.zeros(FEWEST)).shape == "within_noise"


def test_a_difference_below_the_last_printed_digit_is_none():
    """A third of the places are one digit higher."""
    differences = np.where(np.arange(300) % 3, 0.0, 0.001)
    assert find_parting(differences, np.full(300, 0.001)).shape == "within_noise"


def test_one_outlier_is_no_level_and_no_drift():
    rng = np.random.default_rng(2)
    differences = rng.normal(0, 0.001, 400)
    differences[300] = 5.0
    assert find_parting(differences, np.zeros(400)).shape == "within_noise"
    assert not fit_drift(np.arange(400.0), differences).is_significant


def test_the_interval_of_the_drift_contains_it():
    rng = np.random.default_rng(3)
    places = np.arange(500.0)
    fits = [fit_drift(places, 1e-5 * places + rng.normal(0, 0.001, 500)) for _ in range(200)]
    assert sum(fit.low <= 1e-5 <= fit.high for fit in fits) >= 180
