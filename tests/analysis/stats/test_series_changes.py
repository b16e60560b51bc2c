"""Where the level of a series changed: found where it is, in every kind of noise that nights have."""

import math

import numpy as np
import pytest

from analysis.stats.series_changes import find_changes_or_drift, find_off


def find_changes(values: list[float]) -> list[tuple[int, float]]:
    return find_changes_or_drift(values)[0]


def series(*levels: tuple[float, int], seed: int = 0, noise: float = 0.005) -> list[float]:
    rng = np.random.default_rng(seed)
    return [level * float(np.exp(rng.normal(0, noise))) for level, runs in levels for _ in range(runs)]


@pytest.mark.parametrize("seed", range(10))
def test_changes_are_found_where_they_are(seed):
    found = find_changes(series((1000, 20), (1040, 15), (1010, 25), seed=seed))
    assert [at for at, _ in found] == [20, 35]


@pytest.mark.parametrize("seed", range(10))
def test_noise_is_no_change(seed):
    assert find_changes(series((1000, 100), seed=seed)) == []


def test_few_series_without_a_change_have_one():
    lengths = np.random.default_rng(0).integers(30, 200, 60)
    alarms = [bool(find_changes(series((1000, int(runs)), seed=seed))) for seed, runs in enumerate(lengths)]
    assert sum(alarms) <= 3


def test_a_straight_line_is_a_drift_of_so_much():
    rng = np.random.default_rng(3)
    values = (1000 * np.exp(rng.normal(0, 0.002, 60) + np.linspace(0, 0.03, 60))).tolist()
    changes, drift = find_changes_or_drift(values)
    assert (changes, drift) == ([], pytest.approx(math.expm1(0.03), abs=0.002))
    assert find_changes_or_drift(values[:4])[1] is None


def test_one_run_that_is_off_is_no_change():
    values = series((1000, 40))
    values[20] = 2000.0
    assert find_changes(values) == []


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 3, [1.0] * 50])
def test_series_without_a_change(values):
    assert find_changes(values) == []


def test_a_series_without_noise():
    assert [at for at, _ in find_changes([1000.0] * 5 + [1040.0] * 5)] == [5]


# The kinds of noise of docs/statistics.md, where more series of each are counted.
SERIES, RUNS = range(20), 60


def resembling(rng: np.random.Generator, alike: float) -> np.ndarray:
    """1 % of noise of which neighbours correlate by ``alike``."""
    added = rng.normal(0, 0.01 * np.sqrt(1 - alike**2), RUNS + 100)
    for at in range(1, RUNS + 100):
        added[at] += alike * added[at - 1]
    return added[100:]


def night(kind: str, seed: int) -> list[float]:
    rng = np.random.default_rng(seed)
    values, at = resembling(rng, 0.5 if kind == "alike" else 0.0), int(rng.integers(5, RUNS - 5))
    match kind:
        case "drift":
            values += np.linspace(0, 0.02, RUNS)
        case "off":
            values += (rng.random(RUNS) < 0.05) * rng.uniform(0.05, 0.2, RUNS)
        case "two off":
            values[[at, at + 2]] += 0.15
        case "newest off":
            values[-1] += 0.2
        case "first off":
            values[0] += 0.2
        case "nodes":
            values = values / 2 + rng.choice(rng.normal(0, 0.015, 4), RUNS)
    return (1000 * np.exp(values)).tolist()


@pytest.mark.parametrize(
    ("kind", "most"),
    [("alike", 5), ("drift", 3), ("off", 3), ("two off", 2), ("newest off", 2), ("first off", 2), ("nodes", 1)],
)
def test_nights_without_a_change_have_few(kind, most):
    assert sum(bool(find_changes(night(kind, seed))) for seed in SERIES) <= most


@pytest.mark.parametrize("seed", range(10))
def test_steps_are_found_in_noise_that_is_alike(seed):
    """8 % and back, in 1 % of noise."""
    level = np.repeat([0.0, 0.08, 0.0], 20)
    values = 1000 * np.exp(level + resembling(np.random.default_rng(seed), 0.5))
    found = [at for at, _ in find_changes(values.tolist())]
    assert len(found) == 2
    assert abs(found[0] - 20) <= 1
    assert abs(found[1] - 40) <= 1


def test_the_newest_run_is_off_until_the_next_confirms_it():
    values = series((1000, 30))
    assert (find_off([*values, 1200.0]), find_changes([*values, 1200.0])) == ([30], [])
    confirmed = [*values, 1200.0, 1203.0]
    assert (find_off(confirmed), [at for at, _ in find_changes(confirmed)]) == ([], [30])


def test_one_or_two_runs_between_others_are_off_and_three_are_a_level():
    values = series((1000, 40))
    for runs, changes in ((1, []), (2, []), (3, [20, 23])):
        some = [*values[:20], *[value * 1.2 for value in values[20 : 20 + runs]], *values[20 + runs :]]
        assert [at for at, _ in find_changes(some)] == changes
        assert find_off(some) == ([] if changes else list(range(20, 20 + runs)))
